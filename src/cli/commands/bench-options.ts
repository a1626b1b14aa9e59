import * as is from '../../base/options/kinds.js';
import { type OptionValues, valuesOf } from '../../base/options/option.js';
import { splitAtCommas } from '../../base/options/readers.js';
import { drawOptions } from '../../engines/run/options.js';
import { TrtforgeError } from '../../errors.js';
import type { benchModel } from '../../quality/bench/bench-model.js';
import {
  type BenchCompareRequest,
  type BenchRequest,
  benchPlaceOptions,
  inputOptions,
  benchOptions as requestOptions,
  roundsOptions,
  type ShapeRequest,
  viewOptions,
} from '../../quality/bench/options.js';
import { type ModeRequest, modeOptions, paceOptions } from '../../tensorrt/trtexec/options.js';
import { option } from '../option.js';
import { placeOptions } from '../options/comparison.js';

const batchOption = option({
  flags: '--batch <list>',
  group: 'Inputs',
  describe: 'batches to measure, 1,8,64: they go into the open first axis of the profile',
  parse: parseBatches,
});
const shapeOption = {
  ...drawOptions.shapes,
  describe: "shapes to measure, as x:1x3x224x224 (default: the profile's optimum)",
};
const { percentiles, samples } = requestOptions;

const { durationMs, ...otherPace } = paceOptions;

const sharedOptions = {
  batch: batchOption,
  shapes: shapeOption,
  ...modeOptions,
  percentiles,
  ...inputOptions,
};

export const benchOptions = { ...sharedOptions, ...viewOptions, ...benchPlaceOptions };

/** For ONNX models: what ONNX Runtime can do. */
export const modelBenchOptions = {
  batch: batchOption,
  shapes: shapeOption,
  ...placeOptions,
  transfers: modeOptions.transfers,
  durationMs,
  ...otherPace,
  percentiles,
  ...inputOptions,
  samples,
};

/** Two engines: what both are measured with, and what only a comparison has. */
export const compareOptions = {
  ...sharedOptions,
  ...benchPlaceOptions,
  mode: option({
    flags: '--mode <changes>',
    describe:
      'what the second side is measured with instead: graph, no-graph, spin-wait, no-spin-wait, transfers, no-transfers, streams=N',
    parse: parseModeWords,
  }),
  layers: viewOptions.layers,
  ...roundsOptions,
};

/** The settings that one side of a comparison changes. */
type ModeChange = Partial<Pick<ModeRequest, 'graph' | 'spinWait' | 'transfers' | 'streams'>>;

const modeWords: Readonly<Record<string, ModeChange>> = {
  graph: { graph: true },
  'no-graph': { graph: false },
  'spin-wait': { spinWait: true },
  'no-spin-wait': { spinWait: false },
  transfers: { transfers: true },
  'no-transfers': { transfers: false },
};

const MODE_WORDS_REMEDY = `Words are ${Object.keys(modeWords).join(', ')} and streams=N.`;

function parseModeWords(list: string): ModeChange {
  const changes = splitAtCommas(list).map(modeChange);
  if (changes.length > 0) return Object.assign({}, ...changes) as ModeChange;
  throw new TrtforgeError('TF_USAGE', `"${list}" is not a list of modes of measuring.`, {
    remedy: MODE_WORDS_REMEDY,
  });
}

function modeChange(word: string): ModeChange {
  const known = Object.hasOwn(modeWords, word) ? modeWords[word] : undefined;
  if (known !== undefined) return known;
  const streams = /^streams=(.+)$/.exec(word)?.[1];
  if (streams !== undefined) return { streams: is.whole(1, 256).parse(streams) };
  throw new TrtforgeError('TF_USAGE', `"${word}" is not a mode of measuring.`, {
    remedy: MODE_WORDS_REMEDY,
  });
}

function parseBatches(list: string): readonly number[] {
  const batches = splitAtCommas(list).map(is.whole(1).parse);
  if (batches.length > 0) return [...new Set(batches)];
  throw new TrtforgeError('TF_USAGE', `"${list}" is not a list of batches.`, { remedy: 'Write 1,8,64.' });
}

/** The options as the bench room takes them. Throws TF_USAGE for options that contradict each other. */
export const benchRequest = (
  engine: string,
  options: Omit<OptionValues<typeof compareOptions>, 'mode' | keyof typeof roundsOptions> &
    Partial<OptionValues<typeof viewOptions>>,
): BenchRequest => ({
  engine,
  ...measuringOf(options),
  mode: valuesOf(modeOptions, options),
  ...valuesOf(benchPlaceOptions, options),
  layers: options.layers ?? false,
  cold: options.cold,
});

const measuringOf = (
  options: Omit<OptionValues<typeof modelBenchOptions>, 'samples' | keyof typeof placeOptions> & {
    readonly samples?: string;
  },
) => ({
  shapes: shapeRequest(options),
  inputs: valuesOf(inputOptions, options),
  samples: options.samples,
  percentiles: options.percentiles,
});

function shapeRequest({
  batch,
  shapes,
}: OptionValues<Pick<typeof benchOptions, 'batch' | 'shapes'>>): ShapeRequest {
  if (batch !== undefined && shapes.size > 0) {
    throw new TrtforgeError('TF_USAGE', '--batch and --shapes contradict each other.', {
      remedy: 'Pass --batch for the open first axis, or --shapes for every input.',
    });
  }
  if (batch !== undefined) return { kind: 'batches', batches: batch };
  return shapes.size === 0 ? { kind: 'optimum' } : { kind: 'shapes', shapes };
}

/** The same for an ONNX model on ONNX Runtime. */
export function modelBenchRequest(
  model: string,
  options: OptionValues<typeof modelBenchOptions>,
): Parameters<typeof benchModel>[0] {
  return {
    model,
    ...valuesOf(placeOptions, options),
    ...measuringOf(options),
    pace: valuesOf(paceOptions, options),
    transfers: options.transfers,
  };
}

/** Both sides of a comparison: the second is another engine, another mode, or both. Throws TF_USAGE where the two sides are one. */
export function comparisonRequest(
  engine: string,
  second: string | undefined,
  options: OptionValues<typeof compareOptions>,
): BenchCompareRequest {
  const { mode, rounds, failAbove } = options;
  if (second === undefined && mode === undefined)
    throw new TrtforgeError('TF_USAGE', `Both sides are ${engine} in one mode.`, {
      remedy: 'Name a second engine, or pass another mode for the second side: --mode graph.',
    });
  const candidate = benchRequest(engine, options);
  const reference = {
    ...candidate,
    ...(second === undefined ? {} : { engine: second, identity: undefined }),
    mode: { ...candidate.mode, ...mode },
  };
  return { candidate, reference, rounds, failAbove };
}
