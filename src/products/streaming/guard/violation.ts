import type { AssertionKind } from '../contract/contract.js';

/** A promise that was broken while a session ran. */
export interface GuardViolation {
  /** The assertion's id, or `shape:NAME`, `dtype:NAME`, `missing:NAME`, `not-finite:NAME`. */
  readonly rule: string;
  readonly kind: AssertionKind | 'missing' | 'dtype' | 'shape' | 'not-finite';
  readonly tensor: string;
  /** Steps since the stream began. */
  readonly step: number;
  /** What was found, in words and numbers. */
  readonly found: string;
  readonly sentence: string;
}

/** What a guard tells while it watches; calls are made in the step itself, so they must be quick. */
export interface GuardListener {
  /** A step is over: how long it took, and whether the session threw. */
  step(seconds: number, failed: boolean): void;
  violation(violation: GuardViolation): void;
  /** Somebody held an output against a reference: its largest absolute error. */
  error(tensor: string, maxAbs: number): void;
}
