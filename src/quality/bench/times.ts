import { extname } from 'node:path';
import type { NativeMeasurement } from '../../addon/native-engine.js';
import { publishFile } from '../../base/files/publish.js';
import { writeNpz } from '../../formats/tensor/npz.js';
import { tensorFrom } from '../../formats/tensor/values.js';

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
