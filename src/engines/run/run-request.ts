import type { OpenOptions } from '../runtime/back-end.js';
import type { InputOptions } from './inputs.js';

/** Where the inputs of a run come from. */
export type RunSource =
  | { readonly kind: 'tensor'; readonly name: string; readonly path: string }
  /** Every tensor of an npz archive, by name. */
  | { readonly kind: 'archive'; readonly path: string }
  /** Random values for every input that no file provides. */
  | { readonly kind: 'random' };

/** What `runFile` runs and how. */
export interface RunRequest extends Pick<InputOptions, 'shapes' | 'ranges'>, OpenOptions {
  /** A plan or an ONNX model. */
  readonly file: string;
  readonly sources: readonly RunSource[];
  /** Default 0. */
  readonly seed?: number;
  /** A folder (one npy per output) or a file that ends in .npz; nothing is written without. */
  readonly output?: string;
  /** Default 1. */
  readonly iterations?: number;
}
