import { formatNamed } from '../../formats/precision/formats/index.js';
import { type Comparison, comparePairs } from '../../formats/tensor/compare/comparison.js';
import { magnitudesOf } from '../../formats/tensor/compare/pair-sums.js';
import {
  addSlices,
  positionsOf,
  rootsOf,
  type SliceSums,
  slicedAxis,
  sliceSums,
} from '../../formats/tensor/compare/slices.js';
import {
  eachPiece,
  type FloatPairs,
  type FloatReader,
  floatReader,
  joinedFloats,
} from '../../formats/tensor/tensor-reader.js';
import { atMost, type CheckResult, evaluate, nonFiniteCheck, severityOf, USUAL_QUANTILE } from './checks.js';
import { countDecisions, type Decisions, decisionChecks, sharedAxis } from './decisions.js';
import { isTypical, type JudgeRequest, located } from './judged.js';
import { plantedIn, TELLS_APART } from './planted-errors.js';
import { plantedErrors, type VerifiedOutput } from './result.js';
import { type Limits, limitsFor, PREDICTED, placeOfPeak, probabilitiesOf } from './tolerance.js';

interface Sample extends FloatPairs {
  readonly shape: readonly number[];
}

/** The criterion of one output: its limits, by the size of the typical samples together, or a sample's own where that is larger. */
export class Criterion {
  readonly samples: readonly Sample[];
  /** The samples that set the scale. */
  readonly typical: readonly number[];
  readonly limits: Limits;
  readonly #request: JudgeRequest;
  /** The axis whose positions are judged each by its own scale. */
  readonly #axis: number | null;
  /** Whether the candidate computes in 16 bits or codes. */
  readonly #isNarrow: boolean;
  /** The size that means nothing at each position; undefined where none does. */
  readonly #negligible: Float64Array | undefined;
  /** The references of the typical samples. */
  readonly #sums: SliceSums;
  readonly #scales: Float64Array;
  readonly #rms: number;
  readonly #areShares: boolean;
  /** Of the typical samples, as one. */
  readonly #reference: FloatReader;

  constructor(request: JudgeRequest) {
    const { name, reference, candidate } = request;
    this.#request = request;
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
    const width = reference[0]?.shape.at(-1) ?? 1;
    const shares = probabilitiesOf(this.#reference, width, magnitudes, request.decides?.().areScores);
    this.#areShares = shares !== undefined;
    const types = { ...request, dtype: candidate[0]?.dtype, shares };
    this.limits = limitsFor(name, types, this.#rms, request);
    const { usual } = this.limits;
    this.#axis = usual === null ? null : slicedAxis(values);
    const references = typical.map((sample) => sample.reference);
    const whole = this.#sumsOf(references);
    // The states of a recurrent network are between 0 and 1 here and there.
    const mayBeScores = request.decides?.().areScores ?? true;
    if (usual !== null && this.#axis !== null && mayBeScores)
      this.#negligible = whole.leasts.map((least, at) =>
        least >= 0 && whole.peaks[at]! <= 1 ? usual.negligible : 0,
      );
    this.#sums = this.#negligible === undefined ? whole : this.#sumsOf(references);
    this.#scales = rootsOf(this.#sums.judged.referenceSquares, this.#sums.judged);
  }

  /** Candidates of all samples, or what is planted in their place, and the reference, of the typical samples as one. */
  together(candidates: readonly FloatReader[]): FloatPairs {
    return {
      candidate: joinedFloats(this.typical.map((at) => candidates[at]!)),
      reference: this.#reference,
    };
  }

  /** The largest reference of the typical samples. */
  get peak(): number {
    return this.#sums.peak;
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
    const statistic = sums.zeros === 0 ? 'p99' : 'p99 of non-zeros';
    return [
      ...p99.map((measured) => atMost(statistic, measured, usual.p99(scale))),
      ...this.#worstSlice(sums, (count, at) => usual.rms(count, this.#scales[at]!, this.#kindOf(at))),
    ];
  }

  /** The checks of one sample, which may be larger than typical ones. One on which the original is unstable decides nothing. */
  alone(at: number, sample: Sample): readonly CheckResult[] {
    const { usual, tolerance } = this.limits;
    const { unstable, strictNonFinite = false } = this.#request;
    if (unstable?.has(at)) return [];
    if (usual === null) {
      const comparison = comparePairs(sample, tolerance, this.limits.quantiles);
      return numbered(
        [...this.requested(comparison), ...nonFiniteCheck(comparison, strictNonFinite)],
        at,
        this.samples,
      );
    }
    const sums = sliceSums(sample, sample.shape, this.#axis, this.#negligible);
    const own = rootsOf(sums.judged.referenceSquares, sums.judged);
    const nonFinite =
      sums.finite === sample.reference.length
        ? []
        : nonFiniteCheck(comparePairs(sample, tolerance, 'none'), strictNonFinite);
    // Extremes are no inputs that types of few bits are made for: a row masked whole is what rounding makes of it. NaN is not.
    if (this.#isNarrow && !this.typical.includes(at)) return numbered(nonFinite, at, this.samples);
    const isDrawn = this.#request.samples?.[at]?.kind === 'drawn';
    const most = usual.max(Math.max(sums.peak, this.#sums.peak), isDrawn);
    const checks = [
      ...this.#worstSlice(sums, (count, slice) =>
        usual.rms(count, Math.max(own[slice]!, this.#scales[slice]!), this.#kindOf(slice), true),
      ),
      // Two probabilities are never further apart than 1.
      ...(this.#areShares && most >= 1 ? [] : [atMost('max', sums.largest, most)]),
      ...nonFinite,
    ];
    return numbered(checks, at, this.samples);
  }

  /** The decisions of the typical samples, with these candidates; none where limits were requested. */
  decisions(
    candidates: readonly FloatReader[] = this.typical.map((at) => this.samples[at]!.candidate),
  ): readonly Decisions[] {
    const decides = this.limits.usual === null ? undefined : this.#request.decides?.();
    if (decides === undefined) return [];
    const samples = this.typical.map((at, index) => ({
      ...this.samples[at]!,
      candidate: candidates[index]!,
    }));
    const axis = this.#areShares ? null : this.#axis;
    const areScores = decides.areScores && (this.#areShares || this.#scorePositions().length > 0);
    const at = (position: number) => this.#areShares || this.#kindOf(position) === 'scores';
    const { precision } = this.#request;
    return countDecisions(
      samples,
      { ...decides, areScores },
      precision,
      { axis, at },
      this.#areShares ? 1 : this.#rms,
    );
  }

  /** Of an output with an axis of classes: how many there are, and how many no typical sample predicts. */
  classes(): VerifiedOutput['classes'] {
    const { areScores = false, classAxis = null } = this.#request.decides?.() ?? {};
    if (this.#axis !== null && areScores) {
      const scores = this.#scorePositions();
      return classesOf(
        this.#axis,
        scores.map((at) => this.#sums.peaks[at]!),
      );
    }
    const typical = this.typical.map((at) => this.samples[at]!);
    const axis = sharedAxis(typical, classAxis);
    if (axis === null || !this.#areShares) return undefined;
    const references = typical.map(({ reference }) => reference);
    return classesOf(axis, [...this.#sumsOf(references, axis).peaks]);
  }

  /** The planted errors that the checks accept and that the candidate is not clearly nearer to the reference than. Classes that the user's samples never show are not judged. */
  accepted(): VerifiedOutput['planted'] {
    const { usual } = this.limits;
    if (this.#sums.finite === 0) return [];
    const typical = this.typical.map((at) => this.samples[at]!);
    const own = this.#sumsOf(typical.map(({ candidate }) => candidate));
    const errors = rootsOf(own.errorSquares, own);
    const sizes = rootsOf(this.#sums.referenceSquares, this.#sums);
    const shown = this.#scorePositions().filter((at) => this.#sums.peaks[at]! > PREDICTED);
    const hasData = this.#request.samples?.some(({ kind }) => kind === 'data') === true;
    const counted = [...sizes.keys()].filter(
      (at) =>
        (sizes[at]! > 0 || this.#rms === 0) &&
        !(hasData && shown.length > 0 && this.#kindOf(at) === 'scores' && !shown.includes(at)),
    );
    return plantedErrors.flatMap((error): VerifiedOutput['planted'] => {
      const planted = plantedIn(typical, this.#axis, this.#sums, error);
      if (planted === undefined || (usual === null && error !== 'zeros')) return [];
      const sums = this.#sumsOf(planted);
      const judged = rootsOf(sums.judged.errorSquares, sums.judged);
      const distances = rootsOf(sums.errorSquares, sums);
      const positions = counted.filter((at) => {
        const isWithin =
          usual === null ||
          judged[at]! <= usual.rms(sums.judged.count[at]!, this.#scales[at]!, this.#kindOf(at));
        const isNear = distances[at] === 0 || errors[at]! * TELLS_APART > distances[at]!;
        return isWithin && (isNear || usual === null);
      });
      if (positions.length === 0) return [];
      if (this.#axis !== null && positions.length < counted.length)
        return [{ error, slice: { axis: this.#axis, positions } }];
      const pairs = { candidate: joinedFloats(planted), reference: this.#reference };
      const comparison = comparePairs(pairs, this.limits.tolerance, this.limits.quantiles);
      const checks = [
        ...this.requested(comparison),
        ...this.usual(pairs, sums),
        ...decisionChecks(this.decisions(planted)),
      ];
      return checks.every(({ pass }) => pass) ? [{ error, slice: null }] : [];
    });
  }

  /** Whether all samples have their highest probability in the same place: those of other decisions were not seen. */
  decideAlike(): boolean {
    if (!this.#areShares || this.typical.length < 2) return false;
    return new Set(this.typical.map((at) => placeOfPeak(this.samples[at]!.reference))).size === 1;
  }

  /** The largest error that a check is about: of its sample and slice, of all typical samples where it has none. */
  worstOf({ sample, slice }: CheckResult): Located | undefined {
    let worst: Located | undefined;
    for (const at of sample === undefined ? this.typical : [sample]) {
      const pairs = this.samples[at]!;
      const place = positionsOf(pairs.shape, slice?.axis ?? null);
      eachPiece(pairs, (ours, theirs, start) => {
        for (let i = 0; i < theirs.length; i++) {
          const error = Math.abs(ours[i]! - theirs[i]!);
          if (!(error > Number(worst?.error ?? 0))) continue;
          if (slice !== undefined && place.at(start + i) !== slice.position) continue;
          const pair = { index: start + i, candidate: ours[i]!, reference: theirs[i]!, error };
          worst = { ...located(pair, [this.#request.reference[at]!]), sample: at };
        }
      });
    }
    return worst;
  }

  #scorePositions(): readonly number[] {
    return this.#negligible === undefined
      ? []
      : [...this.#negligible.keys()].filter((at) => this.#negligible![at]! > 0);
  }

  /** The kind of a position of the axis: the whole output where there is none. */
  #kindOf(position: number): 'whole' | 'slice' | 'scores' {
    if (this.#axis === null) return 'whole';
    return this.#negligible?.[position] ? 'scores' : 'slice';
  }

  /** Of the typical samples, with these candidates. */
  #sumsOf(candidates: readonly FloatReader[], axis = this.#axis): SliceSums {
    return addSlices(
      this.typical.map((at, index) => {
        const { shape, reference } = this.samples[at]!;
        const negligible = axis === this.#axis ? this.#negligible : undefined;
        return sliceSums({ candidate: candidates[index]!, reference }, shape, axis, negligible);
      }),
    );
  }

  /** The slice that is worst for its limit. One whose reference is 0 or negligible everywhere has no scale of its own. */
  #worstSlice(
    { judged }: SliceSums,
    limitOf: (count: number, position: number) => number,
  ): readonly CheckResult[] {
    const measured = rootsOf(judged.errorSquares, judged);
    const checks = [...judged.count.entries()].flatMap(([position, count]): CheckResult[] => {
      const limit = limitOf(count, position);
      const isJudged =
        (count > 0 || measured[position]! > 0) &&
        (this.#axis === null || this.#scales[position]! > 0) &&
        Number.isFinite(limit);
      const slice = this.#axis === null ? undefined : { axis: this.#axis, position };
      return isJudged ? [{ ...atMost('RMS', measured[position]!, limit), slice }] : [];
    });
    return worstChecks(checks);
  }
}

export type Located = NonNullable<VerifiedOutput['worst']>[number];

const classesOf = (axis: number, peaks: readonly number[]): VerifiedOutput['classes'] =>
  peaks.length < 2
    ? undefined
    : { axis, of: peaks.length, unpredicted: peaks.filter((peak) => peak <= PREDICTED).length };

/** With fewer elements fewer than ten lie beyond the 99th percentile: it is little else than the maximum. */
const FEWEST_FOR_P99 = 1000;

const numbered = (checks: readonly CheckResult[], sample: number, { length }: readonly Sample[]) =>
  length > 1 ? checks.map((check) => ({ ...check, sample })) : checks;

/** Of each kind of check the one that is worst for its limit. */
export function worstChecks(all: readonly CheckResult[]): CheckResult[] {
  const worst = new Map<string, CheckResult>();
  for (const check of all) {
    const key = `${check.statistic} ${check.sample !== undefined}`;
    const before = worst.get(key);
    if (before === undefined || severityOf(check) > severityOf(before)) worst.set(key, check);
  }
  return [...worst.values()];
}
