import type { SampleFile } from '../../engines/calibration/sample-source.js';
import { describedInput } from '../../engines/run/drawn-inputs.js';
import { findUnreached } from '../../engines/run/unreached.js';
import { viewModel } from '../../formats/onnx/model.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import { tensorReader } from '../../formats/tensor/tensor-reader.js';
import { pairOf } from '../predictions/prediction.js';
import { classNamesOf, Predictor } from '../predictions/predictor.js';
import { worstErrorMap } from './error-map.js';
import { verifyHeadline } from './headline.js';
import { judgeRuns, type Outputs, outcomesOf, type RunsJudgement, tensorsOf } from './judge-runs.js';
import { checkRules, type JudgedOutput, type OwnNoise } from './judged.js';
import type { VerifyContext, VerifyRequest } from './options.js';
import { worst } from './outcome.js';
import { codesOfBoth, inArithmetic, precisionBetween, weightsCost } from './precision.js';
import { reachingOutputs } from './reached-by.js';
import { measure, type VerifyPrecision, type VerifyResult, type WorstSample } from './result.js';
import { leftOutOf, type SamplePlan, samplesFrom } from './sample-plan.js';
import {
  headRoomOf,
  mostSamples,
  type ReferenceRun,
  type SampleRange,
  SampleRuns,
  type SideRun,
} from './sample-runs.js';
import { OwnNoises, unrepeatable } from './stability.js';

/** A comparison that failed in its numbers. */
export interface FailedComparison {
  readonly request: VerifyRequest;
  /** Whose tolerances it failed. */
  readonly precision: VerifyPrecision;
  readonly reference: ReferenceRun;
  readonly candidate: SideRun;
  /** The time that it took. */
  readonly ms: number;
}

/** Searches after a failure; undefined where nothing goes on. Throws TF_CANCELLED. */
export type AfterFailure = (
  failed: FailedComparison,
  context: VerifyContext,
) => Promise<VerifyResult['next']>;

/**
 * Compares a candidate, a model or an engine, with a reference model, output by output, on the same seeded inputs, one after the other. Models run on
 * ONNX Runtime on the CPU, with 16-bit values rounded after every step, as a GPU stores them (see prepared-model.ts); engines on their GPU.
 * Throws TF_USAGE, TF_VERIFY_MISMATCH when the models have no output in common or other inputs, and what opening, planning and running throw.
 */
export async function verifyModel(
  request: VerifyRequest,
  { afterFailure, ...context }: VerifyContext & { readonly afterFailure?: AfterFailure } = {},
): Promise<VerifyResult> {
  checkRules(request);
  const runs = new SampleRuns(request, context);
  // Before anything runs: an engine without passport has none.
  const lowest = request.precision ?? precisionBetween(request);
  const started = performance.now();
  const compared = await compareSides(request, runs, lowest, context);
  const { precision, sides, doubts, verdicts } = compared;
  const isMiscomputed = verdicts.numeric === 'fail' && verdicts.contract === 'pass' && doubts.size === 0;
  const ms = performance.now() - started;
  const next = isMiscomputed
    ? await afterFailure?.({ request, precision, ...sides, ms }, context)
    : undefined;
  return resultOf(request, runs.seed, compared, next);
}

/** The outputs of both sides, and what is decided by them. */
interface Compared {
  readonly precision: VerifyPrecision;
  readonly sides: Sides;
  readonly judgement: RunsJudgement;
  /** By output, why its failure is no fault of the candidate. */
  readonly doubts: ReadonlyMap<string, string>;
  readonly verdicts: ReturnType<typeof outcomesOf>;
  readonly unreached: VerifyResult['unreached'];
  readonly headRoom: VerifyResult['headRoom'];
}

/** Runs and judges the first samples, then further ones where these may change the judgement. */
async function compareSides(
  request: VerifyRequest,
  runs: SampleRuns,
  lowest: VerifyPrecision,
  context: VerifyContext,
): Promise<Compared> {
  const both = (range?: SampleRange) => runBoth(request, runs, lowest, context, range);
  let sides = await both();
  const headRoom = headRoomOf(sides.reference.plan, sides.reference, sides.candidate);
  const precision = request.precision ?? inArithmetic(lowest, request.candidate, sides.candidate);
  const known = {
    reaching: reachingOutputs(request.reference),
    codes: codesOfBoth(request),
    weightsCost: await weightsCost(request, precision, runs, sides.reference, context),
  };
  const judge = ({ reference, candidate }: Sides, noise?: OwnNoise) =>
    judgeRuns(request, precision, reference, candidate, { ...known, noise });
  let judgement = judge(sides);
  const range = { from: sides.reference.outputs.length, to: mostSamples(sides, runs.plan) };
  const reached = (count: number) => unreachedIn(request.reference, sides.reference.plan, count);
  let unreached = reached(range.from);
  const isReachable = unreached?.tables.some(({ rows }) => rows <= range.to) === true;
  if (range.from < range.to && mayChange(judgement, isReachable)) {
    sides = followed(sides, await both(range));
    judgement = judge(sides);
    unreached = reached(sides.reference.outputs.length);
  }
  const doubts = await unrepeatable(request, precision, judgement, runs, sides);
  const noise =
    doubts.size === 0
      ? await new OwnNoises(request, precision, runs, sides.reference, known).of(judgement)
      : undefined;
  if (noise !== undefined) judgement = judge(sides, noise);
  const verdicts = outcomesOf(judgement, doubts);
  return { precision, sides, judgement, doubts, verdicts, unreached, headRoom };
}

function resultOf(
  request: VerifyRequest,
  seed: number,
  { precision, sides, judgement, doubts, verdicts, unreached, headRoom: tried }: Compared,
  next: VerifyResult['next'],
): VerifyResult {
  const { reference, candidate } = sides;
  const samples = reference.outputs.length;
  const judged = judgement.judged.map((one) => doubted(one, doubts.get(one.output.name)));
  const outputs = judged.map(({ output }) => output);
  const headRoom = verdicts.numeric === 'fail' ? undefined : tried;
  const isBlown = headRoom?.isFree === true && headRoom.failsAt !== null;
  const from = samplesFrom(reference.plan, samples);
  return {
    schema: 'trtforge.verify/1',
    reference: request.reference,
    candidate: request.candidate,
    referenceBackend: reference.backend,
    candidateBackend: candidate.backend,
    precision,
    roundedValues: candidate.roundedValues,
    seed,
    samples,
    samplesFrom: from,
    unreached,
    leftOut: leftOutOf(request.reference, reference.plan, unreached),
    ...(headRoom && { headRoom }),
    inputs: reference.plan.inputs.map(describedInput),
    outputs,
    ...(request.errorMap === true && {
      errorMap: errorMapOf(outputs, sides),
      worstSamples: worstSamples(request, judged, reference, candidate),
    }),
    verdicts: { ...verdicts, task: null },
    chunks: samples,
    failures: failuresOf(judged),
    drift: null,
    outcome: worst([verdicts.contract, verdicts.numeric, ...(isBlown ? (['inconclusive'] as const) : [])]),
    headline: verifyHeadline({ outputs, samples, samplesFrom: from, unreached }),
    reasons: [
      ...judgement.broken.map(({ name, reason }) => doubts.get(name) ?? reason),
      ...judged.flatMap(({ output }) => output.reasons),
      ...(isBlown ? [headRoom.message] : []),
    ],
    next,
    repeat: null,
  };
}

/** Runs the reference, then the candidate on the same samples: those of a range, by default the first round. */
async function runBoth(
  request: VerifyRequest,
  runs: SampleRuns,
  lowest: VerifyPrecision,
  { emit }: VerifyContext,
  range?: SampleRange,
): Promise<Sides> {
  const report = (side: 'reference' | 'candidate') => (sample: number) => {
    const { from, to } = range ?? { from: 0, to: runs.plan.firstRound };
    const count = to - from;
    const done = (side === 'candidate' ? count : 0) + sample - from;
    const detail = `${side}, sample ${sample + 1} of ${to}`;
    emit?.({ type: 'progress', phase: 'verify', done, total: 2 * count, detail });
  };
  // Once, and where types of less range than FP32 compute.
  const isProbed = range === undefined && formatNamed(lowest) !== undefined;
  const reference = await runs.reference(report('reference'), range, isProbed);
  const candidate = await runs.candidate(request.candidate, reference, report('candidate'), range, isProbed);
  return { reference, candidate };
}

/** Whether more samples may change a judgement: an output is near its limit, or rows of a table are not read yet, and nothing fails clearly. */
const mayChange = ({ judged, broken }: RunsJudgement, isReachable: boolean): boolean =>
  (isReachable || judged.some(({ isClose }) => isClose)) &&
  broken.length === 0 &&
  !judged.some(({ output, isClose }) => output.outcome === 'fail' && !isClose);

function errorMapOf(outputs: VerifyResult['outputs'], { reference, candidate }: Sides) {
  const readersOf = (side: SideRun, name: string) => tensorsOf(side.outputs, name).map(tensorReader);
  return worstErrorMap(outputs, (name) => [readersOf(candidate, name), readersOf(reference, name)]);
}

function unreachedIn(path: string, { tensors }: SamplePlan, samples: number): VerifyResult['unreached'] {
  return viewModel(path, (model) => {
    const { branches, tables } = findUnreached(
      model,
      Array.from({ length: samples }, (_, at) => tensors(at)),
    );
    return { branches: [...branches], tables: [...tables] };
  });
}

interface Sides {
  readonly reference: ReferenceRun;
  readonly candidate: SideRun;
}

/** Further samples, behind those before. */
const followed = (before: Sides, after: Sides): Sides => ({
  reference: {
    ...after.reference,
    outputs: [...before.reference.outputs, ...after.reference.outputs],
    samples: [...before.reference.samples, ...after.reference.samples],
  },
  candidate: { ...after.candidate, outputs: [...before.candidate.outputs, ...after.candidate.outputs] },
});

/** An output that failed by what is no fault of the candidate. It has not passed either. */
const doubted = (judged: JudgedOutput, doubt: string | undefined): JudgedOutput =>
  doubt === undefined
    ? judged
    : {
        output: { ...judged.output, outcome: 'inconclusive', reasons: [doubt] },
        isClose: false,
        failures: [],
        severities: judged.severities,
      };

const failuresOf = (judged: readonly JudgedOutput[]): VerifyResult['failures'] =>
  judged.flatMap(({ output, failures }) =>
    failures.map(({ chunk, kind, maxAbs }) => ({
      chunk,
      tensor: output.name,
      kind,
      maxAbs: measure(maxAbs),
    })),
  );

/** Worst samples that a result shows. */
const MOST_SHOWN = 12;

/**
 * The pictures or recordings of a comparison with the outputs of both sides decoded: those with the most decisions turned first, then those whose error has
 * the largest share of a limit. Undefined where no sample is such a file.
 */
export function worstSamples(
  { reference: model, data }: Pick<VerifyRequest, 'reference' | 'data'>,
  judged: readonly JudgedOutput[],
  reference: ReferenceRun,
  candidate: Outputs,
): VerifyResult['worstSamples'] {
  const { plan } = reference;
  const rows = reference.outputs.flatMap((_, sample) => {
    const [[, input] = []] = plan.tensors(sample);
    return plan.files(sample).map((file, row) => ({ sample, file, row, batch: input?.shape[0] ?? 1 }));
  });
  if (rows.length === 0) return undefined;
  const hints = { names: classNamesOf(model), preprocess: data?.preprocess };
  const decoded = ({ outputs }: Outputs) => {
    const predictor = new Predictor(hints);
    for (const { sample, file, row, batch } of rows)
      predictor.take(rowOf(outputs[sample]!, row, batch), file.picture);
    return predictor.finish().predictions;
  };
  const [theirs, ours] = [decoded(reference), decoded(candidate)];
  const all = rows.map(({ sample, file }, at): WorstSample => {
    const severities = judged.map((one) => one.severities.get(sample) ?? 0);
    return {
      sample,
      ...shownFile(file),
      share: measure(Math.max(0, ...severities)),
      ...pairOf(theirs[at] ?? null, ours[at] ?? null),
    };
  });
  const turned = (one: WorstSample) => one.lost + one.new;
  return all
    .sort((a, b) => turned(b) - turned(a) || order(Number(b.share), Number(a.share)))
    .slice(0, MOST_SHOWN);
}

/** Infinities are equal. */
const order = (a: number, b: number): number => (a === b ? 0 : a - b);

const shownFile = ({ path, sha256, picture }: SampleFile): Pick<WorstSample, 'file' | 'sha256' | 'size'> => ({
  ...{ file: path, sha256 },
  size: picture === undefined ? null : { width: picture.width, height: picture.height },
});

/** The outputs of one row of a batch. */
function rowOf(outputs: NamedTensors, row: number, batch: number): NamedTensors {
  if (batch === 1) return outputs;
  const sliced = ({ dtype, shape, bytes }: Tensor): Tensor => {
    const size = bytes.byteLength / batch;
    return { dtype, shape: [1, ...shape.slice(1)], bytes: bytes.slice(row * size, (row + 1) * size) };
  };
  const ofRows = [...outputs].filter(([, { shape }]) => shape[0] === batch);
  return new Map(ofRows.map(([name, tensor]) => [name, sliced(tensor)]));
}
