import { type ExitCode, outcomeExitCodes } from '../../errors.js';
import { benchAgainst } from '../../quality/bench/against.js';
import type { BenchAgainst } from '../../quality/bench/result.js';
import { defineCommand } from '../command.js';
import { benchOptions, compareOptions, comparisonRequest } from '../options/bench.js';
import { limited, timeoutOption } from '../options/timeout.js';
import { renderAgainst } from './bench-text.js';

type Outcome = BenchAgainst & { readonly exitCode: ExitCode };

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
  options: { ...benchOptions, ...compareOptions, ...timeoutOption },
  schema: async () => (await import('../../quality/bench/result.js')).benchAgainstSchema,
  run: limited(async ([engine = '', other], options, context): Promise<Outcome> => {
    const result = await benchAgainst(comparisonRequest(engine, other, options), context);
    return { ...result, exitCode: exitCodeOf(result) };
  }),
  render: renderAgainst,
});

/** A limit decides where one was passed; without it only a comparison that shows nothing is no success. */
function exitCodeOf({ gate, verdict }: BenchAgainst): ExitCode {
  const outcome = gate?.outcome ?? (verdict === 'inconclusive' ? 'inconclusive' : 'pass');
  return outcomeExitCodes[outcome];
}
