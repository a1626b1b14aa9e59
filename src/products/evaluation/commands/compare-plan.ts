import { join } from 'node:path';
import { statIfThere } from '../../../base/files/files.js';
import { decidedBuild, engineSteps } from '../../../cli/build-plan.js';
import { type Plan, type PlanStep, step } from '../../../cli/plan.js';
import { TrtforgeError } from '../../../errors.js';
import { ignoreEvents } from '../../../events.js';
import { type CompareContext, type DecidedComparison, KEPT } from '../compare/compare-backends.js';
import { decideRunnable, type Runnable } from '../compare/runnable-file.js';
import { assertRunsHere } from '../compare/runs-here.js';
import { variantFolder } from '../compare/variant.js';

/** Every variant: what is made for it, that it runs, and where its figures go; one that cannot run here is skipped with its error, as the run records it. */
export async function comparisonSteps(
  { request, task, root, variants, warnings }: DecidedComparison,
  context: CompareContext,
): Promise<Plan> {
  const steps: PlanStep[] = [];
  const made = new Set<string>();
  for (const { variant, model, backEnd, isKept } of variants) {
    const run = (skipped: string | null) => step('run', variant.name, { detail: variant.model, skipped });
    const { open, store } = request;
    try {
      const runnable = isKept
        ? null
        : decideRunnable(model, backEnd, { root, imgsz: task.imgsz, open, store });
      if (runnable === null) {
        steps.push(run(KEPT));
        continue;
      }
      steps.push(...(await makingSteps(runnable, made, context)));
      const engine = model.kind === 'engine' && statIfThere(model.file)?.isFile() ? model.file : null;
      await assertRunsHere(backEnd, engine, open, context.environment ?? process.env);
      steps.push(run(null), step('write', join(root, variantFolder(variant), 'metrics.json')));
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
      steps.push(run(`${error.code} ${error.message}`));
    }
  }
  return {
    steps: [...steps, step('write', root, { detail: 'comparison.json, summary.md, report.html' })],
    resolved: { task: task.id, metric: task.metric.name, root, warnings: [...warnings] },
  };
}

/** The engine or the converted model, once however many back ends take it. */
async function makingSteps(
  runnable: Runnable,
  made: Set<string>,
  { emit = ignoreEvents, signal, environment }: CompareContext,
): Promise<readonly PlanStep[]> {
  if (runnable.is === 'engine')
    return engineSteps(await decidedBuild(runnable.build, { emit, signal, environment }));
  if (runnable.is === 'file' || made.has(runnable.file)) return [];
  made.add(runnable.file);
  const { file, precision, conversions } = runnable;
  const detail = `to ${precision.toUpperCase()}`;
  return [
    ...conversions.flatMap(({ from, to }) => [step('convert', from, { detail }), step('write', to)]),
    ...(conversions.some(({ to }) => to === file) ? [] : [step('write', file)]),
  ];
}
