import { type Comparison, comparePairs } from '../../formats/tensor/compare/comparison.js';
import { ErrorHistogram } from '../../formats/tensor/compare/error-histogram.js';
import { type Magnitudes, magnitudesOf } from '../../formats/tensor/compare/magnitudes.js';
import { addSlices, slicedAxis, sliceSums } from '../../formats/tensor/compare/slices.js';
import { type FarPair, WorstPairs } from '../../formats/tensor/compare/worst-pairs.js';
import { type Dtype, dtypes } from '../../formats/tensor/dtype.js';
import {
  type FloatPairs,
  type FloatReader,
  floatReader,
  joinedFloats,
} from '../../formats/tensor/float-reader.js';
import { type CheckResult, checkText, evaluate, nonFiniteCheck, severityOf, shortNumber } from './checks.js';
import { errorStatistics, sidesOf } from './error-statistics.js';
import { judgeExact } from './judge-exact.js';
import {
  described,
  isTypical,
  isUnreached,
  type JudgedOutput,
  type JudgeRequest,
  located,
  undecidedSentence,
  WORST_ELEMENTS,
} from './judged.js';
import { acceptedErrors } from './planted.js';
import type { VerifiedOutput } from './result.js';
import { type Limits, limitsFor, sliceLimit } from './tolerance.js';

/** Compares one output of all samples with the reference: floats within a tolerance, integers and booleans exactly unless a check names them. */
export function judgeOutput(request: JudgeRequest): JudgedOutput {
  const isFloat = dtypes[referenceDtype(request)].kind === 'float';
  const isChecked = request.checks?.some(({ name }) => name === request.name) === true;
  return isFloat || isChecked ? judgeFloats(request) : judgeExact(request);
}

const referenceDtype = ({ reference }: JudgeRequest): Dtype => reference[0]?.dtype ?? 'float32';

/** Each sample is judged alone, and the worst decides; statistics are of all samples together. */
function judgeFloats(request: JudgeRequest): JudgedOutput {
  const { name } = request;
  const criterion = new Criterion(request);
  const { samples, limits } = criterion;
  const bySample = samples.map(({ candidate, reference }, at) =>
    criterion.judge(at, { candidate, reference }),
  );
  const checks = worstChecks(bySample);
  const pairs: FloatPairs = {
    candidate: joinedFloats(samples.map(({ candidate }) => candidate)),
    reference: joinedFloats(samples.map(({ reference }) => reference)),
  };
  const furthest = new WorstPairs(WORST_ELEMENTS);
  const histogram = new ErrorHistogram(furthest);
  const comparison = comparePairs(pairs, limits.tolerance, limits.quantiles, histogram);
  const failed = checks.some(({ pass }) => !pass);
  const planted = failed || request.plant === false || request.allowLoose ? [] : criterion.accepted();
  const doubt = failed ? undefined : whyInconclusive(request, comparison, planted);
  const worst = furthest.list();
  const reasons = failed ? whyFailed(comparison, checks, worst) : doubt === undefined ? [] : [doubt];
  const { absolute, relative, why } = limits.tolerance;
  return {
    output: {
      ...described(request, comparison.elements),
      outcome: failed ? 'fail' : doubt === undefined ? 'pass' : 'inconclusive',
      pass: !failed,
      checks,
      tolerance: { absolute, relative, why },
      statistics: errorStatistics(comparison),
      sides: sidesOf(comparison, pairs),
      histogram: histogram.histogram(),
      planted,
      nonFinite: comparison.nonFinite,
      worst: worst.map((pair) => located(pair, request.reference)),
      reasons: reasons.map((reason) => `${name}: ${reason}`),
    },
    isClose: limits.isUsual && !failed && checks.some((check) => severityOf(check) > 1 / CLEAR_MARGIN),
    failures: bySample.flatMap((own, chunk) => {
      if (own.every(({ pass }) => pass)) return [];
      const kind = own.some(({ statistic, pass }) => statistic === 'non-finite' && !pass)
        ? 'non-finite'
        : 'outside-tolerance';
      const largest = criterion.largest[chunk] ?? Number.NaN;
      return [{ chunk, kind, maxAbs: largest }];
    }),
  };
}

/** Limits that are not twice what was measured ask for more samples. */
const CLEAR_MARGIN = 2;

/** The limits of one output, by sample: each by its own size, or that of all typical samples together where it is the larger. */
class Criterion {
  readonly samples: readonly (FloatPairs & { readonly shape: readonly number[] })[];
  /** The axis whose positions are judged each by its own scale. */
  readonly axis: number | null;
  readonly limits: Limits;
  /** The largest error of each sample that was judged. */
  readonly largest: number[] = [];
  readonly #request: JudgeRequest;
  readonly #typical: readonly number[];
  readonly #together: Magnitudes;
  readonly #scales: Float64Array;

  constructor(request: JudgeRequest) {
    const { name, reference, candidate } = request;
    this.#request = request;
    this.samples = reference.map((tensor, at) => ({
      shape: tensor.shape,
      reference: floatReader(tensor, name),
      candidate: floatReader(candidate[at]!, name),
    }));
    this.#typical = this.samples.flatMap((_, at) => (isTypical(request, at) ? [at] : []));
    const typical = this.#typical.map((at) => this.samples[at]!);
    const values = typical.map(({ shape, reference: own }) => ({ shape, values: own }));
    this.#together = magnitudesOf(joinedFloats(values.map((each) => each.values)));
    this.limits = this.#limitsOf(this.#together, Number.POSITIVE_INFINITY);
    this.axis = this.limits.isUsual ? slicedAxis(values) : null;
    this.#scales = this.#rootMeanSquares(typical.map(({ reference: own }) => own));
  }

  /** The checks of one sample, or of what is planted in its place. */
  judge(sample: number, pairs: FloatPairs, isPlanted = false): readonly CheckResult[] {
    const { shape } = this.samples[sample]!;
    const { strictNonFinite } = this.#request;
    const sums = sliceSums(pairs, shape, this.axis);
    const slices = this.limits.isUsual ? this.#sliceCheck(sums) : [];
    if (isPlanted && slices.some(({ pass }) => !pass)) return slices;
    const nonZero = pairs.reference.length - sums.zeros;
    const own = magnitudesOf(this.samples[sample]!.reference);
    const limits = this.#limitsOf(
      { rms: Math.max(own.rms, this.#together.rms), peak: Math.max(own.peak, this.#together.peak) },
      nonZero,
    );
    const fraction = 1 - (0.01 * nonZero) / Math.max(1, pairs.reference.length);
    const found = comparePairs(
      pairs,
      this.limits.tolerance,
      limits.isUsual ? { fraction } : limits.quantiles,
    );
    // Percentiles that decide are over elements that are not 0 on both sides.
    const comparison = limits.isUsual
      ? { ...found, absolute: { ...found.absolute, p99: found.absolute.asked ?? found.absolute.p99 } }
      : found;
    if (!isPlanted) this.largest[sample] = comparison.absolute.max;
    return [
      ...limits.checks.map((check) => evaluate(check, comparison, limits.tolerance)),
      ...slices,
      ...nonFiniteCheck(comparison, strictNonFinite),
    ].map((check) => (this.samples.length > 1 ? { ...check, sample } : check));
  }

  /** The planted errors that no sample rejects; edge samples show nothing, and a size that was requested may well allow another one. */
  accepted(): VerifiedOutput['planted'] {
    const { isUsual } = this.limits;
    const samples = this.#typical.map((at) => {
      const { shape, reference } = this.samples[at]!;
      const sums = sliceSums({ candidate: reference, reference }, shape, this.axis);
      const limit = (count: number, position: number) =>
        isUsual ? this.#sliceLimit(sums, count, position) : Number.POSITIVE_INFINITY;
      return { shape, values: reference, sums, limits: sums.count.map(limit) };
    });
    if (samples.every(({ values }) => values.length === 0)) return [];
    const accepts = (at: number, candidate: FloatReader) => {
      const sample = this.#typical[at]!;
      const { reference } = this.samples[sample]!;
      return this.judge(sample, { candidate, reference }, true).every(({ pass }) => pass);
    };
    return acceptedErrors(samples, this.axis, accepts, isUsual ? undefined : ['zeros']);
  }

  #limitsOf(size: Magnitudes, elements: number): Limits {
    const { name, precision, candidate } = this.#request;
    return limitsFor(name, precision, candidate[0]?.dtype, { ...size, elements }, this.#request);
  }

  /** Of each slice over all samples that are passed. */
  #rootMeanSquares(references: readonly FloatReader[]): Float64Array {
    const sums = addSlices(
      references.map((reference, at) =>
        sliceSums({ candidate: reference, reference }, this.samples[this.#typical[at]!]!.shape, this.axis),
      ),
    );
    return sums.count.map((count, at) => Math.sqrt(sums.referenceSquares[at]! / Math.max(1, count)));
  }

  #sliceLimit({ referenceSquares }: ReturnType<typeof sliceSums>, count: number, position: number): number {
    const own = Math.sqrt(referenceSquares[position]! / Math.max(1, count));
    const { precision, candidate } = this.#request;
    return sliceLimit(precision, candidate[0]?.dtype, count, Math.max(own, this.#scales[position]!));
  }

  /** The slice that is worst for its limit. One whose reference is 0 everywhere has no scale of its own. */
  #sliceCheck(sums: ReturnType<typeof sliceSums>): readonly CheckResult[] {
    let worst: CheckResult | undefined;
    for (const [position, count] of sums.count.entries()) {
      const limit = this.#sliceLimit(sums, count, position);
      if (count === 0 || !(this.#scales[position]! > 0) || !Number.isFinite(limit)) continue;
      const measured = Math.sqrt(sums.errorSquares[position]! / count);
      const slice = this.axis === null ? undefined : { axis: this.axis, position };
      const check = { statistic: 'RMS', measured, limit, pass: !(measured > limit), slice };
      if (worst === undefined || severityOf(check) > severityOf(worst)) worst = check;
    }
    return worst === undefined ? [] : [worst];
  }
}

/** Of each check the sample where it is worst. */
function worstChecks(bySample: readonly (readonly CheckResult[])[]): CheckResult[] {
  const worst = new Map<string, CheckResult>();
  for (const check of bySample.flat()) {
    const key = `${check.statistic} ${check.slice !== undefined}`;
    const before = worst.get(key);
    if (before === undefined || severityOf(check) > severityOf(before)) worst.set(key, check);
  }
  return [...worst.values()];
}

/** Every check that failed with its numbers, then where the largest error is. */
function whyFailed(
  comparison: Comparison,
  checks: readonly CheckResult[],
  [worst]: readonly FarPair[],
): string[] {
  const { absolute, outside, elements } = comparison;
  const failed = checks.filter(({ pass }) => !pass);
  const reasons = failed
    .filter(({ statistic }) => statistic !== 'non-finite')
    .map((check) => `${checkText(check)}.`);
  if (reasons.length < failed.length) reasons.unshift(nonFiniteSentence(comparison));
  if (absolute.maxIndex < 0 || !(absolute.max > 0)) return reasons;
  const values =
    worst !== undefined && Number.isFinite(worst.error)
      ? `, ${shortNumber(worst.candidate)} where the reference is ${shortNumber(worst.reference)}`
      : '';
  const beyond = outside > 0 ? `; ${outside} of ${elements} elements are outside the tolerance` : '';
  reasons.push(
    `the largest error is ${shortNumber(absolute.max)}${values} (element ${absolute.maxIndex})${beyond}.`,
  );
  return reasons;
}

/** From here on a double does not represent every integer. */
const EXACT_INTEGERS = 2 ** 53;

function isRounded(request: JudgeRequest, { candidate, reference }: Comparison): boolean {
  const { kind } = dtypes[referenceDtype(request)];
  const largest = [candidate.min, candidate.max, reference.min, reference.max].map(Math.abs);
  return kind !== 'float' && Math.max(...largest) >= EXACT_INTEGERS;
}

function whyInconclusive(
  request: JudgeRequest,
  comparison: Comparison,
  planted: VerifiedOutput['planted'],
): string | undefined {
  if (isRounded(request, comparison))
    return `checks compare integers as float64, which rounds those beyond 2^53: a tolerance (--atol ${request.name}:0) is exact.`;
  if (comparison.elements === 0) return 'the output is empty.';
  if (comparison.finite === 0)
    return 'the reference has only NaN and infinity, so nothing can be compared with it.';
  return planted.length === 0 || isUnreached(request) ? undefined : undecidedSentence(request, planted);
}

function nonFiniteSentence({ nonFinite }: Comparison): string {
  const { nanInCandidate, infiniteInCandidate, nanInReference, infiniteInReference } = nonFinite;
  return `the candidate has ${nanInCandidate} NaN and ${infiniteInCandidate} infinite elements, the reference ${nanInReference} and ${infiniteInReference}.`;
}
