import type { Tensor } from '../tensor/tensor.js';

/** What `ort-session.ts` asks its child process, and what that answers. Plain data: it crosses between processes. */
export type OrtRequest =
  | { readonly kind: 'open'; readonly modelPath: string; readonly threads: number | null }
  | { readonly kind: 'run'; readonly inputs: readonly (readonly [string, Tensor])[] };

export interface OrtOpened {
  /** Version of ONNX Runtime. */
  readonly version: string;
}

export type OrtAnswer = readonly (readonly [string, Tensor])[];
