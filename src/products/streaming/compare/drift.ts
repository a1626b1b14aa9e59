import {
  CERTAIN,
  type Figures,
  figuresOf,
  leastSquares,
  meanOf,
  medianOf,
  theilSen,
} from '../../../base/statistics.js';

/** One output's error over a stream: a number for each chunk, its largest absolute error. The figures are over these; `max` is the bound: no chunk is worse. */
export interface Drift extends Figures {
  readonly tensor: string;
  /** Chunks whose error is a finite number; slopes, thirds and shape are about them. */
  readonly chunks: number;
  /** Chunks whose error is NaN or infinite: the figures are then NaN, as they have no bound. */
  readonly unmeasured: number;
  /** The chunk with the largest error. */
  readonly worstChunk: number;
  readonly slope: { readonly robust: DriftSlope; readonly leastSquares: Pick<DriftSlope, 'perChunk'> };
  /** Means of the first and the last third of the stream, and how the last compares to the first. */
  readonly thirds: { readonly first: number; readonly last: number; readonly ratio: number };
  /** Chunks far above all others (see `outliers`). */
  readonly outliers: readonly number[];
  readonly shape: DriftShape;
}

/** A slope per chunk with bounds, each 99.95 % certain: the check runs for every build, and chance must not fail one in forty. */
interface DriftSlope {
  readonly perChunk: number;
  readonly low: number;
  readonly high: number;
}

/**
 * The course of the errors over time. `growing`: the robust slope is above zero for certain, and what it adds over the stream is not small beside the
 * errors themselves. `outliers`: a line through all points rises or falls only because of a few chunks. `steady`: neither.
 */
export type DriftShape = 'steady' | 'growing' | 'outliers' | 'too-short';

/** Fewer chunks show no growth. */
const FEWEST_CHUNKS = 8;

/** The least growth over the whole stream, as a share of the median error, that counts as one. */
const GROWTH_SHARE = 0.25;

/** The error of one output in each chunk, as a drift. `chunks` are the indices in the reference. Where an error is NaN or infinite no figure over all chunks is a number. */
export function driftOf(tensor: string, errors: readonly number[], chunks?: readonly number[]): Drift {
  const known = errors.flatMap((error, at) =>
    Number.isFinite(error) ? [{ error, chunk: chunks?.[at] ?? at }] : [],
  );
  const values = known.map(({ error }) => error);
  const figures = figuresOf(values);
  const third = Math.max(1, Math.floor(values.length / 3));
  const [first, last] = [meanOf(values.slice(0, third)), meanOf(values.slice(-third))];
  const { perStep, ...bounds } = theilSen(values);
  const robust: DriftSlope = { perChunk: perStep, ...bounds };
  const outlying = outliers(values);
  const unmeasured = errors.length - values.length;
  return {
    tensor,
    chunks: values.length,
    unmeasured,
    ...(unmeasured === 0 ? figures : figuresOf([])),
    worstChunk: worstOf(errors, chunks),
    slope: { robust, leastSquares: { perChunk: leastSquares(values) } },
    thirds: { first, last, ratio: first === 0 ? (last === 0 ? 1 : Number.POSITIVE_INFINITY) : last / first },
    outliers: outlying.map((at) => known[at]!.chunk),
    shape: shapeOf(values.length, figures.p50, robust.low > 0 ? robust.perChunk : 0, outlying),
  };
}

/** The first chunk without a number, else that with the largest; -1 for none. */
function worstOf(errors: readonly number[], chunks: readonly number[] | undefined): number {
  const odd = errors.findIndex((error) => !Number.isFinite(error));
  const at = odd >= 0 ? odd : errors.indexOf(errors.reduce((most, each) => Math.max(most, each), 0));
  return at < 0 ? -1 : (chunks?.[at] ?? at);
}

/** An outlier's least distance above the median, in median absolute deviations of the logarithms (4.7 standard deviations), and three times it. */
const OUTLYING_DEVIATIONS = 7;
const OUTLYING_RATIO = 3;

/**
 * Positions of values far above the others. Errors of a healthy stream are spread like a bell on a logarithmic axis, so deviations are taken there; one
 * chunk in fifty a hundred times as bad is not a drift.
 */
function outliers(values: readonly number[]): readonly number[] {
  if (values.length < FEWEST_CHUNKS) return [];
  const median = medianOf(values);
  const positions = [...values.keys()];
  if (!(median > 0)) return positions.filter((at) => values[at]! > 0);
  const logarithms = values.map((value) => Math.log(Math.max(value / median, 1e-9)));
  const limit = Math.max(OUTLYING_DEVIATIONS * medianOf(logarithms.map(Math.abs)), Math.log(OUTLYING_RATIO));
  return positions.filter((at) => logarithms[at]! > limit);
}

function shapeOf(chunks: number, median: number, slope: number, outlying: readonly number[]): DriftShape {
  if (chunks < FEWEST_CHUNKS) return 'too-short';
  // A climb at the end is far above the median too, but then the robust line climbs.
  if (slope * (chunks - 1) > GROWTH_SHARE * median) return 'growing';
  return outlying.length > 0 ? 'outliers' : 'steady';
}

/** Limits for a stream's main output and its latency; null: not checked. */
export interface DriftPolicy {
  readonly max: number | null;
  /** Least share of the chunks in which the main output is within its tolerance, of one. */
  readonly passRate: number | null;
  /** The limit for 95 % of the chunks. */
  readonly p95: number | null;
  readonly mean: number | null;
  /** Growth of the error per chunk. */
  readonly slope: number | null;
  /** 95th percentile of a chunk's total time, the first call apart. */
  readonly latencyMs: number | null;
}

/**
 * The criteria of the streaming encoder's own checklist: no chunk above 1e-3, 80 % of them within the tolerance, mean below 2e-4, and a slope below 1e-6,
 * which its plot calls "no accumulation". Its p95 is of the sign-off.
 */
export const defaultPolicy = {
  max: 1e-3,
  passRate: 0.8,
  p95: null,
  mean: 2e-4,
  slope: 1e-6,
  latencyMs: null,
} satisfies DriftPolicy;

/** The tolerance of the main output in that checklist, which its other limits are for. */
export const CHECKLIST_TOLERANCE = 5e-4;

/** That checklist for a main output whose elements may be off by so much: a wider tolerance widens its limits alike. */
export function policyFor(absolute: number): DriftPolicy {
  const times = Math.max(1, absolute / CHECKLIST_TOLERANCE);
  const { max, mean, slope } = defaultPolicy;
  return { ...defaultPolicy, max: max * times, mean: mean * times, slope: slope * times };
}

export interface DriftCheck {
  readonly name: keyof typeof sentences;
  readonly measured: number;
  readonly limit: number;
  readonly outcome: 'pass' | 'fail' | 'inconclusive';
  readonly sentence: string;
}

const sentences = {
  'pass-rate': (measured: string, limit: string) =>
    `${measured} of the chunks are within the tolerance; at least ${limit} must be`,
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
 * Each criterion with its number, `passRate` and `latencyP95Ms` of the same stream (null: not known, not checked). A slope above its limit fails where its lower bound is above it too; else it is not certain and passes, and over a few
 * chunks it is inconclusive.
 */
export function judgeDrift(
  drift: Drift,
  policy: DriftPolicy,
  { passRate, latencyP95Ms }: { readonly passRate: number | null; readonly latencyP95Ms: number | null },
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
        : (name === 'pass-rate' ? measured >= limit : measured <= limit)
          ? 'pass'
          : beyond;
    const words = isOdd
      ? `the error is NaN or infinite in ${unmeasured} of ${unmeasured + chunks} chunks; ${short(limit)} is allowed`
      : sentences[name](short(measured), short(limit));
    const doubt = isUncertain({ name, measured, limit, outcome })
      ? `: above the limit, not certain (${CERTAIN})`
      : '';
    checks.push({ name, measured, limit, outcome, sentence: `${words}${doubt}.` });
  };
  add('max', drift.max, policy.max);
  add('pass-rate', passRate, policy.passRate);
  add('p95', drift.p95, policy.p95);
  add('mean', drift.mean, policy.mean);
  const isCertain = robust.low > (policy.slope ?? 0);
  const growth = isCertain ? 'fail' : drift.chunks < FEWEST_CHUNKS ? 'inconclusive' : 'pass';
  if (drift.chunks > 0) add('slope', robust.perChunk, policy.slope, growth);
  add('latency', latencyP95Ms, policy.latencyMs);
  return checks;
}

/** A growth above its limit that does not fail. */
export const isUncertain = ({
  name,
  measured,
  limit,
  outcome,
}: Omit<DriftCheck, 'measured' | 'sentence'> & { readonly measured: number | string }): boolean =>
  name === 'slope' && Number(measured) > limit && outcome !== 'fail';

const short = (value: number): string => String(Number(value.toPrecision(3)));
