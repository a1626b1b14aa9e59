import { type DecidedBuild, decideBuild } from '../engines/store/cache-why.js';
import { ignoreEvents } from '../events.js';
import { buildPhase, whyEngineIdle } from './engine-phases.js';
import { runOf } from './forge.js';
import { convertPhase, resolvePhase, whyNotVerified } from './model-phases.js';
import type { ForgeContext, ForgeOptions } from './options.js';

/** What a run of forge would do. */
export interface ForgePlan {
  /** The folder it would write. */
  readonly runRoot: string;
  /** null with --skip build. */
  readonly decided: DecidedBuild | null;
  /** The phases after the decisions, in order, each with the reason why it would be left out, or null. */
  readonly phases: readonly { readonly name: string; readonly skipped: string | null }[];
}

/** Decides everything about a run of forge; writes nothing. Throws what its phase resolve ends with. */
export async function planForge(options: ForgeOptions, context: ForgeContext): Promise<ForgePlan> {
  const run = runOf(options, context);
  const { emit = ignoreEvents, signal } = context;
  const { environment } = run;
  const resolve = resolvePhase(run);
  const isSkipped = resolve.skip({}) !== null;
  const prepared = isSkipped ? undefined : (await resolve.run({}, { emit, signal })).found.prepared;
  const convert = convertPhase(run).skip({ prepared });
  return {
    runRoot: run.root.path,
    decided: prepared === undefined ? null : await decideBuild(prepared, options, { signal, environment }),
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
