import type { Tensor } from '../../../formats/tensor/tensor.js';
import type { Pace } from '../back-end.js';
import type { NodePlacement } from './ort-placement.js';

/** Requests of `ort-session.ts` to its child process, and the answers. Plain data: it crosses between processes. */
export type OrtRequest =
  | {
      readonly kind: 'open';
      readonly modelPath: string;
      readonly threads: number | null;
      /** null: on the CPU. */
      readonly cuda: OrtCuda | null;
    }
  | { readonly kind: 'placement' }
  | {
      readonly kind: 'run';
      readonly inputs: readonly (readonly [string, Tensor])[];
      /** How often; the outputs are those of the last. */
      readonly iterations: number;
    }
  | {
      readonly kind: 'measure';
      readonly inputs: readonly (readonly [string, Tensor])[];
      readonly pace: Pace;
    };

export interface OrtCuda {
  readonly device: number;
  /** Empty folder for ONNX Runtime's record of the first run. */
  readonly profileFolder: string;
}

/** Of the first run; null before it, and on the CPU. */
export type OrtPlacement = NodePlacement | null;

export interface OrtOpened {
  /** Version of ONNX Runtime. */
  readonly version: string;
}

export interface OrtAnswer {
  readonly outputs: readonly (readonly [string, Tensor])[];
  /** Of each run, where it happened. */
  readonly ms: readonly number[];
}
