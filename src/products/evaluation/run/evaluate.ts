import { z } from 'zod';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { meanOf, quantile } from '../../../base/statistics.js';
import type { OpenedSession } from '../../../engines/runtime/back-end.js';
import { ignoreEvents } from '../../../events.js';
import type { NamedTensors } from '../../../formats/tensor/tensor.js';
import type { Sample, TaskContext } from '../../../quality/tasks/task.js';

/** Of runs alone, milliseconds from host memory to host memory; null where every time was skipped. `throughput_fps` is 1000 / mean_ms. */
export const latencySchema = z
  .object({
    mean_ms: z.number(),
    median_ms: z.number(),
    p90_ms: z.number(),
    throughput_fps: z.number(),
    count: z.number(),
    /** Times at 0, 1, …, 100 % of the runs: their distribution. */
    percentiles_ms: z.array(z.number()).length(101),
  })
  .nullable();
export type Latency = z.infer<typeof latencySchema>;

/** Memory that the session took, bytes. */
export const memorySchema = z.object({
  /** Largest resident memory of the process that ran it; null where the system does not report it. */
  peakHostBytes: z.number().nullable(),
  /** In use on the GPU after the last run, everybody's; null where it ran on the CPU. */
  gpuBytes: z.number().nullable(),
});

/** Scores outputs sample by sample: a `Task`, or any object with these two functions. */
export interface Scorer<S extends Sample, R> {
  /** Called for one sample after the other, in their order, while the next one runs. */
  take(sample: S, outputs: NamedTensors): Promise<void> | void;
  result(): R;
}

export interface EvaluateOptions<S extends Sample> extends TaskContext {
  readonly samples: AsyncIterable<S> | Iterable<S>;
  /** Number of samples, where it is known, for progress. */
  readonly total?: number | undefined;
  /** Untimed runs of the first sample before the others; default none. */
  readonly warmUpRuns?: number;
  /** So many of the first times are not in the latency; default none. */
  readonly skipLatency?: number;
}

export interface Evaluated<R> {
  readonly result: R;
  readonly run: {
    readonly samples: number;
    readonly latency: Latency;
    readonly memory: z.infer<typeof memorySchema>;
    /** From the first sample to the last result: preparing, running, scoring. */
    readonly samplesPerSecond: number;
  };
}

/**
 * Runs every sample through a session, an engine's or a model's, and has its outputs scored; the session stays open. Throws what the samples, a run or the
 * task throws, TF_CANCELLED.
 */
export async function evaluate<S extends Sample, R>(
  task: Scorer<S, R>,
  session: OpenedSession,
  options: EvaluateOptions<S>,
): Promise<Evaluated<R>> {
  const { samples, total, warmUpRuns = 0, skipLatency = 0, emit = ignoreEvents, signal } = options;
  const run = (inputs: NamedTensors) => session.runRepeatedly(inputs, { iterations: 1, signal });
  const times: number[] = [];
  let running: { readonly sample: S; readonly ran: ReturnType<typeof run> } | undefined;
  const finish = async ({ sample, ran }: NonNullable<typeof running>) => {
    const { outputs, ms } = await ran;
    times.push(ms[0]!);
    await task.take(sample, outputs);
    if (total !== undefined) emit({ type: 'progress', phase: 'run samples', done: times.length, total });
  };
  let started = performance.now();
  for await (const sample of samples) {
    throwIfCancelled(signal, 'running samples');
    const before = running;
    if (before === undefined) {
      for (let warmUp = 0; warmUp < warmUpRuns; warmUp++) await run(sample.inputs);
      started = performance.now();
    }
    // Its inputs cross while the sample before it runs.
    running = { sample, ran: run(sample.inputs) };
    running.ran.catch(() => {});
    if (before !== undefined) await finish(before);
  }
  if (running !== undefined) await finish(running);
  const seconds = (performance.now() - started) / 1000;
  const { peakHostBytes, gpuBytes } = await session.facts();
  return {
    result: task.result(),
    run: {
      samples: times.length,
      latency: latencyOf(times.slice(skipLatency)),
      memory: { peakHostBytes, gpuBytes },
      samplesPerSecond: times.length / seconds,
    },
  };
}

/** Of runs that took so many milliseconds each. */
export function latencyOf(times: readonly number[]): Latency {
  if (times.length === 0) return null;
  const sorted = Float64Array.from(times).sort();
  const mean = meanOf(sorted);
  return {
    mean_ms: mean,
    median_ms: quantile(sorted, 0.5),
    p90_ms: quantile(sorted, 0.9),
    throughput_fps: 1000 / mean,
    count: times.length,
    percentiles_ms: Array.from({ length: 101 }, (_, percent) => quantile(sorted, percent / 100)),
  };
}
