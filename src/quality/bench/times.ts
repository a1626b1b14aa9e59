import type { NativeMeasurement } from '../../tensorrt/addon/native-engine.js';

/** What any way of measuring gives for each inference, milliseconds; columns are equally long and in the order of the measurement. */
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
  /** From the first timed enqueue to the last completion. */
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
