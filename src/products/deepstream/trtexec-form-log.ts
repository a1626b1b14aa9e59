import type { BenchResult, BenchRun } from '../../quality/bench/result.js';
import { readTrtexecLog } from '../../tensorrt/trtexec/log/log.js';
import { packageVersion } from '../../version.js';

/** The reporting option that reports these logs from trtexec's own. */
const WRITTEN_BY = 'Written by';

export interface LoggedMeasurement {
  readonly result: BenchResult;
  readonly run: BenchRun;
  readonly enginePath: string;
  readonly gpuBytes: number | null;
  /** When the measurement ended. */
  readonly at: Date;
}

/**
 * A measurement of trtforge's own in trtexec's words, so that whatever greps trtexec's log finds the same lines here:
 * `Throughput: Q qps`, `GPU Compute Time: min = … ms, …, percentile(99%) = … ms`. The first line and "Written by" say whose log it is, and what was
 * not measured has no line.
 */
export function streamsLogText(measured: LoggedMeasurement): string {
  const { run, enginePath, at } = measured;
  const prefix = `[${logTime(at)}] [I] `;
  const banner = `trtforge.streams [trtforge v${packageVersion()}] # batch ${run.batch} of ${enginePath}`;
  const doubts = run.doubts.map(({ why }) => `[${logTime(at)}] [W] * ${oneLine(why)}`);
  return [
    `&&&& RUNNING ${banner}`,
    ...bodyLines(measured).map((line) => `${prefix}${line}`),
    ...doubts,
    `&&&& PASSED ${banner}`,
    '',
  ].join('\n');
}

function bodyLines({ result, run, enginePath, gpuBytes }: LoggedMeasurement): readonly string[] {
  const { mode } = run;
  const known = (value: number | null, line: (value: number) => string) =>
    value === null ? [] : [line(value)];
  return [
    '=== Build Options ===',
    `Load engine: ${enginePath}`,
    '',
    '=== Inference Options ===',
    'Batch: Explicit',
    ...run.shapes.map(({ name, shape }) => `Input inference shape : ${name}=${shape.join('x')}`),
    `Iterations: ${mode.iterations}`,
    `Duration: ${plain(mode.durationMs / 1000)}s (+ ${mode.warmUpMs}ms warm up)`,
    `Idle time: ${mode.idleMs}ms`,
    `Inference Streams: ${mode.streams}`,
    `Data transfers: ${enabled(mode.kind !== 'gpu-only')}`,
    `Spin-wait: ${enabled(mode.spinWait ?? false)}`,
    `CUDA Graph: ${enabled(mode.graph ?? false)}`,
    '',
    '=== Reporting Options ===',
    `${WRITTEN_BY}: trtforge ${packageVersion()}, not trtexec`,
    'Percentiles: 90,95,99',
    '',
    '=== Device Information ===',
    ...(result.gpu === null
      ? []
      : [`Selected Device: ${result.gpu.name}`, `Selected Device UUID: ${result.gpu.uuid}`]),
    ...known(gpuBytes, (bytes) => `Device Global Memory: ${Math.floor(bytes / 2 ** 20)} MiB`),
    '',
    `Measured with ${result.backend}`,
    ...known(
      result.subject.contextBytes,
      (bytes) => `Created execution context with device memory size: ${plain(bytes / 2 ** 20)} MiB`,
    ),
    ...known(
      run.warmUpInferences,
      (count) => `Warmup completed ${count} queries over ${plain(mode.warmUpMs)} ms`,
    ),
    ...(run.gpuMs === null
      ? []
      : [`Timing trace has ${run.gpuMs.count} queries over ${plain(run.wallMs / 1000)} s`]),
    '',
    '=== Performance summary ===',
    `Throughput: ${plain(run.qps)} qps`,
    ...spreadLine('Enqueue Time', run.enqueueMs),
    ...spreadLine('GPU Compute Time', run.gpuMs),
    `Total Host Walltime: ${plain(run.wallMs / 1000)} s`,
    ...(run.gpuMs === null
      ? []
      : [`Total GPU Compute Time: ${plain((run.gpuMs.mean * run.gpuMs.count) / 1000)} s`]),
  ];
}

function spreadLine(label: string, spread: BenchRun['gpuMs']): readonly string[] {
  if (spread === null) return [];
  const { min, max, mean, median, p90, p95, p99 } = spread;
  const parts = {
    min,
    max,
    mean,
    median,
    'percentile(90%)': p90,
    'percentile(95%)': p95,
    'percentile(99%)': p99,
  };
  return [
    `${label}: ${Object.entries(parts)
      .map(([name, ms]) => `${name} = ${plain(ms)} ms`)
      .join(', ')}`,
  ];
}

const enabled = (isOn: boolean): string => (isOn ? 'Enabled' : 'Disabled');
const oneLine = (text: string): string => text.replace(/\s+/g, ' ');

/** Six significant digits as trtexec prints, but never `1.2e+06`, of which the scripts' `[0-9.]+` would read 1.2. */
export function plain(amount: number): string {
  const rounded = Number(amount.toPrecision(6));
  const text = String(rounded);
  return text.includes('e') ? rounded.toFixed(rounded < 1 ? 12 : 0) : text;
}

/** `11/20/2026-21:33:49`, local time, as trtexec stamps its lines. */
export function logTime(at: Date): string {
  const two = (part: number) => String(part).padStart(2, '0');
  const day = `${two(at.getMonth() + 1)}/${two(at.getDate())}/${at.getFullYear()}`;
  return `${day}-${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** The content of a log of one measurement, and the program that wrote it. */
export interface StreamsLog {
  readonly writtenBy: 'trtforge' | 'trtexec' | 'unknown';
  /** Ended with its summary, and by its own word well. */
  readonly isComplete: boolean;
  readonly qps: number | null;
  readonly gpuMeanMs: number | null;
  readonly gpuP99Ms: number | null;
  /** First dimensions of the shapes echoed; one of them is the batch. Empty where none was. */
  readonly firstDims: readonly number[];
  readonly contextBytes: number | null;
  readonly gpuBytes: number | null;
}

const MIB = 1 << 20;

/**
 * Reads a log of trtexec or one written by `streamsLogText`, in constant memory. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE.
 */
export function readStreamsLog(path: string): StreamsLog {
  const log = readTrtexecLog(path);
  const { performance, measurement, device, engine } = log;
  const qps = performance?.throughputQps ?? null;
  const gpu = performance?.gpuCompute ?? null;
  const isOurs = log.options.reporting[WRITTEN_BY] !== undefined;
  // Ours appears whole or not at all, and its summary is its end.
  const isEnded = isOurs ? performance?.hostWalltimeSeconds != null : log.outcome === 'passed';
  const gpuMeanMs = gpu?.mean ?? null;
  return {
    writtenBy: isOurs ? 'trtforge' : log.runs > 0 ? 'trtexec' : 'unknown',
    isComplete: isEnded && qps !== null && gpuMeanMs !== null,
    qps,
    gpuMeanMs,
    gpuP99Ms: gpu?.percentiles.find(({ percent }) => percent === 99)?.ms ?? null,
    firstDims: [...new Set(Object.values(measurement.shapes).flatMap((shape) => shape[0] ?? []))],
    contextBytes: engine.contextBytes,
    gpuBytes: device.memoryMiB === null ? null : device.memoryMiB * MIB,
  };
}
