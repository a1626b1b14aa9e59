import type { Tensor } from '../../../formats/tensor/tensor.js';
import type { NodePlacement } from './ort-placement.js';

/** What `ort-session.ts` asks its child process, and what that answers. Plain data: it crosses between processes. */
export type OrtRequest =
  | {
      readonly kind: 'open';
      readonly modelPath: string;
      readonly threads: number | null;
      /** null: on the CPU. */
      readonly cuda: OrtCuda | null;
    }
  | { readonly kind: 'placement' }
  | { readonly kind: 'run'; readonly inputs: readonly (readonly [string, Tensor])[] }
  | {
      readonly kind: 'measure';
      readonly inputs: readonly (readonly [string, Tensor])[];
      readonly pace: OrtPace;
    };

export interface OrtCuda {
  readonly device: number;
  /** Empty folder for ONNX Runtime's record of the first run. */
  readonly profileFolder: string;
}

/** Of the first run; null before it, and on the CPU. */
export type OrtPlacement = NodePlacement | null;

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
