import { bodyOf, finishResult, unique } from './assemble.js';
import { checkLimits } from './decision.js';
import { sizingFromLogs } from './from-logs.js';
import { StreamsPaths, streamsNames } from './names.js';
import type { StreamsRequest } from './options.js';
import type { StreamsResult } from './result.js';

/** Writes benchmark_data.json anew from the logs alone: no GPU, engine or model is needed. Errors: those of `checkLimits`, `streamsNames` and `sizingFromLogs`, TF_WRITE_FAILED. */
export function streamsFromLogs({
  model,
  names: requested,
  limits,
}: Pick<StreamsRequest, 'model' | 'names' | 'limits'>): StreamsResult {
  checkLimits(limits);
  const names = streamsNames(model, requested);
  const paths = new StreamsPaths(names);
  const { baseline, engines, warnings } = sizingFromLogs(paths);
  const stages = engines.map(({ maxBatch, buildSeconds, peak }) => ({
    maxBatch,
    buildSeconds,
    peak: {
      imagesPerSecond: peak.imagesPerSecond,
      seconds: peak.seconds,
      contextBytes: peak.contextBytes,
      gpuBytes: peak.gpuBytes,
      planBytes: null,
    },
  }));
  const body = bodyOf(names, paths, limits, {
    engines: engines.map(({ maxBatch, buildSeconds, peak }) => ({
      maxBatch,
      path: paths.engine(maxBatch),
      bytes: null,
      sha256: null,
      identity: null,
      buildSeconds,
      source: 'logs' as const,
      peak,
    })),
    stages,
    baseline,
    stop: { reason: 'from-logs', text: 'Everything was read from logs; nothing was built or measured.' },
  });
  return finishResult(paths, { ...body, warnings: unique([...warnings, ...body.warnings]) });
}
