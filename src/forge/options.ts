import type { BuildOptions, PlanBuilder } from '../engines/builder/build.js';
import type { ProfileOrigin } from '../engines/builder/build-result-schema.js';
import type { EngineLoadOptions } from '../engines/runtime/tensorrt/engine-options.js';
import type { WorkContext } from '../events.js';
import type { VerifyRequest } from '../quality/verify/request.js';
import type { RunRootSections } from '../report/kind.js';
import type { Machine } from './environment.js';

/** Phases a user may leave out: the engine, the comparisons, the measurement. */
export const skippablePhases = ['build', 'verify', 'bench'] as const;
export type SkippablePhase = (typeof skippablePhases)[number];

export type ComparisonOptions = Pick<
  VerifyRequest,
  'seed' | 'samples' | 'shapes' | 'ranges' | 'data' | 'atol' | 'rtol' | 'threads'
>;

/** What a user wants forged; all but the model has a default. */
export interface ForgeOptions
  extends Omit<BuildOptions, 'output'>,
    Pick<EngineLoadOptions, 'allowHostCode' | 'weightBudget'> {
  /** The folder the run writes (default: `runs/<model>-<precision>`). */
  readonly runRoot?: string;
  readonly skip?: readonly SkippablePhase[];
  /** How the typed model is compared with the original. */
  readonly verify?: ComparisonOptions;
}

/** A run that is aborted ends the children of the phase at work, and its report is still written. */
export interface ForgeContext extends WorkContext {
  /** The command line of this run, for its result and report; none where a program calls the library. */
  readonly commandLine?: string;
}

/** The same for rooms of this package, each of which may stand in for a part of it. */
export interface ForgeSeams extends ForgeContext {
  /** Where profiles of the options came from, for the result; default: nowhere. */
  readonly profileFrom?: readonly ProfileOrigin[];
  /** Who builds plans; default: the library, in a child process. */
  readonly build?: PlanBuilder;
  /** Default: the machine this runs on. */
  readonly machine?: Machine;
  /** What the report shows of other results in the run root; default nothing. */
  readonly sections?: RunRootSections;
}
