import { spreadOf } from '../../../quality/bench/statistics.js';
import type { Violation } from '../contract/contract.js';
import type { RecordedLengths } from '../contract/recorded-lengths.js';
import type { TensorParity } from './chunk-compare.js';
import type { NonFiniteChunk } from './non-finite.js';
import type { ParityResult } from './result-schema.js';
import type { TensorDiagnosis } from './tensor.js';

/** One chunk of a stream, run and judged. */
export interface ChunkOutcome {
  readonly chunk: number;
  readonly pass: boolean;
  readonly copyMs: number;
  readonly runMs: number;
  readonly stateMs: number;
  readonly totalMs: number;
  /** Whether buffers were made for a new size of chunk. */
  readonly isFirstOfSize: boolean;
  readonly tensors: readonly TensorParity[];
  /** Why the chunk could not be run; null where it was. */
  readonly refused: string | null;
  readonly lengths: {
    readonly recorded: number | null;
    readonly got: number | null;
  };
}

/** What a run over a stream gave. */
export interface StreamOutcome {
  readonly chunks: readonly ChunkOutcome[];
  readonly violations: readonly Violation[];
  /** What the reference says of lengths, chunk by chunk. */
  readonly recorded: readonly RecordedLengths[];
  readonly dumps: readonly string[];
  readonly diagnoses: readonly TensorDiagnosis[];
  readonly nonFinite: NonFiniteChunk | null;
  readonly warnings: readonly string[];
  /** A chunk after which a closed loop could not go on. */
  readonly stopped: string | null;
}

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
