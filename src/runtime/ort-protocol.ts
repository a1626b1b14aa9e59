import type { Tensor } from '../tensor/tensor.js';

/** What `ort-session.ts` asks its child process, and what that answers. Plain data: it crosses between processes. */
export type OrtRequest =
  | { readonly kind: 'open'; readonly modelPath: string; readonly threads: number | null }
  | { readonly kind: 'run'; readonly inputs: readonly (readonly [string, Tensor])[] }
  | {
      readonly kind: 'measure';
      readonly inputs: readonly (readonly [string, Tensor])[];
      readonly pace: OrtPace;
    };

/** How long and how often to run; trtexec's words, trtexec's meaning. */
export interface OrtPace {
  readonly warmUpMs: number;
  readonly durationMs: number;
  /** At least so many timed runs, however long they take. */
  readonly iterations: number;
  /** Pause between runs. */
  readonly idleMs: number;
}

/** Runs one after another, timed where they happen; the first timed one begins at 0. */
export interface OrtMeasured {
  readonly startMs: Float64Array;
  readonly ms: Float64Array;
  /** From the first begin to the last end. */
  readonly wallMs: number;
  readonly warmUpRuns: number;
}

export interface OrtOpened {
  /** Version of ONNX Runtime. */
  readonly version: string;
}

export type OrtAnswer = readonly (readonly [string, Tensor])[];
