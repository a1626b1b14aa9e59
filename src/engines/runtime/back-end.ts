import * as is from '../../base/options/kinds.js';
import { type OptionsOf, optional } from '../../base/options/option.js';
import { parseSetting } from '../../base/options/readers.js';
import type { WorkContext } from '../../events.js';
import type { ByName, NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import type { Pace } from '../../tensorrt/trtexec/options.js';
import type { OrtFacts } from './onnxruntime/ort-facts.js';
import type { RunOptions, Session } from './session.js';
import type { EngineBinding } from './tensorrt/engine-interface.js';
import { engineOptions } from './tensorrt/options.js';

const onnxRuntime = { group: 'ONNX Runtime', advanced: true } as const;

/** Where a model or an engine runs. */
export const placeOptions = {
  /** Which back end runs a model; default `cpu`. */
  provider: optional(is.text, {
    flags: '--provider <provider>',
    describe:
      'models: what of ONNX Runtime runs them (default: cpu); cuda and tensorrt need libraries of their own and are an error without, never the CPU instead',
  }),
  /** Ordinal of the GPU among the visible ones; default 0. */
  device: optional(is.whole(0), {
    flags: '--device <number>',
    describe: 'engines, and models on a GPU: which of the visible GPUs (default: 0)',
  }),
  /** Options of the provider (`use_tf32: '1'`, `trt_engine_cache_enable: '1'`), and session configuration entries, which have a dot in their key. */
  providerOptions: optional(is.object<Readonly<Record<string, string>>>(), {
    flags: '--provider-option <key=value>',
    ...onnxRuntime,
    trust: true,
    describe:
      'models: an option of the provider (use_tf32=1, trt_engine_cache_enable=1), or with a dot in its key an entry of the session',
    parse: parseSetting,
    repeat: true,
    make: Object.fromEntries<string>,
  }),
  /** A libonnxruntime.so, or a folder of an installation; default: what ORT_HOME names, else the first that has the provider. */
  onnxRuntime: optional(is.text, {
    flags: '--onnxruntime <path>',
    ...onnxRuntime,
    trust: true,
    describe:
      'models: the libonnxruntime.so, or a folder of its installation (default: ORT_HOME, else the first that has the provider)',
  }),
  /** Whether nodes that the provider does not take may run elsewhere; without it that is TF_PROVIDER_FALLBACK. */
  allowFallback: optional(is.flag, {
    flags: '--allow-fallback',
    ...onnxRuntime,
    describe: 'models: run nodes elsewhere that the provider does not take; results list them',
  }),
};

export interface PlaceOptions extends OptionsOf<typeof placeOptions> {}

/** Options to open and run a file. Each back end supports some of them; one that is set and not supported is TF_USAGE (see `chooseBackEnd`). */
export const openOptions = {
  ...placeOptions,
  /** Threads within one operator; default one a processor core. */
  threads: optional(is.whole(1, 1024), {
    flags: '--threads <count>',
    describe: 'models: threads of ONNX Runtime (default: one a core)',
  }),
  /** Optimization profile of the runs; default the smallest that takes the shapes. */
  profile: optional(is.whole(0), {
    flags: '--profile <number>',
    describe: 'engines: the optimization profile (default: the smallest that takes the shapes)',
  }),
  ...engineOptions,
};

export interface OpenOptions extends OptionsOf<typeof openOptions> {}

/**
 * The rounding of products. `fp32`: computed in full, and no value is narrower; `tf32`: products may be shortened; `rounded`: computed in float32 and
 * rounded to the model's 16-bit types after each step; `mixed`: 16-bit values are computed as they are; `as-built`: the engine's recipe decides.
 */
export type Arithmetic = 'fp32' | 'tf32' | 'rounded' | 'mixed' | 'as-built';

export interface RepeatedRun {
  /** Of the last iteration. */
  readonly outputs: NamedTensors;
  /** One per iteration, from host memory to host memory, milliseconds. The first also makes buffers. */
  readonly ms: readonly number[];
}

export interface ModelRunOptions extends RunOptions {
  /**
   * Inputs, and the outputs that become them in the next run (`{ cache_in: 'cache_out' }`): these stay on the GPU and are not among the outputs. An input that a
   * run before gave may be left out. It needs the addon.
   */
  readonly state?: Readonly<Record<string, string>>;
}

export interface MeasureOptions extends RunOptions {
  /** Default true; otherwise inputs are on the GPU before the first run, and outputs stay there. */
  readonly transfers?: boolean;
}

/** Runs one after another, timed where they happen; the first timed one begins at 0. Milliseconds. */
export interface PacedRuns {
  readonly startMs: Float64Array;
  readonly ms: Float64Array;
  /** From the first begin to the last end. */
  readonly wallMs: number;
  readonly warmUpRuns: number;
}

/** The facts of a session that are known after its runs, for reports. */
export interface OpenedFacts {
  /** Values that are computed in float32 and rounded to 16 bits. */
  readonly roundedValues: number;
  /** Why runs went on without a CUDA graph, each reason once; null where the back end has none. */
  readonly cudaGraphFallbacks: readonly string[] | null;
  /** Bytes of streamed weights that stay on the GPU; null where weights are not streamed. */
  readonly weightBudgetBytes: number | null;
  /** Largest resident memory of the process that runs it, bytes; null where the system does not report it. */
  readonly peakHostBytes: number | null;
  /** In use on the GPU with the session open, everybody's, bytes; null where it runs on the CPU or NVML does not answer. */
  readonly gpuBytes: number | null;
  /** For the user: nodes that ran somewhere else, for one. */
  readonly warnings: readonly string[];
  /** The ONNX Runtime that ran a model: library, options, placement of nodes; null for other back ends. */
  readonly onnxRuntime: OrtFacts | null;
}

interface OpenedBase extends Session {
  /** Id of the back end. */
  readonly backEnd: string;
  readonly arithmetic: Arithmetic;
  /** Whether a random node with a seed of its own draws the same numbers in every process. */
  readonly seedsRepeat: boolean;
  /** Runs the same inputs `iterations` times. Throws what `run` throws. */
  runRepeatedly(
    inputs: NamedTensors,
    options: RunOptions & { readonly iterations: number; readonly profile?: number },
  ): Promise<RepeatedRun>;
  facts(): Promise<OpenedFacts>;
}

/** An engine: its inputs have profiles. It is measured on the GPU's clock, by `benchEngine`. */
export interface OpenedEngine extends OpenedBase {
  readonly kind: 'engine';
  readonly inputs: readonly EngineBinding[];
  readonly outputs: readonly EngineBinding[];
}

/** A model: dimensions may be open, and sizes for them are guessed. */
export interface OpenedModel extends OpenedBase {
  readonly kind: 'model';
  run(inputs: ByName<Tensor>, options?: ModelRunOptions): Promise<NamedTensors>;
  /** Runs the same inputs at a pace and times each run in the process it happens in: tensors cross once, and no time of theirs is in it. */
  measure(inputs: NamedTensors, pace: Pace, options?: MeasureOptions): Promise<PacedRuns>;
}

/** A file that is open, in a process of its own: what crashes there is an error here (TF_CHILD_DIED). */
export type OpenedSession = OpenedEngine | OpenedModel;

/** Something that runs engines or models. A new one is a file beside the others and a row of `backEnds` (open-session.ts). */
export interface BackEnd {
  readonly id: string;
  /** For messages: `ONNX Runtime on the CPU`. */
  readonly name: string;
  readonly takes: OpenedSession['kind'];
  /** The value of `provider` that chooses it; null where the kind of file alone decides. The first of a kind is the default. */
  readonly provider: string | null;
  readonly honours: ReadonlySet<keyof OpenOptions>;
  /** Throws what loading throws; the options are honoured by this back end. */
  open(path: string, options: OpenOptions, context: WorkContext): Promise<OpenedSession>;
}
