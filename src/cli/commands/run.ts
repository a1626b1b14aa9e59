import { parseNamedFile } from '../../base/options/readers.js';
import { formatBytes, formatMs, formatStatistic, plural } from '../../base/text/quantity.js';
import { guessLine } from '../../engines/run/guessed-run.js';
import { runFile } from '../../engines/run/run-file.js';
import { type RunResult, type RunSource, runOptions } from '../../engines/run/run-result.js';
import { loadOptions } from '../../engines/runtime/tensorrt/engine-options.js';
import { TrtforgeError } from '../../errors.js';
import { inputOptions } from '../../quality/bench/request.js';
import { checkBeforeUse, checkedSessionOptions } from '../../quality/known-answer/at-load.js';
import { defineCommand, type TextOutput } from '../command.js';
import { option } from '../option.js';
import { placeOptions } from '../options/comparison.js';

export const command = defineCommand({
  arguments: [
    { name: 'FILE', describe: 'a TensorRT engine, or an ONNX model' },
    {
      name: 'INPUTS',
      describe: 'name=@file.npy for one input, file.npz for all the tensors in it',
      optional: true,
      many: true,
    },
  ],
  examples: [
    'trtforge run resnet50.engine input=@cat.npy -o out/',
    'trtforge run encoder.engine inputs.npz -o outputs.npz --profile 1',
    'trtforge run model.onnx --inputs random --seed 1 --shapes x:4x128 -o reference.npz',
    'trtforge run model.onnx inputs.npz --provider cuda --device 1 -o outputs.npz',
    'trtforge run model.engine --inputs random --iterations 100 --cuda-graph never --json',
  ],
  options: {
    output: runOptions.output,
    inputs: option({
      flags: '--inputs <what>',
      group: 'Inputs',
      describe: 'random: draw every input that no file has; or name=@file.npy, file.npz',
      parse: parseSource,
      repeat: true,
    }),
    seed: runOptions.seed,
    shapes: {
      ...runOptions.shapes,
      describe:
        "shapes of random inputs, as x:1x3x224x224 (default: the profile's optimum, or sizes by name for a model)",
    },
    ranges: {
      ...inputOptions.ranges,
      advanced: undefined,
    },
    iterations: runOptions.iterations,
    profile: runOptions.profile,
    cudaGraph: runOptions.cudaGraph,
    check: checkedSessionOptions.check,
    ...loadOptions,
    ...placeOptions,
    threads: runOptions.threads,
  },
  schema: async () => (await import('../../engines/run/run-result.js')).runResultSchema,
  run: async ([file = '', ...more], options, context): Promise<RunResult> => {
    await checkBeforeUse(file, options.check, { ...options, ...context });
    const sources = [...more.map(parseSource), ...options.inputs];
    const result = await runFile({ ...options, file, sources }, context);
    return { ...result, repeat: context.commandLine };
  },
  render,
});

function parseSource(value: string): RunSource {
  if (value === 'random') return { kind: 'random' };
  if (value.includes('=@')) return { kind: 'tensor', ...parseNamedFile(value) };
  if (value.endsWith('.npz')) return { kind: 'archive', path: value };
  throw new TrtforgeError('TF_USAGE', `"${value}" is not a valid input.`, {
    remedy: 'Write name=@file.npy for one input, file.npz for all of them, or --inputs random.',
  });
}

function render(result: RunResult, output: TextOutput): void {
  const { bold, dim, yellow, red } = output.colors;
  const profile = result.profile === null ? '' : `, profile ${result.profile}`;
  const weights =
    result.weightBudgetBytes === undefined
      ? ''
      : `, ${formatBytes(result.weightBudgetBytes)} of streamed weights kept on the GPU`;
  output.line(`${bold(result.file)}  ${dim(`${result.backend}${profile}${weights}`)}`);
  for (const { name, dtype, shape, from } of result.inputs)
    output.line(`  ${name}  ${dim(`${dtype} [${shape.join(', ')}]`)}  ${from}`);
  const guess = guessLine(result.inputs);
  if (guess !== null) output.line(`  ${dim(guess)}`);
  output.line();
  for (const each of result.outputs) {
    const numbers = (['min', 'mean', 'max'] as const).map((name) => `${name} ${formatStatistic(each[name])}`);
    const odd = [
      each.nan > 0 ? red(`${each.nan} NaN`) : '',
      each.infinite > 0 ? red(`${each.infinite} infinite`) : '',
    ].filter((part) => part !== '');
    output.line(
      `  ${bold(each.name)}  ${dim(`${each.dtype} [${each.shape.join(', ')}]`)}  ${[...numbers, ...odd].join('  ')}${each.file === null ? '' : `  ${each.file}`}`,
    );
  }
  output.line();
  const { first, rest, iterations, openMs } = result.times;
  const repeated = rest === null ? '' : `, then ${formatMs(rest.median)} (median)`;
  output.line(
    dim(`loaded in ${formatMs(openMs)}; ${plural(iterations, 'run')}: ${formatMs(first)}${repeated}`),
  );
  for (const warning of result.warnings) output.line(`${yellow('warning')} ${warning}`);
  output.line(`${dim('To repeat:')} ${result.repeat}`);
}
