import type { OpenOptions } from '../../../engines/runtime/back-end.js';
import type { AskedTolerance } from '../../../quality/verify/tolerance.js';
import type { Contract } from '../contract/contract.js';
import type { PassRule } from './chunk-compare.js';
import type { DriftPolicy } from './drift-policy.js';

export const parityModes = ['functional', 'closed-loop'] as const;
/** `functional`: every chunk is given the recorded state. `closed-loop`: only the first one; later ones are given what the candidate left. */
export type ParityMode = (typeof parityModes)[number];

/** What is held against a reference, how, and where: Plain data: it crosses to the process that runs the engine. */
export interface ParityRequest extends Omit<OpenOptions, 'profile'> {
  /** An ONNX model or an engine. */
  readonly candidate: string;
  /** A reference, as `openReference` reads it. */
  readonly reference: string;
  readonly mode: ParityMode;
  /** null: one is drafted from the candidate's inputs and outputs. */
  readonly contract: Contract | null;
  /** Default `tensor`. */
  readonly rule?: PassRule;
  readonly atol?: readonly AskedTolerance[];
  readonly rtol?: readonly AskedTolerance[];
  /** null: drift is told but decides nothing. Default: the seed's criteria. */
  readonly policy?: DriftPolicy | null;
  /** Chunks to run; default all. */
  readonly limit?: number;
  /** Folder for failing chunks, and how many at most; default 5. */
  readonly dump?: string;
  readonly dumpLimit?: number;
  /** The `model_meta.json` of a bundle whose predictor and joint network decode the outputs of both. */
  readonly decoder?: string;
  /** The same of the candidate's own predictor and joint network: each side's encoder is decoded by each side's decoder. */
  readonly swap?: string;
  /** The output that is decided by: what `decoder` decodes (default: the main one), or class scores. */
  readonly taskOutput?: string;
  /** Whether to disturb every state after the stream and see how far the main output moves; default false. */
  readonly sensitivity?: boolean;
  /** Batch sizes to time after the stream, on engines. */
  readonly batches?: readonly number[];
  /** Whether to time the engine on the GPU's clock after the stream; default true. */
  readonly gpuTimes?: boolean;
}
