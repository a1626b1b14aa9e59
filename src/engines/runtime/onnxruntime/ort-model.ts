import { TrtforgeError } from '../../../errors.js';
import type { OrtAnswer, OrtInputs, OrtOpened, OrtPlacement, OrtState } from './ort-protocol.js';

/** A model that is loaded into this process: through the addon, or through onnxruntime-node. */
export interface OrtModel {
  readonly facts: OrtOpened;
  placement(): OrtPlacement;
  bind(inputs: OrtInputs, options: OrtBinding): OrtCall;
  close(): Promise<void>;
}

export interface OrtBinding {
  readonly state: OrtState;
  readonly resident: boolean;
}

/** A model with one set of inputs, to be run as often as one likes. */
export interface OrtCall {
  run(): Promise<void>;
  /** Of the last run. */
  outputs(): OrtAnswer['outputs'];
}

/** An error of ONNX Runtime in one line; the rest of its text is a trace. */
export function firstLine(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause);
  return message.split('\n')[0]?.trim() ?? message;
}

export const unsupported = (name: string, dtype: string): TrtforgeError =>
  new TrtforgeError('TF_SESSION_BINDING', `${name} is ${dtype}, which cannot be passed to ONNX Runtime.`);
