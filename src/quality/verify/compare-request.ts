import type { JudgeRules } from './judged.js';
import type { OutputSetOptions } from './output-set.js';

/** What `compareOutputs` is asked. */
export interface CompareRequest extends Partial<JudgeRules> {
  /** Files or folders (see `openOutputSet`). */
  readonly candidate: string;
  readonly reference: string;
  readonly candidateRunner?: string;
  readonly referenceRunner?: string;
  /** The reference's name of each output that the candidate calls otherwise: candidate's name to reference's. */
  readonly names?: ReadonlyMap<string, string>;
  /** Only these of the reference's outputs; default all. */
  readonly outputs?: readonly string[];
  /** Compare values of different types; else that breaks the contract. */
  readonly allowDtypeDifference?: boolean;
  readonly voidDtype?: OutputSetOptions['voidDtype'];
}
