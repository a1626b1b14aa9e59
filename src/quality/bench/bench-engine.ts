import { statSync } from 'node:fs';
import { type Addon, loadAddon } from '../../addon/addon.js';
import { valuesOf } from '../../base/options/option.js';
import { medianOf } from '../../base/statistics.js';
import { formatBytes } from '../../base/text/quantity.js';
import { readLayers } from '../../engines/layers/read-layers.js';
import { askedBudget, loadOptions } from '../../engines/runtime/tensorrt/options.js';
import { environmentFor } from '../../engines/runtime/tensorrt/supervised-engine.js';
import { inPhase } from '../../events.js';
import { benchRun, figuresOf } from './bench-run.js';
import { checkRequest } from './check-request.js';
import { distrust, followsAnother } from './doubts.js';
import { namedState } from './gpu.js';
import { type GpuLease, leaseGpu } from './gpu-lease.js';
import {
  type BenchedEngine,
  type ColdStart,
  type GpuFound,
  type Measurer,
  measureInChild,
  type StartMeasurer,
} from './measurer.js';
import { type BenchContext, type BenchRequest, benchContext } from './options.js';
import {
  type BenchResult,
  type BenchRun,
  type BenchSubject,
  type ColdPhase,
  type ColdStarts,
  coldPhases,
  type LayerTimes,
} from './result.js';
import { type ShapeCase, shapeCases, withFileShapes } from './shape-cases.js';
import { joinLayers, samplesPath, writeSamples } from './times.js';

/** Runs that layers are timed over. */
const LAYER_RUNS = 20;

/**
 * Measures an engine on a GPU, in a child process: the plan is compared with its passport, loaded, warmed up and measured at each of the shapes asked for.
 * The GPU's state before, meanwhile and after decides with the samples what speaks against the figures.
 * Errors: those of `loadEngine`; TF_SESSION_INPUT and TF_PROFILE_MISFIT for shapes and inputs that do not fit; TF_GPU_MEMORY, TF_CONTEXT_FAILED, TF_RUN_FAILED,
 * TF_CHILD_DIED, TF_CANCELLED, TF_WRITE_FAILED.
 */
export async function benchEngine(
  request: BenchRequest,
  context: BenchContext,
  start: StartMeasurer = measureInChild,
): Promise<BenchResult> {
  const result = await withEngine(request, context, start, async (subject) => {
    const cases = shapeCases(subject.opened.inputs, withFileShapes(subject.opened.inputs, request));
    const runs: BenchRun[] = [];
    for (const shapeCase of cases) runs.push(await measureCase(subject, request, context, shapeCase, cases));
    const layers = request.layers ? await measureLayers(subject, request, context, cases[0]) : null;
    return resultOf(request, subject, runs, layers);
  });
  if (request.cold !== true || result.gpu === null) return result;
  // After the measurer has ended: pages that it maps would stay in the page cache.
  const { cold, warnings } = await coldStarts(request, context, start, result.gpu.uuid);
  return { ...result, cold, warnings: [...new Set([...result.warnings, ...warnings])] };
}

/** An engine that is open to be measured, and the GPU as it was found. */
export interface OpenSubject {
  readonly measurer: Measurer;
  readonly found: GpuFound;
  readonly opened: BenchedEngine;
  readonly leaseWarning: string | null;
}

/** Opens an engine for a measurement and closes it afterwards, whatever comes of it. `shared` is a lease that somebody else holds and releases. */
export async function withEngine<T>(
  request: BenchRequest,
  context: BenchContext,
  start: StartMeasurer,
  use: (subject: OpenSubject) => Promise<T>,
  isLeased = false,
): Promise<T> {
  const { engine, device } = request;
  // The child holds the whole file against its passport; what can be known without a GPU is said first.
  checkRequest(request);
  const environment = await environmentFor(engine, request, context.environment);
  const doing = `measuring ${engine}`;
  const measurer = start({ ...context, environment, doing });
  let lease: GpuLease | undefined;
  try {
    const found = await measurer.gpu(device);
    lease = isLeased ? undefined : await leaseGpu(found.gpu.uuid, request.wait, context);
    const opened = await inPhase('load', context.emit, () =>
      measurer.open({ engine, device, ...valuesOf(loadOptions, request) }),
    );
    return await use({ measurer, found, opened, leaseWarning: lease?.warning ?? null });
  } finally {
    await measurer.close();
    lease?.release();
  }
}

function measureCase(
  { measurer, found, opened }: OpenSubject,
  request: BenchRequest,
  context: BenchContext,
  shapeCase: ShapeCase,
  cases: readonly ShapeCase[],
): Promise<BenchRun> {
  const { engine, mode, inputs: fill, samples, percentiles } = request;
  const { profile, shapes, batch } = shapeCase;
  return inPhase(
    'measure',
    context.emit,
    async () => {
      const measured = await measurer.measure({ engine, inputs: opened.inputs, profile, shapes, fill, mode });
      const before = found.state === null ? null : namedState(found.state);
      const facts = { engine, shapeCase, mode, percentiles, before, ownPids: [found.pid] };
      const { run: judged, times } = benchRun(measured, facts);
      const doubt = shapeCase === cases[0] ? undefined : followsAnother(opened.backend, times);
      const run = { ...judged, doubts: judged.doubts.concat(doubt ?? []) };
      if (samples === undefined) return run;
      const path = samplesPath(samples, batch, cases.length > 1);
      writeSamples(path, times);
      return { ...run, samples: path };
    },
    `batch ${batch}`,
  );
}

/** Times of layers beside what the inspector reports of each; null where nothing ran. */
export function measureLayers(
  { measurer, opened }: OpenSubject,
  { engine, inputs: fill }: BenchRequest,
  { emit }: BenchContext,
  { profile, shapes }: ShapeCase,
): Promise<LayerTimes | null> {
  return inPhase('time layers', emit, async () => {
    const request = { engine, inputs: opened.inputs, profile, shapes, fill, runs: LAYER_RUNS };
    const { times, inspector } = await measurer.layers(request);
    return joinLayers(times, readLayers(inspector, `The layer information of ${engine}`).layers, profile);
  });
}

function resultOf(
  request: BenchRequest,
  subject: OpenSubject,
  runs: BenchRun[],
  layers: LayerTimes | null,
): BenchResult {
  return {
    schema: 'trtforge.bench/1',
    subject: subjectOf(request, subject.opened),
    backend: subject.opened.backend,
    gpu: gpuOf(subject.found),
    ...figuresOf(runs),
    layers,
    warnings: warningsOf(request, subject, runs),
  };
}

export function subjectOf(
  { engine, plugins = [], ...load }: BenchRequest,
  { facts, fileBytes, passport }: BenchedEngine,
): BenchSubject {
  const { freeBefore, freeAfter } = facts.gpuMemory;
  return {
    path: engine,
    bytes: fileBytes,
    name: passport?.name ?? null,
    identity: passport?.identity ?? null,
    ...(plugins.length === 0 ? {} : { plugins: [...plugins] }),
    contextBytes: facts.deviceMemoryBytes,
    ...(facts.streamableWeightsBytes > 0
      ? { streamableWeightsBytes: facts.streamableWeightsBytes, weightBudgetBytes: facts.weightBudgetBytes }
      : {}),
    ...askedBudget(load),
    loadedBytes: Math.max(0, freeBefore - freeAfter),
    loadMs: facts.loadMs,
    layers: facts.layers,
  };
}

export const gpuOf = ({ gpu, driver }: GpuFound): BenchResult['gpu'] => ({
  name: gpu.name,
  uuid: gpu.uuid,
  driver,
});

export const noPassport = (engine: string): string =>
  `${engine} has no passport: its model, recipe and target are unknown.`;

function warningsOf(
  { engine, mode }: BenchRequest,
  { opened, leaseWarning }: OpenSubject,
  runs: readonly BenchRun[],
): string[] {
  const fallbacks = runs.flatMap(({ mode: { graph, graphFallback } }) =>
    mode.graph && graph !== true
      ? [`There is no CUDA graph: ${graphFallback ?? 'the library gave no reason'}`]
      : [],
  );
  const doubts = runs.flatMap(({ batch, doubts: list }) => distrust(`batch ${batch}`, list));
  return [
    ...new Set([
      ...(opened.passport === null ? [noPassport(engine)] : []),
      ...(leaseWarning === null ? [] : [leaseWarning]),
      ...fallbacks,
      ...doubts,
    ]),
  ];
}

/** A way to measure an engine: the same request, the same result. */
export type Bencher = (request: BenchRequest, context: BenchContext) => Promise<BenchResult>;

/** Every way there is, by the word `--with` takes; each loads when it is used. */
export const benchers = {
  trtforge: (request, context) => benchEngine(request, context),
  trtexec: async (request, context) =>
    (await import('./trtexec/trtexec-bench.js')).benchTrtexec(request, context),
} as const satisfies Record<string, Bencher>;

export type BenchTool = keyof typeof benchers;
export const benchTools = ['trtforge', 'trtexec'] as const satisfies readonly BenchTool[];

/** Measures an engine with trtforge's own meter (as `benchEngine`) or with the toolchain's trtexec; one result for both, with their errors. */
export const benchWith = (
  tool: BenchTool,
  request: BenchRequest,
  context?: Partial<BenchContext>,
): Promise<BenchResult> => benchers[tool](request, benchContext(context));

/** Cold starts of each side: with the page cache as it is, and without it. */
const STARTS = 5;

interface Measured {
  readonly cold: ColdStarts;
  readonly warnings: readonly string[];
}

/**
 * Starts an engine in new processes, in turns with the page cache as it is and without the plan and TensorRT's libraries in it. No process of ours may have
 * them open, for pages that a process maps do not leave. `uuid` names the GPU. Errors: those of `benchEngine`, TF_FILE_UNREADABLE.
 */
export async function coldStarts(
  request: BenchRequest,
  context: BenchContext,
  start: StartMeasurer,
  uuid: string,
  addon: Pick<Addon, 'dropFromCache'> = loadAddon(),
): Promise<Measured> {
  const { engine, device, shapes, inputs, mode } = request;
  const environment = await environmentFor(engine, request, context.environment);
  const opening = { engine, device, shapes, inputs, graph: mode.graph, ...valuesOf(loadOptions, request) };
  const once = async (detail: string): Promise<ColdStart> => {
    const measurer = start({ ...context, environment, doing: `starting ${engine}` });
    try {
      return await inPhase('cold start', context.emit, () => measurer.cold(opening), detail);
    } finally {
      await measurer.close();
    }
  };
  const sides: Record<'warm' | 'dropped', ColdStart[]> = { warm: [], dropped: [] };
  const stayed = new Map<string, number | null>();
  const lease = await leaseGpu(uuid, request.wait, context);
  try {
    for (let at = 1; at <= STARTS; at++) {
      const warm = await once(`${at} of ${STARTS}, page cache as it is`);
      for (const path of [engine, ...warm.libraries]) {
        const left = await addon.dropFromCache(path).done;
        stayed.set(path, left === null ? null : Math.max(left, stayed.get(path) ?? 0));
      }
      sides.warm.push(warm);
      sides.dropped.push(await once(`${at} of ${STARTS}, page cache dropped`));
    }
  } finally {
    lease.release();
  }
  const files = [...stayed].map(([path, stayedBytes]) => ({ path, bytes: statSync(path).size, stayedBytes }));
  return {
    cold: { starts: STARTS, warm: sideOf(sides.warm), dropped: sideOf(sides.dropped), files },
    warnings: [...(lease.warning === null ? [] : [lease.warning]), ...files.flatMap(stayWarning)],
  };
}

const stayWarning = ({ path, bytes, stayedBytes }: ColdStarts['files'][number]): string[] =>
  stayedBytes === 0
    ? []
    : [
        stayedBytes === null
          ? `Whether ${path} left the page cache is unknown: the kernel shows it to who may write to the file.`
          : `${formatBytes(stayedBytes)} of ${formatBytes(bytes)} of ${path} stayed in the page cache, as another process uses the file or it is in a file system in memory: a start after a reboot takes longer.`,
      ];

function sideOf(starts: readonly ColdStart[]): ColdStarts['warm'] {
  const spread = (phase: ColdPhase) => {
    const ms = starts.flatMap((start) => start.ms[phase] ?? []);
    return ms.length < starts.length
      ? null
      : { median: medianOf(ms), min: Math.min(...ms), max: Math.max(...ms) };
  };
  return {
    ms: Object.fromEntries(coldPhases.map((phase) => [phase, spread(phase)])) as ColdStarts['warm']['ms'],
    hostMemory: starts.at(-1)!.hostMemory,
  };
}
