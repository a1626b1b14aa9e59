import { providerInBackend } from '../../../engines/runtime/onnxruntime/ort-provider.js';
import type { Explanation, ParityResult } from '../verify/result.js';
import { short } from './causes.js';

/** What two runs are compared by; see `ParitySummary` for where it is read from. */
export interface RunNumbers {
  /** What ran: a provider, an engine. */
  readonly label: string;
  /** Largest error of the main output in each chunk; of failing chunks only where that is all there is. */
  readonly errors: readonly number[];
  /** Sentences about each failure, numbers included. */
  readonly failures: readonly string[];
  /** What an engine was built from; null for models, and where it is not known. */
  readonly built: ParityResult['built'];
}

/** Fewer numbers may agree by chance or because they are all zero. */
const FEWEST_NUMBERS = 3;

/**
 * Two providers that give the same errors to the last digit are one provider: ONNX Runtime falls back to the CPU without a word where it cannot load
 * CUDA, and a summary then names the provider that was asked for.
 */
export function identicalRuns(one: RunNumbers, other: RunNumbers): Explanation | null {
  if (providerOf(one.label) === providerOf(other.label) || !isSame(one.errors, other.errors)) return null;
  // Errors of every chunk are proof enough; what is said of failures differs with who wrote it.
  const errors = new Set(one.errors);
  const distinct = errors.size >= FEWEST_NUMBERS ? errors : new Set([...errors, ...one.failures]);
  if (distinct !== errors && !isSame(one.failures, other.failures)) return null;
  if (distinct.size < FEWEST_NUMBERS || one.errors.every((error) => error === 0)) return null;
  return {
    id: 'same-provider-twice',
    severity: 'error',
    sentence: `${one.label} and ${other.label} have the same errors to the last digit, so both ran on the same provider.`,
    remedy:
      'Ask the session which providers are active (session.get_providers() in Python) and install what the missing one needs; that the two agree shows nothing.',
    evidence: { labels: [one.label, other.label], numbers: distinct.size },
  };
}

/** `ONNX Runtime 1.30.0 (CPU)` and `CPUExecutionProvider` are one name. */
const providerOf = (label: string): string =>
  providerInBackend(label) ?? /^(\w+?)ExecutionProvider/.exec(label)?.[1] ?? label;

/** What runs over one reference tell about each other, two by two: that they are one under two names, or what TF32 has to do with their error. */
export function besideRuns(run: RunNumbers, others: readonly RunNumbers[]): readonly Explanation[] {
  const all = [run, ...others];
  return all.flatMap((one, at) =>
    all.slice(at + 1).flatMap((other) => identicalRuns(one, other) ?? tf32Runs(one, other) ?? []),
  );
}

/** The error of two engines of one model and precision, of which one may round to TF32; null for any other two. */
export function tf32Runs(one: RunNumbers, other: RunNumbers): Explanation | null {
  const [a, b] = [one.built, other.built];
  if (a === null || b === null || a.tf32 === b.tf32) return null;
  if (a.model !== b.model || a.precision !== b.precision) return null;
  if (one.errors.length === 0 || one.errors.length !== other.errors.length) return null;
  const [largest, otherLargest] = [one, other].map(({ errors }) => ({ max: Math.max(...errors) }));
  return a.tf32 ? compareTf32(largest!, otherLargest!) : compareTf32(otherLargest!, largest!);
}

const isSame = <T>(one: readonly T[], other: readonly T[]): boolean =>
  one.length === other.length && one.every((each, at) => Object.is(each, other[at]));

/** The error of the same engine built with and without TF32, on the same reference. */
export function compareTf32(on: { readonly max: number }, off: { readonly max: number }): Explanation {
  const ratio = off.max === 0 ? Number.POSITIVE_INFINITY : on.max / off.max;
  const evidence = { maxWithTf32: on.max, maxWithout: off.max, ratio };
  const numbers = `The largest error is ${short(on.max)} with TF32 and ${short(off.max)} without`;
  if (ratio >= 20) {
    return {
      id: 'tf32-is-the-cause',
      severity: 'note',
      sentence: `${numbers}, ${short(ratio)} times less: the error is TF32's rounding and nothing else.`,
      remedy:
        'Build with --builder-config flags=no-tf32 where the accuracy is needed; it costs speed on matrix products.',
      evidence,
    };
  }
  return {
    id: ratio >= 2 ? 'tf32-is-part' : 'tf32-is-not-the-cause',
    severity: ratio >= 2 ? 'warning' : 'error',
    sentence: `${numbers}: ${ratio >= 2 ? 'TF32 is only part of it' : 'TF32 has nothing to do with it'}.`,
    remedy:
      'Look for another cause: other weights, a state of the wrong length, a reference of its own precision.',
    evidence,
  };
}

/** Errors of the four ways to put the first and the second component of two implementations together. */
export interface SwapErrors {
  /** Both components of the reference: how far it is from itself, usually 0. */
  readonly referenceReference: number;
  readonly referenceCandidate: number;
  readonly candidateReference: number;
  readonly candidateCandidate: number;
}

/** Which of two chained components an error comes from: each is put in the other's place. Errors are compared against `limit`. */
export function explainSwap(
  errors: SwapErrors,
  names: readonly [string, string],
  limit: number,
): Explanation {
  const [first, second] = names;
  const firstIsWrong = errors.candidateReference > limit;
  const secondIsWrong = errors.referenceCandidate > limit;
  const bothFail = errors.candidateCandidate > limit;
  const evidence = { ...errors, limit };
  const told = (
    id: string,
    severity: Explanation['severity'],
    sentence: string,
    remedy: string,
  ): Explanation => ({
    id,
    severity,
    sentence,
    remedy,
    evidence,
  });
  if (errors.referenceReference > limit) {
    return told(
      'swap-reference-unstable',
      'error',
      `The reference is ${short(errors.referenceReference)} off itself, so nothing follows from swapping.`,
      'Make the reference repeatable first: a fixed seed, no dropout, one thread.',
    );
  }
  if (!bothFail) {
    return firstIsWrong || secondIsWrong
      ? told(
          'swap-errors-cancel',
          'warning',
          `Together the ${first} and the ${second} agree, apart they do not: their errors cancel, as when both changed the same convention.`,
          'Look at what passes between them: order of axes, scale, normalisation.',
        )
      : told(
          'swap-agrees',
          'note',
          `The ${first} and the ${second} agree with the reference in every combination.`,
          'There is nothing to do.',
        );
  }
  if (firstIsWrong && secondIsWrong)
    return told(
      'swap-both',
      'error',
      `Both the ${first} and the ${second} are off by themselves.`,
      `Begin with the ${first}: it comes first.`,
    );
  if (firstIsWrong)
    return told(
      'swap-first',
      'error',
      `The error comes from the ${first}: with the reference's own it is gone.`,
      `Compare the ${first} alone.`,
    );
  if (secondIsWrong)
    return told(
      'swap-second',
      'error',
      `The error comes from the ${second}: with the reference's own it is gone.`,
      `Compare the ${second} alone.`,
    );
  return told(
    'swap-interaction',
    'warning',
    `Neither the ${first} nor the ${second} is off by itself, only both together are.`,
    'Small errors of the first fall on a decision of the second: report its margin (the distance between best and second best).',
  );
}
