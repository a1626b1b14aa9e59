import type { ExportedTimes } from '../../../tensorrt/trtexec/exports.js';
import { GRAPH_REFUSED } from '../../../tensorrt/trtexec/log/log.js';
import type { PrintedTimes, TrtexecLog } from '../../../tensorrt/trtexec/log/result.js';
import type { ModeRequest } from '../../../tensorrt/trtexec/options.js';
import type { BenchMode } from '../result.js';
import { type Spread, spreadOf, type Times } from '../times.js';

/** trtexec computes in single precision and prints six digits; a rounding of the last one, twice. */
const TOLERANCE = 2e-5;
/** Times in the export are rounded to a hundredth of a microsecond where the clock is large, so short ones differ by that much. */
const TOLERANCE_MS = 1e-5;

/** The exported times of a run as any measurement has them. trtexec does not state which stream ran which. */
export function exportedAsTimes(exported: ExportedTimes, log: TrtexecLog): Times {
  const { startEnqMs, endEnqMs, endD2hMs } = exported;
  const last = endD2hMs.reduce((latest, end) => Math.max(latest, end), 0);
  const printed = log.performance?.hostWalltimeSeconds;
  return {
    streams: new Int32Array(exported.computeMs.length),
    startMs: exported.startComputeMs,
    inputMs: exported.h2dMs,
    computeMs: exported.computeMs,
    outputMs: exported.d2hMs,
    latencyMs: exported.latencyMs,
    enqueueMs: endEnqMs.map((end, at) => end - (startEnqMs[at] ?? end)),
    wallMs: printed == null ? last - (startEnqMs[0] ?? 0) : printed * 1000,
  };
}

/** The mode in which trtexec measured, by its own echo where it prints one. */
export function measuredMode(asked: ModeRequest, log: TrtexecLog): BenchMode {
  const failure = log.warnings.find(({ message }) => GRAPH_REFUSED.test(message));
  const echo = log.measurement;
  const graph = (echo.graph ?? asked.graph) && log.run.graphCaptured !== false;
  return {
    kind: (echo.transfers ?? asked.transfers) ? 'with-transfers' : 'gpu-only',
    graph,
    graphFallback: asked.graph && !graph ? (failure?.message.trim() ?? 'trtexec captured none') : null,
    spinWait: echo.spinWait ?? asked.spinWait,
    streams: echo.streams ?? asked.streams,
    warmUpMs: echo.warmUpMs ?? asked.warmUpMs,
    durationMs: echo.durationSeconds === null ? asked.durationMs : echo.durationSeconds * 1000,
    iterations: echo.iterations ?? asked.iterations,
    idleMs: echo.idleMs ?? asked.idleMs,
  };
}

/** Sentences for each figure that trtexec printed and its own samples do not give; none when all agree. */
export function disagreements(times: Times, { performance, run }: TrtexecLog): readonly string[] {
  if (performance === null)
    return ['trtexec printed no summary, so its figures could not be compared with its samples.'];
  const count = times.computeMs.length;
  const counted =
    run.queries === null || run.queries === count
      ? []
      : [`trtexec printed ${run.queries} queries and exported ${count}.`];
  const columns = [
    ['latency', performance.latency, times.latencyMs],
    ['GPU compute time', performance.gpuCompute, times.computeMs],
    ['H2D latency', performance.h2d, times.inputMs],
    ['D2H latency', performance.d2h, times.outputMs],
  ] as const;
  const spreads = columns.flatMap(([name, printed, column]) => {
    const spread = spreadOf(column);
    return printed === null || spread === undefined ? [] : columnDisagreements(name, printed, spread);
  });
  const qps = (count / times.wallMs) * 1000;
  const printedQps = performance.throughputQps;
  const throughput =
    printedQps === null || Math.abs(printedQps - qps) <= qps * 1e-3
      ? []
      : [`trtexec printed ${printedQps} qps, and ${qps.toPrecision(6)} follow from its samples.`];
  return [...counted, ...spreads, ...throughput];
}

function columnDisagreements(name: string, printed: PrintedTimes, spread: Spread): readonly string[] {
  const percentile = (percent: number) =>
    printed.percentiles.find((each) => each.percent === percent)?.ms ?? null;
  const pairs = [
    ['min', printed.min, spread.min],
    ['max', printed.max, spread.max],
    ['mean', printed.mean, spread.mean],
    ['median', printed.median, spread.median],
    ['p90', percentile(90), spread.p90],
    ['p95', percentile(95), spread.p95],
    ['p99', percentile(99), spread.p99],
  ] as const;
  return pairs.flatMap(([word, printed, computed]) =>
    printed === null || Math.abs(printed - computed) <= Math.max(TOLERANCE_MS, Math.abs(computed) * TOLERANCE)
      ? []
      : [
          `trtexec printed a ${word} ${name} of ${printed} ms, and its samples make ${computed.toPrecision(6)} ms.`,
        ],
  );
}
