import { spreadOf } from '../../../quality/bench/statistics.js';
import type { ParityResult } from '../compare/result-schema.js';
import type { ChunkOutcome } from '../compare/stream-outcome.js';

type Times = ParityResult['times'];
type Column = NonNullable<Times['rest']>['total'];

const columns = ['copyMs', 'runMs', 'stateMs', 'totalMs'] as const;

/** The times of a stream: the first chunk by itself, then those for which nothing had to be prepared. Percentiles as numpy's. */
export function timesOfStream(chunks: readonly ChunkOutcome[]): Times {
  const ran = chunks.filter(({ refused }) => refused === null);
  const [first] = ran;
  const rest = ran.filter(({ isFirstOfSize }) => !isFirstOfSize);
  const column = (name: (typeof columns)[number]): Column => {
    const spread = spreadOf(Float64Array.from(rest, (chunk) => chunk[name]));
    const { mean = 0, median = 0, max = 0, interpolated } = spread ?? {};
    return { mean, p50: median, p95: interpolated?.p95 ?? 0, p99: interpolated?.p99 ?? 0, max };
  };
  return {
    first:
      first === undefined
        ? null
        : { copyMs: first.copyMs, runMs: first.runMs, stateMs: first.stateMs, totalMs: first.totalMs },
    rest:
      rest.length === 0
        ? null
        : {
            chunks: rest.length,
            copy: column('copyMs'),
            run: column('runMs'),
            state: column('stateMs'),
            total: column('totalMs'),
          },
  };
}
