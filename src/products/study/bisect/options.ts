import * as is from '../../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../../base/options/option.js';
import type { CandidateBuild } from '../../../quality/known-answer/candidate-engines.js';
import type { VerifyContext, VerifyRequest } from '../../../quality/verify/options.js';

/** Candidates that are tried where no number is passed. */
export const DEFAULT_BUDGET = 40;

/** A search, besides the comparison that judges its candidates. */
export const searchOptions = {
  /** The folder that the results are written to; what a run that was stopped tried is found there. */
  output: needed(is.text, {
    flags: '-o, --output <folder>',
    describe: 'where results go; what an interrupted run tried is found there',
    writes: true,
    required: '-o bisect',
  }),
  /**
   * A shell command that judges a candidate: `{}` is its path, `{model}` that of the ONNX model of a candidate that is an engine. Exit code 0 passes, 1 fails, any
   * other shows nothing.
   */
  check: optional(is.text, {
    flags: '--check-command <command>',
    describe:
      'judge by a command instead: {} is the candidate, {model} the ONNX model of an engine; exit code 0 passes, 1 fails',
    trust: true,
  }),
  /** At most this many candidates are tried; default 40. */
  budget: optional(is.whole(1, 100_000), {
    flags: '--budget <count>',
    describe: `try at most this many candidates (default: ${DEFAULT_BUDGET})`,
  }),
};

/** The search of `bisectModel`, and the judge of its candidates. `conversion` is how the candidate was converted, where no passport states it. */
export interface BisectRequest extends VerifyRequest, OptionsOf<typeof searchOptions> {
  /** Builds a candidate that is a model, and every model that is tried, and judges the engines. An engine as candidate needs it only for what differs from the defaults. */
  readonly build?: CandidateBuild;
}

export interface BisectContext extends VerifyContext {
  /** The command line that repeats the search, for the error of a cancelled one. */
  readonly commandLine?: string;
}
