import * as is from '../../base/options/kinds.js';
import { optional } from '../../base/options/option.js';
import { parseTolerance, quotedInRange, splitAtCommas } from '../../base/options/readers.js';
import { TrtforgeError } from '../../errors.js';
import type { Format } from '../../formats/precision/formats/format.js';
import {
  type FormatId,
  floatFormatNamed,
  formatNamed,
  quantizedFormatNamed,
} from '../../formats/precision/formats/index.js';
import type { Magnitudes, Tolerance } from '../../formats/tensor/compare/pair-sums.js';
import type { Dtype } from '../../formats/tensor/dtype.js';
import { eachPieceOf, type FloatReader } from '../../formats/tensor/tensor-reader.js';
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

const tolerances = (list: string) => splitAtCommas(list).map(parseTolerance);
const flat = <T>(lists: readonly (readonly T[])[]): readonly T[] => lists.flat();

/** The tolerances of an element. */
export const toleranceOptions = {
  atol: optional(is.list<AskedTolerance>(), {
    flags: '--atol <tolerances>',
    group: 'Tolerances',
    describe: 'absolute tolerance, 1e-3 for all outputs of floats or out:1e-3 for one; several by comma',
    parse: tolerances,
    repeat: true,
    make: flat<AskedTolerance>,
  }),
  rtol: optional(is.list<AskedTolerance>(), {
    flags: '--rtol <tolerances>',
    group: 'Tolerances',
    describe: 'relative tolerance, likewise; an element may be off by atol + rtol * |reference|',
    parse: tolerances,
    repeat: true,
    make: flat<AskedTolerance>,
  }),
};

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

export const toleranceOf = (precision: VerifyPrecision): Format['tolerance'] =>
  precision === 'tf32' ? tf32 : (formatNamed(precision)?.tolerance ?? fp32);

/** Of probabilities, below which share of the bound an error means nothing: a score of 1e-7 is as good as one of 1e-6. */
const LEAST_SHARE = 0.01;

/** The loss by rounding near 0 whatever the output's size: the smallest step of FP16 in the last few operators. */
function leastError(precision: VerifyPrecision, dtype: Dtype | undefined): number {
  const typed = floatFormatNamed(precision)?.dtype;
  const isHalf = [dtype, typed].includes('float16') || quantizedFormatNamed(precision) !== undefined;
  return isHalf && dtype !== 'bfloat16' ? 4 * 2 ** -24 : 0;
}

/** The limits that decide about one output, in its own units. */
export interface Limits {
  /** The tolerance of an element: for counting, and for what the user requested. */
  readonly tolerance: JustifiedTolerance;
  /** The requested checks, which must hold; without any the usual limits do. */
  readonly checks: readonly ResolvedCheck[];
  readonly usual: UsualLimits | null;
  /** One quantile of the user's own, or those that reports show. */
  readonly quantiles: 'all' | { readonly fraction: number };
}

/** Polygraphy's default tolerance, absolute and relative. */
const POLYGRAPHY_TOLERANCE = 1e-5;

/** A few elements of millions may be this much worse than nearly all others: 4 times the bound, of the largest reference; where a range of codes clips, a steep edge falls to the other side. */
const outlierShare = (bound: number, isQuantized: boolean): number => (isQuantized ? 2 : 4 * bound);

/** Drawn states drive single gates to where real ones never are: healthy FP16 networks are off by up to 8 % of the peak there (measured on two recurrent ones). */
const OUTLIERS_OF_NOISE = 5;

/** The error of non-zeros x 0.7 is 0.3 of the reference's root mean square: no bound is as wide. */
const MOST_RMS = 0.28;

/** 99 % of normally distributed errors are within 2.58 times their RMS. */
const P99_OF_RMS = 2.58;

/** Few samples of sharp scores are off by up to 1.1 of the bound (measured). */
const RMS_FACTOR = 1.4;

/** A slice is judged to find what is broken, which shows errors of its own size: the far tail of a softmax is off by 5 % in a healthy FP16 model. */
const SLICE_FACTOR = 20;
/** Scores that mean something are off by 1.2 % of their own at most (measured: 22 classes of a detector 0.35 %). */
const SCORES_FACTOR = 5;
const MOST_OF_SLICE = 0.2;

/** A class whose probability stays below this was never predicted. */
export const PREDICTED = 0.1;

/** Of slices of numbers below 1, which share of the bound means nothing. */
const SLICE_SHARE = 0.1;

/** So many elements of a whole output are judged as it is. */
const FEWEST_ELEMENTS = 100;

/** One sample alone may be off three times as much as all together, if not by half of what it is. */
const ALONE_FACTOR = 3;

/**
 * The usual limits of an output. The bounds are meant as atol = rtol = bound for outputs around 1, so a typical element, of the size of the RMS, may be off by
 * 2 * bound * RMS: 99 % of all elements must be within 2.58 * bound * RMS; the RMS of the errors of all samples together within 1.4 * bound * RMS, with three standard
 * errors for few elements; that of a slice within 20 * bound * RMS, and none beyond 0.28 * RMS; that of one sample alone within three times as much; and every error within 4 * bound * peak (the largest magnitude), 2 * peak for quantized formats. Relative to RMS
 * and peak, a bound means the same for probabilities and for pixels; a probability may be off by what as large an error of its logit does to it. No limit is below what rounding loses near 0.
 */
export class UsualLimits {
  readonly #bound: number;
  readonly #isQuantized: boolean;
  readonly #least: number;
  readonly #logits: Probabilities['logits'];
  readonly #steepness: number;

  constructor(bound: number, isQuantized: boolean, least: number, { logits, steepness }: Probabilities) {
    this.#bound = bound;
    this.#isQuantized = isQuantized;
    this.#least = least;
    this.#logits = logits;
    this.#steepness = steepness;
  }

  /** A probability below this is as good as one of 0: half the bound, in codes 0.1. */
  get negligible(): number {
    return this.#isQuantized ? PREDICTED : this.#bound / 2;
  }

  p99(rms: number): number {
    return Math.max(P99_OF_RMS * this.#bound * rms, this.#least);
  }

  /** Of the errors of so many elements of an output, or of a slice of it, whose reference has the given RMS. */
  rms(elements: number, rms: number, kind: 'whole' | 'slice' | 'scores', isAlone = false): number {
    const own = RMS_FACTOR * this.#bound;
    const isWhole = kind === 'whole';
    const factor = kind === 'scores' ? SCORES_FACTOR : SLICE_FACTOR;
    const wide = isWhole ? own : Math.max(own, Math.min(factor * this.#bound, MOST_OF_SLICE));
    // Few elements of a whole output ask for more samples instead.
    const share = wide * (1 + 3 / Math.sqrt(2 * Math.max(elements, isWhole ? FEWEST_ELEMENTS : 1)));
    const most = isAlone ? Math.min(ALONE_FACTOR * share, 2 * MOST_RMS) : Math.min(share, MOST_RMS);
    const least = kind === 'slice' && rms <= 1 ? SLICE_SHARE * this.#bound : 0;
    const ofLogits = isWhole ? RMS_FACTOR * this.#bound * this.#logits.rms * this.#steepness : 0;
    return Math.max(
      most * rms,
      Math.min((isAlone ? ALONE_FACTOR : 1) * ofLogits, MOST_RMS * rms),
      least,
      this.#least,
    );
  }

  /** Of every error of an output with this largest magnitude. */
  max(peak: number, isDrawn = false): number {
    // A logit may be off by 8 * bound * the largest one (measured: 7.6 in FP16); around 0 the sigmoid turns an error of e into one of tanh(e / 4).
    const ofLogits = Math.tanh(2 * this.#bound * this.#logits.peak);
    return Math.max(
      (isDrawn ? OUTLIERS_OF_NOISE : 1) * outlierShare(this.#bound, this.#isQuantized) * peak,
      ofLogits,
      this.#least,
    );
  }
}

/** A code of a quantized model falls to its neighbour where a sum is rounded otherwise: half the bound of the codes' format (measured: 1.6 % of the RMS, INT8). */
const CODES_FACTOR = 0.5;

/** No bound of codes is narrower: healthy INT8 models are off by 1 to 5 % on real data (measured on 29). */
const NARROWEST_OF_CODES = 0.04;

/** The facts that the usual limits depend on. */
interface ComparedTypes {
  /** The cost of rounding the weights alone, relative to the RMS of the output, where that was tried. */
  readonly weightsCost?: number;
  readonly precision: VerifyPrecision;
  /** The format of the codes that both models have. */
  readonly codes?: FormatId;
  readonly dtype: Dtype | undefined;
  /** Where all values of the reference are from 0 to 1. */
  readonly shares: Probabilities | undefined;
}

/**
 * The limits for an output whose reference has the given root mean square. What a user asks for is taken as it is: every element must be within
 * atol + rtol * |reference|, or the checks asked for must hold.
 */
export function limitsFor(
  output: string,
  { precision, codes, dtype, shares, weightsCost }: ComparedTypes,
  rms: number,
  asked: {
    readonly atol: readonly AskedTolerance[];
    readonly rtol: readonly AskedTolerance[];
    readonly checks?: readonly AskedCheck[];
  },
): Limits {
  const atol = askedFor(output, asked.atol);
  const rtol = askedFor(output, asked.rtol);
  const checks = resolveChecks(output, asked.checks ?? []);
  if (checks.length > 0) {
    const why =
      atol === undefined && rtol === undefined ? 'what Polygraphy allows by default' : 'as requested';
    const [absolute, relative] = [atol ?? POLYGRAPHY_TOLERANCE, rtol ?? POLYGRAPHY_TOLERANCE];
    const quantile = checks.find((check) => check.kind === 'quantile');
    const quantiles = quantile === undefined || quantile.fraction === USUAL_QUANTILE ? 'all' : quantile;
    return { tolerance: { absolute, relative, why }, checks, usual: null, quantiles };
  }
  if (atol !== undefined || rtol !== undefined) {
    const tolerance = { absolute: atol ?? 0, relative: rtol ?? 0, why: 'as requested' };
    return { tolerance, checks: [{ kind: 'excess' }], usual: null, quantiles: 'all' };
  }
  const own = ofWeights(toleranceOf(precision), weightsCost);
  const ofCodes = precision === 'fp32' || codes === undefined ? 0 : CODES_FACTOR * toleranceOf(codes).bound;
  const bound = Math.max(own.bound, ofCodes);
  const least = Math.max(leastError(precision, dtype), shares ? LEAST_SHARE * bound : 0);
  const why = [
    `${own.why}; taken relative to the size of this output`,
    ...(bound > own.bound ? [`${bound} as both models have ${codes} codes that fall to a neighbour`] : []),
    ...(bound * rms < least ? [`no less than ${least.toExponential(2)}, as smaller values round away`] : []),
  ].join('; ');
  return {
    tolerance: { absolute: Math.max(bound * rms, least), relative: bound, why },
    checks: [],
    usual: new UsualLimits(bound, quantizedFormatNamed(precision) !== undefined, least, shares ?? NO_LOGITS),
    quantiles: 'all',
  };
}

/** The tolerance of a quantized format by what rounding the weights costs: activations cost up to 8 times as much in INT8, and as much in FP8 (measured on 11 networks). */
function ofWeights(format: Format['tolerance'], cost: number | undefined): Format['tolerance'] {
  if (cost === undefined || format.ofWeights === undefined) return format;
  const bound = Math.min(format.bound, Math.max(NARROWEST_OF_CODES, format.ofWeights * cost));
  const percent = (share: number) => `${Number((100 * share).toPrecision(2))} %`;
  const why = `${percent(bound)}: ${format.ofWeights} times what rounding the weights alone costs (${percent(cost)}), at least ${percent(NARROWEST_OF_CODES)} and at most ${percent(format.bound)}; errors may be ${percent(RMS_FACTOR * bound)} of the output by their RMS`;
  return { ...format, bound, why };
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

/** The tolerance of integers and booleans, and the share of them that may be off by more. */
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
const namePrefix = (name: string | null): string => (name === null ? '' : `${quotedInRange(name)}:`);

/** An output whose values are all from 0 to 1. */
export interface Probabilities {
  /** Of a softmax or a sigmoid, the logits that its values stand for, log(p / (1 - p)): the largest, and their root mean square. 0 of anything else. */
  readonly logits: { readonly peak: number; readonly rms: number };
  /** Root mean square of p * (1 - p), by which an error of a logit moves its probability. */
  readonly steepness: number;
}

/** Nearer to 0 or 1 FP32 rounds. */
const LEAST_PROBABILITY = 2 ** -24;

/** Of rows of so many values; `areScores`: known to be those of a sigmoid or softmax. Undefined where values are no probabilities. */
export function probabilitiesOf(
  values: FloatReader,
  width: number,
  { least, peak }: Magnitudes,
  areScores = false,
): Probabilities | undefined {
  if (!(least >= 0 && peak <= 1)) return undefined;
  let [steep, squares, sum] = [0, 0, 0];
  let haveLogits = areScores || (least > 0 && width > 1);
  eachPieceOf(values, (piece, start) => {
    for (let i = 0; haveLogits && i < piece.length; i++) {
      const p = piece[i]!;
      steep += (p * (1 - p)) ** 2;
      squares += logitOf(p) ** 2;
      sum += p;
      if (areScores || (start + i + 1) % width > 0) continue;
      haveLogits = Math.abs(sum - 1) < SUM_ERROR;
      sum = 0;
    }
  });
  if (!haveLogits) return NO_LOGITS;
  const rms = Math.sqrt(squares / values.length);
  return {
    logits: { peak: Math.max(Math.abs(logitOf(least)), Math.abs(logitOf(peak))), rms },
    steepness: Math.sqrt(steep / values.length),
  };
}

/** The largest distance from 1 of the sum of a softmax's row. */
const SUM_ERROR = 1e-3;

/** The value without logits. */
const NO_LOGITS: Probabilities = { logits: { peak: 0, rms: 0 }, steepness: 0 };

const logitOf = (p: number): number => {
  const kept = Math.min(Math.max(p, LEAST_PROBABILITY), 1 - LEAST_PROBABILITY);
  return Math.log(kept / (1 - kept));
};

/** The index of the largest value. */
export function placeOfPeak(values: FloatReader): number {
  let [place, peak] = [0, Number.NEGATIVE_INFINITY];
  eachPieceOf(values, (piece, start) => {
    for (let i = 0; i < piece.length; i++) if (piece[i]! > peak) [place, peak] = [start + i, piece[i]!];
  });
  return place;
}

/** From this many elements on one may differ where any may: a near tie that falls the other way is no share of few. */
const FEWEST_FOR_ONE = 10;

export const mostDiffering = ({ share }: ExactLimits, elements: number): number =>
  Math.max(Math.floor(share * elements), share > 0 && elements >= FEWEST_FOR_ONE ? 1 : 0);
