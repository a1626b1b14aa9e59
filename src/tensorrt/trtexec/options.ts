import * as is from '../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../base/options/option.js';
import { parseSize } from '../../base/text/quantity.js';
import type { trtexecPrecisions } from '../../behaviour/trtexec.js';

/** A range of one input: dimensions, or the values of a shape tensor; trtexec writes both alike. */
export interface TrtexecRange {
  readonly min: readonly number[];
  readonly opt: readonly number[];
  readonly max: readonly number[];
}

/** Something that a build turns on; the word of `nvinfer1::BuilderFlag` where there is one, in kebab-case. */
export type TrtexecSwitch =
  | 'no-tf32'
  | 'sparse-weights'
  | 'refit'
  | 'strip-plan'
  | 'version-compatible'
  | 'exclude-lean-runtime'
  | 'weight-streaming'
  | 'direct-io'
  | 'safety-scope'
  | 'gpu-fallback'
  | 'enable-tactic-heuristic'
  | 'monitor-memory'
  | 'distributive-independence'
  | 'disable-timing-cache'
  | 'disable-compilation-cache'
  | 'error-on-timing-cache-miss'
  | 'obey-precision-constraints'
  | 'prefer-precision-constraints';

export type TrtexecPrecision = keyof typeof trtexecPrecisions;

export type TrtexecPool = 'workspace' | 'tacticSharedMem' | 'dlaSRAM' | 'dlaLocalDRAM' | 'dlaGlobalDRAM';

/** The build, in no version's terms. `null` leaves the library's default alone. */
export interface TrtexecBuildRequest {
  readonly onnx: string;
  readonly saveEngine: string;
  /** The graph's types decide. Always so on 11; 8.6 cannot. */
  readonly stronglyTyped: boolean;
  /** The precisions that a weakly typed build may use besides FP32. */
  readonly precisions: readonly TrtexecPrecision[];
  readonly switches: readonly TrtexecSwitch[];
  /** One for each optimization profile, by input. */
  readonly profiles: readonly Readonly<Record<string, TrtexecRange>>[];
  /** Limits in bytes. */
  readonly memoryPools: Readonly<Partial<Record<TrtexecPool, number | null>>>;
  readonly optimizationLevel: number | null;
  readonly maxAuxStreams: number | null;
  /** trtexec's own default is 8, the library's 1: it is always passed. */
  readonly avgTimingIterations: number;
  readonly maxTactics: number | null;
  readonly tilingOptimizationLevel: 'none' | 'fast' | 'moderate' | 'full' | null;
  readonly l2LimitForTiling: number | null;
  readonly profilingVerbosity: 'layer-names-only' | 'none' | 'detailed';
  readonly hardwareCompatibility: 'none' | 'ampere-plus' | 'same-compute-capability';
  readonly runtimePlatform: 'same-as-build' | 'windows-amd64';
  /** Exactly these, of `cublas`, `cublas-lt`, `cudnn`, `edge-mask-convolutions`, `jit-convolutions`; null for the default. */
  readonly tacticSources: readonly string[] | null;
  /** `profile-sharing-0806`, `aliased-plugin-io-10-03`, … */
  readonly previewFeatures: readonly string[];
  /** `name:fp16`, for weakly typed builds that obey or prefer precision constraints. */
  readonly layerPrecisions: readonly string[];
  readonly layerOutputTypes: readonly string[];
  readonly timingCache: string | null;
  readonly plugins: TrtexecPlugins;
  readonly device: number;
  readonly verbose: boolean;
}

export interface TrtexecPlugins {
  /** Loaded into the process. */
  readonly static: readonly string[];
  /** Loaded through TensorRT's own registry; those in `serialize` travel inside the plan. */
  readonly dynamic: readonly string[];
  readonly serialize: readonly string[];
}

export const engineLoading = { group: 'Engine loading', advanced: true } as const;

/** Options of loading alone: a verb that also builds has plug-ins and toolchain among its options of the build. */
export const onlyLoadOptions = {
  /** Bytes of weights kept on the GPU, for engines built with weight streaming; default all. */
  weightBudget: optional(is.either(is.whole(0), is.words('automatic')), {
    flags: '--weight-budget <size>',
    ...engineLoading,
    describe:
      'engines with weight streaming: how much of the weights stays on the GPU: 4G, 0 for as little as there can be, automatic (default: all)',
    parse: (value) => (value === 'automatic' ? value : value === '0' ? 0 : parseSize(value)),
  }),
  /** Version-compatible plans carry code that runs in this process: only where this is true. */
  allowHostCode: optional(is.flag, {
    flags: '--allow-host-code',
    ...engineLoading,
    trust: true,
    describe: 'version-compatible engines carry their own runtime: let that code run here',
  }),
};

const measuring = { group: 'Measuring' } as const;

/** The duration and number of runs; names, meaning and defaults as trtexec has them, so that figures compare. */
export const paceOptions = {
  warmUpMs: needed(is.decimal(0, 3_600_000), {
    flags: '--warm-up <ms>',
    ...measuring,
    advanced: true,
    describe: 'milliseconds of inferences that are not counted',
    default: 200,
  }),
  durationMs: needed(is.decimal(0, 86_400_000), {
    flags: '--duration <s>',
    ...measuring,
    describe: 'seconds to measure, for each batch',
    parse: is.decimal(0, 86_400).parse,
    default: 3,
    make: (seconds: number) => seconds * 1000,
  }),
  /** At least this many timed runs of each stream, however long they take. */
  iterations: needed(is.whole(1, 10_000_000), {
    flags: '--iterations <n>',
    ...measuring,
    advanced: true,
    describe: 'at least this many inferences, however long they take',
    default: 10,
  }),
  /** Pause between runs. */
  idleMs: needed(is.decimal(0, 60_000), {
    flags: '--idle <ms>',
    ...measuring,
    advanced: true,
    describe: 'pause between inferences of a stream, milliseconds',
    default: 0,
  }),
};

export interface Pace extends OptionsOf<typeof paceOptions> {}

/** The mode of measuring. */
export const modeOptions = {
  /** Copies inputs and outputs in every inference. */
  transfers: needed(is.flag, {
    flags: '--no-data-transfers',
    ...measuring,
    describe: 'measure the GPU alone: nothing is copied between inferences',
    make: (left: boolean) => !left,
  }),
  graph: needed(is.flag, {
    flags: '--graph',
    ...measuring,
    describe: 'launch inferences as a CUDA graph',
  }),
  spinWait: needed(is.flag, {
    flags: '--spin-wait',
    ...measuring,
    describe: 'the host spins while it waits: steadier short times, a busy core',
  }),
  streams: needed(is.whole(1, 256), {
    flags: '--streams <n>',
    ...measuring,
    advanced: true,
    describe: 'inferences at the same time, each with a context of its own',
    default: 1,
  }),
  ...paceOptions,
};

/** Every default filled in. */
export interface ModeRequest extends OptionsOf<typeof modeOptions> {}

/** The measurement of an engine, in no version's terms; every default filled in, so that all versions measure alike. */
export interface TrtexecBenchRequest extends ModeRequest, OptionsOf<typeof onlyLoadOptions> {
  readonly loadEngine: string;
  /** Inputs whose shape the engine leaves open. */
  readonly shapes: Readonly<Record<string, readonly number[]>>;
  readonly profile: number;
  /** Raw bytes of inputs, by name. */
  readonly inputFiles: Readonly<Record<string, string>>;
  readonly exports: {
    readonly times?: string;
    readonly profile?: string;
    readonly layers?: string;
    readonly output?: string;
  };
  /** Which TensorRT library trtexec opens: the runtime-only ones load nothing but version-compatible plans. */
  readonly runtime: 'full' | 'lean' | 'dispatch';
  readonly plugins: TrtexecPlugins;
  readonly device: number;
  readonly verbose: boolean;
}
