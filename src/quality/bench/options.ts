import * as is from '../../base/options/kinds.js';
import { contextOptions, defaultsOf, needed, type OptionsOf, optional } from '../../base/options/option.js';
import { parseNamedFile, parseValueRange, splitAtCommas } from '../../base/options/readers.js';
import type { RunSource } from '../../engines/run/options.js';
import { loadOptions } from '../../engines/runtime/tensorrt/options.js';
import { TrtforgeError } from '../../errors.js';
import { type Work, workOf } from '../../events.js';
import { type ModeRequest, modeOptions } from '../../tensorrt/trtexec/options.js';

export const defaultMode: ModeRequest = defaultsOf(modeOptions);

/** Which shapes to measure: batches set the open batch axis of the profile, shapes name every input that differs from the profile's optimum. */
export type ShapeRequest =
  | { readonly kind: 'optimum' }
  | { readonly kind: 'batches'; readonly batches: readonly number[] }
  | { readonly kind: 'shapes'; readonly shapes: ReadonlyMap<string, readonly number[]> };

const shapeOptions = {
  kind: needed(is.text),
  batches: optional(is.list<number>()),
  shapes: optional(is.map<readonly number[]>()),
};

/** Where the numbers in the inputs come from. */
export const inputOptions = {
  /** npy files to take. */
  files: needed(is.list<ReturnType<typeof parseNamedFile>>(), {
    flags: '--inputs <name=@file>',
    group: 'Inputs',
    advanced: true,
    describe: 'an npy file to take for an input (default: seeded random numbers)',
    parse: parseNamedFile,
    repeat: true,
  }),
  seed: needed(is.whole(0), {
    flags: '--seed <number>',
    group: 'Inputs',
    describe: 'seed of the random inputs',
    default: 0,
  }),
  /** Ranges to draw from; `name` null is for every input. */
  ranges: needed(is.list<ReturnType<typeof parseValueRange>>(), {
    flags: '--val-range <range>',
    group: 'Inputs',
    advanced: true,
    describe: 'values to draw from, [0,1] for all inputs or x:[0,1] for one',
    parse: parseValueRange,
    repeat: true,
  }),
};

export interface InputRequest extends OptionsOf<typeof inputOptions> {}

/** The files that are passed, and random numbers for the rest. */
export const sourcesOf = ({ files }: InputRequest): readonly RunSource[] => [
  ...files.map((file) => ({ kind: 'tensor' as const, ...file })),
  { kind: 'random' },
];

/** Of an engine and of a model. */
export const measuredOptions = {
  shapes: needed(is.object<ShapeRequest>(shapeOptions)),
  inputs: needed(is.object<InputRequest>(inputOptions)),
  /** Percentiles, 0 to 100, that each spread has beside those of 90, 95 and 99. */
  percentiles: optional(is.list<number>(), {
    flags: '--percentile <list>',
    group: 'Measuring',
    describe: 'percentiles to report beside 90, 95 and 99: 50,99.9',
    parse: parsePercentiles,
  }),
  /** Where raw samples go: `.npz` or `.json`; with several batches the batch is added to the name. */
  samples: optional(is.text, {
    flags: '--samples <file>',
    describe: 'write every sample to a .npz or .json file',
    parse: parseSamplesPath,
    writes: true,
  }),
};

/** The options for one engine alone, not for two in turns. */
export const viewOptions = {
  /** Whether to time each layer too. */
  layers: needed(is.flag, {
    flags: '--layers',
    describe: 'time each layer too, in runs of their own, with the ONNX nodes behind it',
  }),
  samples: measuredOptions.samples,
  /** Whether to measure cold starts too: 5 with the page cache as it is and 5 without the plan and TensorRT in it, a process each. */
  cold: optional(is.flag, {
    flags: '--cold',
    describe:
      'measure new processes too, from their begin to the first answer, with the page cache and without',
  }),
};

/** On which GPU, and how the engine is loaded. */
export const benchPlaceOptions = {
  /** Wait while another bench measures on the same GPU; otherwise that is a warning. */
  wait: needed(is.flag, { flags: '--wait', describe: 'wait while another bench measures on this GPU' }),
  /** Ordinal of the CUDA device. */
  device: needed(is.whole(0), {
    flags: '--device <number>',
    describe: 'which of the visible GPUs measures',
    default: 0,
  }),
  ...loadOptions,
};

export const benchOptions = {
  /** Path of a plan. */
  engine: needed(is.text),
  ...measuredOptions,
  mode: needed(is.object<ModeRequest>(modeOptions)),
  ...viewOptions,
  ...benchPlaceOptions,
};

/** An engine on a GPU. */
export interface BenchRequest extends OptionsOf<typeof benchOptions> {}

/** Number of measurements of both sides, and the limit that decides. */
export const roundsOptions = {
  rounds: needed(is.whole(3, 1000), {
    flags: '--rounds <n>',
    describe: 'how often both sides are measured; the duration is divided among them',
    default: 10,
  }),
  /** Fails when the candidate's time is above this multiple of the reference's. */
  failAbove: optional(is.decimal(0.01, 100), {
    flags: '--fail-above <ratio>',
    describe: "exit 1 when the time is above this multiple of the second side's, 4 when it is undecided",
  }),
};

export const benchCompareOptions = {
  candidate: needed(is.object<BenchRequest>(benchOptions)),
  /**
   * On the same GPU: another `device` is TF_USAGE. The same engine in another mode is a comparison too. Measured at the candidate's
   * shapes where it asks for the same ones or `{ kind: 'optimum' }`, at its own where it asks for other shapes, another batch or other files of inputs.
   */
  reference: needed(is.object<BenchRequest>(benchOptions)),
  ...roundsOptions,
};

/** The request of `benchCompare`. */
export interface BenchCompareRequest extends OptionsOf<typeof benchCompareOptions> {}

function parsePercentiles(list: string): readonly number[] {
  const percentiles = splitAtCommas(list).map(is.decimal(0, 100).parse);
  if (percentiles.length > 0) return [...new Set(percentiles)].sort((a, b) => a - b);
  throw new TrtforgeError('TF_USAGE', `"${list}" is not a list of percentiles.`, {
    remedy: 'Write 50,99.9.',
  });
}

/** The ending decides the format. */
function parseSamplesPath(path: string): string {
  if (/\.(npz|json)$/i.test(path)) return path;
  throw new TrtforgeError('TF_USAGE', `"${path}" ends neither in .npz nor in .json.`, {
    remedy: 'Write samples.npz or samples.json.',
  });
}

export const benchContextOptions = { ...contextOptions, trtexecLog: optional(is.text) };

export interface BenchContext extends Work {
  /** Where the log of trtexec goes, for one batch; default: a name of its own under `bench_logs` in trtforge's cache folder. */
  readonly trtexecLog?: string;
}

/** The context of a measurement, with defaults for what a caller left out. */
export const benchContext = (context: Partial<BenchContext> = {}): BenchContext => ({
  ...context,
  ...workOf(context),
});

/** Everything about measuring an engine at its profile's optimum that nobody stated otherwise: what `forge` and scripts start from. */
export const defaultRequest = (engine: string): BenchRequest => ({
  engine,
  device: 0,
  shapes: { kind: 'optimum' },
  inputs: { seed: 0, ranges: [], files: [] },
  mode: defaultMode,
  layers: false,
  wait: false,
});
