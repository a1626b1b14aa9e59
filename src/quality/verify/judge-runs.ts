import type { Binding } from '../../engines/runtime/session.js';
import { TrtforgeError } from '../../errors.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import { tensorReader } from '../../formats/tensor/tensor-reader.js';
import { judgeOutput } from './judge-output.js';
import type { JudgedOutput, JudgeRequest, SampleInfo } from './judged.js';
import type { VerifyRequest } from './request.js';
import type { VerifyOutcome, VerifyPrecision } from './result.js';
import { worst } from './result.js';

/** What a model gave: its outputs, sample by sample. */
export interface Outputs {
  readonly outputs: readonly NamedTensors[];
  readonly bindings: readonly Binding[];
  /** What each sample is; default: all count alike. */
  readonly samples?: readonly SampleInfo[];
}

/** What is known of two models besides their outputs. */
interface JudgedModels extends Pick<JudgeRequest, 'codes'> {
  readonly reachedBy?: (output: string) => readonly string[];
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
 * Outputs that both have in the same shape are compared; everything else breaks the contract. Without `reachedBy` (the inputs that reach an output) no planted
 * errors are tried: then only failures count. `codes` is the format of the codes that both models have. Throws TF_VERIFY_MISMATCH when nothing is common.
 */
export function judgeRuns(
  request: VerifyRequest,
  precision: VerifyPrecision,
  reference: Outputs,
  candidate: Outputs,
  { reachedBy, codes }: JudgedModels = {},
): RunsJudgement {
  const own = new Set(candidate.bindings.map(({ name }) => name));
  const expected = reference.bindings.map(({ name }) => name);
  if (!expected.some((name) => own.has(name))) {
    throw new TrtforgeError(
      'TF_VERIFY_MISMATCH',
      `${request.candidate} and ${request.reference} have no output in common: ${[...own].join(', ')} against ${expected.join(', ')}.`,
    );
  }
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
      const { atol = [], rtol = [] } = request;
      const [left, right] = [ours.map(tensorReader), theirs.map(tensorReader)];
      const asked = { name, precision, codes, atol, rtol, candidate: left, reference: right };
      const plant = { plant: reachedBy !== undefined, reachedBy: () => reachedBy?.(name) ?? [] };
      judged.push(judgeOutput({ ...asked, ...plant, samples: reference.samples }));
    }
  }
  return { judged: withCompanions(judged), broken };
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
