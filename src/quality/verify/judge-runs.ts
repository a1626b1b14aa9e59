import type { Binding } from '../../engines/runtime/session.js';
import { TrtforgeError } from '../../errors.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import { tensorReader } from '../../formats/tensor/tensor-reader.js';
import { type CheckResult, isOfDecisions } from './checks.js';
import { judgeOutput } from './judge-output.js';
import type { JudgedOutput, JudgeRequest, OwnNoise, SampleInfo } from './judged.js';
import { type MatchedRows, matchRows } from './match-rows.js';
import type { VerifyRequest } from './options.js';
import { type VerifyOutcome, worst } from './outcome.js';
import type { reachingOutputs } from './reached-by.js';
import type { VerifyPrecision } from './result.js';
import { toleranceOf } from './tolerance.js';

/** The outputs of a model, sample by sample. */
export interface Outputs {
  readonly outputs: readonly NamedTensors[];
  readonly bindings: readonly Binding[];
  /** The kind of each sample; default: all count alike. */
  readonly samples?: readonly SampleInfo[];
}

/** The known facts of two models besides their outputs. */
interface JudgedModels extends Pick<JudgeRequest, 'codes' | 'plant'> {
  readonly reaching?: ReturnType<typeof reachingOutputs>;
  readonly noise?: OwnNoise;
  readonly weightsCost?: ReadonlyMap<string, number>;
}

/** All outputs of two models compared. */
export interface RunsJudgement {
  readonly judged: readonly JudgedOutput[];
  /** Outputs without a counterpart of the same shape; `sample` is where the shapes differ first, null where the candidate has no such output. */
  readonly broken: readonly {
    readonly name: string;
    readonly sample: number | null;
    readonly reason: string;
  }[];
}

/**
 * Outputs that both have in the same shape are compared; everything else breaks the contract. Without `reaching` (what reaches an output) no planted
 * errors are tried: then only failures count. `codes` is the format of the codes that both models have. Throws TF_VERIFY_MISMATCH when nothing is common.
 */
export function judgeRuns(
  request: VerifyRequest,
  precision: VerifyPrecision,
  reference: Outputs,
  candidate: Outputs,
  { reaching, codes, plant = reaching !== undefined, noise, weightsCost }: JudgedModels = {},
): RunsJudgement {
  const own = new Set(candidate.bindings.map(({ name }) => name));
  const expected = reference.bindings.map(({ name }) => name);
  if (!expected.some((name) => own.has(name))) {
    throw new TrtforgeError(
      'TF_VERIFY_MISMATCH',
      `${request.candidate} and ${request.reference} have no output in common: ${[...own].join(', ')} against ${expected.join(', ')}.`,
    );
  }
  const judge = (
    name: string,
    ours: readonly Tensor[],
    theirs: readonly Tensor[],
    samples = reference.samples,
  ) => {
    const { atol = [], rtol = [] } = request;
    const sides = { candidate: ours.map(tensorReader), reference: theirs.map(tensorReader) };
    const known = {
      plant,
      weightsCost: weightsCost?.get(name),
      reachedBy: () => reaching?.(name).inputs ?? [],
      isCount: () => reaching?.(name).isCount === true,
      largestWeight: reaching && (() => reaching(name).largestWeight),
      decides: reaching && (() => reaching(name)),
      ...(samples === reference.samples && {
        unstable: noise?.unstable.get(name),
        rounded: noise?.rounded.get(name),
      }),
    };
    return judgeOutput({ name, precision, codes, atol, rtol, ...sides, ...known, samples });
  };
  const judged: JudgedOutput[] = [];
  const broken: RunsJudgement['broken'][number][] = [];
  for (const name of expected) {
    const [ours, theirs] = [tensorsOf(candidate.outputs, name), tensorsOf(reference.outputs, name)];
    const sample = theirs.findIndex(({ shape }, index) => shapeText(ours[index]?.shape) !== shapeText(shape));
    if (!own.has(name)) {
      broken.push({ name, sample: null, reason: `The candidate has no output ${name}.` });
    } else if (sample >= 0) {
      const reason = `${name} is ${shapeText(ours[sample]?.shape)} in the candidate and ${shapeText(theirs[sample]?.shape)} in the reference.`;
      broken.push({ name, sample, reason });
    } else {
      judged.push(judge(name, ours, theirs));
    }
  }
  const rejudged =
    reaching === undefined
      ? judged
      : withMatchedRows(judged, reaching, precision, reference, candidate, judge);
  return { judged: withCompanions(rejudged), broken };
}

/** So many times the share of near ties of other outputs: where boxes overlap by nearly the threshold, one in and one out. */
const OF_ROWS = 2;

/** Rows that no near tie chooses: with fewer of them the samples do not decide. */
const FEWEST_CLEAR = 20;

/** Outputs whose rows an operator orders are judged again, where one failed, with rows in the reference's order; edge samples are all ties. */
function withMatchedRows(
  judged: readonly JudgedOutput[],
  reaching: ReturnType<typeof reachingOutputs>,
  precision: VerifyPrecision,
  reference: Outputs,
  candidate: Outputs,
  judge: (
    name: string,
    ours: readonly Tensor[],
    theirs: readonly Tensor[],
    samples?: readonly SampleInfo[],
  ) => JudgedOutput,
): readonly JudgedOutput[] {
  const hasFailed = ({ output }: JudgedOutput) =>
    output.outcome === 'fail' && reaching(output.name).isOrdered;
  const { bound, differing: share } = toleranceOf(precision);
  const failed = judged.filter(hasFailed);
  if (failed.length === 0 || failed.some(isPlain) || share === 0) return judged;
  const ordered = judged.flatMap(({ output }) => (reaching(output.name).isOrdered ? [output.name] : []));
  const typical = reference.outputs.flatMap((_, at) =>
    reference.samples?.[at]?.kind === 'edge' ? [] : [at],
  );
  const theirs = typical.map((at) => reference.outputs[at]!);
  const infos = typical.map((at) => reference.samples?.[at] ?? ({ origin: '', kind: 'drawn' } as const));
  const rejudged = (ours: readonly NamedTensors[]) =>
    judged.map((one) => {
      const { name } = one.output;
      if (!ordered.includes(name)) return one;
      return judge(name, tensorsOf(ours, name), tensorsOf(theirs, name), infos);
    });
  const unmoved = rejudged(typical.map((at) => candidate.outputs[at]!));
  if (!unmoved.some(hasFailed)) return unmoved;
  const matches = typical.map((at, index) =>
    matchRows(theirs[index]!, candidate.outputs[at]!, ordered, bound),
  );
  const matched = matches.filter((one) => one !== undefined);
  if (matched.length === 0 || matched.length < matches.length) return judged;
  const counts = countsOf(matched);
  const hasData = infos.some(({ kind }) => kind === 'data');
  const most = Math.max(1, OF_ROWS * Math.max(share, bound / 2) * counts.clear);
  const isSame = counts.lost <= most;
  // Scores that agree leave no other rows to ties; within rows of boxes and scores they are not judged alone.
  const isScored = judged.some((one) => ordered.includes(one.output.name) && isSorted(one));
  if (!isSame && (hasData || isScored)) return unmoved;
  const again = rejudged(matched.map(({ tensors }) => tensors)).map((one, at) =>
    withDecisionsOf(unmoved[at]!, one),
  );
  // More samples are drawn while the margin is below 2.
  if (isSame && counts.clear >= FEWEST_CLEAR)
    return again.map((one) => ({ ...one, isClose: one.isClose || 2 * counts.lost > most }));
  return again.map((one) => {
    const isDecided = !ordered.includes(one.output.name) || (one.output.outcome === 'fail' && hasData);
    return isDecided ? one : undecidedByRows(one, counts);
  });
}

/** Scores are sorted, so that ties do not move them. */
const isSorted = ({ output }: JudgedOutput): boolean =>
  output.shape.length < 3 && output.nonFinite !== undefined;

/** Whether an output failed by what the order of rows does not explain: no tie makes NaN. */
const isPlain = (one: JudgedOutput): boolean =>
  isSorted(one) || one.output.checks.some(({ statistic, pass }) => statistic === 'non-finite' && !pass);

/** The rows of all samples; `lost` are those that one side has and the other lacks. */
type RowCounts = Pick<MatchedRows, 'rows' | 'clear' | 'lost'>;

function countsOf(matched: readonly MatchedRows[]): RowCounts {
  const sum = (of: (one: MatchedRows) => number) => matched.reduce((all, one) => all + of(one), 0);
  const [lost, added] = [sum((one) => one.lost), sum((one) => one.added)];
  return { rows: sum((one) => one.rows), clear: sum((one) => one.clear), lost: Math.max(lost, added) };
}

/** An output whose rows are others than the reference's, or are chosen by near ties. */
function undecidedByRows(one: JudgedOutput, { rows, clear, lost }: RowCounts): JudgedOutput {
  const reason = `${one.output.name}: ${lost} of ${clear} rows are others than the reference's, and near ties choose the ${rows - clear} below them. Pass real samples (--inputs), or compare with the metric of the task (\`trtforge eval\`).`;
  return { ...one, isClose: true, output: { ...one.output, outcome: 'inconclusive', reasons: [reason] } };
}

/** Rows in the reference's order say nothing of those that the candidate has more or less: decisions are those of all its rows. */
function withDecisionsOf(all: JudgedOutput, matched: JudgedOutput): JudgedOutput {
  const { decisions = [], checks } = all.output;
  if (decisions.some(({ pass }) => pass === false)) return all;
  const isDecision = ({ statistic }: CheckResult) => isOfDecisions(statistic);
  const others = matched.output.checks.filter((check) => !isDecision(check));
  const output = { ...matched.output, checks: [...others, ...checks.filter(isDecision)] };
  return { ...matched, output: decisions.length > 0 ? { ...output, decisions } : output };
}

/** An integer output that is the same in every sample, a count of detections say, decides nothing; it need not where another output passes. */
function withCompanions(judged: readonly JudgedOutput[]): readonly JudgedOutput[] {
  if (!judged.some(({ output }) => output.outcome === 'pass')) return judged;
  return judged.map((one) => {
    const { output } = one;
    const isConstant =
      output.planted.length > 0 && output.nonFinite === undefined && output.statistics[0]?.amount === 0;
    return isConstant ? { ...one, output: { ...output, outcome: 'pass', reasons: [] } } : one;
  });
}

/** The outputs that failed, each with the first sample that did. */
export const failedOutputs = ({
  judged,
  broken,
}: RunsJudgement): readonly { readonly name: string; readonly sample: number }[] => [
  ...broken.flatMap(({ name, sample }) => (sample === null ? [] : [{ name, sample }])),
  ...judged
    .filter(({ output }) => output.outcome === 'fail')
    .map(({ output, failures }) => ({ name: output.name, sample: failures[0]?.chunk ?? 0 })),
];

/** The outcomes of a judgement; an output in `doubts` did not fail, whatever it gave. */
export function outcomesOf(
  { judged, broken }: RunsJudgement,
  doubts: ReadonlyMap<string, string>,
): { readonly contract: VerifyOutcome; readonly numeric: VerifyOutcome } {
  const outcome = (name: string, own: VerifyOutcome) => (doubts.has(name) ? 'inconclusive' : own);
  return {
    contract: worst(['pass', ...broken.map(({ name }) => outcome(name, 'fail'))]),
    numeric: worst(judged.map(({ output }) => outcome(output.name, output.outcome))),
  };
}

const shapeText = (shape: readonly number[] | undefined): string => `[${shape?.join(', ')}]`;

/** A tensor in every sample that has it. */
export const tensorsOf = (samples: readonly NamedTensors[], name: string): readonly Tensor[] =>
  samples.flatMap((tensors) => tensors.get(name) ?? []);
