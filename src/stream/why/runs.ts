import type { Explanation, ParityResult } from '../parity/schema.js';
import { short } from './tell-why.js';

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
  if (one.label === other.label || !isSame(one.errors, other.errors)) return null;
  if (!isSame(one.failures, other.failures)) return null;
  const distinct = new Set([...one.errors, ...one.failures]);
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

/** What other runs over the same reference tell about this one: that it is one of them under another name, or what TF32 has to do with its error. */
export const besideRuns = (run: RunNumbers, others: readonly RunNumbers[]): readonly Explanation[] =>
  others.flatMap((other) => identicalRuns(run, other) ?? tf32Runs(run, other) ?? []);

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
        'Build with --builder-flag no-tf32 where the accuracy is needed; it costs speed on matrix products.',
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
          `Together ${first} and ${second} agree, apart they do not: their errors cancel, as when both changed the same convention.`,
          'Look at what passes between them: order of axes, scale, normalisation.',
        )
      : told(
          'swap-agrees',
          'note',
          `${first} and ${second} agree with the reference in every combination.`,
          'There is nothing to do.',
        );
  }
  if (firstIsWrong && secondIsWrong)
    return told(
      'swap-both',
      'error',
      `Both ${first} and ${second} are off by themselves.`,
      `Begin with ${first}: it comes first.`,
    );
  if (firstIsWrong)
    return told(
      'swap-first',
      'error',
      `The error comes from ${first}: with the reference's own it is gone.`,
      `Compare ${first} alone.`,
    );
  if (secondIsWrong)
    return told(
      'swap-second',
      'error',
      `The error comes from ${second}: with the reference's own it is gone.`,
      `Compare ${second} alone.`,
    );
  return told(
    'swap-interaction',
    'warning',
    `Neither ${first} nor ${second} is off by itself, only both together are.`,
    'Small errors of the first fall on a decision of the second: report its margin (the distance between best and second best).',
  );
}
