import { formatNamed, quantizedFormatNamed } from '../../formats/precision/formats/index.js';
import { type Comparison, comparePairs } from '../../formats/tensor/compare/comparison.js';
import { ErrorHistogram } from '../../formats/tensor/compare/error-histogram.js';
import { magnitudesOf } from '../../formats/tensor/compare/magnitudes.js';
import {
  addSlices,
  rootsOf,
  type SliceSums,
  slicedAxis,
  sliceSums,
} from '../../formats/tensor/compare/slices.js';
import { type FarPair, WorstPairs } from '../../formats/tensor/compare/worst-pairs.js';
import { type Dtype, dtypes } from '../../formats/tensor/dtype.js';
import {
  type FloatPairs,
  type FloatReader,
  floatReader,
  joinedFloats,
} from '../../formats/tensor/float-reader.js';
import {
  atMost,
  type CheckResult,
  checkText,
  evaluate,
  nonFiniteCheck,
  severityOf,
  shortNumber,
  USUAL_QUANTILE,
} from './checks.js';
import { errorStatistics, sidesOf } from './error-statistics.js';
import { judgeExact } from './judge-exact.js';
import {
  described,
  isTypical,
  isUnreached,
  type JudgedOutput,
  type JudgeRequest,
  located,
  TELLS_APART,
  undecidedSentence,
  WORST_ELEMENTS,
} from './judged.js';
import { plantedIn } from './planted.js';
import { placeOfPeak, probabilitiesOf } from './probabilities.js';
import { plantedErrors, type VerifiedOutput } from './result.js';
import { type Limits, limitsFor } from './tolerance.js';

/** Compares one output of all samples with the reference: floats within a tolerance, integers and booleans exactly unless a check names them. */
export function judgeOutput(request: JudgeRequest): JudgedOutput {
  const isFloat = dtypes[referenceDtype(request)].kind === 'float';
  const isChecked = request.checks?.some(({ name }) => name === request.name) === true;
  return isFloat || isChecked ? judgeFloats(request) : judgeExact(request);
}

const referenceDtype = ({ reference }: JudgeRequest): Dtype => reference[0]?.dtype ?? 'float32';

/** Each sample is judged alone, typical ones also together: statistics are of these. */
function judgeFloats(request: JudgeRequest): JudgedOutput {
  const { name } = request;
  const criterion = new Criterion(request);
  const { limits, samples, typical } = criterion;
  const furthest = new WorstPairs(WORST_ELEMENTS);
  const histogram = new ErrorHistogram(furthest);
  const together = criterion.together(samples.map(({ candidate }) => candidate));
  const comparison = comparePairs(together, limits.tolerance, limits.quantiles, histogram);
  const bySample = samples.map((sample, at) => criterion.alone(at, sample));
  const checks = worstChecks([
    ...criterion.requested(comparison),
    ...criterion.usual(together),
    ...bySample.flat(),
  ]);
  const failed = checks.some(({ pass }) => !pass);
  const isNoise = failed && isOnlyNoise(request) && checks.every((check) => severityOf(check) < FAR);
  const planted = failed || request.plant === false || request.allowLoose ? [] : criterion.accepted();
  const doubt = failed ? undefined : whyInconclusive(request, comparison, planted);
  const worst = furthest.list();
  const reasons = [
    ...(failed ? whyFailed(comparison, checks, worst) : []),
    ...(isNoise
      ? ['the samples are drawn, and ranges of codes are made for real ones. Pass real samples: --inputs.']
      : []),
    ...(doubt === undefined ? [] : [doubt]),
  ];
  const { absolute, relative, why } = limits.tolerance;
  const references = typical.map((at) => request.reference[at]!);
  return {
    output: {
      ...described(request, comparison.elements),
      outcome: isNoise ? 'inconclusive' : failed ? 'fail' : doubt === undefined ? 'pass' : 'inconclusive',
      pass: !failed,
      checks,
      tolerance: { absolute, relative, why },
      statistics: errorStatistics(comparison),
      sides: sidesOf(comparison, together),
      histogram: histogram.histogram(),
      planted,
      nonFinite: comparison.nonFinite,
      worst: worst.map((pair) => {
        const place = located(pair, references);
        return { ...place, sample: typical[place.sample]! };
      }),
      reasons: reasons.map((reason) => `${name}: ${reason}`),
    },
    isClose:
      limits.usual !== null &&
      (checks.some((check) => severityOf(check) > 1 / CLEAR_MARGIN) || criterion.decideAlike()),
    failures: bySample.flatMap((own, chunk) => {
      if (own.every(({ pass }) => pass)) return [];
      const isNumber = own.every(({ statistic, pass }) => statistic !== 'non-finite' || pass);
      const { largest } = sliceSums(samples[chunk]!, samples[chunk]!.shape, null);
      return [{ chunk, kind: isNumber ? 'outside-tolerance' : 'non-finite', maxAbs: largest }];
    }),
  };
}

/** An error of this many limits is no matter of the samples. */
const FAR = 4;

/** Whether codes are judged on nothing that their ranges were made for. */
const isOnlyNoise = ({ precision, samples = [] }: JudgeRequest): boolean =>
  quantizedFormatNamed(precision) !== undefined &&
  samples.length > 0 &&
  !samples.some(({ kind }) => kind === 'data');

/** Limits that are not twice what was measured ask for more samples. */
const CLEAR_MARGIN = 2;

interface Sample extends FloatPairs {
  readonly shape: readonly number[];
}

/** What decides about one output: its limits, by the size of the typical samples together, or a sample's own where that is larger. */
class Criterion {
  readonly samples: readonly Sample[];
  /** The samples that set the scale. */
  readonly typical: readonly number[];
  readonly limits: Limits;
  /** The axis whose positions are judged each by its own scale. */
  readonly #axis: number | null;
  readonly #strict: boolean;
  /** Whether the candidate computes in 16 bits or codes. */
  readonly #isNarrow: boolean;
  /** The references of the typical samples. */
  readonly #sums: SliceSums;
  readonly #scales: Float64Array;
  readonly #rms: number;
  readonly #areShares: boolean;
  /** Of the typical samples, as one. */
  readonly #reference: FloatReader;

  constructor(request: JudgeRequest) {
    const { name, reference, candidate } = request;
    this.#strict = request.strictNonFinite === true;
    this.#isNarrow = formatNamed(request.precision) !== undefined;
    this.samples = reference.map((tensor, at) => ({
      shape: tensor.shape,
      reference: floatReader(tensor, name),
      candidate: floatReader(candidate[at]!, name),
    }));
    this.typical = this.samples.flatMap((_, at) => (isTypical(request, at) ? [at] : []));
    const typical = this.typical.map((at) => this.samples[at]!);
    const values = typical.map((sample) => ({ shape: sample.shape, values: sample.reference }));
    this.#reference = joinedFloats(values.map((each) => each.values));
    const magnitudes = magnitudesOf(this.#reference);
    this.#rms = magnitudes.rms;
    const shares = probabilitiesOf(this.#reference, reference[0]?.shape.at(-1) ?? 1, magnitudes);
    this.#areShares = shares !== undefined;
    const types = { ...request, dtype: candidate[0]?.dtype, shares };
    this.limits = limitsFor(name, types, this.#rms, request);
    this.#axis = this.limits.usual === null ? null : slicedAxis(values);
    this.#sums = this.#sumsOf(typical.map((sample) => sample.reference));
    this.#scales = rootsOf(this.#sums.referenceSquares, this.#sums);
  }

  /** Candidates of all samples, or what is planted in their place, and the reference, of the typical samples as one. */
  together(candidates: readonly FloatReader[]): FloatPairs {
    return {
      candidate: joinedFloats(this.typical.map((at) => candidates[at]!)),
      reference: this.#reference,
    };
  }

  requested(comparison: Comparison): readonly CheckResult[] {
    return this.limits.checks.map((check) => evaluate(check, comparison, this.limits.tolerance));
  }

  /** The usual checks of the typical samples together. Percentiles that decide are over elements that are not 0 on both sides. */
  usual(
    pairs: FloatPairs,
    sums = this.#sumsOf(this.typical.map((at) => this.samples[at]!.candidate)),
  ): readonly CheckResult[] {
    const { usual, tolerance } = this.limits;
    if (usual === null) return [];
    const nonZero = pairs.reference.length - sums.zeros;
    const fraction = 1 - ((1 - USUAL_QUANTILE) * nonZero) / pairs.reference.length;
    const p99 =
      nonZero < FEWEST_FOR_P99
        ? []
        : [comparePairs(pairs, tolerance, { fraction }).absolute.asked ?? Number.NaN];
    const scale = this.#rms * Math.sqrt(pairs.reference.length / Math.max(1, nonZero));
    return [
      ...p99.map((measured) => atMost('p99 of non-zeros', measured, usual.p99(scale))),
      ...this.#worstSlice(sums, (count, at) => usual.rms(count, this.#scales[at]!, this.#axis !== null)),
    ];
  }

  /** The checks of one sample, which may be larger than typical ones. */
  alone(at: number, sample: Sample): readonly CheckResult[] {
    const { usual, tolerance } = this.limits;
    if (usual === null) {
      const comparison = comparePairs(sample, tolerance, this.limits.quantiles);
      return numbered(
        [...this.requested(comparison), ...nonFiniteCheck(comparison, this.#strict)],
        at,
        this.samples,
      );
    }
    const sums = sliceSums(sample, sample.shape, this.#axis);
    const own = rootsOf(sums.referenceSquares, sums);
    const nonFinite =
      sums.finite === sample.reference.length
        ? []
        : nonFiniteCheck(comparePairs(sample, tolerance, 'none'), this.#strict);
    // Extremes are no inputs that types of few bits are made for: a row masked whole is what rounding makes of it. NaN is not.
    if (this.#isNarrow && !this.typical.includes(at)) return numbered(nonFinite, at, this.samples);
    const checks = [
      ...this.#worstSlice(sums, (count, slice) =>
        usual.rms(count, Math.max(own[slice]!, this.#scales[slice]!), this.#axis !== null, true),
      ),
      atMost('max', sums.largest, usual.max(Math.max(sums.peak, this.#sums.peak))),
      ...nonFinite,
    ];
    return numbered(checks, at, this.samples);
  }

  /** The planted errors that the checks accept and that the candidate is not clearly nearer to the reference than. */
  accepted(): VerifiedOutput['planted'] {
    const { usual } = this.limits;
    if (this.#sums.finite === 0) return [];
    const typical = this.typical.map((at) => this.samples[at]!);
    const errors = rootsOf(this.#sumsOf(typical.map(({ candidate }) => candidate)).errorSquares, this.#sums);
    return plantedErrors.flatMap((error): VerifiedOutput['planted'] => {
      const planted = plantedIn(typical, this.#axis, this.#sums, error);
      if (planted === undefined || (usual === null && error !== 'zeros')) return [];
      const sums = this.#sumsOf(planted);
      const distances = rootsOf(sums.errorSquares, sums);
      const positions = [...distances.keys()].filter((at) => {
        const isWithin =
          usual === null ||
          distances[at]! <= usual.rms(sums.count[at]!, this.#scales[at]!, this.#axis !== null);
        const isNear = distances[at] === 0 || errors[at]! * TELLS_APART > distances[at]!;
        return isWithin && (isNear || usual === null) && (this.#scales[at]! > 0 || this.#rms === 0);
      });
      if (positions.length === 0) return [];
      const judged = this.#scales.filter((scale) => scale > 0).length;
      if (this.#axis !== null && positions.length < judged)
        return [{ error, slice: { axis: this.#axis, positions } }];
      const pairs = { candidate: joinedFloats(planted), reference: this.#reference };
      const comparison = comparePairs(pairs, this.limits.tolerance, this.limits.quantiles);
      const checks = [...this.requested(comparison), ...this.usual(pairs, sums)];
      return checks.every(({ pass }) => pass) ? [{ error, slice: null }] : [];
    });
  }

  /** Whether all samples have their highest probability in the same place: those of other decisions were not seen. */
  decideAlike(): boolean {
    if (!this.#areShares || this.typical.length < 2) return false;
    return new Set(this.typical.map((at) => placeOfPeak(this.samples[at]!.reference))).size === 1;
  }

  /** Of the typical samples, with these candidates. */
  #sumsOf(candidates: readonly FloatReader[]): SliceSums {
    return addSlices(
      this.typical.map((at, index) => {
        const { shape, reference } = this.samples[at]!;
        return sliceSums({ candidate: candidates[index]!, reference }, shape, this.#axis);
      }),
    );
  }

  /** The slice that is worst for its limit. One whose reference is 0 everywhere has no scale of its own. */
  #worstSlice(sums: SliceSums, limitOf: (count: number, position: number) => number): readonly CheckResult[] {
    const measured = rootsOf(sums.errorSquares, sums);
    const checks = [...sums.count.entries()].flatMap(([position, count]): CheckResult[] => {
      const limit = limitOf(count, position);
      const isJudged =
        count > 0 && (this.#axis === null || this.#scales[position]! > 0) && Number.isFinite(limit);
      const slice = this.#axis === null ? undefined : { axis: this.#axis, position };
      return isJudged ? [{ ...atMost('RMS', measured[position]!, limit), slice }] : [];
    });
    return worstChecks(checks);
  }
}

/** With fewer elements fewer than ten lie beyond the 99th percentile: it is little else than the maximum. */
const FEWEST_FOR_P99 = 1000;

const numbered = (checks: readonly CheckResult[], sample: number, { length }: readonly Sample[]) =>
  length > 1 ? checks.map((check) => ({ ...check, sample })) : checks;

/** Of each kind of check the one that is worst for its limit. */
function worstChecks(all: readonly CheckResult[]): CheckResult[] {
  const worst = new Map<string, CheckResult>();
  for (const check of all) {
    const key = `${check.statistic} ${check.sample !== undefined}`;
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
