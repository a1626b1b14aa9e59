import type { BuildContext, BuildOptions } from '../engines/builder/build.js';
import { targetText } from '../engines/identity/target.js';
import type { DecidedBuild } from '../engines/store/cache-why.js';
import { type Plan, type PlanStep, step } from './plan.js';
import { missLines } from './text.js';

/** A build as it is decided, and whether a store has its engine. Throws what `resolveBuild` and `openStores` throw. */
export async function decidedBuild(requested: BuildOptions, context: BuildContext): Promise<DecidedBuild> {
  const [{ resolveBuild }, { decideBuild }] = await Promise.all([
    import('../engines/builder/resolve-build.js'),
    import('../engines/store/cache-why.js'),
  ]);
  return decideBuild(await resolveBuild(requested, context), requested, context);
}

/** What a build would do: take its engine from a store, or make and keep it. */
export async function buildPlan(requested: BuildOptions, context: BuildContext): Promise<Plan> {
  const decided = await decidedBuild(requested, context);
  const { output } = decided.build;
  const steps = engineSteps(decided);
  return {
    steps: output === null ? steps : [...steps, step('write', output, { detail: 'with its passport' })],
    resolved: resolvedOf(decided),
  };
}

/** What was decided of a build, for --dry-run. */
export function resolvedOf({ build, why }: DecidedBuild): Plan['resolved'] {
  const { recipe, target } = build.identity;
  return {
    model: build.modelPath,
    name: why.name,
    identity: why.identity,
    target: targetText(target),
    library: `${target.product} ${target.version}`,
    precision: recipe.precision,
    recipe,
    why: why.why,
  };
}

/** From the stores, or made. */
export function engineSteps({ build, why, places }: DecidedBuild): readonly PlanStep[] {
  if (why.engine !== null && !build.forceRebuild)
    return [step('take', why.engine, { detail: `${why.from} store, ${why.rule}` })];
  const { conversion, modelPath, builder } = build;
  const miss = why.why.flatMap((each) => missLines(each).slice(0, 1)).join('; ');
  return [
    ...(conversion === null
      ? []
      : [step('convert', modelPath, { detail: `to ${conversion.precision.toUpperCase()}` })]),
    step('build', why.name, {
      detail: `${builder}; ${build.forceRebuild ? '--force-rebuild' : miss}`,
    }),
    ...(places.local === null ? [] : [step('keep', places.local)]),
    ...(places.remote === null ? [] : [step('upload', places.remote)]),
  ];
}
