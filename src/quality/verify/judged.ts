import type { FarPair } from '../../formats/tensor/compare/worst-pairs.js';
import { elementCount } from '../../formats/tensor/dtype.js';
import type { TensorReader } from '../../formats/tensor/tensor-reader.js';
import { type AskedCheck, checkThresholds } from './checks.js';
import { measure, type VerifiedOutput } from './result.js';
import { type AskedTolerance, checkTolerances, type VerifyPrecision } from './tolerance.js';

/** What decides about outputs, as a user may set it. */
export interface JudgeRules {
  readonly precision: VerifyPrecision;
  readonly atol: readonly AskedTolerance[];
  readonly rtol: readonly AskedTolerance[];
  /** Checks instead of the usual limits. */
  readonly checks?: readonly AskedCheck[];
  /** NaN and infinity fail even where both have the same, as in Polygraphy. */
  readonly strictNonFinite?: boolean;
  /** Neither limits that a candidate of zeros would keep nor a reference that is one number everywhere make the verdict inconclusive. */
  readonly allowLoose?: boolean;
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
}

/** A judged output, and how far off each sample was. */
export interface JudgedOutput {
  readonly output: VerifiedOutput;
  readonly failures: readonly { readonly chunk: number; readonly kind: string; readonly maxAbs: number }[];
}

/** How many of the worst elements are listed. */
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
