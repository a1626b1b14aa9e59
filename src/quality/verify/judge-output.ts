import { quantizedFormatNamed } from '../../formats/precision/formats/index.js';
import { type Comparison, comparePairs } from '../../formats/tensor/compare/comparison.js';
import { ErrorHistogram, WorstPairs } from '../../formats/tensor/compare/pair-sums.js';
import { sliceSums } from '../../formats/tensor/compare/slices.js';
import { type Dtype, dtypes } from '../../formats/tensor/dtype.js';
import { type CheckResult, checkText, isOfDecisions, NON_FINITE, severityOf, shortNumber } from './checks.js';
import { type Decisions, decisionChecks, decisionText } from './decisions.js';
import { errorStatistics, sidesOf } from './error-statistics.js';
import { Criterion, type Located, worstChecks } from './float-criterion.js';
import { judgeExact } from './judge-exact.js';
import {
  BLOWN_UP,
  described,
  isUnreached,
  isUnstable,
  type JudgedOutput,
  type JudgeRequest,
  located,
  WORST_ELEMENTS,
} from './judged.js';
import { undecidedSentence } from './planted-errors.js';
import { measure, type VerifiedOutput } from './result.js';

/** Compares one output of all samples with the reference: floats within a tolerance, integers and booleans exactly unless a check names them. */
export function judgeOutput(request: JudgeRequest): JudgedOutput {
  const isFloat = dtypes[referenceDtype(request)].kind === 'float';
  const isChecked = request.checks?.some(({ name }) => name === request.name) === true;
  return isFloat || isChecked ? judgeFloats(request) : judgeExact(request);
}

const referenceDtype = ({ reference }: JudgeRequest): Dtype => reference[0]?.dtype ?? 'float32';

/** Each sample is judged alone, typical ones also together: statistics are of these. */
function judgeFloats(request: JudgeRequest): JudgedOutput {
  const { name } = request;
  const criterion = new Criterion(request);
  const { limits, samples, typical } = criterion;
  const furthest = new WorstPairs(WORST_ELEMENTS);
  const histogram = new ErrorHistogram(furthest);
  const together = criterion.together(samples.map(({ candidate }) => candidate));
  const comparison = comparePairs(together, limits.tolerance, limits.quantiles, histogram);
  const bySample = samples.map((sample, at) => criterion.alone(at, sample));
  const decisions = criterion.decisions();
  const checks = worstChecks([
    ...criterion.requested(comparison),
    ...criterion.usual(together),
    ...decisionChecks(decisions),
    ...bySample.flat(),
  ]);
  const failed = checks.some(({ pass }) => !pass);
  const isBlind = isUnstable(request);
  const isNoise = failed && limits.usual !== null && mayBeNoise(request, checks);
  const planted =
    failed || isBlind || request.plant === false || request.allowLoose ? [] : criterion.accepted();
  const doubt = failed ? undefined : whyInconclusive(request, comparison, planted);
  const reasons = [
    ...(failed && !isBlind ? whyFailed(criterion, comparison, checks, decisions) : []),
    ...(failed && request.rounded !== undefined ? [roundedSentence(request.rounded)] : []),
    ...(isBlind ? [UNSTABLE] : []),
    ...(failed && areDrawn(request) ? [isNoise && hasRanges(request) ? NOISE_OF_CODES : NOISE] : []),
    ...(doubt === undefined ? [] : [doubt]),
  ];
  const { absolute, relative, why } = limits.tolerance;
  const classes = criterion.classes();
  const blownUp = blownUpBy(request, criterion);
  const isUndecided = isNoise || isBlind || doubt !== undefined;
  const decided = failed ? 'fail' : 'pass';
  return {
    output: {
      ...described(request, comparison.elements),
      outcome: isUndecided ? 'inconclusive' : decided,
      pass: !failed,
      checks,
      ...(decisions.length > 0 && { decisions: [...decisions] }),
      ...(classes !== undefined && { classes }),
      ...(blownUp !== undefined && { blownUp }),
      ...(request.unstable !== undefined && {
        unstable: [...request.unstable].map(([sample, moved]) => ({ sample, moved: measure(moved) })),
      }),
      tolerance: { absolute, relative, why },
      statistics: errorStatistics(comparison),
      sides: sidesOf(comparison, together),
      histogram: histogram.histogram(),
      planted,
      nonFinite: comparison.nonFinite,
      worst: placesOf(furthest, request, typical),
      reasons: reasons.map((reason) => `${name}: ${reason}`),
    },
    isClose: limits.usual !== null && asksForMore(criterion, comparison, checks),
    severities: new Map(bySample.map((own, at) => [at, largestSeverity(own)])),
    failures: failuresIn(bySample, criterion),
  };
}

const largestSeverity = (checks: readonly CheckResult[]): number => Math.max(0, ...checks.map(severityOf));

/** Whether checks fail by no more than what drawn samples alone may cause. */
const mayBeNoise = (request: JudgeRequest, checks: readonly CheckResult[]): boolean =>
  areDrawn(request) &&
  checks.every(isNumber) &&
  (hasRanges(request) || largestSeverity(checks) < NEAR_ON_NOISE);

/** Whether more samples may decide otherwise: an error is near its limit, or little was compared. */
function asksForMore(
  criterion: Criterion,
  { elements }: Comparison,
  checks: readonly CheckResult[],
): boolean {
  const severity = largestSeverity(checks);
  if (!(severity < CLEAR_MARGIN)) return false;
  return severity > 1 / CLEAR_MARGIN || elements < FEWEST_ELEMENTS || criterion.decideAlike();
}

/** The peak of a reference that drawn samples drive far beyond the weights behind it; undefined for others. */
function blownUpBy(request: JudgeRequest, { peak }: Criterion): VerifiedOutput['blownUp'] {
  const largestWeight = areDrawn(request) ? request.largestWeight?.() : undefined;
  const isBlownUp = largestWeight !== undefined && peak > BLOWN_UP * Math.max(1, largestWeight);
  return isBlownUp ? { peak, largestWeight } : undefined;
}

/** The samples that fail by themselves. */
const failuresIn = (
  bySample: readonly (readonly CheckResult[])[],
  { samples }: Criterion,
): JudgedOutput['failures'] =>
  bySample.flatMap((own, chunk) => {
    if (own.every(({ pass }) => pass)) return [];
    const { largest } = sliceSums(samples[chunk]!, samples[chunk]!.shape, null);
    const kind = own.every(isNumber) ? 'outside-tolerance' : NON_FINITE;
    return [{ chunk, kind, maxAbs: largest }];
  });

/** Where the largest errors of the typical samples are. */
function placesOf(
  furthest: WorstPairs,
  { reference }: JudgeRequest,
  typical: readonly number[],
): VerifiedOutput['worst'] {
  const references = typical.map((at) => reference[at]!);
  return furthest.list().map((pair) => {
    const place = located(pair, references);
    return { ...place, sample: typical[place.sample]! };
  });
}

const roundedSentence = (sample: number): string =>
  `Rounding the inputs to 16 bits alone moves the original beyond the limits (sample ${sample}): the nodes that read them first have to stay FP32 (--keep-nodes), or the inputs have to be scaled.`;

/** Whether a check found no NaN or infinity that fails. */
const isNumber = ({ statistic, pass }: CheckResult): boolean => statistic !== NON_FINITE || pass;

/** Whether activations have codes, whose ranges are made for real samples: on noise a healthy model may be off by 24 limits (measured). */
const hasRanges = ({ precision }: JudgeRequest): boolean =>
  quantizedFormatNamed(precision)?.activations === true;

/** Whether the user passed no sample; where nothing is known of the samples they count as the user's. */
const areDrawn = ({ samples = [] }: JudgeRequest): boolean =>
  samples.length > 0 && !samples.some(({ kind }) => kind === 'data');

const UNSTABLE = 'rounding the inputs alone moves the original by more than the limits, on every sample.';
/** On drawn samples healthy models are beyond a limit by less than this at some seeds (measured: 2.1 for a recurrent one). */
const NEAR_ON_NOISE = 3;

const NOISE = 'The samples are drawn. Pass real samples to judge by them: --inputs.';
const NOISE_OF_CODES =
  'the samples are drawn, and ranges of codes are made for real ones. Pass real samples: --inputs.';

/** Limits that are not twice what was measured ask for more samples, and so do failures by less than twice a limit. */
const CLEAR_MARGIN = 2;

/** An output of fewer elements in all asks for more samples. */
const FEWEST_ELEMENTS = 100;

/** The decisions that turned, then every other check that failed, with the largest error that each is about. */
function whyFailed(
  criterion: Criterion,
  { outside, elements }: Comparison,
  checks: readonly CheckResult[],
  decisions: readonly Decisions[],
): string[] {
  const failed = checks.filter(({ pass }) => !pass);
  const turned = decisions.filter(({ pass }) => pass === false);
  const numbers = failed.filter(({ statistic }) => !isOfDecisions(statistic) && statistic !== NON_FINITE);
  const places = numbers.map((check) => placeText(criterion.worstOf(check)));
  const reasons = [
    ...failed.filter(({ statistic }) => statistic === NON_FINITE).map(nonFiniteSentence),
    ...turned.map((one) => `${decisionText(one)}: at most ${percent(one.limit)} may be lost or new.`),
    ...numbers.map((check, at) =>
      places.indexOf(places[at]!) === at ? `${checkText(check)}; ${places[at]}.` : `${checkText(check)}.`,
    ),
  ];
  return outside > 0 && numbers.length > 0
    ? [...reasons, `${outside} of ${elements} elements are outside the tolerance.`]
    : reasons;
}

function placeText(worst: Located | undefined): string {
  if (worst === undefined) return 'no element differs';
  const [error, candidate, reference] = [worst.error, worst.candidate, worst.reference].map((one) =>
    shortNumber(Number(one)),
  );
  return `the largest error there is ${error}, ${candidate} where the reference is ${reference} (sample ${worst.sample}, element [${worst.index.join(', ')}])`;
}

const percent = (share: number): string => `${shortNumber(100 * share)} %`;

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
  planted: VerifiedOutput['planted'],
): string | undefined {
  if (isRounded(request, comparison))
    return `checks compare integers as float64, which rounds those beyond 2^53: a tolerance (--atol ${request.name}:0) is exact.`;
  if (comparison.elements === 0) return 'the output is empty.';
  if (comparison.finite === 0)
    return 'the reference has only NaN and infinity, so nothing can be compared with it.';
  return planted.length === 0 || isUnreached(request) ? undefined : undecidedSentence(request, planted);
}

const nonFiniteSentence = ({ measured, sample }: CheckResult): string =>
  `the candidate is NaN or infinite in ${measured} elements${sample === undefined ? '' : ` of sample ${sample}`} where the reference is finite.`;
