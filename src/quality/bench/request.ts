import type { RunSource } from '../../engines/run/run-request.js';
import type { Pace, PlaceOptions } from '../../engines/runtime/back-end.js';
import { type Work, workOf } from '../../events.js';
import type { Toolchain } from '../../tensorrt/toolchain/toolchain.js';
import type { ModeRequest } from '../../tensorrt/trtexec/request.js';

/** trtexec's defaults, so that figures compare. */
export const defaultMode: ModeRequest = {
  transfers: true,
  graph: false,
  spinWait: false,
  streams: 1,
  warmUpMs: 200,
  durationMs: 3000,
  iterations: 10,
  idleMs: 0,
};

/** Which shapes to measure: batches set the open batch axis of the profile, shapes name every input that differs from the profile's optimum. */
export type ShapeRequest =
  | { readonly kind: 'optimum' }
  | { readonly kind: 'batches'; readonly batches: readonly number[] }
  | { readonly kind: 'shapes'; readonly shapes: ReadonlyMap<string, readonly number[]> };

/** Where the numbers in the inputs come from. */
export interface InputRequest {
  readonly seed: number;
  /** Ranges to draw from; `name` null is for every input. */
  readonly ranges: readonly { readonly name: string | null; readonly low: number; readonly high: number }[];
  /** npy files to take instead. */
  readonly files: readonly { readonly name: string; readonly path: string }[];
}

/** The files that are passed, and random numbers for the rest. */
export const sourcesOf = ({ files }: InputRequest): readonly RunSource[] => [
  ...files.map((file) => ({ kind: 'tensor' as const, ...file })),
  { kind: 'random' },
];

/** What every measurement is asked. */
interface MeasuringRequest {
  readonly shapes: ShapeRequest;
  readonly inputs: InputRequest;
  /** Percentiles, 0 to 100, that each spread has beside those of 90, 95 and 99. */
  readonly percentiles?: readonly number[];
  /** Where raw samples go: `.npz` or `.json`; with several batches the batch is added to the name. */
  readonly samples: string | undefined;
}

/** An engine on a GPU. */
export interface BenchRequest extends MeasuringRequest {
  /** Path of a plan. */
  readonly engine: string;
  /** A toolchain, or its name or folder; undefined: the first that loads the engine. */
  readonly toolchain: Toolchain | string | undefined;
  /** The identity that the engine must have. */
  readonly identity?: string | undefined;
  /** Ordinal of the CUDA device. */
  readonly device: number;
  /** Plug-in libraries. */
  readonly plugins: readonly string[];
  readonly allowHostCode: boolean;
  /** Of engines with weight streaming: bytes of weights that stay on the GPU; default all. */
  readonly weightBudget?: number | 'automatic';
  readonly mode: ModeRequest;
  /** Whether to time each layer too. */
  readonly layers: boolean;
  /** Wait while another bench measures on the same GPU; otherwise that is a warning. */
  readonly wait: boolean;
}

/** An ONNX model on ONNX Runtime. */
export interface ModelBenchRequest extends MeasuringRequest, PlaceOptions {
  /** Path of an ONNX file. */
  readonly model: string;
  readonly pace: Pace;
  /** Default true; false, on a GPU only: inputs are there before the first run, and outputs stay there. */
  readonly transfers?: boolean;
}

/** What `benchCompare` is asked. */
export interface BenchCompareRequest {
  readonly candidate: BenchRequest;
  /**
   * On the same GPU: another `device` is TF_USAGE. The same engine in another mode is a comparison too. Measured at the candidate's
   * shapes where it asks for the same ones or `{ kind: 'optimum' }`, at its own where it asks for other shapes, another batch or other files of inputs.
   */
  readonly reference: BenchRequest;
  readonly rounds: number;
  /** Fails when the candidate's time is above this multiple of the reference's. */
  readonly failAbove?: number | undefined;
}

export interface BenchContext extends Work {
  /** Where the log of trtexec goes, for one batch; default: a name of its own under `bench_logs` in trtforge's cache folder. */
  readonly trtexecLog?: string;
}

/** What measuring needs besides its request, with what a caller left out. */
export const benchContext = (context: Partial<BenchContext> = {}): BenchContext => ({
  ...context,
  ...workOf(context),
});

/** Everything about measuring an engine at its profile's optimum that nobody stated otherwise: what `forge` and scripts start from. */
export const defaultRequest = (engine: string): BenchRequest => ({
  engine,
  toolchain: undefined,
  device: 0,
  plugins: [],
  allowHostCode: false,
  shapes: { kind: 'optimum' },
  inputs: { seed: 0, ranges: [], files: [] },
  mode: defaultMode,
  layers: false,
  samples: undefined,
  wait: false,
});
