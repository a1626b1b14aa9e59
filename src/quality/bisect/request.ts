import type { StoreOptions } from '../../engines/store/open-stores.js';
import type { VerifyContext, VerifyRequest } from '../verify/request.js';

/** What `bisectModel` searches, and what judges a candidate. `conversion` is how the candidate was converted, where it is a model. */
export interface BisectRequest extends VerifyRequest {
  /** The folder that the results are written to; what a run that was stopped tried is found there. */
  readonly output: string;
  /** An npz file with the inputs and outputs of one run: judges in place of what the reference computes on random inputs. */
  readonly recording?: string;
  /** A shell command that judges a candidate, whose path replaces `{}`: exit code 0 passes, 1 fails, any other shows nothing. */
  readonly check?: string;
  /** At most so many candidates are tried; default 40. */
  readonly budget?: number;
  /** Where engines are kept; default as `build`. */
  readonly stores?: StoreOptions;
}

export type BisectContext = VerifyContext;
