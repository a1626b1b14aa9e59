import { extname } from 'node:path';
import type { NativeMeasurement } from '../../addon/native-engine.js';
import { publishFile } from '../../base/files/publish.js';
import { meanOf, quantile } from '../../base/statistics.js';
import type { EngineLayer } from '../../engines/layers/result.js';
import { writeNpz } from '../../formats/tensor/npz.js';
import { tensorFrom } from '../../formats/tensor/tensor.js';
import type { RawLayers } from './measurer.js';
import type { LayerTimes } from './result.js';

/** The times of each inference, milliseconds, by any way of measuring; columns are equally long and in the order of the measurement. */
export interface Times {
  /** Which stream ran it, from 0. */
  readonly streams: Int32Array;
  /** When its computing began, on the clock of its stream. */
  readonly startMs: Float64Array;
  readonly inputMs: Float64Array;
  readonly computeMs: Float64Array;
  readonly outputMs: Float64Array;
  /** Input, compute and output together, waits between them not counted: what trtexec calls latency. */
  readonly latencyMs: Float64Array;
  /** Host time to enqueue it; empty where nobody measured it. */
  readonly enqueueMs: Float64Array;
  /** From the first timed begin to the last end, on the clock of the times. */
  readonly wallMs: number;
}

/** The times in a measurement of the addon. */
export function timesOf(measurement: NativeMeasurement): Times {
  const { inputStart, inputEnd, computeStart, computeEnd, outputStart, outputEnd } = measurement;
  const inputMs = difference(inputEnd, inputStart);
  const computeMs = difference(computeEnd, computeStart);
  const outputMs = difference(outputEnd, outputStart);
  return {
    streams: measurement.streams,
    startMs: computeStart,
    inputMs,
    computeMs,
    outputMs,
    latencyMs: computeMs.map((compute, at) => (inputMs[at] ?? 0) + compute + (outputMs[at] ?? 0)),
    enqueueMs: measurement.enqueueMs,
    wallMs: measurement.wallMs,
  };
}

const difference = (ends: Float64Array, starts: Float64Array): Float64Array =>
  ends.map((end, at) => end - (starts[at] ?? end));

const columnNames = ['startMs', 'inputMs', 'computeMs', 'outputMs', 'latencyMs', 'enqueueMs'] as const;

/**
 * Writes every sample: `.npz` with one array per column (`streams` int32, the rest float64, milliseconds), anything else as JSON
 * `{schema: "trtforge.bench-samples/1", wallMs, columns: {…}}`. Throws TF_WRITE_FAILED.
 */
export function writeSamples(path: string, times: Times): void {
  if (extname(path).toLowerCase() === '.npz') {
    const count = times.streams.length;
    writeNpz(
      path,
      new Map([
        ['streams', tensorFrom('int32', [count], times.streams)],
        ...columnNames.map(
          (name) => [name, tensorFrom('float64', [times[name].length], times[name])] as const,
        ),
        ['wallMs', tensorFrom('float64', [], Float64Array.of(times.wallMs))],
      ]),
    );
    return;
  }
  const columns = Object.fromEntries(columnNames.map((name) => [name, Array.from(times[name])]));
  const { wallMs } = times;
  const document = {
    schema: 'trtforge.bench-samples/1',
    wallMs,
    columns: { streams: [...times.streams], ...columns },
  };
  publishFile(path, `${JSON.stringify(document)}\n`);
}

/** Where the samples of one of several batches go: `samples.npz` at batch 8 is `samples.b8.npz`. */
export function samplesPath(path: string, batch: number, several: boolean): string {
  if (!several) return path;
  const extension = extname(path);
  return `${path.slice(0, path.length - extension.length)}.b${batch}${extension}`;
}

/** Milliseconds of one column of a measurement, as trtexec reports them and as numpy does. */
export interface Spread {
  readonly count: number;
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly median: number;
  /** Percentiles by trtexec's rule: always a time that was measured, the pessimistic neighbour. */
  readonly p90: number;
  readonly p95: number;
  readonly p99: number;
  /** Standard deviation over mean, a share of one; null where the mean is 0. */
  readonly coefficientOfVariation: number | null;
  /** The same percentiles, linear between neighbours (numpy's default). */
  readonly interpolated: { readonly p90: number; readonly p95: number; readonly p99: number };
  /** Those that were requested, `p50`, `p99.9`, by trtexec's rule; absent without any. */
  readonly percentiles?: Readonly<Record<string, number>>;
}

/** The spread of a column, with more percentiles (0 to 100) where they are requested; undefined for an empty one. The column is not changed. */
export function spreadOf(column: Float64Array, percentiles: readonly number[] = []): Spread | undefined {
  const sorted = Float64Array.from(column).sort();
  const count = sorted.length;
  const [min, max] = [sorted[0], sorted[count - 1]];
  if (min === undefined || max === undefined) return undefined;
  const mean = meanOf(sorted);
  return {
    count,
    min,
    max,
    mean,
    median: quantile(sorted, 0.5),
    p90: trtexecPercentile(sorted, 90),
    p95: trtexecPercentile(sorted, 95),
    p99: trtexecPercentile(sorted, 99),
    coefficientOfVariation: mean === 0 ? null : deviationOf(sorted, mean) / mean,
    interpolated: {
      p90: quantile(sorted, 0.9),
      p95: quantile(sorted, 0.95),
      p99: quantile(sorted, 0.99),
    },
    ...(percentiles.length === 0
      ? {}
      : {
          percentiles: Object.fromEntries(
            percentiles.map((percent) => [`p${percent}`, trtexecPercentile(sorted, percent)]),
          ),
        }),
  };
}

/** Percentiles of a spread by name, the usual ones and those that were requested, in order. */
export function percentilesOf(
  spread: Spread,
  usual: readonly ('p90' | 'p95' | 'p99')[] = ['p90', 'p95', 'p99'],
): readonly (readonly [string, number])[] {
  const all = { ...Object.fromEntries(usual.map((name) => [name, spread[name]])), ...spread.percentiles };
  return Object.entries(all).sort(([a], [b]) => Number(a.slice(1)) - Number(b.slice(1)));
}

/**
 * The percentile as trtexec 8.6 to 11 print it: element `n - 1 - int((1 - p/100) * n)` of the sorted times, not below the first.
 * It computes in single precision, which decides the index where the product is a whole number, so this does too.
 */
export function trtexecPercentile(sorted: Float64Array, percent: number): number {
  const excludedShare = Math.fround(1 - Math.fround(Math.fround(percent) / 100));
  const excluded = Math.trunc(Math.fround(excludedShare * sorted.length));
  return sorted[Math.max(sorted.length - 1 - excluded, 0)] ?? Number.NaN;
}

/** Over all values, as trtexec computes it: the divisor is n. */
function deviationOf(column: Float64Array, mean: number): number {
  let squares = 0;
  for (const value of column) squares += (value - mean) ** 2;
  return Math.sqrt(squares / column.length);
}

/**
 * Times of layers beside what the inspector reports of each. Names are not unique: layers of one name meet in order, and those of other profiles are not
 * among them. A name that the inspector does not know stands alone.
 */
export function joinLayers(
  times: RawLayers['times'],
  layers: readonly EngineLayer[],
  profile: number,
): LayerTimes | null {
  const runs = Math.max(0, ...times.map((each) => each.runs));
  if (runs === 0) return null;
  const byName = new Map<string, EngineLayer[]>();
  for (const layer of layers) {
    if (layer.profile !== profile) continue;
    const named = byName.get(layer.name);
    if (named === undefined) byName.set(layer.name, [layer]);
    else named.push(layer);
  }
  const timed = times.map(({ name, ms, runs: count }) => {
    const bare = name.replace(/ \[profile \d{1,6}\]$/i, '');
    return { name: bare, ms: count === 0 ? 0 : ms / count, layer: byName.get(bare)?.shift() };
  });
  const totalMs = timed.reduce((sum, { ms }) => sum + ms, 0);
  return {
    runs,
    totalMs,
    layers: timed.map(({ name, ms, layer }) => ({
      index: layer?.index ?? null,
      name,
      type: layer?.type ?? null,
      precision: layer?.precision ?? null,
      tactic: layer?.tactic.name ?? layer?.tactic.value ?? null,
      onnxNodes: [...(layer?.onnxNodes ?? [])],
      ms,
      share: totalMs === 0 ? 0 : ms / totalMs,
    })),
  };
}
