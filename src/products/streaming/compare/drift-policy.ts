import { type Drift, FEWEST_CHUNKS } from './drift.js';

/** Limits for a stream's main output and its latency; null: not checked. */
export interface DriftPolicy {
  readonly p95: number | null;
  readonly max: number | null;
  readonly mean: number | null;
  /** Growth of the error per chunk. */
  readonly slope: number | null;
  /** 95th percentile of a chunk's total time, the first call apart. */
  readonly latencyMs: number | null;
}

/** The criteria of the streaming encoder's own checklist: p95 below 5e-4, no chunk above 1e-3, mean below 2e-4, and a slope below 1e-6, which its plot calls "no accumulation". */
export const defaultPolicy: DriftPolicy = { p95: 5e-4, max: 1e-3, mean: 2e-4, slope: 1e-6, latencyMs: null };

export interface DriftCheck {
  /** `p95`, `max`, `mean`, `slope`, `latency`. */
  readonly name: keyof typeof sentences;
  readonly measured: number;
  readonly limit: number;
  readonly outcome: 'pass' | 'fail' | 'inconclusive';
  readonly sentence: string;
}

const sentences = {
  p95: (measured: string, limit: string) => `95 % of the chunks are within ${measured}; ${limit} is allowed`,
  max: (measured: string, limit: string) => `the worst chunk is ${measured} off; ${limit} is allowed`,
  mean: (measured: string, limit: string) => `the mean error is ${measured}; ${limit} is allowed`,
  slope: (measured: string, limit: string) =>
    measured.startsWith('-')
      ? `the error falls by ${measured.slice(1)} a chunk; a growth of ${limit} is allowed`
      : `the error grows by ${measured} a chunk; ${limit} is allowed`,
  latency: (measured: string, limit: string) =>
    `95 % of the chunks take at most ${measured} ms; ${limit} ms is allowed`,
} as const;

/**
 * Each criterion with its number. A slope above its limit fails where it is above zero for certain; where it may as well be chance it passes, and
 * over a few chunks it is inconclusive.
 */
export function judgeDrift(
  drift: Drift,
  policy: DriftPolicy,
  latencyP95Ms: number | null,
): readonly DriftCheck[] {
  const { robust } = drift.slope;
  const checks: DriftCheck[] = [];
  const add = (
    name: DriftCheck['name'],
    measured: number | null,
    limit: number | null,
    beyond: DriftCheck['outcome'] = 'fail',
  ) => {
    if (limit === null || measured === null) return;
    const { unmeasured, chunks } = drift;
    const isOdd = Number.isNaN(measured) && unmeasured > 0;
    const outcome = isOdd
      ? 'fail'
      : Number.isNaN(measured)
        ? 'inconclusive'
        : measured <= limit
          ? 'pass'
          : beyond;
    const words = isOdd
      ? `the error is NaN or infinite in ${unmeasured} of ${unmeasured + chunks} chunks; ${short(limit)} is allowed`
      : sentences[name](short(measured), short(limit));
    // A number above its limit that does not fail needs the reason beside it.
    const chance = measured > limit && outcome !== 'fail' ? ', and this may as well be chance' : '';
    checks.push({ name, measured, limit, outcome, sentence: `${words}${chance}.` });
  };
  add('p95', drift.p95, policy.p95);
  add('max', drift.max, policy.max);
  add('mean', drift.mean, policy.mean);
  const growth = drift.isGrowthCertain ? 'fail' : drift.chunks < FEWEST_CHUNKS ? 'inconclusive' : 'pass';
  if (drift.chunks > 0) add('slope', robust.perChunk, policy.slope, growth);
  add('latency', latencyP95Ms, policy.latencyMs);
  return checks;
}

const short = (value: number): string => String(Number(value.toPrecision(3)));
