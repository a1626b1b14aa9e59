import type { Violation } from '../../../formats/contract/contract.js';
import type { RecordedLengths } from '../check/recorded-lengths.js';
import type { NonFiniteChunk, TensorDiagnosis } from '../compare/diagnosis.js';
import type { TensorParity } from '../compare/tensor-parity.js';

/** One chunk of a stream, run and judged. */
export interface ChunkOutcome {
  readonly chunk: number;
  readonly pass: boolean;
  readonly copyMs: number;
  readonly runMs: number;
  readonly stateMs: number;
  readonly totalMs: number;
  /** The time that the reference's recorder needed for this step; null where it did not record it. */
  readonly recordedMs: number | null;
  /** Whether buffers were made for a new size of chunk. */
  readonly isFirstOfSize: boolean;
  readonly tensors: readonly TensorParity[];
  /** Why the chunk could not be run; null where it was. */
  readonly error: string | null;
  readonly lengths: {
    readonly recorded: number | null;
    readonly got: number | null;
  };
}

/** The result of a run over a stream. */
export interface StreamOutcome {
  readonly chunks: readonly ChunkOutcome[];
  readonly violations: readonly Violation[];
  /** The lengths in the reference, chunk by chunk. */
  readonly recorded: readonly RecordedLengths[];
  readonly dumps: readonly string[];
  readonly diagnoses: readonly TensorDiagnosis[];
  readonly nonFinite: NonFiniteChunk | null;
  readonly warnings: readonly string[];
  /** A chunk after which a closed loop could not go on. */
  readonly stopped: string | null;
}
