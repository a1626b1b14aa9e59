import * as is from '../base/options/kinds.js';
import { allBut, contextOptions, type OptionsOf, optional } from '../base/options/option.js';
import { buildOptions, type PlanBuilder } from '../engines/builder/options.js';
import type { ProfileOrigin } from '../engines/builder/result.js';
import type { FormatId } from '../formats/precision/formats/index.js';
import type { ConversionOptions } from '../formats/precision/options.js';
import type { CandidateBuild } from '../quality/known-answer/candidate-engines.js';
import type { SampleInfo } from '../quality/verify/judged.js';
import { judgingOptions, type VerifyContext, type VerifyRequest } from '../quality/verify/options.js';
import type { AfterFailure } from '../quality/verify/verify.js';
import type { Heal } from '../report/forge-result.js';
import type { RunRootSections } from '../report/pages/report.js';
import { onlyLoadOptions } from '../tensorrt/trtexec/options.js';
import type { Machine } from './environment.js';

/** Phases a user may leave out: the engine, the comparisons, the measurement. */
export const skippablePhases = ['build', 'verify', 'bench'] as const;
export type SkippablePhase = (typeof skippablePhases)[number];

const HEAL_MS = 5 * 60_000;

type ComparisonOptions = OptionsOf<typeof judgingOptions>;

/** The options of forge; all but the model has a default. */
export const forgeOptions = {
  ...allBut(buildOptions, 'output'),
  ...onlyLoadOptions,
  /** The folder the run writes (default: `runs/<model>-<precision>`). */
  runRoot: optional(is.text, {
    flags: '--run-root <folder>',
    describe: 'where report, engine, typed model and logs go (default: runs/MODEL-PRECISION)',
    writes: true,
  }),
  skip: optional(is.list<SkippablePhase>()),
  /** After a failed comparison, milliseconds for the search of the smallest part that has to be in a higher precision; the engine is then built, verified and measured with it. Default: nothing is searched. */
  heal: optional(is.duration(HEAL_MS), {
    flags: '--heal [limit]',
    describe:
      'after a failed comparison build the engine with the fewest nodes in a higher precision that pass, searched for this long: 90s, 10m (without a value: 5m)',
  }),
  /** The comparison of the typed model with the original. */
  verify: optional(is.object<ComparisonOptions>(judgingOptions)),
};

export interface ForgeOptions extends OptionsOf<typeof forgeOptions> {}

/** A comparison that failed, and what may be changed about it. */
interface HealRequest {
  /** On the samples that the search may see. */
  readonly failed: VerifyRequest;
  /** Of an engine: how it was built. */
  readonly build?: CandidateBuild;
  /** null for an engine that was built as the model is. */
  readonly precision: FormatId | null;
  readonly conversion: ConversionOptions;
  /** What was tried is kept there: a search that ended goes on. */
  readonly folder: string;
  readonly limitMs: number;
}

/** What a search for a part in a higher precision came to. */
export interface Healing {
  /** `found`: a candidate passes. `ended`: the time was over before one did. `none`: none does. */
  readonly outcome: 'found' | 'ended' | 'none';
  /** Whether the search came to its end. */
  readonly isSmallest: boolean;
  /** Nodes by name, what they are in, and the option of a conversion that names them. */
  readonly raised: Pick<Heal['raised'][number], 'to' | 'option'> & { readonly nodes: readonly string[] };
  /** The conversion of what passes. */
  readonly conversion: ConversionOptions;
  /** False: it passes without TF32. */
  readonly tf32: boolean;
  /** Candidates, those of earlier runs too. */
  readonly tried: number;
  /** Samples that judged it. */
  readonly seen: readonly SampleInfo[];
  readonly headline: string;
  readonly reasons: readonly string[];
}

/** Searches the smallest part that has to be in a higher precision. Throws TF_CANCELLED and what converting and running throw. */
export type Healer = (request: HealRequest, context: VerifyContext) => Promise<Healing>;

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
  /** What runs models and engines that are compared; default: every back end there is. */
  readonly backEnds?: VerifyContext['backEnds'];
  /** The report's sections on other results in the run root; default none. */
  readonly sections?: RunRootSections;
  /** The search after a failed comparison; default none. */
  readonly afterFailure?: AfterFailure;
  /** What searches with `heal`; default nothing. */
  readonly healer?: Healer;
}
