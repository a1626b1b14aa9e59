import { existsSync } from 'node:fs';
import { readPassport } from '../../engines/identity/passport.js';
import { type Passport, passportPath } from '../../engines/identity/passport-file.js';
import { isEngineFile } from '../../engines/plan/header.js';
import { describedInput } from '../../engines/run/inputs.js';
import { findUnreached } from '../../engines/run/unreached.js';
import { TrtforgeError } from '../../errors.js';
import { openModel } from '../../formats/onnx/model.js';
import {
  type FormatId,
  floatFormats,
  formatNamed,
  quantizedFormatNamed,
} from '../../formats/precision/formats/index.js';
import { precisionsOfModelFile } from '../../formats/precision/precisions-of-model.js';
import { tensorReader } from '../../formats/tensor/tensor-reader.js';
import { worstErrorMap } from './error-map.js';
import { failedOutputs, judgeRuns, outcomesOf, tensorsOf } from './judge-runs.js';
import { checkRules, type JudgedOutput } from './judged.js';
import { reachingOutputs } from './reached-by.js';
import { findRepair } from './repair.js';
import { unrepeatable } from './repeatable.js';
import type { VerifyContext, VerifyRequest } from './request.js';
import type { VerifyPrecision } from './result.js';
import { measure, type VerifyResult, worst } from './result.js';
import { type SamplePlan, samplesFrom } from './sample-plan.js';
import { type ReferenceRun, type SampleRange, SampleRuns, type SideRun } from './sample-runs.js';

/** A verification before anything is opened. */
interface DecidedVerify {
  readonly runs: SampleRuns;
  readonly precision: VerifyPrecision;
}

/** Throws TF_USAGE, and what reading the files throws. */
export function decideVerify(request: VerifyRequest, context: VerifyContext): DecidedVerify {
  checkRules(request);
  const runs = new SampleRuns(request, context);
  return { runs, precision: request.precision ?? precisionBetween(request) };
}

/**
 * Compares a candidate, a model or an engine, with a reference model, output by output, on the same seeded inputs, one after the other. Models run on
 * ONNX Runtime on the CPU, with 16-bit values rounded after every step, as a GPU stores them (see rounded-model.ts); engines on their GPU.
 * Throws TF_USAGE, TF_VERIFY_MISMATCH when the models have no output in common or other inputs, and what opening, planning and running throw.
 */
export async function verifyModel(
  request: VerifyRequest,
  context: VerifyContext = {},
): Promise<VerifyResult> {
  const decided = decideVerify(request, context);
  const { runs } = decided;
  const { seed } = runs;
  const started = performance.now();
  const progress = (done: number, total: number, detail: string) =>
    context.emit?.({ type: 'progress', phase: 'verify', done, total, detail });
  const both = async (range?: SampleRange): Promise<Sides> => {
    const report = (side: 'reference' | 'candidate') => (sample: number) => {
      const { from, to } = range ?? { from: 0, to: runs.plan.firstRound };
      const before = (side === 'candidate' ? to - from : 0) - from;
      progress(before + sample, 2 * (to - from), `${side}, sample ${sample + 1} of ${to}`);
    };
    const reference = await runs.reference(report('reference'), range);
    return {
      reference,
      candidate: await runs.candidate(request.candidate, reference, report('candidate'), range),
    };
  };
  let sides = await both();
  const precision = request.precision ?? inArithmetic(decided.precision, request.candidate, sides.candidate);
  const known = { reaching: reachingOutputs(request.reference), codes: codesOfBoth(request) };
  const judge = ({ reference, candidate }: Sides) =>
    judgeRuns(request, precision, reference, candidate, known);
  let judgement = judge(sides);
  const range = { from: sides.reference.outputs.length, to: mostSamples(sides, runs.plan) };
  const isClose = judgement.judged.some((output) => output.isClose);
  if (range.from < range.to && isClose && failedOutputs(judgement).length === 0) {
    sides = followed(sides, await both(range));
    judgement = judge(sides);
  }
  const { reference, candidate } = sides;
  const samples = reference.outputs.length;
  const { seedsRepeat } = candidate;
  const doubts = await unrepeatable(request, precision, judgement, reference, seedsRepeat, (count) =>
    runs.referenceAgain(reference, count),
  );
  const verdicts = outcomesOf(judgement, doubts);
  const isMiscomputed = verdicts.numeric === 'fail' && verdicts.contract === 'pass';
  const converted = isMiscomputed && runs.candidateKind === 'model' && conversionOf(request);
  const next = converted
    ? await findRepair({
        request,
        precision: converted,
        ioTypes: hasTypedInput(candidate) ? 'convert' : 'keep',
        ms: performance.now() - started,
        passes: async (path) => {
          const silent = new SampleRuns(request, { ...context, emit: undefined });
          const trial = await silent.candidate(path, reference, () => {}, { from: 0, to: samples });
          const outcomes = outcomesOf(judgeRuns(request, precision, reference, trial), doubts);
          return outcomes.numeric !== 'fail' && outcomes.contract !== 'fail';
        },
        onTrial: progress,
        signal: context.signal,
      })
    : undefined;
  const judged = judgement.judged.map((one) => doubted(one, doubts.get(one.output.name)));
  const outputs = judged.map(({ output }) => output);
  const readersOf = (side: SideRun, name: string) => tensorsOf(side.outputs, name).map(tensorReader);
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
    samplesFrom: samplesFrom(reference.plan, samples),
    unreached: unreachedIn(request.reference, reference.plan, samples),
    inputs: reference.plan.inputs.map(describedInput),
    outputs,
    ...(request.errorMap === true && {
      errorMap: worstErrorMap(outputs, (name) => [readersOf(candidate, name), readersOf(reference, name)]),
    }),
    verdicts: { ...verdicts, task: null },
    chunks: samples,
    failures: failuresOf(judged),
    drift: null,
    outcome: worst([verdicts.contract, verdicts.numeric]),
    reasons: [
      ...judgement.broken.map(({ name, reason }) => doubts.get(name) ?? reason),
      ...judged.flatMap(({ output }) => output.reasons),
    ],
    next,
    repeat: null,
  };
}

/** FP32 as it was computed: TF32 where an engine was built with it, and where ONNX Runtime has it on. */
function inArithmetic(precision: VerifyPrecision, path: string, { arithmetic }: SideRun): VerifyPrecision {
  const isEngine = isEngineFile(path);
  const isTf32 = isEngine
    ? !isBare(path) && !passportOf(path).identity.document.recipe.flags.includes('no-tf32')
    : arithmetic === 'tf32';
  return precision === 'fp32' && isTf32 ? 'tf32' : precision;
}

function unreachedIn(path: string, { tensors }: SamplePlan, samples: number): VerifyResult['unreached'] {
  const model = openModel(path);
  try {
    const { branches, tables } = findUnreached(
      model,
      Array.from({ length: samples }, (_, at) => tensors(at)),
    );
    return { branches: [...branches], tables: [...tables] };
  } finally {
    model.close();
  }
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

/** Outputs of both sides stay in memory until they are judged. */
const MOST_BYTES = 2 ** 30;

function mostSamples({ reference, candidate }: Sides, { most }: SamplePlan): number {
  const bytes = [...reference.outputs, ...candidate.outputs]
    .flatMap((tensors) => [...tensors.values()])
    .reduce((sum, tensor) => sum + tensor.bytes.byteLength, 0);
  return Math.min(most, Math.floor((MOST_BYTES / Math.max(1, bytes)) * reference.outputs.length));
}

/** Of an engine without passport nobody knows what it computes in. */
function passportOf(path: string): Passport {
  try {
    return readPassport(path);
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code !== 'TF_PASSPORT_MISSING') throw error;
    throw new TrtforgeError(error.code, error.message, {
      cause: error,
      remedy:
        'Pass whose tolerances to use: --precision fp32, fp16 or bf16 (precision); or keep FILE.passport.json beside FILE.',
    });
  }
}

/** What computes: types of values and codes in the model, or what the engine was converted to or built from; the widest tolerance first. */
function precisionsOfFile(path: string): readonly ('fp32' | FormatId)[] {
  if (isEngineFile(path)) {
    const { identity, model } = passportOf(path);
    const converted = formatNamed(identity.document.recipe.precision);
    return converted === undefined ? (model.precisions ?? []) : [converted.id];
  }
  return precisionsOfModelFile(path);
}

/** The precision of the candidate; codes that a reference model has as well make no difference. */
export function precisionBetween({
  reference,
  candidate,
}: Pick<VerifyRequest, 'reference' | 'candidate'>): 'fp32' | FormatId {
  const codes = codesOfBoth({ reference, candidate });
  return precisionsOfFile(candidate).find((id) => id !== codes) ?? 'fp32';
}

/** The format of the codes that both models have. */
function codesOfBoth({ reference, candidate }: Pick<VerifyRequest, 'reference' | 'candidate'>) {
  if (isEngineFile(reference)) return undefined;
  const codes = precisionsOfFile(reference).flatMap((id) => quantizedFormatNamed(id)?.id ?? []);
  return codes.length === 0 || isBare(candidate)
    ? undefined
    : codes.find((id) => precisionsOfFile(candidate).includes(id));
}

/** An engine without passport: which types it computes in is not known. */
const isBare = (path: string): boolean => isEngineFile(path) && !existsSync(passportPath(path));

/** An output that failed by what is no fault of the candidate. It has not passed either. */
const doubted = (judged: JudgedOutput, doubt: string | undefined): JudgedOutput =>
  doubt === undefined
    ? judged
    : {
        output: { ...judged.output, outcome: 'inconclusive', reasons: [doubt] },
        isClose: false,
        failures: [],
      };

/** What an FP32 reference was converted to, as far as types tell; false where it was not, and for codes whose calibration is not known. */
function conversionOf({ reference, candidate, conversion }: VerifyRequest): FormatId | false {
  if (precisionsOfFile(reference).some((id) => id !== 'fp32')) return false;
  const [precision = 'fp32'] = precisionsOfFile(candidate);
  const isUnknown = quantizedFormatNamed(precision) !== undefined && conversion === undefined;
  return precision === 'fp32' || isUnknown ? false : precision;
}

export const hasTypedInput = ({ inputs }: Pick<SideRun, 'inputs'>): boolean =>
  inputs.some((input) => floatFormats.some(({ dtype }) => dtype === input.dtype));

const failuresOf = (judged: readonly JudgedOutput[]): VerifyResult['failures'] =>
  judged.flatMap(({ output, failures }) =>
    failures.map(({ chunk, kind, maxAbs }) => ({
      chunk,
      tensor: output.name,
      kind,
      maxAbs: measure(maxAbs),
    })),
  );
