import { valuesOf } from '../../base/options/option.js';
import { readLayers } from '../../engines/layers/read-layers.js';
import { askedBudget, loadOptions } from '../../engines/runtime/tensorrt/options.js';
import { environmentFor } from '../../engines/runtime/tensorrt/supervised-engine.js';
import { inPhase } from '../../events.js';
import { benchRun, figuresOf } from './bench-run.js';
import { checkRequest } from './check-request.js';
import { coldStarts } from './cold-starts.js';
import { distrust, followsAnother } from './doubts.js';
import { namedState } from './gpu.js';
import { type GpuLease, leaseGpu } from './gpu-lease.js';
import {
  type BenchedEngine,
  type GpuFound,
  type Measurer,
  measureInChild,
  type StartMeasurer,
} from './measurer.js';
import { type BenchContext, type BenchRequest, benchContext } from './options.js';
import type { BenchResult, BenchRun, BenchSubject, LayerTimes } from './result.js';
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
