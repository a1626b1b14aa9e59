import { readPassport } from '../../engines/identity/passport.js';
import type { Passport } from '../../engines/identity/passport-file.js';
import { isEngineFile } from '../../engines/plan/header.js';
import { runGuessed } from '../../engines/run/guessed-run.js';
import { describedInput, inDtype, planInputs, sampleOf } from '../../engines/run/inputs.js';
import type { BackEnd, OpenedSession, OpenOptions } from '../../engines/runtime/back-end.js';
import { chooseBackEnd, openSession } from '../../engines/runtime/open-session.js';
import type { Binding } from '../../engines/runtime/session.js';
import { engineLoadOptionsOf } from '../../engines/runtime/tensorrt/engine-options.js';
import { TrtforgeError } from '../../errors.js';
import { type EventListener, ignoreEvents } from '../../events.js';
import { openModel } from '../../formats/onnx/model.js';
import { type FormatId, formats } from '../../formats/precision/formats/index.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import { judgeRuns, outcomesOf } from './judge-runs.js';
import { checkRules, type JudgedOutput } from './judged.js';
import { findRepair } from './repair.js';
import { unrepeatable } from './repeatable.js';
import { measure, type VerifyResult, worst } from './result.js';
import type { VerifyRequest } from './tolerance.js';
import { precisionOf, precisionOfRecipe, type VerifyPrecision } from './tolerance.js';

export interface VerifyContext {
  readonly emit?: EventListener;
  readonly signal?: AbortSignal;
  /** Where TensorRT is looked for, when the candidate is an engine; default: this process's. */
  readonly environment?: NodeJS.ProcessEnv;
  /** Default: every back end there is. */
  readonly backEnds?: readonly BackEnd[];
}

const DEFAULT_SAMPLES = 3;

/**
 * Compares a candidate, a model or an engine, with a reference model, output by output, on the same seeded inputs, one after the other. Models run on
 * ONNX Runtime on the CPU, with 16-bit values rounded after every step, as a GPU stores them (see rounded-model.ts); engines on their GPU.
 * Throws TF_USAGE, TF_VERIFY_MISMATCH when the models have no output in common or other inputs, and what opening, planning and running throw.
 */
export async function verifyModel(
  request: VerifyRequest,
  context: VerifyContext = {},
): Promise<VerifyResult> {
  checkRules(request);
  const candidate = candidateSide(request, context);
  const { seed = 0, samples = DEFAULT_SAMPLES } = request;
  const precision = request.precision ?? detectPrecision(request.candidate);
  const started = performance.now();
  const step = (done: number, detail: string) =>
    (context.emit ?? ignoreEvents)({
      type: 'progress',
      phase: 'verify',
      done,
      total: 2 * samples + 1,
      detail,
    });

  const asReference = { threads: request.threads };
  const referenceRun = await runAll(request.reference, asReference, context, async (session, run) => {
    checkToleranceNames(request, session.outputs);
    const model = openModel(request.reference);
    try {
      const { planned: plan, result: outputs } = await runGuessed(
        request.reference,
        (attempt) => {
          const planned = planInputs(model, session.inputs, request, attempt);
          return { planned, inputs: planned };
        },
        (planned) =>
          runSamples(samples, (sample) => {
            step(sample, `reference, sample ${sample + 1} of ${samples}`);
            return run(sampleOf(planned, seed, sample));
          }),
      );
      return { plan, outputs, bindings: session.outputs, inputs: session.inputs };
    } finally {
      model.close();
    }
  });
  const { plan } = referenceRun.found;

  const runCandidate = (path: string, onSample: (sample: number) => void, silent = context) =>
    runAll(path, candidate.options, silent, async (session, run) => {
      checkSameInputs(request, referenceRun.found.inputs, session.inputs);
      const outputs = await runSamples(samples, (sample) => {
        onSample(sample);
        return run(forCandidate(session.inputs, sampleOf(plan, seed, sample)));
      });
      const { inputs, outputs: bindings, seedsRepeat } = session;
      return { outputs, bindings, inputs, seedsRepeat };
    });
  const candidateRun = await runCandidate(request.candidate, (sample) =>
    step(samples + sample, `candidate, sample ${sample + 1} of ${samples}`),
  );

  step(2 * samples, 'comparing');
  const judgement = judgeRuns(request, precision, referenceRun.found, candidateRun.found);
  const runAgain = async (count: number) => {
    const again = await runAll(request.reference, asReference, context, (_, run) =>
      runSamples(count, (sample) => run(sampleOf(plan, seed, sample))),
    );
    return again.found;
  };
  const { seedsRepeat } = candidateRun.found;
  const doubts = await unrepeatable(request, precision, judgement, referenceRun.found, seedsRepeat, runAgain);
  const judged = judgement.judged.map((one) => doubted(one, doubts.get(one.output.name)));
  const verdicts = outcomesOf(judgement, doubts);
  const isMiscomputed = verdicts.numeric === 'fail' && verdicts.contract === 'pass';
  const converted = isMiscomputed && candidate.takes === 'model' && conversionOf(request);
  const next = converted
    ? await findRepair({
        request,
        precision: converted,
        ioTypes: candidateRun.found.inputs.some((input) => formats.some(({ dtype }) => dtype === input.dtype))
          ? 'convert'
          : 'keep',
        ms: performance.now() - started,
        passes: async (path) => {
          const trial = await runCandidate(path, () => {}, { ...context, emit: ignoreEvents });
          const outcomes = outcomesOf(judgeRuns(request, precision, referenceRun.found, trial.found), doubts);
          return outcomes.numeric !== 'fail' && outcomes.contract !== 'fail';
        },
        onTrial: (done, total, detail) =>
          context.emit?.({ type: 'progress', phase: 'verify', done, total, detail }),
        signal: context.signal,
      })
    : undefined;
  return {
    schema: 'trtforge.verify/1',
    reference: request.reference,
    candidate: request.candidate,
    referenceBackend: referenceRun.backend,
    candidateBackend: candidateRun.backend,
    precision,
    roundedValues: candidateRun.roundedValues,
    seed,
    samples,
    inputs: plan.map(describedInput),
    outputs: judged.map(({ output }) => output),
    verdicts: { ...verdicts, task: null },
    chunks: samples,
    failures: failuresOf(judged),
    drift: null,
    outcome: worst([verdicts.contract, verdicts.numeric]),
    reasons: [
      ...judgement.broken.map(({ name, reason }) => doubts.get(name) ?? reason),
      ...judged.flatMap(({ output }) => output.reasons),
    ],
    ...(next === undefined ? {} : { next }),
    repeat: null,
  };
}

/** Before the reference runs: what it must be, what opens the candidate, and with which options; threads where its back end has any. */
function candidateSide(
  request: VerifyRequest,
  { backEnds }: VerifyContext,
): { readonly takes: BackEnd['takes']; readonly options: OpenOptions } {
  const { reference, candidate, device, threads } = request;
  if (isEngineFile(reference)) {
    throw new TrtforgeError('TF_USAGE', `${reference} is an engine; the reference is an ONNX model.`, {
      remedy: `To compare two engines, compare their outputs: trtforge run ${reference} --inputs random -o a.npz, the same of the other one, and trtforge compare.`,
    });
  }
  const options = { ...engineLoadOptionsOf(request), device };
  const { takes, honours } = chooseBackEnd(candidate, options, backEnds);
  return { takes, options: honours.has('threads') ? { ...options, threads } : options };
}

/** A misspelt name would silently leave its output to the usual limits. */
function checkToleranceNames(
  { reference, atol = [], rtol = [] }: VerifyRequest,
  outputs: readonly Binding[],
): void {
  const known = outputs.map(({ name }) => name);
  const wrong = [...atol, ...rtol].find(({ name }) => name !== null && !known.includes(name));
  if (wrong === undefined) return;
  throw new TrtforgeError(
    'TF_USAGE',
    `${reference} has no output ${wrong.name}; it has ${known.join(', ')}.`,
    {
      remedy: 'Give tolerances by the names of the outputs.',
    },
  );
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
        'Say whose tolerances to use: --precision fp32, fp16 or bf16 (precision); or keep FILE.passport.json beside FILE.',
    });
  }
}

/** What computes: a 16-bit type in the model's values, or what the engine's recipe or builder flags ask for. */
function detectPrecision(path: string): VerifyPrecision {
  if (isEngineFile(path)) return precisionOfRecipe(passportOf(path).identity.document.recipe.precision);
  const model = openModel(path);
  try {
    return precisionOf(model.proto);
  } finally {
    model.close();
  }
}

async function runSamples(
  count: number,
  run: (sample: number) => Promise<NamedTensors>,
): Promise<readonly NamedTensors[]> {
  const outputs: NamedTensors[] = [];
  for (let sample = 0; sample < count; sample++) outputs.push(await run(sample));
  return outputs;
}

/** An output that failed by what is no fault of the candidate. It has not passed either. */
const doubted = (judged: JudgedOutput, doubt: string | undefined): JudgedOutput =>
  doubt === undefined
    ? judged
    : { output: { ...judged.output, outcome: 'inconclusive', reasons: [doubt] }, failures: [] };

/** What an FP32 reference was converted to, as far as types tell; false where it was not. */
function conversionOf({ reference, candidate }: VerifyRequest): FormatId | false {
  if (detectPrecision(reference) !== 'fp32') return false;
  const precision = detectPrecision(candidate);
  return precision === 'fp32' ? false : precision;
}

interface ModelRun<T> {
  readonly found: T;
  readonly backend: string;
  readonly roundedValues: number;
}

/** Opens a session, lets `work` run it, and closes it: only one model is in memory at a time. */
async function runAll<T>(
  path: string,
  options: OpenOptions,
  context: VerifyContext,
  work: (session: OpenedSession, run: (inputs: NamedTensors) => Promise<NamedTensors>) => Promise<T>,
): Promise<ModelRun<T>> {
  const { signal } = context;
  const session = await openSession(path, options, context, context.backEnds);
  try {
    const run = (inputs: NamedTensors) => session.run(inputs, { signal });
    const found = await work(session, run);
    const { roundedValues } = await session.facts();
    return { found, backend: session.backend, roundedValues };
  } finally {
    await session.close();
  }
}

function checkSameInputs(
  request: VerifyRequest,
  reference: readonly Binding[],
  candidate: readonly Binding[],
): void {
  const names = (inputs: readonly Binding[]) => inputs.map(({ name }) => name).sort();
  if (names(reference).join('\n') === names(candidate).join('\n')) return;
  throw new TrtforgeError(
    'TF_VERIFY_MISMATCH',
    `${request.candidate} has the inputs ${names(candidate).join(', ')}; ${request.reference} has ${names(reference).join(', ')}.`,
  );
}

/** The same numbers, in the types that the candidate takes. */
function forCandidate(inputs: readonly Binding[], sample: NamedTensors): NamedTensors {
  return new Map(
    inputs.map((input): [string, Tensor] => {
      const tensor = sample.get(input.name);
      if (tensor === undefined)
        throw new TrtforgeError('TF_INTERNAL', `No tensor was planned for ${input.name}.`);
      return [input.name, inDtype(input, tensor, 'the reference')];
    }),
  );
}

const failuresOf = (judged: readonly JudgedOutput[]): VerifyResult['failures'] =>
  judged.flatMap(({ output, failures }) =>
    failures.map(({ chunk, kind, maxAbs }) => ({
      chunk,
      tensor: output.name,
      kind,
      maxAbs: measure(maxAbs),
    })),
  );
