import { cpus } from 'node:os';
import { basename, join } from 'node:path';
import { canonicalJson, sha256 } from '../../../base/files/digest.js';
import { publishFile } from '../../../base/files/publish.js';
import { protectingInputs } from '../../../base/files/user-files.js';
import * as is from '../../../base/options/kinds.js';
import { assertWithin } from '../../../base/options/library-arguments.js';
import { needed, type OptionsOf, optional } from '../../../base/options/option.js';
import { splitAtCommas } from '../../../base/options/readers.js';
import { machineFacts } from '../../../engines/identity/target.js';
import type { BackEnd, OpenOptions } from '../../../engines/runtime/back-end.js';
import { storeOptions as stores } from '../../../engines/store/open-stores.js';
import { TrtforgeError } from '../../../errors.js';
import { inPhase, type WorkContext } from '../../../events.js';
import { type FormatId, formatNamed } from '../../../formats/precision/formats/index.js';
import { scorerOptions, speechOptions } from '../../../quality/tasks/options.js';
import type { Recogniser } from '../../../quality/tasks/task.js';
import { picturesOf, renderReport } from '../../../report/pages/report.js';
import { detectionOptions, imageRunOptions } from '../options.js';
import { otherPreparation, passportOf } from '../run/candidate.js';
import { type Variant, variantFolder } from '../run/variant.js';
import { backEndName, backEndNamed, backEndNames, openOptionsFor } from './back-end-names.js';
import { compareVariants, damagedError, errorOf } from './compare-variants.js';
import { type ComparedModel, comparedModels, precisionsWithoutSamples } from './compared-models.js';
import { comparisonReport } from './page.js';
import type { Comparison } from './result.js';
import { readRunRoot, recordNotRun, recordRun } from './run-root.js';
import {
  type ComparedOpening,
  type ConvertedFiles,
  comparedOpenOptions,
  runnableFile,
} from './runnable-file.js';
import { type ComparedTask, taskFor } from './task.js';

export const compareOptions = {
  model: needed(is.text),
  /** `FILE` or `NAME=FILE`. */
  candidates: needed(is.list<string>(), {
    flags: '--candidate <file>',
    describe: 'FILE or NAME=FILE: a typed or Q/DQ model, or an engine, beside MODEL',
    repeat: true,
  }),
  precisions: needed(is.list<FormatId>(), {
    flags: '--precision <types>',
    describe: `also MODEL converted to ${precisionsWithoutSamples.join(', ')}, separated by commas`,
    parse: parsePrecisions,
    repeat: true,
    make: (lists: readonly (readonly FormatId[])[]): readonly FormatId[] => lists.flat(),
  }),
  /** `ort-cpu`, `ort-cuda`, `trt`, … */
  backEnds: needed(is.list<string>(), {
    flags: '--backends <names>',
    describe: `what runs each model, separated by commas: ${backEndNames().join(', ')}; trt builds the engines`,
    parse: splitAtCommas,
    required: '--backends ort-cpu',
  }),
  /** COCO instances, a TSV of images and labels, or a manifest of utterances. */
  data: needed(is.text, {
    flags: '--data <file>',
    describe:
      'what all are scored on: COCO instances (JSON), a TSV of image and label, or a manifest of utterances',
    required: '--data FILE',
  }),
  imagesDir: scorerOptions.imagesDir,
  /** Default: as the passport of an engine states, else `yolo` for detectors, `imagenet` for classifiers. */
  preprocess: optional(is.text),
  ...imageRunOptions,
  ...detectionOptions,
  ...speechOptions,
  /** The run root; default `tmp/compare-<model>/<date and time>`. */
  output: optional(is.text, {
    flags: '-o, --output <folder>',
    describe:
      'the run root; figures of the same identity that are there are kept (default: tmp/compare-MODEL/DATE_TIME)',
    writes: true,
  }),
  /** The options for opening models and engines; a back end is passed those that it honours. */
  open: needed(is.object<ComparedOpening>(comparedOpenOptions)),
  /** Where built engines are kept. */
  store: { ...stores.store, kind: is.text },
};

export interface CompareBackEndsRequest extends OptionsOf<typeof compareOptions> {}

export interface CompareContext extends WorkContext {
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
  assertWithin(compareOptions, request);
  const { model, data, candidates } = request;
  return protectingInputs([model, data, ...candidates], () => compare(request, context));
}

/** Reads models, data and what the run root has. Throws what `compareBackEnds` throws but TF_CANCELLED. */
async function decideComparison(request: CompareBackEndsRequest, context: CompareContext) {
  const chosen = [...new Set(request.backEnds)].map(backEndNamed);
  const task = taskFor(request, context.recognisers ?? []);
  const models = await inPhase('read models', context.emit, () =>
    comparedModels(request.model, request.candidates, request.precisions, context),
  );
  const dataDigest = await inPhase('read data', context.emit, () => task.digest(context));
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
  const { task, root, variants, warnings } = await decideComparison(request, context);
  const ran = new Set<string>();
  const converted: ConvertedFiles = new Map();
  for (const each of variants) {
    const { variant, isKept } = each;
    if (isKept) {
      context.emit?.({ type: 'phase-skipped', phase: variant.name, reason: 'its figures are there already' });
      continue;
    }
    ran.add(variant.name);
    await runVariant(each, task, { root, converted }, request, context);
  }
  return writeComparison(root, { ran, warnings, repeat: context.commandLine ?? null });
}

/** Makes the table, summary and report again from what the folders of a run root state; a damaged file is in the result. Throws TF_EVAL_DATA where no variant is left. */
export async function writeComparison(
  root: string,
  facts: {
    readonly ran: ReadonlySet<string>;
    readonly warnings: readonly string[];
    readonly repeat: string | null;
  },
): Promise<Comparison> {
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
  publishFile(
    join(root, 'report.html'),
    renderReport(report, 'html', [], await picturesOf(report, 'html')).content,
  );
  return result;
}

function parsePrecisions(list: string): readonly FormatId[] {
  return splitAtCommas(list).map((name) => {
    const format = formatNamed(name);
    if (format !== undefined) return format.id;
    throw new TrtforgeError('TF_USAGE', `"${name}" is not a precision.`, {
      remedy: `Pass some of: ${precisionsWithoutSamples.join(', ')}.`,
    });
  });
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
  const { emit, signal } = context;
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
    emit?.({
      type: 'log',
      source: 'trtforge',
      severity: 'warning',
      message: `${variant.name}: ${error.message}`,
    });
  }
}

/** A variant and what it runs. */
interface Planned {
  readonly variant: Variant;
  readonly model: ComparedModel;
  readonly backEnd: BackEnd;
}

/** `tmp/compare-yolov10m/2026-11-23_09-30-00`, in UTC. */
function newRunRoot(model: string, now: Date): string {
  const name = basename(model).replace(/\.[a-z]+$/i, '') || 'model';
  const stamp = now.toISOString().slice(0, 19).replace('T', '_').replaceAll(':', '-');
  return join('tmp', `compare-${name}`, stamp);
}

/** Every model on every back end that takes it; an engine runs on those for engines only, which is stated. */
function plan(
  task: ComparedTask,
  data: string,
  models: readonly ComparedModel[],
  backEnds: readonly BackEnd[],
  open: OpenOptions,
): { readonly planned: readonly Planned[]; readonly warnings: readonly string[] } {
  const warnings: string[] = [];
  const pairs = models.flatMap((model) => {
    const taken = backEnds.filter(({ takes }) => takes === model.kind || canBuild(task, model, takes));
    const left = backEnds.filter((each) => !taken.includes(each)).map(backEndName);
    if (left.length > 0)
      warnings.push(
        model.kind === 'engine'
          ? `${model.file} is an engine: it does not run on ${left.join(', ')}.`
          : `${model.file} has no engines for ${left.join(', ')}: pass their folder, --candidate NAME=FOLDER.`,
      );
    return taken.map((backEnd) => ({ model, backEnd }));
  });
  const planned = pairs.map(({ model, backEnd }, place): Planned => {
    const backEndId = backEndName(backEnd);
    const options = openOptionsFor(backEnd, open);
    const machine = machineFor(backEnd, options);
    const identity = {
      data,
      model: model.digest,
      precision: model.precision,
      backEnd: backEndId,
      machine,
      options,
    };
    return {
      model,
      backEnd,
      variant: {
        schema: 'trtforge.compared-variant/1',
        name: `${model.label}-${backEndId}`,
        task: task.id,
        place,
        model: model.file,
        label: model.label,
        role: model.role,
        backEnd: backEndId,
        machine,
        identity: sha256(canonicalJson(identity)),
        data,
      },
    };
  });
  return { planned, warnings: [...new Set(warnings)] };
}

/** Models of images are built into engines here, bundles by their own verb. */
const canBuild = (task: ComparedTask, { kind }: ComparedModel, takes: BackEnd['takes']): boolean =>
  takes === 'engine' && kind === 'model' && task.id !== 'wer';

function machineFor({ honours }: BackEnd, { device }: OpenOptions): string {
  const processor = cpus()[0]?.model.trim() ?? 'unknown processor';
  return honours.has('device') ? (machineFacts(device).gpu ?? 'no GPU') : processor;
}
