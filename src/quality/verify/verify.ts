import { readPassport } from '../../engines/identity/passport.js';
import type { Passport } from '../../engines/identity/passport-file.js';
import { isEngineFile } from '../../engines/plan/header.js';
import { describedInput } from '../../engines/run/inputs.js';
import { TrtforgeError } from '../../errors.js';
import {
  type FormatId,
  floatFormats,
  formatNamed,
  quantizedFormatNamed,
} from '../../formats/precision/formats/index.js';
import { precisionsOfModelFile } from '../../formats/precision/precisions-of-model.js';
import { tensorReader } from '../../formats/tensor/tensor-reader.js';
import { worstErrorMap } from './error-map.js';
import { judgeRuns, outcomesOf, tensorsOf } from './judge-runs.js';
import { checkRules, type JudgedOutput } from './judged.js';
import { findRepair } from './repair.js';
import { unrepeatable } from './repeatable.js';
import type { VerifyContext, VerifyRequest } from './request.js';
import { measure, type VerifyResult, worst } from './result.js';
import { samplesFrom } from './sample-plan.js';
import { SampleRuns, type SideRun } from './sample-runs.js';
import type { VerifyPrecision } from './tolerance.js';

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
  const { runs, precision } = decideVerify(request, context);
  const { seed } = runs;
  const started = performance.now();
  const progress = (done: number, detail: string) =>
    context.emit?.({
      type: 'progress',
      phase: 'verify',
      done,
      total: 2 * runs.plan.firstRound + 1,
      detail,
    });

  const reference = await runs.reference((sample) =>
    progress(sample, `reference, sample ${sample + 1} of ${runs.plan.firstRound}`),
  );
  const samples = reference.outputs.length;
  const candidate = await runs.candidate(request.candidate, reference, (sample) =>
    progress(samples + sample, `candidate, sample ${sample + 1} of ${samples}`),
  );
  progress(2 * samples, 'comparing');
  const judgement = judgeRuns(request, precision, reference, candidate);
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
          const trial = await silent.candidate(path, reference, () => {});
          const outcomes = outcomesOf(judgeRuns(request, precision, reference, trial), doubts);
          return outcomes.numeric !== 'fail' && outcomes.contract !== 'fail';
        },
        onTrial: (done, total, detail) =>
          context.emit?.({ type: 'progress', phase: 'verify', done, total, detail }),
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
function precisionsOfFile(path: string): readonly VerifyPrecision[] {
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
}: Pick<VerifyRequest, 'reference' | 'candidate'>): VerifyPrecision {
  const inBoth = (id: VerifyPrecision) =>
    quantizedFormatNamed(id) !== undefined &&
    !isEngineFile(reference) &&
    precisionsOfFile(reference).includes(id);
  return precisionsOfFile(candidate).find((id) => !inBoth(id)) ?? 'fp32';
}

/** An output that failed by what is no fault of the candidate. It has not passed either. */
const doubted = (judged: JudgedOutput, doubt: string | undefined): JudgedOutput =>
  doubt === undefined
    ? judged
    : { output: { ...judged.output, outcome: 'inconclusive', reasons: [doubt] }, failures: [] };

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
