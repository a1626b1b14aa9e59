import { contextOptions } from '../base/options/context.js';
import * as is from '../base/options/kinds.js';
import { type OptionsOf, optional } from '../base/options/option.js';
import { buildOptions, type PlanBuilder } from '../engines/builder/build.js';
import type { ProfileOrigin } from '../engines/builder/build-result-schema.js';
import { onlyLoadOptions } from '../engines/runtime/tensorrt/engine-options.js';
import { judgingOptions } from '../quality/verify/request.js';
import type { AfterFailure } from '../quality/verify/verify.js';
import type { RunRootSections } from '../report/pages/kind.js';
import type { Machine } from './environment.js';

/** Phases a user may leave out: the engine, the comparisons, the measurement. */
export const skippablePhases = ['build', 'verify', 'bench'] as const;
export type SkippablePhase = (typeof skippablePhases)[number];

export type ComparisonOptions = OptionsOf<typeof judgingOptions>;

const { output: _, ...engineBuildOptions } = buildOptions;

/** The options of forge; all but the model has a default. */
export const forgeOptions = {
  ...engineBuildOptions,
  ...onlyLoadOptions,
  /** The folder the run writes (default: `runs/<model>-<precision>`). */
  runRoot: optional(is.text, {
    flags: '--run-root <folder>',
    describe: 'where report, engine, typed model and logs go (default: runs/MODEL-PRECISION)',
    writes: true,
  }),
  skip: optional(is.list<SkippablePhase>()),
  /** The comparison of the typed model with the original. */
  verify: optional(is.object<ComparisonOptions>(judgingOptions)),
};

export interface ForgeOptions extends OptionsOf<typeof forgeOptions> {}

/** A run that is aborted ends the children of the phase at work, and its report is still written. */
export const forgeContextOptions = {
  ...contextOptions,
  /** The command line of this run, for its result and report; none where a program calls the library. */
  commandLine: optional(is.text),
};

export interface ForgeContext extends OptionsOf<typeof forgeContextOptions> {}

/** The same for rooms of this package, each of which may stand in for a part of it. */
export interface ForgeSeams extends ForgeContext {
  /** Where profiles of the options came from, for the result; default: nowhere. */
  readonly profileFrom?: readonly ProfileOrigin[];
  /** Who builds plans; default: the library, in a child process. */
  readonly build?: PlanBuilder;
  /** Default: the machine this runs on. */
  readonly machine?: Machine;
  /** The report's sections on other results in the run root; default none. */
  readonly sections?: RunRootSections;
  /** The search after a failed comparison; default none. */
  readonly afterFailure?: AfterFailure;
}
