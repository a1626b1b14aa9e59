import { join } from 'node:path';
import { publishFile } from '../../../base/files/publish.js';
import { protectingInputs } from '../../../base/files/user-files.js';
import { assertWithin } from '../../../base/options/check.js';
import type { OpenContext } from '../../../engines/runtime/back-end.js';
import { TrtforgeError } from '../../../errors.js';
import { ignoreEvents, inPhase } from '../../../events.js';
import type { Recogniser } from '../../../quality/tasks/recogniser.js';
import { renderReport } from '../../../report/pages/read.js';
import { detectionOptions, imageRunOptions } from '../options.js';
import { otherPreparation, passportOf } from '../run/candidate.js';
import { type Variant, variantFolder } from '../run/variant.js';
import { backEndNamed, openOptionsFor } from './back-end-names.js';
import { comparedModels, type ModelChoice } from './compared-models.js';
import { compareVariants, damagedError, errorOf } from './comparison.js';
import { comparisonReport } from './page.js';
import { newRunRoot, type Planned, plan } from './plan.js';
import type { Comparison } from './result.js';
import { readRunRoot, recordNotRun, recordRun } from './run-root.js';
import { type CompareOpenOptions, type ConvertedFiles, runnableFile } from './runnable-file.js';
import { type ComparedTask, type TaskRequest, taskFor } from './task.js';

export interface CompareBackEndsRequest extends Omit<TaskRequest, keyof ModelChoice>, ModelChoice {
  /** `ort-cpu`, `ort-cuda`, `trt`, … */
  readonly backEnds: readonly string[];
  /** The run root; default `tmp/compare-<model>/<date and time>`. */
  readonly output?: string | undefined;
  /** The options for opening models and engines; a back end is passed those that it honours. */
  readonly open: CompareOpenOptions;
  /** Where built engines are kept. */
  readonly store?: string | undefined;
}

export interface CompareContext extends OpenContext {
  /** The openers of bundles of speech models. */
  readonly recognisers?: readonly Recogniser[];
  /** For the result. */
  readonly commandLine?: string | undefined;
}

/**
 * Evaluates every model on every back end, with the same data, each in a session of its own, and writes a run root: `<variant>-<task>/metrics.json` and
 * comparison.json, summary.md, report.html. A variant whose metrics.json has the same identity is not run again; one that cannot run is recorded with its
 * error. Throws TF_USAGE (back ends, labels), TF_EVAL_MIXED for a run root of other data or settings, TF_CANCELLED, and what reading models and data throws.
 */
export async function compareBackEnds(
  request: CompareBackEndsRequest,
  context: CompareContext = {},
): Promise<Comparison> {
  assertWithin({ ...imageRunOptions, ...detectionOptions }, request);
  const { model, data, candidates } = request;
  return protectingInputs([model, data, ...candidates], () => compare(request, context));
}

/** Reads models, data and what the run root has. Throws what `compareBackEnds` throws but TF_CANCELLED. */
async function decideComparison(request: CompareBackEndsRequest, context: CompareContext) {
  const { emit = ignoreEvents } = context;
  const chosen = [...new Set(request.backEnds)].map(backEndNamed);
  const task = taskFor(request, context.recognisers ?? []);
  const models = await inPhase('read models', emit, () => comparedModels(request, context));
  const dataDigest = await inPhase('read data', emit, () => task.digest(context));
  const { planned, warnings } = plan(task, dataDigest, models, chosen, request.open);
  const root = request.output ?? newRunRoot(request.model, new Date());
  const before = new Map(readRunRoot(root).recorded.map((each) => [each.variant.name, each]));
  for (const { variant, folder } of before.values()) assertSameData(root, folder, variant, dataDigest);
  const variants = planned.map((each) => {
    const known = before.get(each.variant.name);
    const isKept = known?.figures != null && known.variant.identity === each.variant.identity;
    return { ...each, isKept };
  });
  const others = models.flatMap(({ file }) =>
    otherPreparation(passportOf(file), task.preprocess).map((other) => `${file}: ${other}`),
  );
  return { task, root, variants, warnings: [...warnings, ...others] };
}

async function compare(request: CompareBackEndsRequest, context: CompareContext): Promise<Comparison> {
  const { emit = ignoreEvents } = context;
  const { task, root, variants, warnings } = await decideComparison(request, context);
  const ran = new Set<string>();
  const converted: ConvertedFiles = new Map();
  for (const each of variants) {
    const { variant, isKept } = each;
    if (isKept) {
      emit({ type: 'phase-skipped', phase: variant.name, reason: 'its figures are there already' });
      continue;
    }
    ran.add(variant.name);
    await runVariant(each, task, { root, converted }, request, context);
  }
  return writeComparison(root, { ran, warnings, repeat: context.commandLine ?? null });
}

/** Makes the table, summary and report again from what the folders of a run root state; a damaged file is in the result. Throws TF_EVAL_DATA where no variant is left. */
export function writeComparison(
  root: string,
  facts: {
    readonly ran: ReadonlySet<string>;
    readonly warnings: readonly string[];
    readonly repeat: string | null;
  },
): Comparison {
  const { recorded, damaged } = readRunRoot(root);
  const [first, ...others] = recorded;
  if (first === undefined && damaged[0] !== undefined) throw damagedError(join(root, damaged[0]));
  if (first === undefined)
    throw new TrtforgeError('TF_EVAL_DATA', `${root} has no variant of a comparison.`, {
      remedy: 'Pass the folder that `trtforge compare-backends` wrote.',
    });
  const result = compareVariants([first, ...others], { root, damaged, ...facts });
  const report = { kind: comparisonReport, result };
  publishFile(join(root, comparisonReport.file), renderReport(report, 'json').content);
  publishFile(join(root, 'summary.md'), renderReport(report, 'markdown').content);
  publishFile(join(root, 'report.html'), renderReport(report, 'html').content);
  return result;
}

function assertSameData(root: string, folder: string, variant: Variant, data: string): void {
  if (variant.data === data) return;
  throw new TrtforgeError(
    'TF_EVAL_MIXED',
    `${join(root, folder)} was evaluated on other data or with other settings.`,
    { details: { folder, has: variant.data, requested: data } },
  );
}

/** An error of one variant is its record; the others still run. */
async function runVariant(
  { variant, model, backEnd }: Planned,
  task: ComparedTask,
  { root, converted }: { readonly root: string; readonly converted: ConvertedFiles },
  request: CompareBackEndsRequest,
  context: CompareContext,
): Promise<void> {
  const { emit = ignoreEvents, signal } = context;
  try {
    const { open, store } = request;
    const place = { root, converted, imgsz: task.imgsz, open, store };
    const into = { variant, output: join(root, variantFolder(variant)) };
    await inPhase(variant.name, emit, async () => {
      const file = await runnableFile(model, backEnd, place, context);
      await task.run(file, openOptionsFor(backEnd, open), context, into);
    });
    recordRun(root, variant);
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED' || signal?.aborted === true)
      throw error;
    recordNotRun(root, variant, errorOf(error));
    emit({
      type: 'log',
      source: 'trtforge',
      severity: 'warning',
      message: `${variant.name}: ${error.message}`,
    });
  }
}
