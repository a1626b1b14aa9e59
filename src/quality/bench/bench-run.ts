import { TrtforgeError } from '../../errors.js';
import type { ModeRequest } from '../../tensorrt/trtexec/options.js';
import { judgeTrust, valleysOf } from './doubts.js';
import { namedState } from './gpu.js';
import type { Measured } from './measurer.js';
import type { BenchRequest } from './options.js';
import type { BenchMode, BenchResult, BenchRun, GpuState } from './result.js';
import type { ShapeCase } from './shape-cases.js';
import { spreadOf, type Times, timesOf } from './times.js';

export interface RunFacts {
  readonly engine: string;
  readonly shapeCase: ShapeCase;
  readonly mode: ModeRequest;
  readonly percentiles: BenchRequest['percentiles'];
  readonly before: GpuState | null;
  readonly ownPids: readonly number[];
}

/** A measurement as it is reported. Throws TF_RUN_FAILED for one without a sample. */
export function benchRun(measured: Measured, facts: RunFacts): { run: BenchRun; times: Times } {
  const { measurement } = measured;
  const { shapeCase, mode, before, percentiles } = facts;
  const times = timesOf(measurement);
  const gpuMs = spreadOf(times.computeMs, percentiles);
  if (gpuMs === undefined || !(times.wallMs > 0)) {
    throw new TrtforgeError('TF_RUN_FAILED', `Measuring ${facts.engine} gave no sample.`);
  }
  const during = measured.during.map(namedState);
  const after = measured.after === null ? null : namedState(measured.after);
  const qps = (gpuMs.count / times.wallMs) * 1000;
  const transferred = (column: Float64Array) =>
    mode.transfers ? (spreadOf(column, percentiles) ?? null) : null;
  const run: BenchRun = {
    batch: shapeCase.batch,
    shapes: shapeCase.shapes.map(({ name, shape, values }) => ({ name, shape: [...(values ?? shape)] })),
    profile: shapeCase.profile,
    gpuMs,
    endToEndMs: transferred(times.latencyMs),
    qps,
    itemsPerSecond: qps * shapeCase.batch,
    mode: modeOf(mode, measurement),
    inputMs: transferred(times.inputMs),
    outputMs: transferred(times.outputMs),
    enqueueMs: spreadOf(times.enqueueMs, percentiles) ?? null,
    wallMs: times.wallMs,
    warmUpInferences: measurement.warmUpInferences,
    peakGpuBytes: measurement.gpuMemory.peakUsed,
    doubts: judgeTrust({
      of: 'gpu',
      times,
      ...mode,
      graph: measurement.graph,
      before,
      during,
      after,
      ownPids: facts.ownPids,
    }),
    gpuStates: { before, during, after },
    samples: null,
  };
  return { run, times };
}

const modeOf = (
  mode: ModeRequest,
  measured: { readonly graph: boolean; readonly graphRefusal: string | null },
): BenchMode => ({
  kind: mode.transfers ? 'with-transfers' : 'gpu-only',
  graph: measured.graph,
  graphFallback: measured.graphRefusal,
  spinWait: mode.spinWait,
  streams: mode.streams,
  warmUpMs: mode.warmUpMs,
  durationMs: mode.durationMs,
  iterations: mode.iterations,
  idleMs: mode.idleMs,
});

/** What a result states of its runs, by any way of measuring: the figures of the first, and the valleys among all. Throws TF_USAGE where there is none. */
export function figuresOf(runs: BenchRun[]) {
  const [first] = runs;
  if (first === undefined) throw new TrtforgeError('TF_USAGE', 'There is no batch to measure.');
  const { gpuMs, endToEndMs, qps, itemsPerSecond, mode } = first;
  return {
    gpuMs,
    endToEndMs,
    qps,
    itemsPerSecond,
    mode,
    runs,
    valleys: valleysOf(runs),
  } satisfies Partial<BenchResult>;
}
