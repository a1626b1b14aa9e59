import { basename, extname, join } from 'node:path';
import { publishFile } from '../../base/files/publish.js';
import type { OptionValues } from '../../base/options/option.js';
import { parseNamedFile } from '../../base/options/readers.js';
import { formatBytes, formatMs, formatStatistic, plural } from '../../base/text/quantity.js';
import { guessLine } from '../../engines/run/guessed-run.js';
import { type RunSource, runOptions } from '../../engines/run/options.js';
import { runFile } from '../../engines/run/run-file.js';
import { loadOptions } from '../../engines/runtime/tensorrt/options.js';
import { TrtforgeError } from '../../errors.js';
import { drawnOver } from '../../formats/images/image.js';
import { preparationOptions } from '../../formats/images/preprocess.js';
import { inputOptions } from '../../quality/bench/options.js';
import { checkBeforeUse, checkedSessionOptions } from '../../quality/known-answer/at-load.js';
import { predictionText } from '../../quality/predictions/prediction.js';
import { type RunSample, type RunSamplesResult, runSamples } from '../../quality/predictions/run-samples.js';
import { predictionOverlay } from '../../report/chart/prediction.js';
import { defineCommand, type TextOutput } from '../command.js';
import { text } from '../option.js';
import { placeOptions } from '../options/comparison.js';

const commandOptions = {
  output: runOptions.output,
  inputs: text({
    flags: '--inputs <what>',
    group: 'Inputs',
    describe:
      'random: draw every input that no file has; name=@file.npy, file.npz; or samples, each run alone: images, WAV, npy, a recorded stream, a folder or a list (.txt) of them',
    repeat: true,
  }),
  ...preparationOptions,
  draw: text({
    flags: '--draw <folder>',
    describe:
      'pictures with what the outputs state drawn over them: boxes, the class, or the class of each place',
    writes: true,
  }),
  labels: text({
    flags: '--labels <file>',
    describe: 'names of the classes: one a line, or YAML with "names" (default: those in the ONNX model)',
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
};

export const command = defineCommand({
  arguments: [
    { name: 'FILE', describe: 'a TensorRT engine, or an ONNX model' },
    {
      name: 'INPUTS',
      describe:
        'name=@file.npy for one input, file.npz for all the tensors in it; or samples: pictures, a folder',
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
    'trtforge run yolo.onnx images/ --preprocess yolo --draw out/',
  ],
  options: commandOptions,
  schema: async () => (await import('../../quality/predictions/run-samples.js')).runSamplesResultSchema,
  run: async ([file = '', ...more], options, context): Promise<RunSamplesResult> => {
    await checkBeforeUse(file, options.check, { ...options, ...context });
    const inputs = [...more, ...options.inputs];
    const { commandLine: repeat } = context;
    if (!inputs.some(areSamples)) {
      rejectIdle(
        options,
        ['draw', 'labels', 'preprocess', 'imgsz'],
        'there are no pictures among the inputs',
      );
      return { ...(await runFile({ ...options, file, sources: inputs.map(parseSource) }, context)), repeat };
    }
    rejectIdle(options, ['shapes', 'ranges'], 'the inputs are those of samples');
    if (inputs.includes('random'))
      throw new TrtforgeError('TF_USAGE', 'random has no effect: the inputs are those of samples.', {
        remedy: 'Remove it, or the samples.',
      });
    const request = { ...options, file, samples: inputs, pictures: options.draw !== undefined };
    const { samples, ...result } = await runSamples(request, context);
    const drawn = options.draw === undefined ? samples : await draw(samples, options.draw);
    return { ...result, repeat, samples: drawn.map(({ file: _, ...sample }) => sample) };
  },
  render,
});

type Options = OptionValues<typeof commandOptions>;

/** Throws TF_USAGE for options that these inputs do not need. */
function rejectIdle(options: Options, names: readonly (keyof Options)[], why: string): void {
  for (const name of names) {
    const value = options[name];
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue;
    if (value instanceof Map && value.size === 0) continue;
    const flag = commandOptions[name].flags.split(' ')[0];
    throw new TrtforgeError('TF_USAGE', `${flag} has no effect: ${why}.`, {
      remedy: `Remove ${flag}.`,
      details: { option: flag },
    });
  }
}

/** Whether an input names samples, each of which is run alone. */
function areSamples(value: string): boolean {
  if (value === 'random' || value.includes('=@') || value.endsWith('.npz')) return false;
  if (!value.includes('=')) return true;
  throw new TrtforgeError('TF_USAGE', `"${value}" is not a valid input.`, {
    remedy:
      'Write name=@file.npy for one input, file.npz for all of them, a folder or files of samples, or --inputs random.',
  });
}

function parseSource(value: string): RunSource {
  if (value === 'random') return { kind: 'random' };
  return value.includes('=@')
    ? { kind: 'tensor', ...parseNamedFile(value) }
    : { kind: 'archive', path: value };
}

/** Writes each picture with its prediction drawn over it, by its own name; of equal names the later ones get numbers. */
async function draw(samples: readonly RunSample[], folder: string): Promise<readonly RunSample[]> {
  const taken = new Set<string>();
  const all: RunSample[] = [];
  for (const sample of samples) {
    const { file, prediction } = sample;
    if (file?.picture === undefined || prediction === null) {
      all.push(sample);
      continue;
    }
    const stem = basename(file.path, extname(file.path));
    let name = `${stem}.jpg`;
    for (let number = 2; taken.has(name.toLowerCase()); number++) name = `${stem}-${number}.jpg`;
    taken.add(name.toLowerCase());
    const drawn = join(folder, name);
    publishFile(drawn, await drawnOver(file.path, predictionOverlay(prediction, file.picture)));
    all.push({ ...sample, drawn });
  }
  return all;
}

function render(result: RunSamplesResult, output: TextOutput): void {
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
  for (const { origin, prediction, output: place, drawn } of result.samples ?? []) {
    const files = [place, drawn].filter((path) => path !== null).join('  ');
    output.line(`  ${origin}  ${prediction === null ? '' : predictionText(prediction, '')}  ${dim(files)}`);
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
