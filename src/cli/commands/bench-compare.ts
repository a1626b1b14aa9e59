import { type ExitCode, outcomeExitCodes } from '../../errors.js';
import { benchCompare } from '../../quality/bench/compare.js';
import type { BenchComparison } from '../../quality/bench/result.js';
import { defineCommand } from '../command.js';
import { limited, timeoutOption } from '../options/timeout.js';
import { compareOptions, comparisonRequest } from './bench-options.js';
import { renderComparison } from './bench-text.js';

type Outcome = BenchComparison & { readonly exitCode: ExitCode };

export const command = defineCommand({
  arguments: [
    { name: 'ENGINE', describe: 'the first side: the engine whose times are judged' },
    {
      name: 'OTHER',
      describe: 'the second side: another engine (default: the same one, in another --mode)',
      optional: true,
    },
  ],
  examples: [
    'trtforge bench compare new.engine old.engine --batch 64 --fail-above 1.02',
    'trtforge bench compare model.engine --mode graph',
  ],
  options: { ...compareOptions, ...timeoutOption },
  schema: async () => (await import('../../quality/bench/result.js')).benchComparisonSchema,
  run: limited(async ([engine = '', other], options, context): Promise<Outcome> => {
    const result = await benchCompare(comparisonRequest(engine, other, options), context);
    return { ...result, exitCode: exitCodeOf(result) };
  }),
  render: renderComparison,
});

/** A limit decides where one was passed; without it only an inconclusive comparison is not a success. */
function exitCodeOf({ gate, verdict }: BenchComparison): ExitCode {
  const outcome = gate?.outcome ?? (verdict === 'inconclusive' ? 'inconclusive' : 'pass');
  return outcomeExitCodes[outcome];
}
