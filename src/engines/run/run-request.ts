import type { OrtProvider } from '../runtime/onnxruntime/ort-provider.js';
import type { EngineWishes } from '../runtime/tensorrt/engine-options.js';
import type { InputWishes } from './inputs.js';

/** Where the inputs of a run come from. */
export type RunSource =
  | { readonly kind: 'tensor'; readonly name: string; readonly path: string }
  /** Every tensor of an npz archive, by name. */
  | { readonly kind: 'archive'; readonly path: string }
  /** Whatever no file gives is drawn. */
  | { readonly kind: 'random' };

/** What `runFile` is asked; of the wishes for an engine none is taken for a model. */
export interface RunRequest extends Pick<InputWishes, 'shapes' | 'ranges'>, EngineWishes {
  /** A plan or an ONNX model. */
  readonly file: string;
  readonly sources: readonly RunSource[];
  /** Default 0. */
  readonly seed?: number;
  /** A folder (one npy per output) or a file that ends in .npz; nothing is written without. */
  readonly output?: string | undefined;
  /** Default 1. */
  readonly iterations?: number;
  /** Engines, and models with the provider `cuda`: which of the visible GPUs; default 0. */
  readonly device?: number | undefined;
  /** Engines only. */
  readonly profile?: number | undefined;
  /** Models only: what of ONNX Runtime runs them (default `cpu`), and its threads. */
  readonly provider?: OrtProvider | undefined;
  readonly threads?: number | undefined;
}
