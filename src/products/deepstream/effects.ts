import type { Work } from '../../events.js';
import type { StreamsMode } from './options.js';
import type { StreamsResult } from './result.js';

/** The two things that sizing streams does to the world. Each has a native and a trtexec implementation, and one in the tests. */

/** An engine that lies in its place and was checked against its passport. */
export interface StreamsEngine {
  readonly maxBatch: number;
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly identity: string;
  /** Time of the build that made it (conversion included), now or earlier. */
  readonly buildSeconds: number;
  /** `tensorrt 10.6.0.26` */
  readonly library: string;
  readonly warnings: readonly string[];
}

export interface StreamsBuilder {
  /** The engine in its place when it is sound and the very one that would be built; null otherwise. */
  find(maxBatch: number): Promise<StreamsEngine | null>;
  /** Builds it into its place, with a log beside it. Errors: those of building. */
  build(maxBatch: number): Promise<StreamsEngine>;
}

/** The facts of a measurement that a log cannot report. Figures are read from the log itself, so that everyone who reads it finds the same. */
export interface MeasuredFacts {
  /** `TensorRT 10.6.0.26`, `trtexec 10.6.0`. */
  readonly backend: string;
  readonly gpu: string | null;
  /** Whether a CUDA graph was used; null where nobody stated. */
  readonly graph: boolean | null;
  /** Activation memory of the context and all memory of the GPU, bytes. */
  readonly contextBytes: number | null;
  readonly gpuBytes: number | null;
  readonly warnings: readonly string[];
}

export interface StreamsMeter {
  readonly tool: 'trtforge' | 'trtexec';
  readonly mode: StreamsMode;
  /** Model of the GPU that measures; null where nobody knows. */
  readonly gpu: string | null;
  /** Measures one batch and leaves its log at `logPath`. Errors: those of loading and measuring. */
  measure(engine: StreamsEngine, batch: number, logPath: string): Promise<MeasuredFacts>;
}

export interface StreamsEffects {
  readonly builder: StreamsBuilder;
  readonly builderName: StreamsResult['builder'];
  readonly meter: StreamsMeter;
  readonly work: Work;
  readonly now?: () => number;
  /** Versions of TensorRT that DeepStream on this machine loads (`deepstreamLibraries`); none: there is no DeepStream. */
  readonly deepstreamLibraries?: readonly string[];
}
