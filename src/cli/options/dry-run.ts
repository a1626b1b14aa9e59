import { assertGpuToBuild } from '../../engines/builder/buildable.js';
import type { DecidedBuild } from '../../engines/builder/decide-build.js';
import type { BuildContext, BuildOptions } from '../../engines/builder/options.js';
import type { ProfileOrigin } from '../../engines/builder/result.js';
import { profileText } from '../../engines/identity/build-line.js';
import { readPassport } from '../../engines/identity/passport.js';
import { targetText } from '../../engines/identity/target.js';
import type { EnginePlan } from '../../forge/forge.js';
import { missLines } from '../../report/sentences.js';
import { type Plan, type PlanStep, step } from '../plan.js';

/** A build as it is decided, and whether a store has its engine. Throws what `resolveBuild` and `openStores` throw. */
export async function decidedBuild(requested: BuildOptions, context: BuildContext): Promise<DecidedBuild> {
  const { decideBuild } = await import('../../engines/builder/decide-build.js');
  const { resolveBuild } = await import('../../engines/builder/resolve-build.js');
  return decideBuild(await resolveBuild(requested, context), requested, context);
}

/** The plan of a build: take its engine from a store, or make and keep it. */
export async function buildPlan(
  request: BuildOptions,
  profileFrom: readonly ProfileOrigin[],
  context: BuildContext,
): Promise<Plan> {
  const decided = await decidedBuild(request, context);
  const { output } = decided.build;
  const steps = engineSteps(decided);
  return {
    steps: output === null ? steps : [...steps, step('write', output, { detail: 'with its passport' })],
    resolved: { ...resolvedOf(decided), profileFrom },
  };
}

/** The decisions on a build, for --dry-run. */
export function resolvedOf({ build, why }: DecidedBuild): Plan['resolved'] {
  const { recipe, target } = build.identity;
  return {
    model: build.modelPath,
    name: why.name,
    identity: why.identity,
    target: targetText(target),
    library: `${target.product} ${target.version}`,
    precision: recipe.precision,
    ...(recipe.profiles.length === 0 ? {} : { profiles: recipe.profiles.map(profileText).join('; ') }),
    recipe,
    why: why.why,
  };
}

/** From its place or the stores, or made; its conversion only where no phase before it writes the typed model. */
export function engineSteps(
  { build, why, places }: DecidedBuild,
  { kept, isConverted }: Omit<EnginePlan, 'decided'> = { kept: null, isConverted: false },
): readonly PlanStep[] {
  if (kept !== null) return [step('take', kept, { detail: 'it is in its place' })];
  if (why.engine !== null && !build.forceRebuild)
    return [step('take', why.engine, { detail: `${why.from} store, ${why.rule}` })];
  assertGpuToBuild(build);
  const { conversion, modelPath, builder } = build;
  const { refits } = why;
  const miss = why.why.flatMap((each) => missLines(each).slice(0, 1)).join('; ');
  return [
    ...(conversion === null || isConverted
      ? []
      : [step('convert', modelPath, { detail: `to ${conversion.precision.toUpperCase()}` })]),
    refits !== null && !build.forceRebuild
      ? step('refit', refits.engine, {
          detail: refits.isCompared
            ? `for ${why.name}`
            : `for ${why.name}, or build it where its graph is another`,
        })
      : step('build', why.name, {
          detail: `${builder}; ${build.forceRebuild ? '--force-rebuild' : miss}`,
          // The time of the earlier build, where an engine of this identity is here.
          ms: why.engine === null || why.from === 'remote' ? null : readPassport(why.engine).built.ms,
        }),
    ...(places.local === null ? [] : [step('keep', places.local)]),
    ...(places.remote === null ? [] : [step('upload', places.remote)]),
  ];
}
