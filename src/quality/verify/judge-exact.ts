import { compareExactly, comparePairs } from '../../formats/tensor/compare/comparison.js';
import type { FarPair } from '../../formats/tensor/compare/pair-sums.js';
import { dtypes, elementCount } from '../../formats/tensor/dtype.js';
import {
  eachPiece,
  floatReader,
  joinedFloats,
  type TensorReader,
} from '../../formats/tensor/tensor-reader.js';
import { atMost, type CheckResult, checkText, severityOf } from './checks.js';
import { type Decisions, FEWEST } from './decisions.js';
import { errorStatistics, sidesOf } from './error-statistics.js';
import {
  described,
  isTypical,
  isUnreached,
  type JudgedOutput,
  type JudgeRequest,
  located,
  WORST_ELEMENTS,
} from './judged.js';
import { acceptedBy, undecidedSentence } from './planted-errors.js';
import { measure, type VerifiedOutput } from './result.js';
import { type ExactLimits, exactLimitsFor, mostDiffering, toleranceOf, toleranceText } from './tolerance.js';

/**
 * Compares integers or booleans of all typical samples with the reference, to the last bit; on edge samples all scores tie, so which of them wins means
 * nothing. A tolerance counts where it names the output: one for all outputs is meant for floats, and would let the index of another class pass.
 */
export function judgeExact(all: JudgeRequest): JudgedOutput {
  const chunks = all.reference.flatMap((_, at) => (isTypical(all, at) ? [at] : []));
  const of = (side: JudgeRequest['reference']) => chunks.map((at) => side[at]!);
  const request = { ...all, candidate: of(all.candidate), reference: of(all.reference), samples: undefined };
  const { name } = request;
  const limits = exactLimitsFor(name, request.precision, request);
  const found = compareSamples(request, limits);
  const { elements, different, largest } = found;
  const { all: units, off } =
    limits.asked === null && request.isCount?.() ? countedIn(request) : { all: elements, off: found.outside };
  const statistic = limits.asked === null ? 'share that differs' : 'share outside tolerance';
  const decides = atMost(
    statistic,
    off / Math.max(1, units),
    mostDiffering(limits, units) / Math.max(1, units),
  );
  const labels = limits.asked === null && request.decides?.().areLabels ? labelsOf(request) : undefined;
  const checks = [decides, ...(labels?.checks ?? [])];
  const failed = checks.find(({ pass }) => !pass);
  const planted =
    failed === undefined && elements > 0 && all.plant !== false ? acceptedBy(request, limits, found) : [];
  const isUndecided = planted.length > 0 && request.allowLoose !== true && !isUnreached(request);
  const undecided = isUndecided ? undecidedSentence(request, planted) : undefined;
  const doubt = !failed && elements === 0 ? 'the output is empty.' : undecided;
  const reasons =
    failed === undefined
      ? [doubt].flatMap((reason) => reason ?? [])
      : [whyFailed(request, limits, found, checkText(failed))];
  return {
    output: {
      ...described(request, elements),
      outcome: failed ? 'fail' : doubt === undefined ? 'pass' : 'inconclusive',
      pass: failed === undefined,
      checks,
      ...(labels !== undefined && { decisions: [labels.decisions] }),
      tolerance: limits.asked,
      statistics: [
        { name: 'max', amount: measure(largest) },
        { name: 'different elements', amount: different },
        { name: 'outside tolerance', amount: found.outside },
        ...found.statistics,
      ],
      histogram: { bins: [], zeros: elements - different, nonFinite: 0 },
      planted,
      ...(found.sides === undefined ? {} : { sides: found.sides }),
      worst: found.worst.map((pair) => {
        const place = located(pair, request.reference);
        return { ...place, sample: chunks[place.sample]! };
      }),
      reasons: reasons.map((reason) => `${name}: ${reason}`),
    },
    isClose: failed === undefined && found.outside > 0,
    failures: !failed ? [] : found.failures.map((failure) => ({ ...failure, chunk: chunks[failure.chunk]! })),
    severities: new Map(found.severities.map((severity, chunk) => [chunks[chunk]!, severity])),
  };
}

/** Of outputs that state how many there are: how many in all, and how many too few or too many. */
function countedIn({ reference, candidate, name }: JudgeRequest): {
  readonly all: number;
  readonly off: number;
} {
  const counted = { all: 0, off: 0 };
  const joined = (side: readonly TensorReader[]) => joinedFloats(side.map((one) => floatReader(one, name)));
  eachPiece({ candidate: joined(candidate), reference: joined(reference) }, (ours, theirs) => {
    for (const [at, count] of theirs.entries()) {
      counted.all += Math.abs(count);
      counted.off += Math.abs(count - ours[at]!);
    }
  });
  return counted;
}

/** Of a label alone so many times the share of all may turn: those at its border. */
const OF_LABEL = 2;

/** The decisions of an ArgMax, and the label of which the largest share is lost or new: a rare one is nothing beside the background. */
function labelsOf({ reference, candidate, name, precision }: JudgeRequest): {
  readonly decisions: Decisions;
  readonly checks: readonly CheckResult[];
} {
  const labels = new Map<number, { own: number; reference: number; kept: number }>();
  const counted = (label: number) => {
    const counts = labels.get(label) ?? { own: 0, reference: 0, kept: 0 };
    labels.set(label, counts);
    return counts;
  };
  const joined = (side: readonly TensorReader[]) => joinedFloats(side.map((one) => floatReader(one, name)));
  eachPiece({ candidate: joined(candidate), reference: joined(reference) }, (ours, theirs) => {
    for (let i = 0; i < theirs.length; i++) {
      counted(ours[i]!).own++;
      counted(theirs[i]!).reference++;
      if (ours[i] === theirs[i]) counted(theirs[i]!).kept++;
    }
  });
  const share = OF_LABEL * toleranceOf(precision).differing;
  const shares = [...labels].flatMap(([label, { own, reference: all, kept }]) => {
    const most = Math.max(all, own);
    // Few may turn by chance: three standard deviations more.
    const limit = share + 3 * Math.sqrt(share / most);
    const statistic = `share of label ${label} that differs`;
    return most < FEWEST ? [] : [atMost(statistic, (most - kept) / most, limit)];
  });
  const sum = (of: 'reference' | 'kept') => [...labels.values()].reduce((all, one) => all + one[of], 0);
  const [all, kept] = [sum('reference'), sum('kept')];
  const worst = shares.toSorted((a, b) => severityOf(b) - severityOf(a)).slice(0, 1);
  return {
    checks: worst,
    decisions: {
      rule: 'argmax',
      reference: all,
      kept,
      lost: all - kept,
      new: 0,
      ties: 0,
      limit: toleranceOf(precision).differing,
      pass: all < FEWEST ? null : worst.every(({ pass }) => pass),
    },
  };
}

interface Compared {
  readonly elements: number;
  readonly different: number;
  readonly outside: number;
  readonly largest: number;
  readonly worst: readonly FarPair[];
  readonly failures: JudgedOutput['failures'];
  /** Elements outside over those that may be, by sample. */
  readonly severities: readonly number[];
  readonly statistics: VerifiedOutput['statistics'];
  readonly sides: VerifiedOutput['sides'];
}

function compareSamples(request: JudgeRequest, limits: ExactLimits): Compared {
  const { name } = request;
  const { tolerance } = limits;
  const severities: number[] = [];
  let [elements, different, outside, largest] = [0, 0, 0, 0];
  const failures: { chunk: number; kind: string; maxAbs: number }[] = [];
  const worst: FarPair[] = [];
  for (const [chunk, reference] of request.reference.entries()) {
    const candidate = request.candidate[chunk];
    if (candidate === undefined) continue;
    const found = compareExactly(candidate, reference, name, WORST_ELEMENTS, tolerance);
    worst.push(...found.worst.map((pair) => ({ ...pair, index: elements + pair.index })));
    const own = elementCount(reference.shape);
    severities.push(found.outside / Math.max(1, mostDiffering(limits, own)));
    elements += own;
    different += found.different;
    outside += found.outside;
    largest = Math.max(largest, found.largest);
    if (found.outside > 0) failures.push({ chunk, kind: 'differs', maxAbs: found.largest });
  }
  const furthest = worst.sort((a, b) => b.error - a.error).slice(0, WORST_ELEMENTS);
  return {
    elements,
    different,
    outside,
    largest,
    worst: furthest,
    failures,
    severities,
    ...asNumbers(request, tolerance),
  };
}

/** Statistics of the values as floats, as Polygraphy computes them for integers and booleans too; none of complex numbers. */
function asNumbers(
  request: JudgeRequest,
  tolerance: ExactLimits['tolerance'],
): Pick<Compared, 'statistics' | 'sides'> {
  const tensors = [...request.candidate, ...request.reference];
  if (tensors.some(({ dtype }) => dtypes[dtype].kind === 'complex'))
    return { statistics: [], sides: undefined };
  const joined = (side: JudgeRequest['reference']) =>
    joinedFloats(side.map((tensor) => floatReader(tensor, request.name)));
  const pairs = { candidate: joined(request.candidate), reference: joined(request.reference) };
  const comparison = comparePairs(pairs, tolerance, 'all');
  // These two are counted exactly.
  const counted = new Set(['max', 'outside tolerance']);
  const statistics = errorStatistics(comparison).filter(({ name }) => !counted.has(name));
  return { statistics, sides: sidesOf(comparison, pairs) };
}

function whyFailed(
  { name, atol, rtol, checks = [] }: JudgeRequest,
  limits: ExactLimits,
  found: Compared,
  check: string,
): string {
  const { elements, different, outside } = found;
  if (limits.asked !== null) return `${outside} of ${elements} elements are outside the tolerance: ${check}.`;
  const isForAll = [...atol, ...rtol, ...checks].length > 0;
  const hint = isForAll
    ? ` Integers and booleans are compared exactly; a tolerance or check that names the output counts for them: --atol ${toleranceText({ name, value: 1 })}.`
    : '';
  return `${different} of ${elements} elements differ: ${check}.${hint}`;
}
