import { TrtforgeError } from '../../errors.js';
import type { Format } from '../../formats/precision/formats/format.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import type { Magnitudes } from '../../formats/tensor/compare/magnitudes.js';
import type { Tolerance } from '../../formats/tensor/compare/pair-sums.js';
import type { Dtype } from '../../formats/tensor/dtype.js';
import { quotedName } from '../../formats/tensor/shape-text.js';
import { type AskedCheck, type ResolvedCheck, resolveChecks, USUAL_QUANTILE } from './checks.js';
import type { VerifyPrecision } from './result.js';

/** A tolerance in the units of an output, and where it comes from. */
export interface JustifiedTolerance extends Tolerance {
  readonly why: string;
}

/** A user's own tolerance, for one output or (`name` null) for all; the last that fits counts. */
export interface AskedTolerance {
  readonly name: string | null;
  readonly value: number;
}

const fp32: Format['tolerance'] = {
  bound: 1e-5,
  why: 'FP32 against FP32: 1e-5, what Polygraphy allows by default; only the order of sums differs',
  differing: 0,
};

const tf32: Format['tolerance'] = {
  bound: 5e-3,
  why: "TF32 against FP32: 5e-3, the bound for FP16, as TF32 rounds the operands of products to FP16's 11 significant bits; --builder-config flags=no-tf32 turns it off",
  differing: 0.01,
};

const toleranceOf = (precision: VerifyPrecision): Format['tolerance'] =>
  precision === 'tf32' ? tf32 : (formatNamed(precision)?.tolerance ?? fp32);

/** What rounding loses near 0 whatever the output's size: the smallest step of FP16 in the last few operators. */
function leastError(precision: VerifyPrecision, dtype: Dtype | undefined): number {
  const isHalf = dtype === 'float16' || !['fp32', 'tf32', 'bf16'].includes(precision);
  return isHalf && dtype !== 'bfloat16' ? 4 * 2 ** -24 : 0;
}

/** What decides about one output, in its own units. */
export interface Limits {
  /** What an element may be off: for counting, and for what the user asked. */
  readonly tolerance: JustifiedTolerance;
  /** What must hold. */
  readonly checks: readonly ResolvedCheck[];
  /** Whether nothing else was asked for. */
  readonly isUsual: boolean;
  /** One quantile of the user's own, or those that reports show. */
  readonly quantiles: 'all' | { readonly fraction: number };
}

/** What Polygraphy allows when nothing is said, absolute and relative. */
const POLYGRAPHY_TOLERANCE = 1e-5;

/** A few elements of millions may be this much worse than nearly all others: 4 times the bound, of the largest reference. */
const OUTLIER_FACTOR = 4;

/** With fewer elements fewer than ten lie beyond the 99th percentile: it is little else than the maximum, and must not fail an output alone. */
const FEWEST_FOR_P99 = 1000;

/** The 99th percentile of normally distributed errors, in units of their root mean square. */
const P99_OF_NORMAL = 2.576;

/** The error of non-zeros x 0.7 is 0.3 of the reference's root mean square: no bound is as wide. */
const MOST_RMS = 0.28;

/** Three standard errors of a root mean square of so few elements. */
const spreadOf = (elements: number): number => 1 + 3 / Math.sqrt(2 * elements);

/** The RMS of the errors of few elements that passes what p99 passes of many. */
const rmsFactor = (elements: number): number => (2 / P99_OF_NORMAL) * spreadOf(elements);

/** What the RMS of a slice's errors may be, of so many elements of the given RMS: twice the bound, as there are many slices and the worst decides. */
export function sliceLimit(
  precision: VerifyPrecision,
  dtype: Dtype | undefined,
  elements: number,
  rms: number,
): number {
  const { bound } = toleranceOf(precision);
  return Math.max(Math.min(2 * bound * spreadOf(elements), MOST_RMS) * rms, leastError(precision, dtype));
}

/**
 * The limits for an output: of the given dtype in the candidate, whose reference has the given number of elements that are not 0, root mean square and peak
 * (largest magnitude).
 *
 * The bounds are meant as atol = rtol = bound for outputs around 1, so a typical element, of the size of the RMS, may be off by 2 * bound * RMS: by
 * default 99 % of all elements must be within that, and every one within 4 * bound * peak. Relative to RMS and peak, a bound means the same for
 * probabilities and for pixels. The largest error has a limit of its own, as rounding errors are spread like a bell and the largest of a million is
 * twice the largest of a hundred. Below 1,000 elements it is enough that the RMS of the errors is what it is where 99 % are within that. No limit is
 * below what rounding loses near 0.
 *
 * What a user asks for is taken as it is: every element must be within atol + rtol * |reference|, or the checks asked for must hold.
 */
export function limitsFor(
  output: string,
  precision: VerifyPrecision,
  dtype: Dtype | undefined,
  { elements, rms, peak }: Magnitudes & { readonly elements: number },
  asked: {
    readonly atol: readonly AskedTolerance[];
    readonly rtol: readonly AskedTolerance[];
    readonly checks?: readonly AskedCheck[];
  },
): Limits {
  const { bound, why } = toleranceOf(precision);
  const atol = askedFor(output, asked.atol);
  const rtol = askedFor(output, asked.rtol);
  const checks = resolveChecks(output, asked.checks ?? []);
  if (checks.length > 0) {
    const why =
      atol === undefined && rtol === undefined ? 'what Polygraphy allows by default' : 'as requested';
    const [absolute, relative] = [atol ?? POLYGRAPHY_TOLERANCE, rtol ?? POLYGRAPHY_TOLERANCE];
    const quantile = checks.find((check) => check.kind === 'quantile');
    const quantiles = quantile === undefined || quantile.fraction === USUAL_QUANTILE ? 'all' : quantile;
    return { tolerance: { absolute, relative, why }, checks, isUsual: false, quantiles };
  }
  if (atol !== undefined || rtol !== undefined) {
    return {
      tolerance: { absolute: atol ?? 0, relative: rtol ?? 0, why: 'as requested' },
      checks: [{ kind: 'excess' }],
      isUsual: false,
      quantiles: 'all',
    };
  }
  const least = leastError(precision, dtype);
  const typical = Math.max(2 * bound * rms, least);
  const few = Math.max(Math.min(rmsFactor(elements) * bound, MOST_RMS) * rms, least);
  return {
    tolerance: {
      absolute: Math.max(bound * rms, least),
      relative: bound,
      why: `${why}; taken relative to the size of this output${typical === least ? `, but no less than ${least.toExponential(2)}, four of FP16's smallest steps` : ''}`,
    },
    checks: [
      elements < FEWEST_FOR_P99
        ? { kind: 'few', rms: few, p99: typical }
        : { kind: 'error', statistic: 'p99', limit: typical },
      { kind: 'error', statistic: 'max', limit: Math.max(OUTLIER_FACTOR * bound * peak, least) },
    ],
    isUsual: true,
    quantiles: 'all',
  };
}

const askedFor = (output: string, asked: readonly AskedTolerance[]): number | undefined =>
  (asked.findLast(({ name }) => name === output) ?? asked.findLast(({ name }) => name === null))?.value;

/** Throws TF_USAGE for a tolerance that decides nothing: nothing is larger than NaN, so everything would pass. */
export function checkTolerances(asked: readonly AskedTolerance[]): void {
  const wrong = asked.find(({ value }) => !(Number.isFinite(value) && value >= 0));
  if (wrong === undefined) return;
  throw new TrtforgeError(
    'TF_USAGE',
    `A tolerance${wrong.name === null ? '' : ` for ${wrong.name}`} is ${wrong.value}, and must be a number from 0.`,
  );
}

/** What integers and booleans may be off, and the share of them that may be off by more. */
export interface ExactLimits {
  readonly tolerance: Tolerance;
  /** The same where it was asked for. */
  readonly asked: JustifiedTolerance | null;
  readonly share: number;
}

/** The limits for integers and booleans: every element within what is asked for this output by name, else no difference in more than the usual share. */
export function exactLimitsFor(
  output: string,
  precision: VerifyPrecision,
  { atol, rtol }: { readonly atol: readonly AskedTolerance[]; readonly rtol: readonly AskedTolerance[] },
): ExactLimits {
  const own = (asked: readonly AskedTolerance[]) => asked.findLast(({ name }) => name === output)?.value;
  const [absolute, relative] = [own(atol), own(rtol)];
  if (absolute === undefined && relative === undefined)
    return { tolerance: { absolute: 0, relative: 0 }, asked: null, share: toleranceOf(precision).differing };
  const asked = { absolute: absolute ?? 0, relative: relative ?? 0, why: 'as requested' };
  return { tolerance: asked, asked, share: 0 };
}

/** A tolerance as the command line takes it: `name:0.01`. */
export const toleranceText = ({ name, value }: AskedTolerance): string => `${namePrefix(name)}${value}`;

/** `name:`, quoted where it must be; nothing for a value that is for all outputs. */
const namePrefix = (name: string | null): string => (name === null ? '' : `${quotedName(name)}:`);
