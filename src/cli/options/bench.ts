import type { Pace } from '../../engines/runtime/back-end.js';
import { TrtforgeError } from '../../errors.js';
import {
  type BenchCompareRequest,
  type BenchRequest,
  defaultMode,
  type ModelBenchRequest,
  type ShapeRequest,
} from '../../quality/bench/request.js';
import type { ModeRequest } from '../../tensorrt/trtexec/request.js';
import { flag, type OptionValues, option } from '../option.js';
import { number, numberNamed, parseNamedFile, parseValueRange, splitAtCommas } from '../values.js';
import { placeOf, placeOptions, seedOption } from './comparison.js';
import { engineOptions } from './engine.js';
import { shapesOf, shapesOption } from './shapes.js';

/** For every command that measures engines. */
export const graphFlag = flag({
  flags: '--graph',
  group: 'Measuring',
  describe: 'launch inferences as a CUDA graph',
});

export const benchOptions = {
  batch: option({
    flags: '--batch <list>',
    group: 'Inputs',
    describe: 'batches to measure, 1,8,64: they go into the open first axis of the profile',
    parse: parseBatches,
  }),
  shapes: shapesOption("shapes to measure, as x:1x3x224x224 (default: the profile's optimum)"),
  noDataTransfers: flag({
    flags: '--no-data-transfers',
    group: 'Measuring',
    describe: 'measure the GPU alone: nothing is copied between inferences',
  }),
  graph: graphFlag,
  spinWait: flag({
    flags: '--spin-wait',
    group: 'Measuring',
    describe: 'the host spins while it waits: steadier short times, a busy core',
  }),
  streams: option({
    flags: '--streams <n>',
    group: 'Measuring',
    advanced: true,
    describe: 'inferences at the same time, each with a context of its own',
    parse: numberNamed('streams'),
    default: defaultMode.streams,
  }),
  warmUp: option({
    flags: '--warm-up <ms>',
    group: 'Measuring',
    advanced: true,
    describe: 'milliseconds of inferences that are not counted',
    parse: numberNamed('warmUpMs'),
    default: defaultMode.warmUpMs,
  }),
  duration: option({
    flags: '--duration <s>',
    group: 'Measuring',
    describe: 'seconds to measure, for each batch',
    parse: number(0, 86_400),
    default: defaultMode.durationMs / 1000,
  }),
  iterations: option({
    flags: '--iterations <n>',
    group: 'Measuring',
    advanced: true,
    describe: 'at least so many inferences, however long they take',
    parse: numberNamed('iterations'),
    default: defaultMode.iterations,
  }),
  idle: option({
    flags: '--idle <ms>',
    group: 'Measuring',
    advanced: true,
    describe: 'pause between inferences of a stream, milliseconds',
    parse: numberNamed('idleMs'),
    default: 0,
  }),
  percentile: option({
    flags: '--percentile <list>',
    group: 'Measuring',
    describe: 'percentiles to report beside 90, 95 and 99: 50,99.9',
    parse: parsePercentiles,
  }),
  inputs: option({
    flags: '--inputs <name=@file>',
    group: 'Inputs',
    advanced: true,
    describe: 'an npy file to take for an input (default: seeded random numbers)',
    parse: parseNamedFile,
    repeat: true,
  }),
  seed: seedOption,
  valRange: option({
    flags: '--val-range <range>',
    group: 'Inputs',
    advanced: true,
    describe: 'values to draw from, [0,1] for all inputs or x:[0,1] for one',
    parse: parseValueRange,
    repeat: true,
  }),
  layers: flag({
    flags: '--layers',
    describe: 'time each layer too, in runs of their own, with the ONNX nodes behind it',
  }),
  samples: option({
    flags: '--samples <file>',
    describe: 'write every sample to a .npz or .json file',
    parse: parseSamplesPath,
    writes: true,
  }),
  wait: flag({ flags: '--wait', describe: 'wait while another bench measures on this GPU' }),
  device: option({
    flags: '--device <number>',
    describe: 'which of the visible GPUs measures',
    parse: numberNamed('device'),
    default: 0,
  }),
  ...engineOptions,
};

export type BenchOptionValues = OptionValues<typeof benchOptions>;

/** For ONNX models: what ONNX Runtime can do. */
export const modelBenchOptions = {
  batch: benchOptions.batch,
  shapes: benchOptions.shapes,
  ...placeOptions,
  noDataTransfers: benchOptions.noDataTransfers,
  duration: benchOptions.duration,
  warmUp: benchOptions.warmUp,
  iterations: benchOptions.iterations,
  idle: benchOptions.idle,
  percentile: benchOptions.percentile,
  inputs: benchOptions.inputs,
  seed: benchOptions.seed,
  valRange: benchOptions.valRange,
  samples: benchOptions.samples,
};

const { layers: _layers, samples: _samples, ...comparedOptions } = benchOptions;

/** Two engines: what both are measured with, but for views of one, and what only a comparison has. */
export const compareOptions = {
  ...comparedOptions,
  mode: option({
    flags: '--mode <changes>',
    describe:
      'what the second side is measured with instead: graph, no-graph, spin-wait, no-spin-wait, transfers, no-transfers, streams=N',
    parse: parseModeWords,
  }),
  rounds: option({
    flags: '--rounds <n>',
    describe: 'how often both sides are measured; the duration is divided among them',
    parse: numberNamed('rounds'),
    default: 10,
  }),
  failAbove: option({
    flags: '--fail-above <ratio>',
    describe: "exit 1 when the time is above this multiple of the second side's, 4 when it is undecided",
    parse: numberNamed('failAbove'),
  }),
};

/** What one side of a comparison changes. */
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

/** The ending decides the format. */
function parseSamplesPath(path: string): string {
  if (/\.(npz|json)$/i.test(path)) return path;
  throw new TrtforgeError('TF_USAGE', `"${path}" ends neither in .npz nor in .json.`, {
    remedy: 'Write samples.npz or samples.json.',
  });
}

function modeChange(word: string): ModeChange {
  const known = Object.hasOwn(modeWords, word) ? modeWords[word] : undefined;
  if (known !== undefined) return known;
  const streams = /^streams=(.+)$/.exec(word)?.[1];
  if (streams !== undefined) return { streams: numberNamed('streams')(streams) };
  throw new TrtforgeError('TF_USAGE', `"${word}" is not a mode of measuring.`, {
    remedy: MODE_WORDS_REMEDY,
  });
}

function parseBatches(list: string): readonly number[] {
  const batches = splitAtCommas(list).map(numberNamed('batch'));
  if (batches.length > 0) return [...new Set(batches)];
  throw new TrtforgeError('TF_USAGE', `"${list}" is not a list of batches.`, { remedy: 'Write 1,8,64.' });
}

function parsePercentiles(list: string): readonly number[] {
  const percentiles = splitAtCommas(list).map(number(0, 100));
  if (percentiles.length > 0) return [...new Set(percentiles)].sort((a, b) => a - b);
  throw new TrtforgeError('TF_USAGE', `"${list}" is not a list of percentiles.`, {
    remedy: 'Write 50,99.9.',
  });
}

/** The options as the bench room takes them. Throws TF_USAGE for options that contradict each other. */
export function benchRequest(engine: string, options: BenchOptionValues): BenchRequest {
  return {
    engine,
    toolchain: options.toolchain,
    identity: options.identity,
    device: options.device,
    plugins: options.plugin,
    allowHostCode: options.allowHostCode,
    weightBudget: options.weightBudget,
    ...measuringOf(options),
    mode: {
      transfers: !options.noDataTransfers,
      graph: options.graph,
      spinWait: options.spinWait,
      streams: options.streams,
      ...paceOf(options),
    },
    layers: options.layers,
    wait: options.wait,
  };
}

type SharedValues = Pick<BenchOptionValues, keyof BenchOptionValues & keyof typeof modelBenchOptions>;

const measuringOf = (options: Omit<SharedValues, 'device'>) => ({
  shapes: shapeRequest(options),
  inputs: { seed: options.seed, ranges: options.valRange, files: options.inputs },
  samples: options.samples,
  percentiles: options.percentile,
});

const paceOf = ({ warmUp, duration, iterations, idle }: Omit<SharedValues, 'device'>): Pace => ({
  warmUpMs: warmUp,
  durationMs: duration * 1000,
  iterations,
  idleMs: idle,
});

function shapeRequest({ batch, shapes }: Pick<BenchOptionValues, 'batch' | 'shapes'>): ShapeRequest {
  if (batch !== undefined && shapes.length > 0) {
    throw new TrtforgeError('TF_USAGE', '--batch and --shapes contradict each other.', {
      remedy: 'Pass --batch for the open first axis, or --shapes for every input.',
    });
  }
  if (batch !== undefined) return { kind: 'batches', batches: batch };
  const named = shapesOf(shapes);
  return named.size === 0 ? { kind: 'optimum' } : { kind: 'shapes', shapes: named };
}

/** The same for an ONNX model on ONNX Runtime. */
export function modelBenchRequest(
  model: string,
  options: OptionValues<typeof modelBenchOptions>,
): ModelBenchRequest {
  return {
    model,
    ...placeOf(options),
    ...measuringOf(options),
    pace: paceOf(options),
    transfers: !options.noDataTransfers,
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
  const candidate = benchRequest(engine, { ...options, layers: false, samples: undefined });
  const reference = {
    ...candidate,
    ...(second === undefined ? {} : { engine: second, identity: undefined }),
    mode: { ...candidate.mode, ...mode },
  };
  return { candidate, reference, rounds, failAbove };
}
