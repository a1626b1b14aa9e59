import type { Dtype } from '../../formats/tensor/dtype.js';
import {
  float32Values,
  floatTensor,
  integerTensor,
  isSameShape,
  type NamedTensors,
  type Tensor,
} from '../../formats/tensor/tensor.js';
import { judgeRuns, type RunsJudgement } from '../../quality/verify/judge-runs.js';
import type { OwnNoise } from '../../quality/verify/judged.js';
import type { VerifyRequest } from '../../quality/verify/options.js';
import { worst } from '../../quality/verify/outcome.js';
import type { reachingOutputs } from '../../quality/verify/reached-by.js';
import type { VerifiedOutput } from '../../quality/verify/result.js';
import type { ReferenceRun, SampleRuns, SideRun } from '../../quality/verify/sample-runs.js';
import { OwnNoises } from '../../quality/verify/stability.js';
import type { EditProof } from './result.js';

/** What a comparison of both models knows of the original. */
interface Comparing {
  readonly asked: VerifyRequest;
  readonly runs: SampleRuns;
  readonly reference: ReferenceRun;
  /** The types that outputs have now, by their names in the original. */
  readonly casts: ReadonlyMap<string, Dtype | undefined>;
  readonly known: { readonly reaching: ReturnType<typeof reachingOutputs>; readonly plant: boolean };
}

/** Where the edited model has other outputs than the original, by their names there. */
interface Compared {
  readonly differing: ReadonlyMap<
    string,
    { readonly judged: VerifiedOutput | undefined; readonly isRounded: boolean }
  >;
  readonly judgement: RunsJudgement;
}

export const reasonsOf = (
  { broken, judged }: RunsJudgement,
  isLeftOut: (name: string) => boolean,
): string[] => [
  ...broken.flatMap(({ name, reason }) => (isLeftOut(name) ? [] : reason)),
  ...judged.flatMap(({ output }) => (isLeftOut(output.name) ? [] : output.reasons)),
];

/** An output of the edited model, its name in the original, and the type that it has now where that is another. */
export interface LinkedOutput {
  readonly name: string;
  readonly was: string;
  readonly cast: Dtype | undefined;
}

/** The verdict on each output and on all of them. `doubts` has outputs that the original does not repeat, with the reason. */
export function judgeOutputs(
  linked: readonly LinkedOutput[],
  { differing, judgement }: Compared,
  doubts: ReadonlyMap<string, string>,
  promised: EditProof['promised'],
): Pick<EditProof, 'outcome' | 'found' | 'outputs' | 'reasons'> {
  const outputs = linked.map(({ name, was }): EditProof['outputs'][number] => {
    const difference = differing.get(was);
    if (difference === undefined) return { name, was, outcome: 'pass', equal: 'bits', largestError: 0 };
    const { judged, isRounded } = difference;
    const isOpen = doubts.has(was) || judged?.outcome === 'inconclusive';
    const otherwise = isOpen ? 'inconclusive' : 'fail';
    return {
      name,
      was,
      outcome: isRounded && promised === 'rounding' ? 'pass' : otherwise,
      equal: isRounded ? 'rounding' : null,
      largestError: judged?.statistics.find((statistic) => statistic.name === 'max')?.amount ?? null,
    };
  });
  const found = outputs.map(({ equal }) => equal);
  const weakest = found.includes('rounding') ? 'rounding' : 'bits';
  const isProven = (name: string) => outputs.some(({ was, outcome }) => was === name && outcome === 'pass');
  return {
    outcome: worst(outputs.map(({ outcome }) => outcome)),
    found: found.includes(null) ? null : weakest,
    outputs,
    reasons: [
      ...doubts.values(),
      ...reasonsOf(judgement, (name) => doubts.has(name) || isProven(name)),
      ...outputs.flatMap(({ name, outcome, equal }) =>
        outcome === 'fail' && equal === 'rounding'
          ? [`${name} is equal to rounding only, and these steps promise every bit.`]
          : [],
      ),
    ],
  };
}

/** Compares outputs bit by bit, and where they differ by the rules of `verify` for FP32. */
export const comparing =
  ({ asked, runs, reference, casts, known }: Comparing) =>
  async (expected: ReferenceRun, given: SideRun): Promise<Compared> => {
    const typed = expected.outputs.map(
      (tensors) =>
        new Map([...tensors].map(([name, tensor]) => [name, inType(tensor, casts.get(name))] as const)),
    );
    const isEqual = (name: string) =>
      typed.every((tensors, at) => isSame(tensors.get(name)!, given.outputs[at]!.get(name)));
    const bindings = expected.bindings.filter(
      ({ name }) => casts.has(name) && typed[0]?.has(name) && !isEqual(name),
    );
    if (bindings.length === 0) return { differing: new Map(), judgement: { judged: [], broken: [] } };
    const judge = (noise?: OwnNoise) =>
      judgeRuns(asked, 'fp32', { ...expected, bindings, outputs: typed }, given, { ...known, noise });
    // The original runs on what it was planned for alone.
    const noises = expected === reference ? new OwnNoises(asked, 'fp32', runs, reference, known) : undefined;
    const noise = await noises?.of(judge());
    const judgement = judge(noise);
    const differing = bindings.map(({ name }) => {
      const judged = judgement.judged.find(({ output }) => output.name === name)?.output;
      const unstable = [...(noise?.unstable.get(name)?.keys() ?? [])];
      const within = () => {
        const pairs = (outputs: (at: number) => NamedTensors | undefined) =>
          unstable.map((at) => [typed[at]!.get(name)!, outputs(at)!.get(name)!] as const);
        const all = typed.map((tensors) => float32Values(tensors.get(name)!));
        return isWithinNoise(
          pairs((at) => given.outputs[at]),
          pairs((at) => noises!.moved(at)),
          all,
        );
      };
      const isRounded =
        judged !== undefined &&
        (judged.outcome === 'pass' || (judged.outcome === 'inconclusive' && unstable.length > 0)) &&
        (unstable.length === 0 || within());
      return [name, { judged, isRounded }] as const;
    });
    return { differing: new Map(differing), judgement };
  };

type Pairs = readonly (readonly [Tensor, Tensor])[];

/** Off by no more than twice what moves the original: at most, and on the average, as an error that is everywhere is no rounding. */
function isWithinNoise(edited: Pairs, moved: Pairs, all: readonly Float32Array[]): boolean {
  const [own, noise] = [errorsOf(edited), errorsOf(moved)];
  const most = Math.max(MOST_OF_PEAK * Math.max(...all.map(peakOf)), MOST_STEPS * stepOf(all));
  return own.most <= 2 * noise.most && own.sum <= 2 * noise.sum && own.most <= most;
}

export function inType(tensor: Tensor, dtype: Dtype | undefined): Tensor {
  if (dtype === undefined || dtype === tensor.dtype) return tensor;
  const values = float32Values(tensor);
  return dtype === 'uint8'
    ? integerTensor(dtype, tensor.shape, values)
    : floatTensor(dtype as 'float16' | 'float32', tensor.shape, values);
}

const isSame = (a: Tensor, b: Tensor | undefined): boolean =>
  b !== undefined && a.dtype === b.dtype && isSameShape(a, b) && Buffer.compare(a.bytes, b.bytes) === 0;

/** Of the largest number of an output: a weight that is off by a thousandth is beyond it, where it counts at all; what rounds more is edited without merging. */
const MOST_OF_PEAK = 1e-4;

/** Steps that a value is off by where its own sum rounds it to them. */
const MOST_STEPS = 16;

/** What all numbers are multiples of, at most a step of FP32 at 1: what is left of a larger sum, as a Sigmoid near 0 of its 0.5, is as coarse as that. */
function stepOf(outputs: readonly Float32Array[]): number {
  let step = 2 ** -23;
  for (const values of outputs)
    for (const value of values) while (Number.isFinite(value) && !Number.isInteger(value / step)) step /= 2;
  return step;
}

/** Of pairs of values: the largest difference, and the sum of all. */
function errorsOf(pairs: Pairs) {
  const values = pairs.map(
    (pair) => pair.map((tensor) => float32Values(tensor)) as [Float32Array, Float32Array],
  );
  const errors = values.map(([expected, given]) => expected.map((value, at) => Math.abs(given[at]! - value)));
  const sums = errors.map((each) => each.reduce((sum, error) => sum + error, 0));
  return { most: Math.max(...errors.map(peakOf)), sum: sums.reduce((sum, each) => sum + each, 0) };
}

const peakOf = (values: Float32Array): number =>
  values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
