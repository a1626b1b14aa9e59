import { join } from 'node:path';
import { canonicalJson, sha256 } from '../../base/files/digest.js';
import { plural } from '../../base/text/quantity.js';
import { isEngineFile } from '../../engines/plan/header.js';
import { createPending, sweepPending } from '../../engines/store/pending.js';
import { TrtforgeError } from '../../errors.js';
import type { Healer, Healing } from '../../forge/options.js';
import { defaultFormat, quantizedFormatNamed } from '../../formats/precision/formats/index.js';
import type { Scorer } from '../../quality/tasks/task.js';
import type { VerifyContext } from '../../quality/verify/options.js';
import { SampleRuns } from '../../quality/verify/sample-runs.js';
import { questionOf, rememberedRanges } from './advise/advise.js';
import { BudgetSearch } from './advise/budget-search.js';
import { openFp32Judge } from './advise/fp32-judge.js';
import { judgedTensors } from './advise/judged-tensors.js';
import { Choices, TimeEnded } from './advise/tried-units.js';
import { type Unit, unitsOf } from './advise/units.js';
import { decideBisect, searchFailure } from './bisect/bisect.js';
import { comparing } from './bisect/judge.js';
import { changedOptions } from './conversion.js';
import { withNodeNames } from './model-nodes.js';

type Setting = Parameters<Healer>[0] & {
  /** By `performance.now()`. */
  readonly until: number;
  /** A folder for candidates. */
  readonly work: string;
};

/**
 * Finds what of a failed conversion has to be in a higher precision: of quantized models nodes that get no codes, as `convert advise` chooses them, judged by the comparison that
 * failed; else nodes in FP32, as `bisect` finds them. What was tried is kept in the folder. Only the original is ever converted. Throws what these throw; that the time is over is no error.
 */
export const heal: Healer = async (request, context) => {
  const { folder, limitMs, failed, conversion } = request;
  sweepPending(folder);
  const pending = createPending(folder);
  try {
    const { calibration: own } = conversion;
    const calibration = own && rememberedRanges(own, join(folder, 'calibration.json'));
    const setting: Setting = {
      ...request,
      conversion: { ...conversion, calibration },
      until: performance.now() + limitMs,
      work: pending.folder,
    };
    const codes = quantizedFormatNamed(request.precision);
    const found =
      codes === undefined || isEngineFile(failed.candidate)
        ? await healNodes(setting, context)
        : await healCodes(setting, codes, context);
    // It may pass without any code.
    return { ...found, conversion: { ...found.conversion, calibration: own, allowUnconverted: true } };
  } finally {
    pending.remove();
  }
};

async function healNodes(setting: Setting, context: VerifyContext): Promise<Healing> {
  const { failed, build, precision, conversion, folder, until, work } = setting;
  const asked = { ...failed, build, precision: precision ?? undefined, conversion, output: folder };
  const decided = await decideBisect({ ...asked, budget: Number.MAX_SAFE_INTEGER }, context);
  const search = { ...decided, until, keepsOutputs: true };
  const found = await searchFailure(search, { output: folder, work }, context);
  const { finding, trials, judge } = found;
  const { outcome, cause, change, units } = finding;
  const isFound = outcome === 'pass' && cause !== 'none';
  const isLate = cause !== 'none' && performance.now() >= until;
  return {
    outcome: isFound ? 'found' : isLate ? 'ended' : 'none',
    isSmallest: isFound && !(isLate && !finding.isMinimal),
    raised: { nodes: units.map(({ name }) => name), to: 'fp32', option: 'keep-nodes' },
    conversion: changedOptions(found.conversion.options, change),
    tf32: change.tf32 ?? true,
    tried: trials.all.length,
    seen: judge.reference?.samples ?? [],
    headline: cause === 'none' ? NOT_SEEN : finding.headline,
    reasons: [...finding.reasons],
  };
}

const NOT_SEEN = 'It does not fail on the samples that the search may see.';

/** What the search may use of the limits: other samples use more of them. */
const WITHIN = 0.8;
/** A failure by another reason than a limit. */
const BEYOND = 2;

/** The most that keeps its codes. Where it fails without any as well, nodes need FP32. */
async function healCodes(
  setting: Setting,
  format: NonNullable<ReturnType<typeof quantizedFormatNamed>>,
  context: VerifyContext,
): Promise<Healing> {
  const { failed, folder, work, until, conversion } = setting;
  const model = await withNodeNames(failed.reference, join(folder, 'named.onnx'), context.signal);
  const runs = new SampleRuns(failed, context);
  const reference = await runs.reference(() => {});
  const { outputs, plan } = reference;
  const samples = outputs.map((_, sample) => plan.tensors(sample));
  const judge = await comparing(failed, format.id, runs, reference, context);
  const sizes = new Map([...samples[0]!].map(([name, { shape }]) => [name, shape]));
  const units = await unitsOf(model, format.id, conversion, sizes);
  const tensors = await judgedTensors(model, conversion);
  const fp32 = await openFp32Judge(model, tensors, samples, { work, threads: failed.threads, context });
  const limits = sha256(canonicalJson([failed.atol ?? [], failed.rtol ?? []]));
  const scorer: Scorer = {
    ...{ task: 'verify', name: 'share of the limits', unit: '', higherIsBetter: false },
    digest: async () => limits,
    score: async (candidate) => {
      const { outcome, used } = await judge({ model: candidate, engine: null });
      return outcome === 'pass' ? used : Math.max(BEYOND, Math.min(used, Number.MAX_VALUE));
    },
  };
  const asked = { model, precision: format.id, options: conversion };
  const question = await questionOf(asked, samples, limits);
  const within = { ...context, scorer };
  const place = { folder, question, until, path: join(work, 'candidate.onnx') };
  const choices = new Choices(asked, units, fp32, place, within);
  const healed = (outcome: Healing['outcome'], chosen: readonly Unit[], isSmallest: boolean): Healing => {
    const change = choices.change(chosen);
    const nodes = change.unquantized ?? [];
    const passes = `It passes with ${chosen.length} of ${plural(units.units.length, 'unit')} in ${format.label}.`;
    return {
      ...{ outcome, isSmallest, tf32: true, seen: reference.samples, reasons: [] },
      raised: { nodes, to: conversion.rest ?? defaultFormat.id, option: 'high-precision-nodes' },
      conversion: changedOptions(conversion, change),
      tried: choices.all.length,
      headline: outcome === 'found' ? passes : 'The time ended before a candidate passed.',
    };
  };
  let drop = WITHIN;
  try {
    const { metric } = await choices.of(units.units, 'set', `all ${plural(units.units.length, 'unit')}`);
    // What fails elsewhere has to become better here too.
    drop = Math.min(WITHIN, metric! / 2);
    const search = new BudgetSearch(units, choices, { kind: 'metric', drop }, within);
    return healed('found', (await search.run(format.activations)).units, true);
  } catch (error) {
    if (error instanceof TrtforgeError && error.code === 'TF_BUDGET_UNREACHABLE')
      return healNodes(setting, context);
    if (!(error instanceof TimeEnded)) throw error;
    const passing = choices.all.filter(({ role, metric }) => role === 'set' && metric! <= drop);
    const [best] = passing.sort((a, b) => b.units.length - a.units.length);
    const chosen = units.units.filter(({ name }) => best?.units.includes(name));
    return healed(best === undefined ? 'ended' : 'found', chosen, false);
  }
}
