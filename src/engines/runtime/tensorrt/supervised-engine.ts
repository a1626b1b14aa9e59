import { valuesOf } from '../../../base/options/option.js';
import { runSupervised, type SupervisedSession, startSupervised } from '../../../base/process/supervise.js';
import type { ByName, NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import { withLibraries } from '../../../tensorrt/toolchain/environment.js';
import { readPlanHeader } from '../../plan/header.js';
import type { RepeatedRun } from '../back-end.js';
import { mapOf } from '../check-inputs.js';
import type { RunOptions, Session } from '../session.js';
import type { EngineBinding, SessionFacts } from './engine-interface.js';
import { libraryOfPlan } from './load-engine.js';
import { type EngineSessionOptions, loadOptions } from './options.js';
import {
  type EngineChildCall,
  type EngineOpened,
  type EngineRan,
  type Exchange,
  filesOf,
  openExchange,
  TensorReceiver,
  TensorSender,
} from './tensor-exchange.js';

const CHILD = new URL('../../../../dist/engines/runtime/tensorrt/engine-child.js', import.meta.url);

/** Timed in the process that runs the engine. */
interface EngineRuns extends RepeatedRun {
  readonly cudaGraphFallbacks: readonly string[];
}

/** An engine in a process of its own: what aborts there is an error here (TF_CHILD_DIED with the signal and the last lines). */
export interface SupervisedEngine extends Session {
  readonly inputs: readonly EngineBinding[];
  readonly outputs: readonly EngineBinding[];
  readonly facts: SessionFacts;
  /** Of the process that runs it: `SupervisedSession.peakBytes`. */
  peakBytes(): number | null;
  run(inputs: ByName<Tensor>, options?: RunOptions & { readonly profile?: number }): Promise<NamedTensors>;
  /** Runs the same inputs several times; returns the last outputs and every time. */
  runRepeatedly(
    inputs: NamedTensors,
    options: RunOptions & { readonly profile?: number; readonly iterations: number },
  ): Promise<EngineRuns>;
}

/** Loads an engine in a child process. Throws what `openEngineSession` throws, and TF_CHILD_DIED. */
export async function openSupervisedEngine(
  planPath: string,
  { emit, signal, environment = process.env, ...options }: Omit<EngineSessionOptions, 'contexts'> = {},
): Promise<SupervisedEngine> {
  const exchange = openExchange();
  const child = startSupervised(CHILD, {
    emit,
    doing: `running ${planPath}`,
    graceMs: 5000,
    env: await environmentFor(planPath, options, environment),
  });
  try {
    const request: EngineChildCall = { kind: 'open', planPath, options, folders: exchange.folders };
    const opened = (await child.request(request, signal)) as EngineOpened;
    return sessionOver(child, exchange, opened);
  } catch (error) {
    await child.close();
    exchange.remove();
    throw error;
  }
}

/**
 * Has a child process load an engine and answer about it, since a library may end the process that loads a file it does not like. The child gets `LoadOptions`,
 * `planPath` and what is asked `more`. Throws what loading throws, TF_CANCELLED, TF_CHILD_DIED.
 */
export async function askEngine(
  child: URL,
  planPath: string,
  { emit, signal, environment = process.env, device = 0, ...options }: EngineSessionOptions,
  doing: string,
  more: object = {},
): Promise<unknown> {
  const env = await environmentFor(planPath, options, environment);
  const loading = { ...valuesOf(loadOptions, options), device, environment: { ...environment } };
  return runSupervised(child, { planPath, ...loading, ...more }, { emit, signal, env, doing });
}

/**
 * TensorRT loads further libraries by bare name, so the loader must know its folder before the process starts. Where none is found the child reports why,
 * after it has looked for what matters more: an intact plan and a GPU.
 */
export async function environmentFor(
  planPath: string,
  { toolchain }: Pick<EngineSessionOptions, 'toolchain'>,
  environment: NodeJS.ProcessEnv,
): Promise<NodeJS.ProcessEnv> {
  try {
    const plan = { path: planPath, header: readPlanHeader(planPath), passport: null };
    return withLibraries(await libraryOfPlan(plan, { toolchain, environment }), environment);
  } catch {
    return environment;
  }
}

function sessionOver(child: SupervisedSession, exchange: Exchange, opened: EngineOpened): SupervisedEngine {
  const sender = new TensorSender(exchange.folders);
  const receiver = new TensorReceiver({ reuse: false });
  let read: readonly string[] = [];
  const runRepeatedly: SupervisedEngine['runRepeatedly'] = async (tensors, options) => {
    const { profile, iterations, signal } = options;
    const inputs = sender.send(tensors);
    const request: EngineChildCall = { kind: 'run', inputs, read, profile, iterations };
    read = [];
    try {
      const ran = (await child.request(request, signal)) as EngineRan;
      const outputs = receiver.receive(ran.outputs);
      read = [...read, ...filesOf(ran.outputs)];
      return { ...ran, outputs };
    } finally {
      // Inputs of a run that was cancelled while it waited are still to be read.
      if (signal?.aborted !== true) sender.release(filesOf(inputs));
    }
  };
  const close = async (): Promise<void> => {
    await child.close();
    sender.close();
    receiver.close();
    exchange.remove();
  };
  return {
    ...opened,
    runRepeatedly,
    peakBytes: () => child.peakBytes(),
    run: async (passed, options = {}) =>
      (await runRepeatedly(mapOf('inputs', passed), { ...options, iterations: 1 })).outputs,
    close,
    [Symbol.asyncDispose]: close,
  };
}
