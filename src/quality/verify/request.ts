import type { ConversionWishes } from '../../engines/identity/conversion.js';
import type { InputWishes } from '../../engines/run/inputs.js';
import type { EngineWishes } from '../../engines/runtime/tensorrt/engine-options.js';
import type { AskedTolerance, VerifyPrecision } from './tolerance.js';

/** What `verifyModel` is asked; the wishes for an engine are for a candidate that is one. */
export interface VerifyRequest extends InputWishes, EngineWishes {
  /** An ONNX file. */
  readonly reference: string;
  /** An ONNX file or an engine. */
  readonly candidate: string;
  /** What the tolerances are for; default: the lowest precision that the candidate computes in, which of an engine its passport says. */
  readonly precision?: VerifyPrecision;
  /** Default 0. */
  readonly seed?: number;
  /** How many sets of inputs; default 3. */
  readonly samples?: number;
  readonly atol?: readonly AskedTolerance[];
  readonly rtol?: readonly AskedTolerance[];
  /** Of an engine: which of the visible GPUs runs it; default 0. */
  readonly device?: number | undefined;
  /** How the candidate was converted from the reference, where the caller knows: what repairs a failure is tried on top of it. */
  readonly conversion?: ConversionWishes;
  /** Threads of ONNX Runtime; default one a core. */
  readonly threads?: number;
}
