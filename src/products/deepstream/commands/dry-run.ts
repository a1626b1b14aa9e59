import { existsSync } from 'node:fs';
import { decidedBuild, engineSteps, resolvedOf } from '../../../cli/options/dry-run.js';
import { type Plan, type PlanStep, step } from '../../../cli/plan.js';
import { type Work, workOf } from '../../../events.js';
import { engineRequest } from '../builder.js';
import { requestedBuild, type StreamsSetup } from '../setup.js';
import type { DecidedSizing } from '../sizing.js';
import type { StreamsPlan } from '../streams.js';

/** The steps taken over, the steps due, and those that depend on the measured rates; `missing` is why none of it can be done here, or null. */
export async function streamsSteps(
  plan: StreamsPlan,
  setup: StreamsSetup,
  { engines, baseline, due }: DecidedSizing,
  missing: string | null,
  context: Work,
): Promise<Plan> {
  const { request, names, paths, inputs } = plan;
  const measured = [baseline, ...engines.map(({ peak }) => peak)].flatMap((each) => each ?? []);
  const steps: PlanStep[] = [
    ...engines.map(({ engine }) => step('take', engine.path, { detail: 'of an earlier run' })),
    ...measured.map(({ log }) => step('take', log, { detail: 'of an earlier run' })),
  ];
  let resolved: Plan['resolved'] = {};
  for (const each of due) {
    if (each.do === 'measure') steps.push(measureStep(each.batch, paths, setup, missing));
    if (each.do !== 'build') continue;
    const path = paths.engine(each.maxBatch);
    if (missing !== null) {
      const detail = existsSync(path) ? 'an engine is there' : 'with its passport';
      steps.push(step('build', path, { detail: `batch 1 to ${each.maxBatch}, ${detail}`, skipped: missing }));
      continue;
    }
    const engine = { requested: requestedBuild(setup), inputs, paths, work: workOf(context) };
    const build = await decidedBuild(await engineRequest(engine, each.maxBatch), context);
    resolved = resolvedOf(build);
    steps.push(...engineSteps(build), step('write', path, { detail: 'with its passport' }));
  }
  return {
    steps: [...steps, ...laterSteps(plan, due, missing)],
    resolved: {
      ...resolved,
      ...{ name: names.modelName, model: request.model, input: inputs.image },
      ...{ layout: inputs.layout, height: inputs.height, width: inputs.width },
      ...(missing === null
        ? {}
        : {
            precision: setup.build.precision,
            warnings: [
              `${missing} Which engines are there already, and their identities, is not known here.`,
            ],
          }),
    },
  };
}

function measureStep(
  batch: number,
  paths: StreamsPlan['paths'],
  { mode, meter }: StreamsSetup,
  skipped: string | null,
): PlanStep {
  const detail = `batch ${batch} with ${meter}`;
  return step('measure', paths.log(batch), { detail, ms: mode.warmUpMs + mode.durationMs, skipped });
}

/** The steps that depend on the measured rates, and the files written at the end. */
function laterSteps(
  { request, paths }: StreamsPlan,
  due: DecidedSizing['due'],
  missing: string | null,
): readonly PlanStep[] {
  const { fps, maxBatchLimit } = request.limits;
  const last = due.at(-1);
  const stop = last?.do === 'stop' ? last.text : null;
  return [
    step('build', 'engines of twice the batch', {
      detail: `and measure them, up to batch ${maxBatchLimit}, while more streams of ${Math.min(...fps)} fps fit than the batch`,
      skipped: missing ?? stop,
    }),
    ...(request.sensitivity
      ? [step('measure', 'the batches 8 below and 8 above the number of streams', { skipped: missing })]
      : []),
    ...[paths.data, paths.sizing].map((path) => step('write', path, { skipped: missing })),
  ];
}
