import { join } from 'node:path';
import { FEWEST_SAMPLES } from '../engines/calibration/sample-part.js';
import { ExitCode, TrtforgeError } from '../errors.js';
import { nodeLabel } from '../formats/onnx/dtype-inference.js';
import { editModel } from '../formats/onnx/model.js';
import { inferShapes } from '../formats/onnx/shapes/infer.js';
import { isNumber } from '../formats/onnx/shapes/size.js';
import type { ConversionResult } from '../formats/precision/conversion.js';
import { normalise } from '../formats/precision/normalise.js';
import { verifyHeadline } from '../quality/verify/headline.js';
import type { SampleData, VerifyContext, VerifyRequest } from '../quality/verify/request.js';
import type { VerifyResult } from '../quality/verify/result.js';
import type { Heal } from '../report/result.js';
import { computedNodes, decidingVerification } from '../report/sentences.js';
import { engineRequest, whyEngineIdle } from './engine-phases.js';
import { judgingData, typedModelRequest } from './model-phases.js';
import type { Healing, HealRequest } from './options.js';
import type { PhaseRun } from './phase.js';
import type { Forged, ForgePhase, Run } from './run-state.js';

type PhasesOf = (run: Run) => Readonly<Record<'decide' | 'make' | 'check', readonly ForgePhase[]>>;

/**
 * After a failed comparison searches the smallest part in a higher precision, and goes through the phases again with it: what is found is verified on samples that the search has
 * not seen, another part of the user's or another seed. What failed stays where nothing is found, or what is found cannot be built. null where nothing failed.
 */
export async function healRun(run: Run, phases: PhaseRun<Forged>, phasesOf: PhasesOf): Promise<Heal | null> {
  const { heal: limitMs, verify, settings } = run.options;
  const failed = phases.found;
  const deciding = judged(failed);
  if (limitMs === undefined || run.healer === undefined || phases.error !== null) return null;
  if (deciding?.verdicts.numeric !== 'fail') return null;
  const folder = join(run.root.path, 'heal');
  let healing: Healing | undefined;
  const search: ForgePhase = {
    name: 'heal',
    skip: () => null,
    run: async (soFar, { emit, signal }) => {
      healing = await searched(run, { ...soFar, limitMs, folder }, { emit, signal });
      return { found: {}, detail: healing.headline };
    },
  };
  await phases.advance([search]);
  if (healing === undefined) return null;
  const { outcome, isSmallest, raised, tf32, tried, seen, headline, reasons, conversion } = healing;
  if (outcome === 'found') {
    const { verdict: data } = divided(judgingData(run.options), deciding);
    const again: Run = {
      ...run,
      options: {
        ...run.options,
        conversion,
        ...(tf32 ? {} : { settings: { ...settings!, flags: [...(settings?.flags ?? []), 'no-tf32'] } }),
        verify: { ...verify, seed: (verify?.seed ?? 0) + 1, data },
      },
      root: {
        ...run.root,
        typedModel: (model, precision) => run.root.typedModel(model, `${precision}.healed`),
      },
    };
    const { decide, make, check } = phasesOf(again);
    phases.found = { inspection: failed.inspection };
    await phases.advance([...decide.slice(1), ...make, ...check].map((phase) => named(phase, 'healed')));
    if (phases.error !== null) phases.found = failed;
  }
  const before = new Set(seen.flatMap(({ kind, origin }) => (kind === 'edge' ? [] : [origin])));
  const own = judged(phases.found)?.samplesFrom?.samples.filter(({ kind }) => kind !== 'edge') ?? [];
  const prices = [await priceOf('failed', run, failed)];
  if (outcome === 'found')
    prices.push(await priceOf('healed', run, phases.found), await fp32Price(run, phasesOf, phases));
  return {
    ...{
      outcome,
      headline,
      reasons: [...reasons],
      failed: verifyHeadline(deciding),
      isSmallest,
      tried,
      limitMs,
      folder,
    },
    ...{ nodes: [...raised.nodes], to: raised.to, tf32, prices },
    isUnseen: own.length > 0 && own.every(({ origin }) => !before.has(origin)),
  };
}

const judged = ({ verification, engineVerification }: Partial<Forged>) =>
  decidingVerification({
    verification: verification ?? null,
    engineVerification: engineVerification ?? null,
  });

/** The samples that the search may see, and those of the verdict. Of few that are held out of the ranges none is left for a search: it sees those that made the ranges. */
function divided(data: SampleData | undefined, failed: VerifyResult | null) {
  if (data === undefined) return { search: undefined, verdict: undefined };
  const isFew = data.part === 'held-out' && (failed?.samplesFrom?.available ?? 0) < FEWEST_SAMPLES;
  if (isFew) return { search: { ...data, part: 'calibration' }, verdict: data } as const;
  return { search: { ...data, share: 'search' }, verdict: { ...data, share: 'verdict' } } as const;
}

/** Searches by the comparison that failed, on the samples that are not held out for the verdict. What cannot be searched is not healed. */
async function searched(
  run: Run,
  { limitMs, folder, ...found }: Partial<Forged> & Pick<HealRequest, 'limitMs' | 'folder'>,
  context: VerifyContext,
): Promise<Healing> {
  const { conversion = {} } = run.options;
  const isOfEngine = judged(found) === found.engineVerification;
  const { data, ...request } = isOfEngine ? engineRequest(run, found) : typedModelRequest(run, found);
  const failed: VerifyRequest = { ...request, data: divided(data, judged(found)).search };
  const precision = found.conversion?.precision ?? null;
  try {
    const request = { failed, precision, conversion, folder, limitMs };
    return await run.healer!(request, { ...context, environment: run.environment });
  } catch (error) {
    const isOfModel = error instanceof TrtforgeError && error.exitCode === ExitCode.badInput;
    if (!isOfModel || error.code === 'TF_CANCELLED') throw error;
    const none = { isSmallest: false, raised: { nodes: [], to: 'fp32' }, tf32: true, tried: 0, seen: [] };
    const reasons = error.remedy === '' ? [] : [error.remedy];
    return { ...none, outcome: 'none', conversion, headline: error.message, reasons };
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
