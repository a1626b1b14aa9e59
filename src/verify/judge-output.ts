import { type Comparison, compareFloats } from '../tensor/comparison.js';
import { dtypes } from '../tensor/dtype.js';
import { errorHistogram } from '../tensor/error-histogram.js';
import type { Tensor } from '../tensor/tensor.js';
import { float32Values, numbersOf } from '../tensor/values.js';
import { measure, type VerifiedOutput } from './result.js';
import {
  type AskedTolerance,
  allowedDifferences,
  type JustifiedTolerance,
  type Limits,
  limitsFor,
  type VerifyPrecision,
} from './tolerance.js';

export interface JudgeRequest {
  readonly name: string;
  readonly precision: VerifyPrecision;
  readonly atol: readonly AskedTolerance[];
  readonly rtol: readonly AskedTolerance[];
  /** One tensor a sample; candidate and reference have the same shapes. */
  readonly candidate: readonly Tensor[];
  readonly reference: readonly Tensor[];
}

/** A judged output, and how far off each sample was. */
export interface JudgedOutput {
  readonly output: VerifiedOutput;
  readonly failures: readonly { readonly chunk: number; readonly kind: string; readonly maxAbs: number }[];
}

/** Holds one output of all samples against the reference: floats within a tolerance, integers and booleans exactly. */
export function judgeOutput(request: JudgeRequest): JudgedOutput {
  const dtype = request.reference[0]?.dtype ?? 'float32';
  return dtypes[dtype].kind === 'float' ? judgeFloats(request) : judgeExact(request);
}

function judgeFloats(request: JudgeRequest): JudgedOutput {
  const { name, precision, atol, rtol } = request;
  const candidate = joined(request.candidate, name);
  const reference = joined(request.reference, name);
  const limits = limitsFor(name, precision, magnitudes(reference), { atol, rtol });
  const { tolerance } = limits;
  const comparison = compareFloats(candidate, reference, tolerance, 'all');
  const checks = checksOf(comparison, limits);
  const failed = checks.some(({ pass }) => !pass);
  const doubt = failed ? undefined : whyInconclusive(comparison, tolerance);
  const reasons = failed ? whyFailed(comparison, candidate, reference) : doubt === undefined ? [] : [doubt];
  return {
    output: {
      ...described(request, comparison.elements),
      outcome: failed ? 'fail' : doubt === undefined ? 'pass' : 'inconclusive',
      pass: !failed,
      checks,
      tolerance: { absolute: tolerance.absolute, relative: tolerance.relative, why: tolerance.why },
      statistics: floatStatistics(comparison),
      histogram: errorHistogram(candidate, reference),
      zerosPass: comparison.zerosPass,
      reasons: reasons.map((reason) => `${name}: ${reason}`),
    },
    failures: failed ? failuresBySample(request, limits) : [],
  };
}

function checksOf(comparison: Comparison, { tolerance, statistics }: Limits): VerifiedOutput['checks'] {
  const { mismatching } = comparison.nonFinite;
  const checks = statistics.map(({ statistic, limit }) =>
    check(statistic, comparison.absolute[statistic], limit),
  );
  if (statistics.length === 0) checks.push(check('max beyond rtol', comparison.excess, tolerance.absolute));
  if (mismatching > 0) checks.push(check('non-finite', mismatching, 0));
  return checks;
}

function whyFailed(comparison: Comparison, candidate: Float32Array, reference: Float32Array): string[] {
  const { absolute, nonFinite, outside, elements } = comparison;
  const reasons: string[] = [];
  if (nonFinite.mismatching > 0) reasons.push(nonFiniteSentence(comparison));
  const { max, maxIndex } = absolute;
  if (maxIndex >= 0) {
    const pair = `${short(candidate[maxIndex] ?? Number.NaN)} where the reference is ${short(reference[maxIndex] ?? Number.NaN)}`;
    reasons.push(
      `the largest error is ${short(max)}, ${pair} (element ${maxIndex}); ${outside} of ${elements} elements are outside the tolerance.`,
    );
  }
  return reasons;
}

function whyInconclusive(comparison: Comparison, tolerance: JustifiedTolerance): string | undefined {
  const { reference, elements } = comparison;
  if (elements === 0) return 'the output is empty.';
  if (comparison.finite === 0)
    return 'the reference gives nothing but NaN and infinity, so nothing can be held against it.';
  if (elements > 1 && reference.min === reference.max) {
    return `the reference is ${short(reference.min)} everywhere, so equal outputs show nothing.`;
  }
  if (comparison.zerosPass) {
    return `a candidate that gives only zeros would pass too: an absolute tolerance of ${short(tolerance.absolute)} is too loose for outputs up to ${short(Math.max(Math.abs(reference.min), Math.abs(reference.max)))}.`;
  }
  return undefined;
}

function nonFiniteSentence({ nonFinite }: Comparison): string {
  const { nanInCandidate, infiniteInCandidate, nanInReference, infiniteInReference } = nonFinite;
  return `the candidate has ${nanInCandidate} NaN and ${infiniteInCandidate} infinite elements, the reference ${nanInReference} and ${infiniteInReference}.`;
}

function floatStatistics(comparison: Comparison): VerifiedOutput['statistics'] {
  const { absolute, relative } = comparison;
  const named: readonly (readonly [string, number | null])[] = [
    ['max', absolute.max],
    ['mean', absolute.mean],
    ['median', absolute.median],
    ['p90', absolute.p90],
    ['p95', absolute.p95],
    ['p99', absolute.p99],
    ['max relative', relative.max],
    ['mean relative', relative.mean],
    ['median relative', relative.median],
    ['p99 relative', relative.p99],
    ['outside tolerance', comparison.outside],
    ['cosine similarity', comparison.cosineSimilarity],
    ['SNR in dB', comparison.signalToNoise],
    ['PSNR in dB', comparison.peakSignalToNoise],
    ['L2', comparison.l2],
  ];
  return named.flatMap(([name, value]) => (value === null ? [] : [{ name, amount: measure(value) }]));
}

function failuresBySample(request: JudgeRequest, limits: Limits): JudgedOutput['failures'] {
  return request.candidate.flatMap((tensor, chunk) => {
    const reference = request.reference[chunk];
    if (reference === undefined) return [];
    const comparison = compareFloats(float32Values(tensor), float32Values(reference), limits.tolerance);
    if (checksOf(comparison, limits).every(({ pass }) => pass)) return [];
    const kind = comparison.nonFinite.mismatching > 0 ? 'non-finite' : 'outside-tolerance';
    return [{ chunk, kind, maxAbs: comparison.absolute.max }];
  });
}

function judgeExact(request: JudgeRequest): JudgedOutput {
  const { name, precision } = request;
  let elements = 0;
  let different = 0;
  let largest = 0;
  const failures: { chunk: number; kind: string; maxAbs: number }[] = [];
  request.candidate.forEach((tensor, chunk) => {
    const candidate = numbersOf(tensor, name);
    const reference = numbersOf(request.reference[chunk] ?? tensor, name);
    let here = 0;
    let maxAbs = 0;
    for (let i = 0; i < reference.length; i++) {
      const error = Math.abs(candidate[i]! - reference[i]!);
      if (error === 0) continue;
      here++;
      maxAbs = Math.max(maxAbs, error);
    }
    elements += reference.length;
    different += here;
    largest = Math.max(largest, maxAbs);
    if (here > 0) failures.push({ chunk, kind: 'differs', maxAbs });
  });
  const share = elements === 0 ? 0 : different / elements;
  const decides = check('share that differs', share, allowedDifferences[precision]);
  return {
    output: {
      ...described(request, elements),
      outcome: decides.pass ? (elements === 0 ? 'inconclusive' : 'pass') : 'fail',
      pass: decides.pass,
      checks: [decides],
      tolerance: null,
      statistics: [
        { name: 'max', amount: largest },
        { name: 'different elements', amount: different },
      ],
      histogram: { bins: [], zeros: elements - different, nonFinite: 0 },
      zerosPass: false,
      reasons: decides.pass ? [] : [`${name}: ${different} of ${elements} elements differ.`],
    },
    failures: decides.pass ? [] : failures,
  };
}

const check = (statistic: string, measured: number, limit: number): VerifiedOutput['checks'][number] => ({
  statistic,
  measured: measure(measured),
  limit,
  // A measure of NaN means that no pair was finite; the non-finite check speaks for that.
  pass: !(measured > limit),
});

const described = ({ name, reference, candidate }: JudgeRequest, elements: number) => ({
  name,
  dtype: reference[0]?.dtype ?? 'float32',
  candidateDtype: candidate[0]?.dtype ?? 'float32',
  shape: [...(reference[0]?.shape ?? [])],
  elements,
});

/** All samples one after the other; a single one is not copied. */
function joined(tensors: readonly Tensor[], name: string): Float32Array {
  const parts = tensors.map((tensor) => float32Values(tensor, name));
  if (parts.length === 1 && parts[0] !== undefined) return parts[0];
  const all = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function magnitudes(values: Float32Array): { readonly rms: number; readonly peak: number } {
  let squares = 0;
  let count = 0;
  let peak = 0;
  for (const value of values) {
    if (value - value !== 0) continue;
    squares += value * value;
    peak = Math.max(peak, Math.abs(value));
    count++;
  }
  return { rms: Math.sqrt(squares / Math.max(1, count)), peak };
}

const short = (value: number): string => String(Number(value.toPrecision(3)));
