import type { Assertion } from '../../../formats/contract/contract.js';

/** A contract violation while a session ran. */
export interface GuardViolation {
  /** The assertion's id, or `shape:NAME`, `dtype:NAME`, `missing:NAME`, `not-finite:NAME`. */
  readonly rule: string;
  readonly kind: Assertion['kind'] | 'missing' | 'dtype' | 'shape' | 'not-finite';
  readonly tensor: string;
  /** Steps since the stream began. */
  readonly step: number;
  /** The finding, as a sentence. */
  readonly found: string;
  readonly sentence: string;
}

/** Called by a guard in the step itself, so it must be quick. */
export interface GuardListener {
  /** A step is over: how long it took, and whether the session threw. */
  step(seconds: number, failed: boolean): void;
  violation(violation: GuardViolation): void;
  /** An output was compared with a reference: its largest absolute error. */
  error(tensor: string, maxAbs: number): void;
}
