import { protectingInputs } from '../../base/files/user-files.js';
import { TrtforgeError } from '../../errors.js';
import { type EventListener, ignoreEvents, inPhase } from '../../events.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import { isEngineFile } from '../plan/header.js';
import { placementWarnings } from '../runtime/onnxruntime/ort-placement.js';
import { openOrtSession } from '../runtime/onnxruntime/ort-session.js';
import { chooseProfile } from '../runtime/tensorrt/choose-profile.js';
import { callShapeOf } from '../runtime/tensorrt/engine-inputs.js';
import { refuseEngineWishes } from '../runtime/tensorrt/engine-options.js';
import { openWishedEngine } from '../runtime/tensorrt/supervised-engine.js';
import { checkSources, inputsInPassport } from './check-sources.js';
import { runGuessed } from './guessed-run.js';
import { describedInput } from './inputs.js';
import { type GatheredInput, gatherForModel, gatherInputs, shapesOf, tensorsOf } from './run-inputs.js';
import { checkPlace, writeOutputs } from './run-outputs.js';
import { repeatRun } from './run-repeat.js';
import type { RunRequest } from './run-request.js';
import type { RunResult } from './run-result.js';

export interface RunContext {
  readonly emit?: EventListener;
  readonly signal?: AbortSignal;
  readonly environment?: NodeJS.ProcessEnv;
}

/** What running gave, before it is written down. */
interface Ran {
  readonly kind: RunResult['kind'];
  readonly backend: string;
  readonly profile: number | null;
  readonly cudaGraph: RunResult['cudaGraph'];
  readonly weightBudgetBytes?: number;
  readonly inputs: readonly GatheredInput[];
  readonly outputs: NamedTensors;
  readonly openMs: number;
  readonly ms: readonly number[];
}

/**
 * Runs a TensorRT engine, or an ONNX model on ONNX Runtime, once or several times, each in a process of its own, and writes its outputs.
 * What is wrong with the inputs whatever machine this is comes first. Throws TF_USAGE for wishes that the kind of file cannot honour, and what opening, reading inputs, running and writing throw.
 */
export async function runFile(request: RunRequest, context: RunContext = {}): Promise<RunResult> {
  const given = request.sources.map((source) => (source.kind === 'random' ? undefined : source.path));
  return protectingInputs([request.file, ...given], () => run(request, context));
}

async function run(request: RunRequest, context: RunContext): Promise<RunResult> {
  const warnings: string[] = [];
  const emit: EventListener = (event) => {
    if (event.type === 'log' && event.severity === 'warning' && event.source === 'trtforge')
      warnings.push(event.message);
    (context.emit ?? ignoreEvents)(event);
  };
  const isEngine = isEngineFile(request.file);
  checkWishes(request, isEngine);
  checkPlace(request.output);
  checkIterations(request);
  checkSources(request, isEngine ? inputsInPassport(request.file) : null);
  const ran: Ran = await (isEngine ? runEngine : runModel)(request, { ...context, emit });
  return {
    schema: 'trtforge.run/1',
    file: request.file,
    kind: ran.kind,
    backend: ran.backend,
    profile: ran.profile,
    cudaGraph: ran.cudaGraph,
    ...(ran.weightBudgetBytes === undefined ? {} : { weightBudgetBytes: ran.weightBudgetBytes }),
    seed: request.seed ?? 0,
    inputs: ran.inputs.map(({ tensor, ...input }) =>
      describedInput({ ...input, dtype: tensor.dtype, shape: tensor.shape }),
    ),
    outputs: writeOutputs(ran.outputs, request.output),
    times: timesOf(ran),
    warnings,
    repeat: repeatRun(request),
  };
}

async function runEngine(request: RunRequest, context: RunContext & { emit: EventListener }): Promise<Ran> {
  const { emit, signal } = context;
  const started = performance.now();
  const session = await inPhase('load', emit, () => openWishedEngine(request.file, request, context));
  try {
    const inputs = gatherInputs(session.inputs, request);
    const tensors = tensorsOf(inputs);
    const profile = chooseProfile(session.inputs, callShapeOf(session.inputs, tensors), request.profile);
    const openMs = performance.now() - started;
    const { outputs, ms, cudaGraphRefusals } = await inPhase('run', emit, () =>
      session.runRepeatedly(tensors, {
        profile,
        iterations: request.iterations ?? 1,
        ...(signal === undefined ? {} : { signal }),
      }),
    );
    const cudaGraph = { asked: request.cudaGraph ?? ('auto' as const), refusals: [...cudaGraphRefusals] };
    const { streamableWeightsBytes, weightBudgetBytes } = session.facts.engine;
    const weights = streamableWeightsBytes > 0 ? { weightBudgetBytes } : {};
    const { backend } = session;
    return { kind: 'engine', backend, profile, cudaGraph, ...weights, inputs, outputs, openMs, ms };
  } finally {
    await session.close();
  }
}

async function runModel(request: RunRequest, { emit, signal }: RunContext & { emit: EventListener }) {
  const { threads, provider, device, iterations = 1 } = request;
  const cancel = signal === undefined ? {} : { signal };
  const started = performance.now();
  const session = await inPhase('load', emit, () =>
    openOrtSession(request.file, { emit, signal, threads, provider, device }),
  );
  try {
    const plan = (attempt: number) => {
      const planned = gatherForModel(session.inputs, request, attempt);
      return { planned, inputs: shapesOf(planned) };
    };
    let openMs = 0;
    const { planned: inputs, result } = await inPhase('run', emit, () =>
      runGuessed(request.file, plan, async (planned) => {
        const tensors = tensorsOf(planned);
        openMs ||= performance.now() - started;
        const times: number[] = [];
        let last: NamedTensors = new Map();
        for (let iteration = 0; iteration < iterations; iteration++) {
          const begun = performance.now();
          last = await session.run(tensors, cancel);
          times.push(performance.now() - begun);
        }
        return { outputs: last, ms: times };
      }),
    );
    const { outputs, ms } = result;
    for (const message of placementWarnings(await session.placement()))
      emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
    const { backend } = session;
    return { kind: 'model', backend, profile: null, cudaGraph: null, inputs, outputs, openMs, ms } as const;
  } finally {
    await session.close();
  }
}

function checkIterations({ iterations = 1 }: RunRequest): void {
  if (Number.isSafeInteger(iterations) && iterations >= 1) return;
  throw new TrtforgeError(
    'TF_USAGE',
    `${iterations} iterations cannot be run: it takes a whole number from 1.`,
  );
}

/** Options that the kind of file cannot honour are refused, not dropped. */
function checkWishes(request: RunRequest, isEngine: boolean): void {
  if (!isEngine) refuseEngineWishes(request.file, request);
  const modelOnly = { '--threads': request.threads, '--provider': request.provider };
  const wishes = isEngine ? modelOnly : { '--profile': request.profile };
  const wrong = Object.entries(wishes).find(([, wish]) => wish !== undefined);
  if (wrong === undefined) return;
  throw new TrtforgeError(
    'TF_USAGE',
    isEngine
      ? `${wrong[0]} is for ONNX models; ${request.file} is an engine.`
      : `${wrong[0]} is for engines; ${request.file} is a model, which runs on ONNX Runtime.`,
    { remedy: 'Leave the option out.' },
  );
}

function timesOf({ openMs, ms }: Ran): RunResult['times'] {
  const [first = 0, ...rest] = ms;
  const sorted = rest.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const median =
    sorted.length % 2 === 1 ? sorted[middle]! : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
  return {
    openMs,
    iterations: ms.length,
    first,
    rest:
      sorted.length === 0
        ? null
        : {
            min: sorted[0]!,
            median,
            mean: rest.reduce((sum, each) => sum + each, 0) / rest.length,
            max: sorted.at(-1)!,
          },
  };
}
