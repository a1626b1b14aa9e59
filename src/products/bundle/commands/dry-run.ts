import { plural } from '../../../base/text/quantity.js';
import { engineSteps, resolvedOf } from '../../../cli/options/dry-run.js';
import { type Plan, type PlanStep, step } from '../../../cli/plan.js';
import { NO_MEASUREMENT } from '../../../engines/builder/shared-timing-caches.js';
import { enginePath } from '../component-run.js';
import { chainCheckOf } from '../options.js';
import type { BundlePlan } from '../plan-bundle.js';

/** Every component's engine, then what runs, then the report. */
export function bundleSteps({
  request,
  components,
  timingCache,
  unusedTimingCache,
  notDecoded,
  warnings,
}: BundlePlan): Plan {
  const { stage, outdir } = request;
  const check = chainCheckOf(request);
  const made = components.flatMap(({ name, onnx, engine }): readonly PlanStep[] => [
    ...(stage === true ? [step('link', onnx, { detail: 'into a clean folder' })] : []),
    ...(engine.isConverted ? [step('convert', onnx, { detail: 'typed model' })] : []),
    ...engineSteps(engine.decided, engine),
    ...(engine.kept === null
      ? [step('write', enginePath(request, name), { detail: 'with its passport' })]
      : []),
  ]);
  const decided = components.map(({ name, engine }) => [name, resolvedOf(engine.decided)] as const);
  const isBuilt = made.some(({ does }) => does === 'build');
  return {
    steps: [
      ...made,
      ...(isBuilt && timingCache !== null ? [step('write', timingCache, { detail: 'timing cache' })] : []),
      ...(unusedTimingCache === null ? [] : [step('write', unusedTimingCache, { skipped: NO_MEASUREMENT })]),
      ...components.map(({ name, smoke }) =>
        step('run', name, { detail: `${smoke.runs}, once`, skipped: smoke.skipped }),
      ),
      ...(check === undefined || notDecoded === undefined
        ? []
        : [
            step('check', 'the chain of components', {
              detail: `${plural(check.samples, 'sample')}, seed ${check.seed}`,
              skipped: notDecoded,
            }),
          ]),
      step('write', outdir, { detail: 'build_report.json, report.html, report.md' }),
    ],
    resolved: {
      meta: request.meta,
      outdir,
      profiles: Object.fromEntries(
        decided.map(([name, { profiles }]) => [name, profiles ?? 'the fixed shapes of the model']),
      ),
      components: Object.fromEntries(decided),
      ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
    },
  };
}
