import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { chosenGpu, visibleGpus } from '../../../addon/gpus.js';
import { assertNotInput, protectingInputs } from '../../../base/files/user-files.js';
import { plural } from '../../../base/text/quantity.js';
import { digestModelFile } from '../../../engines/identity/model-digest.js';
import { isEngineFile } from '../../../engines/plan/header.js';
import { createPending, sweepPending } from '../../../engines/store/pending.js';
import { TrtforgeError } from '../../../errors.js';
import { type FormatId, formatIds, quantizedFormatNamed } from '../../../formats/precision/formats/index.js';
import { type ConversionOptions, conversionRecipe } from '../../../formats/precision/options.js';
import { CandidateEngines } from '../../../quality/known-answer/candidate-engines.js';
import { checkRules } from '../../../quality/verify/judged.js';
import { hasTypedInput, precisionBetween } from '../../../quality/verify/precision.js';
import { measure } from '../../../quality/verify/result.js';
import { digestsOf } from '../../../quality/verify/sample-plan.js';
import { type OpenedSide, SampleRuns } from '../../../quality/verify/sample-runs.js';
import { packageVersion } from '../../../version.js';
import { convertLine } from '../command-lines.js';
import { type Conversion, writeChange } from '../conversion.js';
import { innerTensors } from '../fusions.js';
import { madeTensors } from '../made-tensors.js';
import { withNodeNames } from '../model-nodes.js';
import { Candidates, candidateTrials } from './candidates.js';
import { type Finding, searchLevels, unsearched } from './causes.js';
import { checkFacts } from './check-line.js';
import { type Judge, type Judgement, openJudge } from './judge.js';
import { type BisectContext, type BisectRequest, DEFAULT_BUDGET } from './options.js';
import { type Failing, type Reduction, reduceFailure, type Suspected } from './reduce.js';
import type { BisectResult } from './result.js';
import { suspectsOf } from './suspects.js';

/**
 * Finds what makes a bad model or engine fail: of an engine TF32 or a fusion, of 16-bit models and engines the smallest set of nodes that must stay FP32.
 * Converts the reference with more and fewer nodes in FP32, for an engine builds it with other freedoms and outputs, judges each candidate, and writes into
 * `output` what it tried and the model that passes. What an earlier run tried for the same question counts.
 * Throws TF_BISECT_REFERENCE where the reference cannot judge, TF_USAGE for a model without 16-bit values, TF_OUTPUT_IS_INPUT, and what converting, building, opening and running throw.
 */
export async function bisectModel(
  request: BisectRequest,
  context: BisectContext = {},
): Promise<BisectResult> {
  const { reference, candidate } = request;
  return protectingInputs([reference, candidate], () => bisect(request, context));
}

/** A search before anything is built or run. */
interface DecidedBisect {
  /** Of an engine, with the place where it runs, and the engine as the candidate. */
  readonly request: BisectRequest;
  readonly engines: CandidateEngines | null;
  /** Of the reference. */
  readonly digest: string;
  /** null where an engine was built of the reference as it is. */
  readonly precision: FormatId | null;
  readonly options: ConversionOptions;
  readonly budget: number;
  /** See `Candidates`; default: none is too late. */
  readonly until?: number;
  /** No tensor becomes an output. */
  readonly keepsOutputs?: boolean;
}

/**
 * Reads the models and passports of a search; writes nothing. Throws TF_USAGE, TF_GPU_UNAVAILABLE for engines that could not run, and what reading models,
 * verifying engines and resolving builds throw.
 */
export async function decideBisect(requested: BisectRequest, context: BisectContext): Promise<DecidedBisect> {
  checkRules(requested);
  const engines = await CandidateEngines.decide(requested, context);
  // Nothing is built that could not be judged; a back end of the caller's may run engines elsewhere.
  if (engines !== null && requested.check === undefined && context.backEnds === undefined)
    chosenGpu(visibleGpus(), engines.place.device ?? 0, 'Running an engine needs an NVIDIA GPU');
  const digest = await digestModelFile(requested.reference, context);
  const conversion = conversionOf(requested, engines, digest);
  const data = requested.data && { ...requested.data, profiles: engines?.recipe.profiles };
  const request =
    engines === null ? requested : { ...requested, ...engines.place, candidate: engines.engine, data };
  return { request, engines, digest, ...conversion, budget: requested.budget ?? DEFAULT_BUDGET };
}

async function bisect(requested: BisectRequest, context: BisectContext): Promise<BisectResult> {
  const startedAt = new Date().toISOString();
  const started = performance.now();
  const decided = await decideBisect(requested, context);
  const { engines, precision, budget } = decided;
  const { reference, candidate, output } = requested;
  sweepPending(output);
  removeResults(output);
  const pending = createPending(output);
  const work = pending.folder;
  let kept: Candidates['searched']['trials'] | undefined;
  try {
    const searched = await searchFailure(decided, { output, work }, context, (trials) => (kept = trials));
    const { judge, first, trials, conversion, finding } = searched;
    const hasModel = finding.outcome === 'pass' && finding.cause !== 'none';
    const workaround = hasModel ? join(output, 'workaround.onnx') : null;
    if (workaround !== null) await writeChange(conversion, finding.change, workaround, context.signal);
    const { reduced, why }: Reduction =
      workaround === null || !finding.isMinimal
        ? { reduced: null, why: null }
        : await reducedBy(searched, decided, { workaround, work }, context);
    const notes = [...(why === null ? [] : [why]), ...countedNotes(searched)];
    return {
      schema: 'trtforge.bisect/1',
      version: packageVersion(),
      startedAt,
      totalMs: performance.now() - started,
      reference,
      candidate,
      precision: precision ?? 'fp32',
      judge: judge.kind,
      backend: first.backend,
      seed: judge.seed,
      samples: judge.samples,
      ...recordOf({ ...finding, reasons: [...finding.reasons, ...notes] }),
      candidates: trials.all.map(({ key, model, program, ...trial }) => trial),
      tried: trials.made,
      builds: trials.all.filter(({ ms }) => ms.build !== null).length,
      budget,
      workaround,
      convert: workaround && convertLine(conversion, finding.change, workaround),
      build:
        workaround && (engines?.line(workaround, join(output, 'workaround.engine'), finding.change) ?? null),
      reduced,
      repeat: null,
    };
  } catch (error) {
    throw kept === undefined ? error : goesOn(error, kept, context.commandLine);
  } finally {
    pending.remove();
  }
}

/** The judgement of the candidate: before it passes, also on more samples, as `verify` judges it. */
async function judgedWidely(judge: Judge, failing: Parameters<Judge['judge']>[0]) {
  const first = await judge.judge(failing);
  const wider = first.outcome === 'pass' ? await judge.wider?.() : null;
  return wider ? { judge: wider, first: await wider.judge(failing) } : { judge, first };
}

/** What a search came to, and what judged. */
interface SearchedFailure {
  readonly judge: Judge;
  /** The candidate that the search began with. */
  readonly first: Judgement;
  readonly trials: Candidates['searched']['trials'];
  /** How many of them an earlier run made. */
  readonly earlier: number;
  readonly conversion: Conversion;
  /** The model that the conversion makes. */
  readonly typed: string;
  readonly finding: Finding;
}

/** The search itself; what it tries is kept in `output`, and `began` gets that before the first trial. `work` is a folder for candidates. */
export async function searchFailure(
  { request, engines, digest, precision, options, budget, until, keepsOutputs = false }: DecidedBisect,
  { output, work }: { readonly output: string; readonly work: string },
  context: BisectContext,
  began: (trials: SearchedFailure['trials']) => void = () => {},
): Promise<SearchedFailure> {
  const { reference, candidate } = request;
  await engines?.obtain();
  const named = await withNodeNames(reference, join(output, 'named.onnx'), context.signal);
  const opened = await openJudge(request, precision ?? 'fp32', context);
  const typed = join(work, 'typed.onnx');
  const passed: Conversion = { model: named, precision, options };
  if (engines !== null) await writeChange(passed, {}, typed, context.signal);
  const failing = { model: isEngineFile(candidate) ? typed : candidate, engine: engines?.engine ?? null };
  const { judge, first } = await judgedWidely(opened, failing);
  // Of an engine the passport states it.
  const conversion = engines === null ? { ...passed, options: typedAs(first, options) } : passed;
  if (engines === null) await writeChange(conversion, {}, typed, context.signal);
  const trials = candidateTrials(output, questionOf(request, digest, conversion, engines));
  began(trials);
  const earlier = trials.all.length;
  const candidates = new Candidates(
    { conversion, judge, trials, engines, failing: first, work, budget, until },
    context,
  );
  const finding =
    first.outcome === 'fail'
      ? await searchLevels(candidates, {
          units:
            precision === null
              ? null
              : () => suspectsOf(named, precision, conversion.options, judge, request, context),
          tensors: keepsOutputs ? null : () => innerTensors(typed),
        })
      : unsearched(candidate, first.outcome, first.reasons);
  return { judge, first, trials, earlier, conversion, typed, finding };
}

/** A cancellation with what is kept, and what goes on from there. */
function goesOn(
  error: unknown,
  { all: { length }, path }: Pick<Candidates['searched']['trials'], 'all' | 'path'>,
  commandLine = 'Search again with the same output folder',
): unknown {
  if (!(error instanceof TrtforgeError) || error.code !== 'TF_CANCELLED' || length === 0) return error;
  const { message, cause } = error;
  return new TrtforgeError(
    error.code,
    `${message} ${plural(length, 'trial')} of the search ${length === 1 ? 'is' : 'are'} kept in ${path}.`,
    {
      cause,
      remedy: `To go on: ${commandLine}`,
    },
  );
}

/** Of an earlier search: this one may write none of them. */
function removeResults(output: string): void {
  const files = ['workaround.onnx', 'reduced.onnx', 'inputs.npz', 'expected.npz'];
  const paths = files.map((file) => join(output, file));
  paths.forEach(assertNotInput);
  for (const path of paths) rmSync(path, { force: true });
}

/** That results of an earlier run count, where a failure was searched for and there are some. */
function countedNotes({ first, trials, earlier }: SearchedFailure): readonly string[] {
  if (earlier === 0 || first.outcome !== 'fail') return [];
  const verb = earlier === 1 ? 'counts' : 'count';
  return [
    `${plural(earlier, 'result')} of an earlier run ${verb}; remove ${trials.path} to try everything again.`,
  ];
}

/** Options that give the inputs of a model the types that a candidate's have. */
export const typedAs = (
  candidate: Pick<OpenedSide, 'inputs'>,
  options: ConversionOptions,
): ConversionOptions => (hasTypedInput(candidate) ? { ...options, ioTypes: 'convert' } : options);

/** The conversion from reference to candidate; null for an engine built without one. Throws TF_USAGE where it is unknown, and for a model in FP32. */
export function conversionOf(
  { reference, candidate, precision, conversion = {} }: BisectRequest,
  engines: CandidateEngines | null,
  digest: string,
): { readonly precision: FormatId | null; readonly options: ConversionOptions } {
  const recorded = engines?.conversion(digest) ?? null;
  if (recorded !== null) return recorded;
  const seen = precisionBetween({ reference, candidate });
  const own = precision ?? seen;
  const codes = quantizedFormatNamed(seen);
  // A floating-point type makes no pairs, so none of its candidates would be like this one.
  if (codes !== undefined && quantizedFormatNamed(precision) === undefined)
    throw new TrtforgeError(
      'TF_USAGE',
      `${candidate} is quantized to ${codes.label}, ${reference} is not, and how is not stated in the model.`,
      {
        remedy: `Pass how, with its samples: --precision ${codes.id} --calibration FILE; or, for what is around the codes, the FP32 model with the same Q/DQ pairs: --against MODEL.`,
      },
    );
  if (own !== 'fp32' && own !== 'tf32')
    return {
      precision: own,
      options: { ...conversion, ...(engines?.hasTypedInput ? { ioTypes: 'convert' } : {}) },
    };
  if (engines?.isOf(digest) === true) return { precision: null, options: {} };
  if (engines !== null)
    throw new TrtforgeError(
      'TF_USAGE',
      `${candidate} was built from another model than ${reference}, and its passport does not state how that was converted.`,
      { remedy: `Pass what ${reference} was converted to, for example --precision fp16.` },
    );
  throw new TrtforgeError(
    'TF_USAGE',
    `${candidate} computes in FP32, so no node of it can be the one to stay FP32.`,
    { remedy: `Pass a model converted to ${formatIds.join(' or ')}, or an engine.` },
  );
}

/** Parts are cut on what the reference computes. Where a command judges it has not run yet, and runs on seeded inputs: what keeps it from that is no error of the search. */
async function reducedBy(
  { judge, first, conversion, typed, finding }: SearchedFailure,
  { request, engines, precision }: DecidedBisect,
  { workaround, work }: { readonly workaround: string; readonly work: string },
  context: BisectContext,
): Promise<Reduction> {
  const failing: Omit<Failing, 'reference' | 'check'> = {
    model: conversion.model,
    typed,
    precision: precision ?? 'fp32',
    engines,
    work,
    sample: first.sample,
    ...suspectedBy(finding, typed),
  };
  if (judge.reference !== null)
    return reduceFailure({ ...failing, reference: judge.reference, check: null }, request, context);
  try {
    const reference = await new SampleRuns({ ...request, samples: 1 }, context).reference(() => {});
    const check = {
      command: request.check ?? '',
      judge: judge.judge,
      passing: workaround,
      change: finding.change,
    };
    return await reduceFailure({ ...failing, reference, check }, request, context);
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
    return { reduced: null, why: `No reduced model: ${error.message}` };
  }
}

/** Where a part that fails by itself is looked for. */
function suspectedBy({ cause, units, fusion }: Finding, typed: string): Suspected {
  if (cause === 'tf32') return { single: float32Products(typed), together: [] };
  if (fusion !== null) return { single: [], together: fusion.nodes };
  const names = units.map(({ name }) => name);
  return { single: names, together: names };
}

function recordOf({ outcome, cause, headline, reasons, units, fusion, isMinimal, isConfirmed }: Finding) {
  const nodes = units.map(({ name, op, peak, overflows }) => ({
    name,
    op,
    peak: peak === null ? null : measure(peak),
    overflows,
  }));
  return { outcome, cause, headline, reasons: [...reasons], nodes, fusion, isMinimal, isConfirmed };
}

/** Everything besides its changes that decides what becomes of a candidate. */
function questionOf(
  request: BisectRequest,
  digest: string,
  { precision, options }: Omit<Conversion, 'model'>,
  engines: CandidateEngines | null,
): Readonly<Record<string, unknown>> {
  const { check, seed, samples, atol, rtol, ranges, shapes, data } = request;
  return {
    reference: digest,
    conversion: precision === null ? null : conversionRecipe(precision, options),
    engine: engines?.question() ?? null,
    check: check === undefined ? null : checkFacts(check),
    seed: seed ?? 0,
    samples: samples ?? null,
    limits: [atol ?? [], rtol ?? []],
    ranges: ranges ?? [],
    shapes: [...(shapes ?? [])],
    data: data === undefined ? [] : digestsOf(data),
  };
}

/** Nodes that multiply FP32 tensors, in the order of the graph: what TF32 shortens. Throws what opening a model throws. */
const float32Products = (path: string): readonly string[] =>
  madeTensors(path)
    .filter(({ op, dtype }) => products.has(op) && dtype === 'float32')
    .map(({ node }) => node);

const products: ReadonlySet<string> = new Set(['MatMul', 'Gemm', 'Conv', 'ConvTranspose']);
