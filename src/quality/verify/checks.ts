import { TrtforgeError } from '../../errors.js';
import type { Comparison } from '../../formats/tensor/compare/comparison.js';
import type { Tolerance } from '../../formats/tensor/compare/pair-sums.js';
import { outcomesBySeverity } from './outcome.js';
import { type Measure, measure, type VerifiedOutput } from './result.js';

/** Checks that can be requested, with Polygraphy's threshold as the default. */
const similarities = { l2: 1e-5, cosine: 0.997, psnr: 30, snr: 20 } as const;
const errorStatistics = ['max', 'mean', 'median', 'quantile'] as const;
export const checkKinds = ['elemwise', ...errorStatistics, 'l2', 'cosine', 'psnr', 'snr'] as const;
export type CheckKind = (typeof checkKinds)[number];

/** One check, for one output or (`name` null) for all. `threshold` is the fraction for `quantile`, null for the usual one. */
export interface AskedCheck {
  readonly name: string | null;
  readonly kind: CheckKind;
  readonly threshold: number | null;
}

/** One check of one output, with its numbers. */
export type ResolvedCheck =
  /** Every element within atol + rtol * |reference|: numpy.allclose's rule. */
  | { readonly kind: 'excess' }
  /** No element beyond both tolerances: Polygraphy's rule. */
  | { readonly kind: 'elemwise' }
  /** The statistic of the absolute errors within atol, or that of the relative errors within rtol. */
  | { readonly kind: 'max' | 'mean' | 'median' }
  | { readonly kind: 'quantile'; readonly fraction: number }
  | { readonly kind: keyof typeof similarities; readonly threshold: number };

export const USUAL_QUANTILE = 0.99;

/** Throws TF_USAGE for a threshold that a check cannot have; NaN would pass whatever is compared. */
export function checkThresholds(asked: readonly AskedCheck[]): void {
  const wrong = asked.find(({ kind, threshold }) => !isPossible(kind, threshold));
  if (wrong === undefined) return;
  throw new TrtforgeError(
    'TF_USAGE',
    `The check ${wrong.kind} cannot have the threshold ${wrong.threshold}.`,
  );
}

/** The checks that apply to an output; of several of a kind the output's own goes first, then the last one passed. */
export function resolveChecks(output: string, asked: readonly AskedCheck[]): readonly ResolvedCheck[] {
  return checkKinds.flatMap((kind): ResolvedCheck[] => {
    const ofKind = asked.filter((check) => check.kind === kind);
    const found =
      ofKind.findLast(({ name }) => name === output) ?? ofKind.findLast(({ name }) => name === null);
    if (found === undefined) return [];
    switch (kind) {
      case 'elemwise':
      case 'max':
      case 'mean':
      case 'median':
        return [{ kind }];
      case 'quantile':
        return [{ kind, fraction: found.threshold ?? USUAL_QUANTILE }];
      default:
        return [{ kind, threshold: found.threshold ?? similarities[kind] }];
    }
  });
}

const UNBOUNDED = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY] as const;

/** The possible range of a threshold: a cosine above 1 would fail whatever is compared. */
const possible: Readonly<Partial<Record<CheckKind, readonly [number, number]>>> = {
  quantile: [0, 1],
  cosine: [-1, 1],
  l2: [0, Number.POSITIVE_INFINITY],
};

function isPossible(kind: CheckKind, threshold: number | null): boolean {
  const [least, most] = possible[kind] ?? UNBOUNDED;
  return threshold === null || (Number.isFinite(threshold) && threshold >= least && threshold <= most);
}

/** Reads `cosine`, `cosine=0.99`, `quantile=0.95`, and `logits:cosine=0.99` for one output (the last colon separates). Throws TF_USAGE. */
export function parseCheck(text: string): AskedCheck {
  const match = /^(?:(.+):)?([a-z0-9]+)(?:=(.+))?$/i.exec(text.trim());
  const kind = checkKinds.find((known) => known === match?.[2]);
  const written = match?.[3];
  const threshold = written === undefined ? null : Number(written);
  const takesNumber = kind === 'quantile' || (kind !== undefined && kind in similarities);
  const isNumber =
    threshold === null || (written?.trim() !== '' && Number.isFinite(threshold) && takesNumber);
  if (kind === undefined || !isNumber || !isPossible(kind, threshold)) {
    throw new TrtforgeError('TF_USAGE', `"${text}" is not a check.`, {
      remedy: `Checks are ${checkKinds.join(', ')}; quantile, l2, cosine, psnr and snr take a number: cosine=0.99, quantile=0.95; logits:cosine=0.99 is for one output. The limits of the others are --atol and --rtol.`,
    });
  }
  return { name: match?.[1] ?? null, kind, threshold };
}

export type CheckResult = VerifiedOutput['checks'][number];

/** Applies one check to the statistics. A measure of NaN means that no pair was finite; the check of non-finite elements speaks for that. */
export function evaluate(check: ResolvedCheck, comparison: Comparison, tolerance: Tolerance): CheckResult {
  switch (check.kind) {
    case 'excess':
      return atMost('max beyond rtol', comparison.excess, tolerance.absolute);
    case 'elemwise':
      return atMost('elements beyond atol and rtol', comparison.beyondBoth, 0);
    case 'l2':
      return atMost('L2', comparison.l2, check.threshold);
    case 'cosine':
      return atLeast('cosine similarity', comparison.cosineSimilarity, check.threshold);
    case 'psnr':
      return atLeast('PSNR in dB', comparison.peakSignalToNoise, check.threshold);
    case 'snr':
      return atLeast('SNR in dB', comparison.signalToNoise, check.threshold);
    default:
      return either(check, comparison, tolerance);
  }
}

/** A check with what was measured and its limit: `p99 is 0.02, above the limit 0.01`. */
export function checkText(check: CheckResult): string {
  const { measured, limit, pass, bound, or, sample, slice } = check;
  const at = [
    ...(slice === undefined ? [] : [sliceText(slice.axis, slice.position)]),
    ...(sample === undefined ? [] : [`sample ${sample}`]),
  ];
  const statistic = at.length === 0 ? check.statistic : `${check.statistic} (${at.join(', ')})`;
  if (measured === 'NaN') return `${statistic} is unknown: no value is finite on both sides`;
  const amount = (measure: Measure) => shortNumber(Number(measure));
  if (or !== undefined)
    return `${statistic} is ${amount(measured)} (limit ${amount(limit)}) and ${or.statistic} ${amount(or.measured)} (limit ${amount(or.limit)}): ${pass ? 'one within is enough' : 'both are above'}`;
  const side = pass ? 'within' : bound === 'at-least' ? 'below' : 'above';
  return `${statistic} is ${amount(measured)}, ${side} the limit ${amount(limit)}`;
}

/** More positions are counted. */
const NAMED_POSITIONS = 4;

/** `positions 4, 5 of axis 1`. */
export function sliceText(axis: number, ...positions: readonly number[]): string {
  const more = positions.length - NAMED_POSITIONS;
  const named = positions.slice(0, NAMED_POSITIONS).join(', ');
  return `position${positions.length === 1 ? '' : 's'} ${named}${more > 0 ? ` and ${more} more` : ''} of axis ${axis}`;
}

/** Three digits, which is more than an error means. */
export const shortNumber = (value: number): string =>
  value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(3)));

function either(
  check: Extract<ResolvedCheck, { readonly kind: 'max' | 'mean' | 'median' | 'quantile' }>,
  { absolute, relative }: Comparison,
  tolerance: Tolerance,
): CheckResult {
  const isQuantile = check.kind === 'quantile';
  const statistic = isQuantile ? `quantile ${check.fraction}` : check.kind;
  const of = (errors: Comparison['absolute']) =>
    isQuantile ? (errors.asked ?? errors.p99) : errors[check.kind];
  const first = atMost(statistic, of(absolute), tolerance.absolute);
  const second = atMost(`${statistic} relative`, of(relative), tolerance.relative);
  return orElse(first, second);
}

/** Passes where one of two does. */
const orElse = (first: CheckResult, { statistic, measured, limit, pass }: CheckResult): CheckResult => ({
  ...first,
  pass: first.pass || pass,
  or: { statistic, measured, limit },
});

export const atMost = (statistic: string, measured: number, limit: number): CheckResult => ({
  statistic,
  measured: measure(measured),
  limit,
  pass: !(measured > limit),
});

const atLeast = (statistic: string, measured: number, limit: number): CheckResult => ({
  statistic,
  measured: measure(measured),
  limit,
  pass: !(measured < limit),
  bound: 'at-least',
});

/** The nearness of a check to its limit, beyond 1 where it fails: the measured number over the limit, of similarities by how much they are beyond. */
export function severityOf({ measured, limit, pass, bound, or }: CheckResult): number {
  if (bound === 'at-least') return pass ? 1 / (2 + Number(measured) - limit) : 1 + limit - Number(measured);
  const share = (of: Measure, most: number) => (Number(of) === 0 ? 0 : Number(of) / most || 0);
  return Math.min(
    share(measured, limit),
    or === undefined ? Number.POSITIVE_INFINITY : share(or.measured, or.limit),
  );
}

/** Outputs in the order in which they decide: failed before undecided before passed, of these the one with the worst check. */
export function worstFirst(outputs: readonly VerifiedOutput[]): readonly VerifiedOutput[] {
  const severity = ({ checks }: VerifiedOutput) => Math.max(0, ...checks.map(severityOf));
  const rank = ({ outcome }: VerifiedOutput) => outcomesBySeverity.indexOf(outcome);
  return outputs.toSorted((a, b) => order(rank(b), rank(a)) || order(severity(b), severity(a)));
}

/** Infinities are equal. */
const order = (a: number, b: number): number => (a === b ? 0 : a - b);

/** Statistics of decisions begin with it, those of `decisionChecks`. */
export const OF_DECISIONS = 'share of decisions turned';
export const isOfDecisions = (statistic: string): boolean => statistic.startsWith(OF_DECISIONS);

export const NON_FINITE = 'non-finite';

/** NaN and infinities where the reference is finite; with `strict` every one, as in Polygraphy. */
export function nonFiniteCheck({ nonFinite }: Pick<Comparison, 'nonFinite'>, strict = false): CheckResult[] {
  const rejected = strict ? nonFinite.mismatching + nonFinite.matching : nonFinite.onlyInCandidate;
  return rejected > 0 ? [atMost(NON_FINITE, rejected, 0)] : [];
}
