import * as is from '../../base/options/kinds.js';
import { formatMs } from '../../base/text/quantity.js';
import { loadOptions } from '../../engines/runtime/tensorrt/options.js';
import { type ExitCode, outcomeExitCodes } from '../../errors.js';
import { checkEngine } from '../../quality/known-answer/engine-check.js';
import type { EngineCheck } from '../../quality/known-answer/result.js';
import { verifyPrecisions } from '../../quality/verify/result.js';
import { defineCommand, type TextOutput } from '../command.js';
import { choice, flag, option, text } from '../option.js';

export const command = defineCommand({
  arguments: [{ name: 'ENGINE', describe: 'a TensorRT engine, which its GPU runs' }],
  examples: [
    'trtforge engine check model.engine',
    'trtforge engine check model.engine --json > check.json',
    'trtforge engine check other.plan --record --against model.onnx --precision fp16',
    'trtforge engine check model.engine --rebuild --against model.onnx',
  ],
  options: {
    repeat: option({
      flags: '--repeat <count>',
      describe: 'how often the same inputs run',
      parse: is.whole(2, 10_000).parse,
      default: 3,
    }),
    record: flag({
      flags: '--record',
      describe:
        'run the model of --against and write its answer beside the engine, for engines that have none',
    }),
    rebuild: flag({
      flags: '--rebuild',
      describe: 'build the engine again from the model of --against, and compare what both give',
    }),
    against: text({ flags: '--against <model>', describe: 'the FP32 ONNX model of the engine' }),
    precision: choice({
      flags: '--precision <type>',
      describe: 'with --record: what the limits are for (default: what the passport states)',
      choices: verifyPrecisions,
      advanced: true,
    }),
    device: option({
      flags: '--device <number>',
      describe: 'which visible GPU runs the engine (default: 0)',
      parse: is.whole(0).parse,
    }),
    ...loadOptions,
  },
  schema: async () => (await import('../../quality/known-answer/result.js')).engineCheckSchema,
  run: async ([engine = ''], options, context): Promise<EngineCheck & { exitCode: ExitCode }> => {
    const result = await checkEngine({ engine, ...options }, context);
    return { ...result, exitCode: outcomeExitCodes[result.outcome] };
  },
  render,
});

function render(result: EngineCheck, output: TextOutput): void {
  const { bold, dim, green, red, yellow } = output.colors;
  const colored = { pass: green('pass'), fail: red('FAIL'), inconclusive: yellow('inconclusive') };
  const where =
    result.gpu === null
      ? ''
      : `  ${dim(`${result.gpu.name}, driver ${result.driver ?? 'unknown'}, ${result.library}`)}`;
  output.line(`${colored[result.outcome]}  ${bold(result.engine)}${where}`);
  for (const { id, case: of, outcome, bitwise, ms, reasons } of result.checks) {
    const bits =
      bitwise === null ? '' : bitwise ? ', the same to the last bit' : ', not the same to the last bit';
    const what = `${id.padEnd(9)} ${outcome === null ? dim('not run') : colored[outcome]}`;
    output.line(`  ${what}  ${dim(`${of ?? ''}${bits}, ${formatMs(ms)}`)}`);
    for (const reason of reasons) output.line(`    ${reason}`);
  }
  for (const each of result.left ?? []) output.line(dim(`  not covered: ${each}`));
  if (result.recorded !== null) output.line(`The known answer is in ${result.recorded}`);
  const shown = new Set(result.checks.flatMap(({ reasons }) => reasons));
  for (const reason of result.reasons) if (!shown.has(reason)) output.line(reason);
  if (result.next !== null) output.line(`${dim('Next:')} ${result.next}`);
}
