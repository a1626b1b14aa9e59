export interface NativeJob<T> {
  /** Rejects with a TrtforgeError. */
  readonly done: Promise<T>;
  /** Asks the library to stop at its next progress step. 8.6 has no progress monitor: there only killing the process stops a build that runs. */
  cancel(): void;
}

/**
 * What the library says while it works. `severity` is the library's: 0 internal error to 4 verbose. Phases are the outer ones; what goes on `inside` them is
 * told ten times a second: an inner phase at its start (step -1) or after one of its steps.
 */
export type NativeEvent =
  | { readonly type: 'log'; readonly severity: number; readonly message: string }
  | { readonly type: 'phase-start'; readonly phase: string; readonly steps: number }
  | { readonly type: 'step'; readonly phase: string; readonly step: number }
  | { readonly type: 'inside'; readonly phase: string; readonly step: number; readonly steps: number }
  | { readonly type: 'phase-end'; readonly phase: string };
