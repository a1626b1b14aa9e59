import { elementCount } from '../tensor/dtype.js';
import { compareExactly } from '../tensor/exact-comparison.js';
import type { FarPair } from '../tensor/worst-pairs.js';
import { atMost } from './checks.js';
import { described, type JudgedOutput, type JudgeRequest, located, WORST_ELEMENTS } from './judged.js';
import { measure } from './result.js';
import { allowedDifferences } from './tolerance.js';

/** Holds integers or booleans of all samples against the reference. */
export function judgeExact(request: JudgeRequest): JudgedOutput {
  const { name, precision } = request;
  let elements = 0;
  let different = 0;
  let largest = 0;
  const failures: { chunk: number; kind: string; maxAbs: number }[] = [];
  const worst: FarPair[] = [];
  for (const [chunk, reference] of request.reference.entries()) {
    const candidate = request.candidate[chunk];
    if (candidate === undefined) continue;
    const found = compareExactly(candidate, reference, name, WORST_ELEMENTS);
    worst.push(...found.worst.map((pair) => ({ ...pair, index: elements + pair.index })));
    elements += elementCount(reference.shape);
    different += found.different;
    largest = Math.max(largest, found.largest);
    if (found.different > 0) failures.push({ chunk, kind: 'differs', maxAbs: found.largest });
  }
  const share = elements === 0 ? 0 : different / elements;
  const decides = atMost('share that differs', share, allowedDifferences[precision]);
  return {
    output: {
      ...described(request, elements),
      outcome: decides.pass ? (elements === 0 ? 'inconclusive' : 'pass') : 'fail',
      pass: decides.pass,
      checks: [decides],
      tolerance: null,
      statistics: [
        { name: 'max', amount: measure(largest) },
        { name: 'different elements', amount: different },
      ],
      histogram: { bins: [], zeros: elements - different, nonFinite: 0 },
      zerosPass: false,
      worst: worst
        .sort((a, b) => b.error - a.error)
        .slice(0, WORST_ELEMENTS)
        .map((pair) => located(pair, request.reference)),
      reasons: decides.pass ? [] : [`${name}: ${different} of ${elements} elements differ.`],
    },
    failures: decides.pass ? [] : failures,
  };
}
