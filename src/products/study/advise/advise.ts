import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { canonicalJson, sha256 } from '../../../base/files/digest.js';
import { protectingInputs } from '../../../base/files/user-files.js';
import { plural } from '../../../base/text/quantity.js';
import { calibrationOf } from '../../../engines/calibration/calibration.js';
import { readSamples, repeatedFiles } from '../../../engines/calibration/read-samples.js';
import {
  FEWEST_SAMPLES,
  MOST_HELD_OUT,
  PART_RULE,
  partOf,
} from '../../../engines/calibration/sample-source.js';
import { digestModelFile } from '../../../engines/identity/model-digest.js';
import { createPending, sweepPending } from '../../../engines/store/pending.js';
import { TrtforgeError } from '../../../errors.js';
import {
  type CalibrationIdentity,
  readCalibration,
  writeCalibration,
} from '../../../formats/precision/calibrate/cache.js';
import type { CalibratedRanges, TensorRange } from '../../../formats/precision/calibrate/ranges.js';
import type { QuantizedFormat } from '../../../formats/precision/formats/format.js';
import {
  defaultFormat,
  type FormatId,
  quantizedFormatNamed,
} from '../../../formats/precision/formats/index.js';
import {
  type Calibration,
  type ConversionOptions,
  conversionRecipe,
} from '../../../formats/precision/options.js';
import type { NamedTensors } from '../../../formats/tensor/tensor.js';
import { packageVersion } from '../../../version.js';
import { convertLine } from '../command-lines.js';
import type { Conversion } from '../conversion.js';
import { withNodeNames } from '../model-nodes.js';
import { firstSamples } from '../run-together.js';
import { BudgetSearch } from './budget-search.js';
import { openFp32Judge } from './fp32-judge.js';
import { type JudgedTensors, judgedTensors } from './judged-tensors.js';
import {
  type AdviseContext,
  type AdviseRequest,
  type Budget,
  DEFAULT_DECIBELS,
  DEFAULT_DROP,
} from './options.js';
import type { Advice } from './result.js';
import { Choices } from './tried-units.js';
import { unitsOf } from './units.js';

/**
 * Finds which nodes of a model a quantized format may have within a budget of accuracy: measures each alone, then takes as many as fit, those first that save
 * most for the error that they make. Writes into `output` what it tried, the ranges, and the chosen model. What an earlier run tried for the same question counts.
 * Throws TF_USAGE, TF_NOT_QUANTIZABLE, TF_CALIBRATION_INVALID (samples, too few of them, FP32 computes NaN of one), TF_BISECT_REFERENCE (FP32 does not repeat), TF_BUDGET_UNREACHABLE, TF_CANCELLED, and what converting, running and
 * scoring throw.
 */
export function advise(request: AdviseRequest, context: AdviseContext = {}): Promise<Advice> {
  return protectingInputs([request.model], () => find(request, context));
}

/** A search with its samples and data read, before anything is converted or run. */
interface DecidedAdvice {
  readonly format: QuantizedFormat;
  readonly budget: Budget;
  readonly samples: HeldOut;
  readonly judged: JudgedTensors;
  /** Of the data of the task; null without one. */
  readonly taskDigest: string | null;
}

/** Reads samples and data, and opens the model; writes nothing. Throws what `advise` throws before it converts. */
async function decideAdvice(request: AdviseRequest, context: AdviseContext): Promise<DecidedAdvice> {
  const { model, precision } = request;
  const format = quantizedFormatNamed(precision);
  if (format === undefined)
    throw new TrtforgeError(
      'TF_USAGE',
      `${precision} is not a quantized format, so there is nothing to choose.`,
      {
        remedy:
          'Pass --precision int8, fp8, int4 or nvfp4. `trtforge bisect` finds what must stay FP32 in 16 bits.',
      },
    );
  const budget = budgetOf(request, context);
  const samples = await heldOutSamples(request, context);
  const judged = await judgedTensors(model, request.conversion);
  if (judged.names.length === 0)
    throw new TrtforgeError('TF_USAGE', `${model} has no floating-point output to compare.`);
  return { format, budget, samples, judged, taskDigest: (await context.scorer?.digest()) ?? null };
}

async function find(request: AdviseRequest, context: AdviseContext): Promise<Advice> {
  const started = performance.now();
  const startedAt = new Date().toISOString();
  const { precision, output } = request;
  const decided = await decideAdvice(request, context);
  const { format, budget, samples, judged } = decided;
  sweepPending(output);
  const pending = createPending(output);
  try {
    const model = await withNodeNames(request.model, join(output, 'named.onnx'), context.signal);
    const ranges = join(output, 'calibration.json');
    const options = optionsOf(request, ranges);
    const { units, choices } = await openChoices(
      { model, precision, options },
      decided,
      request,
      pending.folder,
      context,
    );
    const search = new BudgetSearch(units, choices, budget, context);
    const found = await search.run(format.activations);
    const chosenPath = join(output, 'chosen.onnx');
    await choices.write(found.units, chosenPath);
    const rest = request.conversion.rest ?? defaultFormat.id;
    return {
      schema: 'trtforge.convert-advise/1',
      version: packageVersion(),
      startedAt,
      totalMs: performance.now() - started,
      model: request.model,
      precision,
      rest,
      samples: {
        calibration: samples.calibrating,
        heldOut: samples.tensors.length,
        rule: samples.rule,
      },
      judged: [...judged.names],
      budget,
      ...search.summary(found, format.label),
      ruledOut: units.ruledOut.map((each) => ({ ...each })),
      tried: choices.tried,
      output: chosenPath,
      calibration: ranges,
      convert: convertLine(
        { model, precision, options: { ...request.conversion, rest } },
        choices.change(found.units),
        chosenPath,
        ['--calibration-cache', ranges],
      )!,
      repeat: null,
    };
  } finally {
    pending.remove();
  }
}

/** The options of each conversion; the ranges are observed once and kept in a file. */
function optionsOf(
  { data, method, heldOut, preparation, conversion }: AdviseRequest,
  ranges: string,
): ConversionOptions {
  const part = heldOut.length === 0 ? ({ part: 'calibration' } as const) : {};
  const observed = calibrationOf({ data, method, ...part, ...preparation });
  return { ...conversion, calibration: rememberedRanges(observed, ranges) };
}

/** The units of a model, and what tries choices of them; candidates are written into `work`. Throws what running FP32 throws. */
async function openChoices(
  conversion: Conversion & { readonly precision: FormatId },
  { samples, judged, taskDigest }: DecidedAdvice,
  { output, threads }: AdviseRequest,
  work: string,
  context: AdviseContext,
) {
  const { model, precision, options } = conversion;
  const shapes = [...samples.tensors[0]!].map(([name, { shape }]) => [name, shape] as const);
  const units = await unitsOf(model, precision, options, new Map(shapes));
  const judge = await openFp32Judge(model, judged, samples.tensors, { work, threads, context });
  const question = await questionOf(conversion, samples.tensors, taskDigest);
  const place = { folder: output, question, path: join(work, 'candidate.onnx') };
  return { units, choices: new Choices(conversion, units, judge, place, context) };
}

function budgetOf({ budget }: AdviseRequest, { scorer }: AdviseContext): Budget {
  if (budget?.kind === 'metric' && scorer === undefined)
    throw new TrtforgeError('TF_USAGE', 'The budget is in the metric of a task, and no task is there.', {
      remedy: 'Pass what the model is scored on, --data FILE, or a budget in decibels: --budget 30dB.',
    });
  if (budget !== undefined) return budget;
  return scorer === undefined
    ? { kind: 'sqnr', db: DEFAULT_DECIBELS }
    : { kind: 'metric', drop: DEFAULT_DROP };
}

interface HeldOut {
  readonly tensors: readonly NamedTensors[];
  readonly calibrating: number | null;
  readonly rule: string;
}

/** The samples that nothing is calibrated on. Throws TF_USAGE without data, TF_CALIBRATION_INVALID where none is left. */
async function heldOutSamples(
  { model, data, heldOut, preparation, threads }: AdviseRequest,
  context: AdviseContext,
): Promise<HeldOut> {
  if (data.length === 0)
    throw new TrtforgeError('TF_USAGE', 'There are no samples to calibrate and to judge with.', {
      remedy: 'Pass samples of the inputs: --calibration FILE.',
    });
  const isDivided = heldOut.length === 0;
  let total: number | null = null;
  const message = repeatedFiles(heldOut);
  if (message !== null) context.emit?.({ type: 'log', source: 'trtforge', severity: 'warning', message });
  const sources = readSamples(isDivided ? data : heldOut, preparation);
  const parts = isDivided ? [partOf(sources, 'held-out', (samples) => (total = samples))] : sources;
  const tensors = await firstSamples(model, parts, MOST_HELD_OUT, { threads, context });
  if (tensors.length === 0 || (total ?? FEWEST_SAMPLES) < FEWEST_SAMPLES)
    throw new TrtforgeError(
      'TF_CALIBRATION_INVALID',
      isDivided
        ? `${data.join(', ')} has ${plural(total ?? 0, 'sample')}, too few to hold some out.`
        : `${heldOut.join(', ')} has no sample.`,
      { remedy: `Pass at least ${FEWEST_SAMPLES} samples, or others to judge by: --held-out FILE.` },
    );
  return {
    tensors,
    calibrating: isDivided ? (total === null ? null : total - tensors.length) : null,
    rule: isDivided
      ? PART_RULE
      : `judged by the first ${MOST_HELD_OUT} samples of ${heldOut.join(', ')}; all of ${data.join(', ')} calibrate`,
  };
}

/** All that decides a choice besides its units. */
export const questionOf = async (
  { model, precision, options }: Conversion & { readonly precision: FormatId },
  samples: readonly NamedTensors[],
  task: string | null,
) => ({
  model: await digestModelFile(model),
  conversion: conversionRecipe(precision, options),
  heldOut: digestOf(samples),
  task,
});

const digestOf = (samples: readonly NamedTensors[]): string =>
  sha256(
    canonicalJson(
      samples.map((sample) =>
        [...sample].map(([name, { dtype, shape, bytes }]) =>
          [name, dtype, shape.join('x'), sha256(bytes)].join(' '),
        ),
      ),
    ),
  );

/** The same calibration, whose ranges of a model are observed once and kept in a file, so that each further conversion costs no run. */
export function rememberedRanges(calibration: Calibration, path: string): Calibration {
  let known: Map<string, TensorRange> | undefined;
  return {
    ...calibration,
    calibrate: async (model, tensors, context) => {
      const { digest, method } = calibration;
      const identity: CalibrationIdentity = {
        data: digest(),
        method,
        dtype: context.dtype ?? 'weights',
        model: await digestModelFile(model),
      };
      known ??= new Map(keptRanges(path, identity));
      const ranges = known;
      const missing = tensors.filter((name) => {
        const range = ranges.get(name);
        return range === undefined || (context.channels.has(name) && range.channels === undefined);
      });
      if (missing.length > 0) {
        for (const [name, range] of await calibration.calibrate(model, missing, context))
          ranges.set(name, range);
        writeCalibration(path, identity, ranges);
      }
      return new Map(tensors.flatMap((name) => (ranges.has(name) ? [[name, ranges.get(name)!]] : [])));
    },
  };
}

/** None where there is no file, or one of other data, another method or another model. */
function keptRanges(path: string, identity: CalibrationIdentity): CalibratedRanges {
  if (!existsSync(path)) return new Map();
  try {
    return readCalibration(path, identity).ranges;
  } catch (error) {
    if (error instanceof TrtforgeError && error.code === 'TF_CALIBRATION_INVALID') return new Map();
    throw error;
  }
}
