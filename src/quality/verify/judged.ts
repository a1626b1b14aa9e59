import type { FormatId } from '../../formats/precision/formats/index.js';
import type { FarPair } from '../../formats/tensor/compare/pair-sums.js';
import { elementCount } from '../../formats/tensor/dtype.js';
import type { TensorReader } from '../../formats/tensor/tensor-reader.js';
import { type AskedCheck, checkThresholds } from './checks.js';
import type { Decides } from './decisions.js';
import { measure, type VerifiedOutput, type VerifyPrecision } from './result.js';
import { type AskedTolerance, checkTolerances } from './tolerance.js';

/** The rules that decide about outputs, as a user may set them. */
export interface JudgeRules {
  readonly precision: VerifyPrecision;
  readonly atol: readonly AskedTolerance[];
  readonly rtol: readonly AskedTolerance[];
  /** Checks instead of the usual limits. */
  readonly checks?: readonly AskedCheck[];
  /** NaN and infinity fail even where both have the same, as in Polygraphy. */
  readonly strictNonFinite?: boolean;
  /** Planted errors that the limits accept do not make the verdict inconclusive. */
  readonly allowLoose?: boolean;
}

/** A set of inputs: what it is, and whether the user passed it, it was drawn, or it is an extreme that real inputs are not. */
export interface SampleInfo {
  readonly origin: string;
  readonly kind: 'data' | 'drawn' | 'edge';
  /** Of a batch how many samples it holds, each counted once; default one. */
  readonly items?: number;
}

/** Throws TF_USAGE for tolerances and thresholds that no comparison can use. */
export function checkRules({ atol = [], rtol = [], checks = [] }: Partial<JudgeRules>): void {
  checkTolerances([...atol, ...rtol]);
  checkThresholds(checks);
}

export interface JudgeRequest extends JudgeRules {
  readonly name: string;
  /** One tensor a sample; candidate and reference have the same shapes. */
  readonly candidate: readonly TensorReader[];
  readonly reference: readonly TensorReader[];
  /** The kind of each sample; default: all count alike. */
  readonly samples?: readonly SampleInfo[];
  /** The format of the codes that both models have. */
  readonly codes?: FormatId;
  /** The cost of rounding the weights alone (see `weightsCost`). */
  readonly weightsCost?: number;
  /** The inputs whose values reach the output, where a model tells. Without any it is compared as a constant. */
  readonly reachedBy?: () => readonly string[];
  /** Whether an integer states how many of something there are: then each of them counts, not the integer. */
  readonly isCount?: () => boolean;
  /** The largest small weight of the model: an output of noise that is far beyond it says nothing of real ones. */
  readonly largestWeight?: () => number;
  /** The decisions that it makes, where the model is known. */
  readonly decides?: () => Decides;
  /** Samples on which the original itself moves by more than the limits, and how far: they decide nothing. */
  readonly unstable?: ReadonlyMap<number, number>;
  /** The first sample on which rounding the inputs alone moves the original beyond the limits. */
  readonly rounded?: number;
  /** False: no planted errors are tried, for callers that only look for failures. */
  readonly plant?: boolean;
}

/** The original's own movement where its inputs move a little, of the samples on which a candidate failed. */
export interface OwnNoise {
  /** By output: the samples on which one step of FP32, or of drawn ones rounding the inputs to the candidate's 16 bits, moves it beyond the limits, and how far. They do not decide. */
  readonly unstable: ReadonlyMap<string, ReadonlyMap<number, number>>;
  /** By output: the first of the user's samples on which rounding the inputs to the candidate's 16 bits moves it beyond the limits. */
  readonly rounded: ReadonlyMap<string, number>;
}

/** Whether a sample sets the scale of an output. Where none does, as all are edges or unstable, all do. */
export const isTypical = (request: JudgeRequest, sample: number): boolean =>
  setsScale(request, sample) || !request.reference.some((_, at) => setsScale(request, at));

const setsScale = ({ samples = [], unstable }: JudgeRequest, sample: number): boolean =>
  unstable?.has(sample) !== true && samples[sample]?.kind !== 'edge';

/** Whether the original is unstable wherever a sample would set the scale. */
export const isUnstable = (request: JudgeRequest): boolean =>
  request.unstable !== undefined && !request.reference.some((_, at) => setsScale(request, at));

export const isUnreached = ({ reachedBy }: JudgeRequest): boolean => reachedBy?.().length === 0;

/** A judged output, and how far off each sample was. */
export interface JudgedOutput {
  readonly output: VerifiedOutput;
  /** Whether more samples might decide otherwise. */
  readonly isClose: boolean;
  readonly failures: readonly { readonly chunk: number; readonly kind: string; readonly maxAbs: number }[];
  /** By sample how near it is to its limits, beyond 1 where it fails. */
  readonly severities: ReadonlyMap<number, number>;
}

/** The multiple of the largest weight that an output of drawn samples may reach. */
export const BLOWN_UP = 1000;

/** Number of the worst elements that are listed. */
export const WORST_ELEMENTS = 5;

export const described = ({ name, reference, candidate }: JudgeRequest, elements: number) => ({
  name,
  dtype: reference[0]?.dtype ?? 'float32',
  candidateDtype: candidate[0]?.dtype ?? 'float32',
  shape: [...(reference[0]?.shape ?? [])],
  elements,
});

type Located = NonNullable<VerifiedOutput['worst']>[number];

/** Where an element of all samples together is: its sample, and its indices there. */
export function located(pair: FarPair, samples: readonly TensorReader[]): Located {
  let left = pair.index;
  let sample = 0;
  while (sample < samples.length - 1 && left >= elementCount(samples[sample]?.shape ?? [])) {
    left -= elementCount(samples[sample]?.shape ?? []);
    sample++;
  }
  const index: number[] = [];
  for (const size of [...(samples[sample]?.shape ?? [])].reverse()) {
    index.unshift(left % size);
    left = Math.floor(left / size);
  }
  const { candidate, reference, error } = pair;
  return {
    sample,
    index,
    candidate: measure(candidate),
    reference: measure(reference),
    error: measure(error),
  };
}
