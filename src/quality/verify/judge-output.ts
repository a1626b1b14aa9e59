import { type Comparison, comparePairs } from '../../formats/tensor/compare/comparison.js';
import { ErrorHistogram } from '../../formats/tensor/compare/error-histogram.js';
import { magnitudesOf } from '../../formats/tensor/compare/magnitudes.js';
import { type FarPair, WorstPairs } from '../../formats/tensor/compare/worst-pairs.js';
import { type Dtype, dtypes, elementCount } from '../../formats/tensor/dtype.js';
import {
  type FloatPairs,
  type FloatReader,
  floatReader,
  joinedFloats,
  zeroFloats,
} from '../../formats/tensor/float-reader.js';
import {
  atMost,
  type CheckResult,
  checkText,
  evaluate,
  shortNumber,
  USUAL_QUANTILE,
  zerosSurelyFail,
} from './checks.js';
import { errorStatistics, sidesOf } from './error-statistics.js';
import { judgeExact } from './judge-exact.js';
import {
  described,
  type JudgedOutput,
  type JudgeRequest,
  type JudgeRules,
  located,
  WORST_ELEMENTS,
} from './judged.js';
import { type JustifiedTolerance, type Limits, limitsFor } from './tolerance.js';

/** Compares one output of all samples with the reference: floats within a tolerance, integers and booleans exactly unless a check names them. */
export function judgeOutput(request: JudgeRequest): JudgedOutput {
  const isFloat = dtypes[referenceDtype(request)].kind === 'float';
  const isChecked = request.checks?.some(({ name }) => name === request.name) === true;
  return isFloat || isChecked ? judgeFloats(request) : judgeExact(request);
}

const referenceDtype = ({ reference }: JudgeRequest): Dtype => reference[0]?.dtype ?? 'float32';

function judgeFloats(request: JudgeRequest): JudgedOutput {
  const { name, precision } = request;
  const pairs: FloatPairs = {
    candidate: joinedFloats(request.candidate.map((tensor) => floatReader(tensor, name))),
    reference: joinedFloats(request.reference.map((tensor) => floatReader(tensor, name))),
  };
  const limits = limitsFor(
    name,
    precision,
    () => ({ elements: pairs.reference.length, ...magnitudesOf(pairs.reference) }),
    request,
  );
  const furthest = new WorstPairs(WORST_ELEMENTS);
  const histogram = new ErrorHistogram(furthest);
  const comparison = comparePairs(pairs, limits.tolerance, quantilesFor(limits), histogram);
  const checks = checksOf(comparison, limits, request);
  const failed = checks.some(({ pass }) => !pass);
  const zerosPass = !failed && wouldZerosPass(pairs.reference, comparison, limits);
  const doubt = failed ? undefined : whyInconclusive(request, comparison, limits.tolerance, zerosPass);
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
      zerosPass,
      nonFinite: comparison.nonFinite,
      worst: worst.map((pair) => located(pair, request.reference)),
      reasons: reasons.map((reason) => `${name}: ${reason}`),
    },
    failures: failed ? failuresBySample(request, limits, comparison) : [],
  };
}

/** One quantile of the user's own, or those that reports show. */
function quantilesFor({ checks }: Limits): Parameters<typeof comparePairs>[2] {
  const asked = checks.find((check) => check.kind === 'quantile');
  return asked === undefined || asked.fraction === USUAL_QUANTILE ? 'all' : { fraction: asked.fraction };
}

function checksOf(comparison: Comparison, limits: Limits, { strictNonFinite }: JudgeRules): CheckResult[] {
  const checks = limits.checks.map((check) => evaluate(check, comparison, limits.tolerance));
  const { mismatching, matching } = comparison.nonFinite;
  const rejected = mismatching + (strictNonFinite === true ? matching : 0);
  if (rejected > 0) checks.push(atMost('non-finite', rejected, 0));
  return checks;
}

/** Applies the same checks to zeros in the place of the candidate. */
function wouldZerosPass(reference: FloatReader, comparison: Comparison, limits: Limits): boolean {
  const { checks, tolerance } = limits;
  if (comparison.finite === 0 || checks.some((check) => zerosSurelyFail(check, comparison, tolerance)))
    return false;
  const zeros = { candidate: zeroFloats(reference.length), reference };
  const ofZeros = comparePairs(zeros, tolerance, quantilesFor(limits));
  return checks.every((check) => evaluate(check, ofZeros, tolerance).pass);
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
  tolerance: JustifiedTolerance,
  zerosPass: boolean,
): string | undefined {
  const { allowLoose, reference: samples } = request;
  const { reference, elements } = comparison;
  if (isRounded(request, comparison))
    return `checks compare integers as float64, which rounds those beyond 2^53: a tolerance (--atol ${request.name}:0) is exact.`;
  if (elements === 0) return 'the output is empty.';
  if (comparison.finite === 0)
    return 'the reference has only NaN and infinity, so nothing can be compared with it.';
  if (allowLoose === true) return undefined;
  const isTensor = samples.some(({ shape }) => elementCount(shape) > 1);
  if (isTensor && reference.min === reference.max) {
    return `the reference is ${shortNumber(reference.min)} everywhere, so equal outputs show nothing.`;
  }
  if (zerosPass) {
    const peak = Math.max(Math.abs(reference.min), Math.abs(reference.max));
    return `this tolerance cannot fail: a candidate of zeros would pass too, with an absolute tolerance of ${shortNumber(tolerance.absolute)} for outputs up to ${shortNumber(peak)}.`;
  }
  return undefined;
}

function nonFiniteSentence({ nonFinite }: Comparison): string {
  const { nanInCandidate, infiniteInCandidate, nanInReference, infiniteInReference } = nonFinite;
  return `the candidate has ${nanInCandidate} NaN and ${infiniteInCandidate} infinite elements, the reference ${nanInReference} and ${infiniteInReference}.`;
}

/** Which samples failed by themselves; a single one is what was compared already. */
function failuresBySample(
  request: JudgeRequest,
  limits: Limits,
  together: Comparison,
): JudgedOutput['failures'] {
  const isAlone = request.candidate.length === 1;
  return request.candidate.flatMap((tensor, chunk) => {
    const reference = request.reference[chunk];
    if (reference === undefined) return [];
    const pairs = { candidate: floatReader(tensor), reference: floatReader(reference) };
    const comparison = isAlone ? together : comparePairs(pairs, limits.tolerance, quantilesFor(limits));
    if (checksOf(comparison, limits, request).every(({ pass }) => pass)) return [];
    const kind = comparison.nonFinite.mismatching > 0 ? 'non-finite' : 'outside-tolerance';
    return [{ chunk, kind, maxAbs: comparison.absolute.max }];
  });
}
