import type { NativeOnnxRuntime } from '../../../addon/onnx-runtime.js';
import type { Observing } from '../../../formats/precision/calibrate/observed-model.js';
import type { Tensor } from '../../../formats/tensor/tensor.js';
import type { Pace } from '../../../tensorrt/trtexec/options.js';
import type { Placement } from './ort-facts.js';
import type { OrtProvider } from './provider-options.js';

/** The calls of `ort-session.ts` on its child process, and the answers. Plain data: it crosses between processes. */
export type OrtChildCall =
  | OrtOpen
  | { readonly kind: 'placement' }
  | {
      readonly kind: 'run';
      readonly inputs: OrtInputs;
      /** Number of runs; the outputs are those of the last. */
      readonly iterations: number;
      readonly state: OrtState;
    }
  | {
      /** Runs once and keeps to itself what the outputs were but for their extremes. */
      readonly kind: 'observe';
      readonly inputs: OrtInputs;
      readonly observing: Observing;
    }
  | { readonly kind: 'observed' }
  /** Frees the model; another may be opened. */
  | { readonly kind: 'close' }
  | {
      readonly kind: 'measure';
      readonly inputs: OrtInputs;
      readonly pace: Pace;
      /** Inputs are copied to the device before the first run, and outputs stay there. */
      readonly resident: boolean;
    };

export interface OrtOpen {
  readonly kind: 'open';
  readonly modelPath: string;
  /** Where external data is; default: beside the model. */
  readonly weightsFolder?: string | undefined;
  readonly threads: number | null;
  /** Whether the model quantizes values to float8, which ONNX Runtime's own rewriting of Q/DQ breaks. */
  readonly isFloat8: boolean;
  /** Whether nodes run as they stand, without any rewriting. */
  readonly isPlain?: boolean;
  /** null: onnxruntime-node runs it, on the CPU, where the addon is not compiled. */
  readonly native: OrtNative | null;
}

export interface OrtNative
  extends Pick<Parameters<NativeOnnxRuntime['open']>[0], 'library' | 'providers' | 'config' | 'device'> {
  readonly provider: OrtProvider;
  readonly allowFallback: boolean;
  /** All outputs of the model. */
  readonly outputs: readonly string[];
}

export type OrtInputs = readonly (readonly [string, Tensor])[];

/** Inputs, and the outputs that become them in the next run without leaving the device. Inputs that a run before gave may be left out. */
export type OrtState = readonly (readonly [input: string, output: string])[];

export interface OrtOpened {
  /** Version of ONNX Runtime. */
  readonly version: string;
  /** The library's own build; null with onnxruntime-node's own binding. */
  readonly buildInfo: string | null;
  /** Version of the TensorRT that the provider loaded. */
  readonly tensorrt: string | null;
}

/** Of the session, before 1.24 of its first run; null before it, and on the CPU. */
export type OrtPlacement = Placement | null;

export interface OrtAnswer {
  readonly outputs: readonly (readonly [string, Tensor])[];
  /** Of each run, where it happened. */
  readonly ms: readonly number[];
}
