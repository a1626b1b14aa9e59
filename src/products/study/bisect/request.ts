import type { CandidateBuild } from '../../../quality/known-answer/candidate-engines.js';
import type { VerifyContext, VerifyRequest } from '../../../quality/verify/request.js';

/** The search of `bisectModel`, and the judge of its candidates. `conversion` is how the candidate was converted, where no passport states it. */
export interface BisectRequest extends VerifyRequest {
  /** The folder that the results are written to; what a run that was stopped tried is found there. */
  readonly output: string;
  /**
   * A shell command that judges a candidate: `{}` is its path, `{model}` that of the ONNX model of a candidate that is an engine. Exit code 0 passes, 1 fails, any
   * other shows nothing.
   */
  readonly check?: string;
  /** At most this many candidates are tried; default 40. */
  readonly budget?: number;
  /** Builds a candidate that is a model, and every model that is tried, and judges the engines. An engine as candidate needs it only for what differs from the defaults. */
  readonly build?: CandidateBuild;
}

export interface BisectContext extends VerifyContext {
  /** The command line that repeats the search, for the error of a cancelled one. */
  readonly commandLine?: string;
}
