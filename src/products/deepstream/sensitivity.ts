import type { StreamsEngine, StreamsMeter } from './effects.js';
import type { StreamsPaths } from './names.js';
import { measureAndRecord, storedMeasurement } from './record.js';
import type { StreamsSensitivity } from './result.js';

/** How far from the batch in use the neighbours lie. */
const DISTANCE = 8;

/** A larger batch that serves this much fewer images than a smaller one is told. */
const NOTABLE_LOSS_PERCENT = 10;

/** The batches N − 8, N and N + 8 that the engine can run. */
const sensitivityBatches = (batch: number, maxBatch: number): readonly number[] =>
  [batch - DISTANCE, batch, batch + DISTANCE].filter((each) => each >= 1 && each <= maxBatch);

/**
 * Measures the neighbours of a batch: engines with dynamic shapes can be much slower at some batches than at the next (attention layers at 17 to 19, by
 * DeepStream's skill), so one figure says little of the one beside it.
 */
export async function measureSensitivity(
  meter: StreamsMeter,
  engine: StreamsEngine,
  batch: number,
  { paths, fresh }: { readonly paths: StreamsPaths; readonly fresh: boolean },
): Promise<StreamsSensitivity[]> {
  const results: StreamsSensitivity[] = [];
  for (const each of sensitivityBatches(batch, engine.maxBatch)) {
    const log = paths.sensitivityLog(each);
    const stored = fresh ? null : storedMeasurement(engine, each, meter, log);
    const { imagesPerSecond, gpuMeanMs } = stored ?? (await measureAndRecord(meter, engine, each, log));
    const best = Math.max(...results.map((one) => one.imagesPerSecond));
    results.push({
      batch: each,
      imagesPerSecond,
      gpuMeanMs,
      changePercent: results.length === 0 ? null : (imagesPerSecond / best - 1) * 100,
      log,
    });
  }
  return results;
}

/** A sentence for each batch that is notably slower than a smaller one. */
export const sensitivityWarnings = (results: readonly StreamsSensitivity[]): readonly string[] =>
  results.flatMap(({ batch, changePercent }) =>
    changePercent !== null && changePercent <= -NOTABLE_LOSS_PERCENT
      ? [
          `Batch ${batch} gives ${(-changePercent).toFixed(0)} % fewer images per second than a smaller batch beside it: choose another number of streams before concluding that the GPU is full.`,
        ]
      : [],
  );
