import type { ResolvedBuild } from '../engines/builder/build.js';
import { type DecidedBuild, decideBuild } from '../engines/builder/cache-why.js';
import { openTrust } from '../engines/store/trust.js';
import { ignoreEvents } from '../events.js';
import { buildPhase, keptEngine, whyEngineIdle } from './engine-phases.js';
import { runOf } from './forge.js';
import { convertPhase, resolvePhase, whyNotVerified } from './model-phases.js';
import type { ForgeOptions, ForgeSeams } from './options.js';
import type { Run } from './run-state.js';

/** The plan by which the phases over one model get its engine. */
export interface EnginePlan {
  readonly decided: DecidedBuild;
  /** The engine that stays in its place; null: it is taken from a store or built. */
  readonly kept: string | null;
  /** Whether a phase before the build writes the typed model. */
  readonly isConverted: boolean;
}

/** The work that a run of forge would do. */
export interface ForgePlan {
  /** The folder it would write. */
  readonly runRoot: string;
  /** null with --skip build. */
  readonly engine: EnginePlan | null;
  /** The phases after the decisions, in order, each with the reason why it would be left out, or null. */
  readonly phases: readonly { readonly name: string; readonly skipped: string | null }[];
}

/** Looks for the engine in its place and in the stores; builds and fetches nothing. Throws what `openStores` throws. */
export async function planEngine(
  run: Run,
  prepared: ResolvedBuild,
  signal: AbortSignal | undefined,
): Promise<EnginePlan> {
  const { options, environment } = run;
  const decided = await decideBuild(prepared, options, { signal, environment });
  const kept = await keptEngine(run, prepared, openTrust(options, environment));
  return { decided, kept: kept?.engine ?? null, isConverted: convertPhase(run).skip({ prepared }) === null };
}

/** Decides everything about a run of forge; writes nothing. Throws what its phase resolve ends with. */
export async function planForge(options: ForgeOptions, context: ForgeSeams): Promise<ForgePlan> {
  const run = runOf(options, context);
  const { emit = ignoreEvents, signal } = context;
  const resolve = resolvePhase(run);
  const isSkipped = resolve.skip({}) !== null;
  const prepared = isSkipped ? undefined : (await resolve.run({}, { emit, signal })).found.prepared;
  const convert = convertPhase(run).skip({ prepared });
  return {
    runRoot: run.root.path,
    engine: prepared === undefined ? null : await planEngine(run, prepared, signal),
    phases: [
      { name: 'convert', skipped: convert },
      { name: 'build', skipped: buildPhase(run).skip({ prepared }) },
      { name: 'verify', skipped: whyNotVerified(options, convert === null) },
      { name: 'verify engine', skipped: whyEngineIdle(run, prepared, 'verify') },
      { name: 'bench', skipped: whyEngineIdle(run, prepared, 'bench') },
      { name: 'report', skipped: null },
    ],
  };
}
