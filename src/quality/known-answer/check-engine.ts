import { runSupervised } from '../../base/process/supervise.js';
import {
  type EngineLoadOptions,
  engineLoadOptionsOf,
} from '../../engines/runtime/tensorrt/engine-options.js';
import { environmentFor } from '../../engines/runtime/tensorrt/supervised-engine.js';
import { type EventListener, ignoreEvents } from '../../events.js';
import type { KnownAnswer } from './answer.js';
import type { Observed } from './check-loaded.js';
import { rememberCheck } from './checked.js';
import { type Proof, proofOf, resultOf } from './proof.js';
import type { EngineCheck } from './result.js';

export interface CheckOptions extends Omit<EngineLoadOptions, 'cudaGraph'> {
  /** Ordinal among the visible GPUs; default 0. */
  readonly device?: number;
  /** Instead of what the passport or the file beside the plan has. */
  readonly answer?: KnownAnswer;
  /** How often the same inputs run; default 3. */
  readonly repeat?: number;
  readonly emit?: EventListener;
  readonly signal?: AbortSignal;
  readonly environment?: NodeJS.ProcessEnv;
}

/** What `check-child` is sent. */
export interface CheckRequest extends Omit<CheckOptions, 'emit' | 'signal'> {
  readonly planPath: string;
}

const childModule = new URL('../../../dist/quality/known-answer/check-child.js', import.meta.url);

/**
 * Checks an engine in a child process, since a library may end the process that loads a file it does not like. Throws what loading an engine throws
 * (TF_GPU_UNAVAILABLE on a machine without a GPU), TF_CANCELLED, TF_CHILD_DIED.
 */
export async function observeEngine(
  { plan, answer }: Proof,
  { emit = ignoreEvents, signal, environment = process.env, repeat, device = 0, ...options }: CheckOptions,
): Promise<Observed> {
  const { cudaGraph: _, ...loading } = engineLoadOptionsOf(options);
  const planPath = plan.path;
  const request: CheckRequest = {
    planPath,
    ...loading,
    device,
    answer,
    repeat,
    environment: { ...environment },
  };
  const env = await environmentFor(planPath, options, environment);
  return (await runSupervised(childModule, request, {
    emit,
    signal,
    env,
    doing: `checking ${planPath}`,
  })) as Observed;
}

/** The same with what follows from it, which is remembered for this GPU, driver and library. Throws TF_PASSPORT_INVALID as well. */
export async function checkEngine(
  planPath: string,
  options: CheckOptions = {},
): Promise<{ readonly result: EngineCheck; readonly observed: Observed }> {
  const proof = proofOf(planPath, options.answer);
  const observed = await observeEngine(proof, options);
  const result = resultOf(proof, observed);
  rememberCheck(result, options.environment ?? process.env);
  return { result, observed };
}
