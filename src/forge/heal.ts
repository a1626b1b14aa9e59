import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { FEWEST_SAMPLES, type SamplePart } from '../engines/calibration/sample-source.js';
import { ExitCode, TrtforgeError } from '../errors.js';
import { nodeLabel } from '../formats/onnx/dtype-inference.js';
import { editModel } from '../formats/onnx/model.js';
import { inferShapes } from '../formats/onnx/shapes/infer.js';
import { isNumber } from '../formats/onnx/shapes/size.js';
import { normalise } from '../formats/precision/normalise.js';
import type { ConversionResult } from '../formats/precision/result.js';
import { verifyHeadline } from '../quality/verify/headline.js';
import type { SampleInfo } from '../quality/verify/judged.js';
import type { VerifyResult } from '../quality/verify/result.js';
import { digestsOf } from '../quality/verify/sample-plan.js';
import type { Heal } from '../report/forge-result.js';
import { computedNodes, decidingVerification } from '../report/sentences.js';
import { engineRequest } from './engine-phases.js';
import { judgingData, typedModelRequest } from './model-phases.js';
import type { ForgeOptions, Healer, Healing } from './options.js';
import type { Forged, ForgePhase, PhaseContext, PhaseRun, Run } from './phase-run.js';

type PhasesOf = (run: Run) => Readonly<Record<'decide' | 'make' | 'check', readonly ForgePhase[]>>;

/** A run whose comparison failed, and the searches that made it what it is. */
interface Failed {
  readonly run: Run;
  readonly found: Partial<Forged>;
  readonly healings: readonly Healing[];
}

/**
 * After a failed comparison searches the smallest part in a higher precision, and goes through the phases again with it: what is found is verified on samples that the search has
 * not seen, another share of the user's or another seed. Where then the engine alone fails, that is searched too, from there on. Where the rest fails, or a search sees no failure,
 * the next search sees those samples. null where nothing failed.
 */
export async function healRun(run: Run, phases: PhaseRun<Forged>, phasesOf: PhasesOf): Promise<Heal | null> {
  const { heal: limitMs } = run.options;
  const failed = phases.found;
  const deciding = decidingVerification(failed);
  if (limitMs === undefined || run.healer === undefined || phases.error !== null) return null;
  if (deciding?.verdicts.numeric !== 'fail') return null;
  const folder = join(run.root.path, 'heal');
  const healings = await searches(
    { run, found: failed, healings: [] },
    deciding,
    { limitMs, folder },
    phases,
    phasesOf,
  );
  const last = healings.at(-1);
  if (last === undefined) return null;
  const isUnseen = areUnseen(run.options, healings, phases.found);
  const found = healings.filter(({ outcome }) => outcome === 'found');
  const { engine, passportPath } = failed.obtained ?? {};
  // Nobody takes the engine that failed for the one that passes.
  if (decidingVerification(phases.found)?.outcome === 'pass')
    for (const path of [engine, passportPath]) if (path != null) rmSync(path, { force: true });
  const prices = [await priceOf('failed', run, failed)];
  if (found.length > 0)
    prices.push(await priceOf('healed', run, phases.found), await fp32Price(run, phasesOf, phases));
  return {
    outcome: last.outcome,
    headline: last.headline,
    reasons: [...last.reasons],
    failed: verifyHeadline(deciding),
    raised: found.map(({ raised: { nodes, ...more } }) => ({ ...more, nodes: [...nodes] })),
    tf32: found.every(({ tf32 }) => tf32),
    isSmallest: healings.every(({ isSmallest }) => isSmallest),
    isUnseen,
    tried: healings.reduce((sum, { tried }) => sum + tried, 0),
    ...{ limitMs, folder, prices },
  };
}

/**
 * Searches until the comparison passes, the time is over, or no attempt is left, and runs the phases with what
 * each search found. Returns the searches that made `phases.found` what it is.
 */
async function searches(
  failed: Failed,
  deciding: VerifyResult,
  place: SearchPlace,
  phases: PhaseRun<Forged>,
  phasesOf: PhasesOf,
): Promise<readonly Healing[]> {
  const until = performance.now() + place.limitMs;
  let healings: readonly Healing[] = [];
  const heal = async (
    from: Failed,
    judging: ReturnType<typeof attempts>[number],
    folder: string,
    name: string,
  ): Promise<void> => {
    let healing: Healing | undefined;
    const search = async (...[, context]: Parameters<ForgePhase['run']>) => {
      const limitMs = Math.max(1, Math.round(until - performance.now()));
      healing = await searched(from, judging.search, { limitMs, folder }, context);
      return { found: {}, detail: healing.headline };
    };
    await phases.advance([{ name, skip: () => null, run: search }]);
    if (healing === undefined) return;
    const all = [...from.healings, healing];
    // What an earlier one has found stays the result.
    if (healings.length === 0 || healing.outcome !== 'none') healings = all;
    if (healing.outcome !== 'found') return;
    const healed = healedRun(from.run, healing, judging.verdict);
    const { decide, make, check } = phasesOf(healed);
    phases.found = { inspection: failed.found.inspection };
    await phases.advance([...decide.slice(1), ...make, ...check].map((phase) => named(phase, 'healed')));
    const { found } = phases;
    if (phases.error !== null) phases.found = failed.found;
    else if (engineFails(found) && !engineFails(from.found))
      await heal({ run: healed, found, healings: all }, judging, join(folder, 'engine'), `${name} engine`);
  };
  for (const [index, judging] of attempts(failed.run.options, deciding).entries()) {
    const name = index === 0 ? 'heal' : `heal ${index + 1}`;
    await heal(failed, judging, join(place.folder, String(index + 1)), name);
    const isOver = phases.error !== null || healings.at(-1)?.outcome === 'ended';
    if (isOver || decidingVerification(phases.found)?.outcome === 'pass') break;
  }
  return healings;
}

/** Whether no search has seen the samples of the verdict, nor copies of them. */
function areUnseen(options: ForgeOptions, healings: readonly Healing[], found: Partial<Forged>): boolean {
  const isReal = ({ kind }: SampleInfo) => kind !== 'edge';
  const seen = new Set(
    healings.flatMap((healing) => healing.seen.filter(isReal).map(({ origin }) => origin)),
  );
  const judging = decidingVerification(found)?.samplesFrom?.samples.filter(isReal) ?? [];
  const data = judgingData(options);
  const digests = data ? digestsOf({ ...data, part: undefined }) : [];
  const areCopies = new Set(digests).size < Math.min(FEWEST_SAMPLES, digests.length);
  return !areCopies && judging.length > 0 && judging.every(({ origin }) => !seen.has(origin));
}

/** The same run with what a search found. Its engine has a folder of its own: the next search begins with the one that failed. */
function healedRun(run: Run, { conversion, tf32, raised }: Healing, verify: Judging): Run {
  const { options, root } = run;
  const { settings, forceRebuild } = options;
  const flags = [...(settings?.flags ?? []), ...(tf32 ? [] : (['no-tf32'] as const))];
  return {
    ...run,
    options: {
      ...{ ...options, conversion, settings: { ...settings, flags } },
      verify: { ...options.verify, ...verify },
      // What fails may pass where it is only built again.
      forceRebuild: forceRebuild || (tf32 && raised.nodes.length === 0),
    },
    root: {
      ...{ ...root, engines: join(root.engines, 'healed') },
      typedModel: (model, precision) => root.typedModel(model, `${precision}.healed`),
    },
  };
}

const engineFails = (found: Partial<Forged>) =>
  found.engineVerification?.verdicts.numeric === 'fail' &&
  decidingVerification(found) === found.engineVerification;

/** By which samples candidates, or a result, are judged. */
type Judging = Pick<NonNullable<ForgeOptions['verify']>, 'seed' | 'data'>;

/** What each search sees, and what judges its result: what the one before was judged by. Of few samples beside those of the ranges all judge, and the search sees the latter. */
function attempts({ verify, ...options }: ForgeOptions, { samplesFrom }: VerifyResult) {
  const { seed = 0 } = verify ?? {};
  const data = judgingData({ verify, ...options });
  const isHeldOut = data?.part === 'held-out';
  const judging = (at: number, shares?: readonly (readonly SamplePart[])[]): Judging => ({
    seed: seed + at,
    data: data && { ...data, shares },
  });
  const ranged: SamplePart[][] = isHeldOut ? [['calibration']] : [];
  if (isHeldOut && (samplesFrom?.available ?? 0) < FEWEST_SAMPLES)
    return [{ search: judging(0, ranged), verdict: judging(1) }];
  const half = (part: SamplePart): SamplePart[] => (isHeldOut ? ['held-out', part] : [part]);
  const halves = [half('calibration'), half('held-out')];
  return [halves, halves.toReversed()].map(([search, verdict], at) => ({
    search: judging(at, [search!, ...ranged]),
    verdict: judging(at + 1, [verdict!]),
  }));
}

/** How long a search may take, and the folder of what it tries. */
type SearchPlace = Pick<Parameters<Healer>[0], 'limitMs' | 'folder'>;

/** Searches by the comparison that failed. What cannot be searched is not healed. */
async function searched(
  { run, found }: Failed,
  judging: Judging,
  place: SearchPlace,
  context: PhaseContext,
): Promise<Healing> {
  const { conversion = {}, verify: _, ...build } = run.options;
  const isOfEngine = engineFails(found);
  const { data, ...request } = isOfEngine ? engineRequest(run, found) : typedModelRequest(run, found);
  const failed = { ...request, ...judging, data: judging.data && { ...data, ...judging.data } };
  const precision = found.conversion?.precision ?? null;
  try {
    const asked = { failed, precision, conversion, ...place };
    // Candidates would only fill a store.
    return await run.healer!({ ...asked, ...(isOfEngine && { build: { ...build, store: false } }) }, context);
  } catch (error) {
    const isOfModel = error instanceof TrtforgeError && error.exitCode === ExitCode.badInput;
    if (!isOfModel || error.code === 'TF_CANCELLED') throw error;
    const raised = { nodes: [], to: 'fp32', option: 'keep-nodes' } as const;
    const none = { isSmallest: false, raised, tf32: true, tried: 0, seen: [] };
    return { ...none, outcome: 'none', conversion, headline: error.message, reasons: [error.remedy] };
  }
}

async function priceOf(what: Price['what'], run: Run, found: Partial<Forged>): Promise<Price> {
  const { conversion, obtained, bench } = found;
  const counted = conversion && computedNodes(conversion);
  return {
    what,
    nodes: counted === undefined ? null : { higher: counted.all - counted.lowest, all: counted.all },
    flops: conversion === undefined ? null : await higherShare(run, found, conversion),
    modelBytes: conversion?.bytes.after ?? null,
    engineBytes: obtained?.passport.plan.bytes ?? null,
    gpuMs: bench?.gpuMs?.median ?? null,
  };
}

/** Share of the FLOPs, at the sizes that were verified first, of nodes that have not the lowest precision. */
async function higherShare(
  { options: { model } }: Run,
  found: Partial<Forged>,
  { quantization, kept }: ConversionResult,
): Promise<number | null> {
  const sizes = new Map(decidingVerification(found)?.inputs.map(({ name, shape }) => [name, shape]));
  const lowest = quantization?.nodes.flatMap(({ node, quantized }) => (quantized ? [node] : []));
  const named = new Set(lowest ?? kept.map(({ node }) => node));
  return editModel(model, async (opened) => {
    normalise(opened.proto);
    let [total, own] = [0, 0];
    for (const [node, { flops }] of inferShapes(opened, sizes).nodes) {
      if (!isNumber(flops)) continue;
      total += flops;
      if (named.has(nodeLabel(node))) own += flops;
    }
    if (total === 0) return null;
    return lowest === undefined ? own / total : 1 - own / total;
  });
}

/** What FP32 takes; its engine is built where engines are, and measured where it can be. */
async function fp32Price(run: Run, phasesOf: PhasesOf, phases: PhaseRun<Forged>): Promise<Price> {
  const { conversion, obtained } = phases.found;
  const all = conversion && computedNodes(conversion).all;
  const fp32 = phases.fork();
  fp32.found = {};
  if (obtained !== undefined) {
    const fp32Options = { precision: 'as-is', conversion: undefined, knownAnswer: false } as const;
    const options = { ...run.options, ...fp32Options };
    const root = { ...run.root, engines: join(run.root.engines, 'fp32') };
    const { decide, make, check } = phasesOf({ ...run, options, root });
    const bench = check.filter(({ name }) => name === 'bench');
    await fp32.advance([...decide, ...make, ...bench].map((phase) => named(phase, 'fp32')));
    phases.phases.push(...fp32.phases.slice(phases.phases.length));
  }
  return {
    ...(await priceOf('fp32', run, fp32.found)),
    nodes: all === undefined ? null : { higher: all, all },
    flops: 1,
    modelBytes: conversion?.bytes.before ?? null,
  };
}

const named = (phase: ForgePhase, what: string): ForgePhase => ({ ...phase, name: `${what} ${phase.name}` });

type Price = Heal['prices'][number];
