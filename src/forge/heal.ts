import { join } from 'node:path';
import { FEWEST_SAMPLES, type SamplePart } from '../engines/calibration/sample-source.js';
import { ExitCode, TrtforgeError } from '../errors.js';
import { nodeLabel } from '../formats/onnx/dtype-inference.js';
import { editModel } from '../formats/onnx/model.js';
import { inferShapes } from '../formats/onnx/shapes/infer.js';
import { isNumber } from '../formats/onnx/shapes/size.js';
import type { ConversionResult } from '../formats/precision/conversion.js';
import { normalise } from '../formats/precision/normalise.js';
import { verifyHeadline } from '../quality/verify/headline.js';
import type { SampleInfo } from '../quality/verify/judged.js';
import type { SampleData, VerifyContext } from '../quality/verify/request.js';
import type { VerifyResult } from '../quality/verify/result.js';
import type { Heal } from '../report/result.js';
import { computedNodes, decidingVerification } from '../report/sentences.js';
import { engineRequest, whyEngineIdle } from './engine-phases.js';
import { judgingData, typedModelRequest } from './model-phases.js';
import type { ComparisonOptions, ForgeOptions, Healing, HealRequest } from './options.js';
import type { PhaseRun } from './phase.js';
import type { Forged, ForgePhase, Run } from './run-state.js';

type PhasesOf = (run: Run) => Readonly<Record<'decide' | 'make' | 'check', readonly ForgePhase[]>>;

/**
 * After a failed comparison searches the smallest part in a higher precision, and goes through the phases again with it: what is found is verified on samples that the search has
 * not seen, another share of the user's or another seed. Where that fails, or the search sees no failure, the next search sees those. null where nothing failed.
 */
export async function healRun(run: Run, phases: PhaseRun<Forged>, phasesOf: PhasesOf): Promise<Heal | null> {
  const { heal: limitMs } = run.options;
  const failed = phases.found;
  const deciding = judged(failed);
  if (limitMs === undefined || run.healer === undefined || phases.error !== null) return null;
  if (deciding?.verdicts.numeric !== 'fail') return null;
  const folder = join(run.root.path, 'heal');
  const until = performance.now() + limitMs;
  let healing: Healing | undefined;
  for (const [index, judging] of attempts(run.options, deciding).entries()) {
    const name = index === 0 ? 'heal' : `heal ${index + 1}`;
    const search = async (...[, context]: Parameters<ForgePhase['run']>) => {
      const left = {
        limitMs: Math.max(1, Math.round(until - performance.now())),
        folder: join(folder, String(index + 1)),
      };
      const found = await searched(run, failed, judging.search, left, context);
      // What an earlier one has found stays the result.
      if (healing === undefined || found.outcome !== 'none') healing = found;
      return { found: {}, detail: found.headline };
    };
    await phases.advance([{ name, skip: () => null, run: search }]);
    if (phases.error !== null || healing?.outcome === 'ended') break;
    if (healing?.outcome !== 'found') continue;
    const { decide, make, check } = phasesOf(healedRun(run, healing, judging.verdict));
    phases.found = { inspection: failed.inspection };
    await phases.advance([...decide.slice(1), ...make, ...check].map((phase) => named(phase, 'healed')));
    if (phases.error !== null) phases.found = failed;
    if (phases.error !== null || judged(phases.found)?.outcome === 'pass') break;
  }
  if (healing === undefined) return null;
  const { conversion: _, raised, seen, reasons, ...more } = healing;
  const isReal = ({ kind }: SampleInfo) => kind !== 'edge';
  const before = new Set(seen.filter(isReal).map(({ origin }) => origin));
  const own = judged(phases.found)?.samplesFrom?.samples.filter(isReal) ?? [];
  const prices = [await priceOf('failed', run, failed)];
  if (healing.outcome === 'found')
    prices.push(await priceOf('healed', run, phases.found), await fp32Price(run, phasesOf, phases));
  return {
    ...{ ...more, reasons: [...reasons], failed: verifyHeadline(deciding), limitMs, folder },
    ...{ ...raised, nodes: [...raised.nodes], prices },
    isUnseen: own.length > 0 && own.every(({ origin }) => !before.has(origin)),
  };
}

/** The same run with what a search found. */
const healedRun = (run: Run, { conversion, tf32 }: Healing, verify: Judging): Run => {
  const { options, root } = run;
  const { settings } = options;
  const noTf32 = { settings: { ...settings!, flags: [...(settings?.flags ?? []), 'no-tf32'] } };
  return {
    ...run,
    options: { ...options, conversion, ...(tf32 ? {} : noTf32), verify: { ...options.verify, ...verify } },
    root: { ...root, typedModel: (model, precision) => root.typedModel(model, `${precision}.healed`) },
  };
};

const judged = ({ verification, engineVerification }: Partial<Forged>) =>
  decidingVerification({
    verification: verification ?? null,
    engineVerification: engineVerification ?? null,
  });

/** By which samples candidates, or a result, are judged. */
type Judging = Pick<ComparisonOptions, 'seed' | 'data'>;

/** What each search sees, and what judges its result: what the one before was judged by. Of few samples beside those of the ranges all judge, and the search sees the latter. */
function attempts({ verify, ...options }: ForgeOptions, { samplesFrom }: VerifyResult) {
  const { seed = 0 } = verify ?? {};
  const data = judgingData({ verify, ...options });
  const isHeldOut = data?.part === 'held-out';
  const shared = (...shares: readonly SamplePart[][]) => data && { ...data, shares };
  const pair = (search: SampleData | undefined, verdict: SampleData | undefined, at = 0) => ({
    search: { seed: seed + at, data: search },
    verdict: { seed: seed + at + 1, data: verdict },
  });
  if (isHeldOut && (samplesFrom?.available ?? 0) < FEWEST_SAMPLES)
    return [pair(shared(['calibration']), data)];
  const of: SamplePart[] = isHeldOut ? ['held-out'] : [];
  const made: SamplePart[][] = isHeldOut ? [['calibration']] : [];
  const [one, other]: SamplePart[][] = [
    [...of, 'calibration'],
    [...of, 'held-out'],
  ];
  return [pair(shared(one!, ...made), shared(other!)), pair(shared(other!, ...made), shared(one!), 1)];
}

/** Searches by the comparison that failed. What cannot be searched is not healed. */
async function searched(
  run: Run,
  found: Partial<Forged>,
  judging: Judging,
  place: Pick<HealRequest, 'limitMs' | 'folder'>,
  context: VerifyContext,
): Promise<Healing> {
  const { conversion = {} } = run.options;
  const isOfEngine = judged(found) === found.engineVerification;
  const { data, ...request } = isOfEngine ? engineRequest(run, found) : typedModelRequest(run, found);
  const failed = { ...request, ...judging, data: judging.data && { ...data, ...judging.data } };
  const precision = found.conversion?.precision ?? null;
  try {
    const asked = { failed, precision, conversion, ...place };
    return await run.healer!(asked, { ...context, environment: run.environment });
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
  const sizes = new Map(judged(found)?.inputs.map(({ name, shape }) => [name, shape]));
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

/** What FP32 takes; its engine is built where it can be measured. */
async function fp32Price(run: Run, phasesOf: PhasesOf, phases: PhaseRun<Forged>): Promise<Price> {
  const { conversion, prepared } = phases.found;
  const all = conversion && computedNodes(conversion).all;
  let engine: Partial<Forged> = {};
  if (whyEngineIdle(run, prepared, 'bench') === null) {
    const options = { ...run.options, precision: 'as-is' as const, conversion: undefined };
    const root = { ...run.root, engines: join(run.root.engines, 'fp32') };
    const { decide, make, check } = phasesOf({ ...run, options, root });
    const fp32 = phases.fork();
    fp32.found = {};
    const bench = check.filter(({ name }) => name === 'bench');
    await fp32.advance([...decide, ...make, ...bench].map((phase) => named(phase, 'fp32')));
    phases.phases.push(...fp32.phases.slice(phases.phases.length));
    engine = fp32.found;
  }
  return {
    ...(await priceOf('fp32', run, engine)),
    nodes: all === undefined ? null : { higher: all, all },
    flops: 1,
    modelBytes: conversion?.bytes.before ?? null,
  };
}

const named = (phase: ForgePhase, what: string): ForgePhase => ({ ...phase, name: `${what} ${phase.name}` });

type Price = Heal['prices'][number];
