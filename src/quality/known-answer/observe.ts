import { type OptionsOf, valuesOf } from '../../base/options/option.js';
import { runSupervised } from '../../base/process/supervise.js';
import type { OpenContext } from '../../engines/runtime/back-end.js';
import { loadOptions } from '../../engines/runtime/tensorrt/engine-options.js';
import { environmentFor } from '../../engines/runtime/tensorrt/supervised-engine.js';
import { ignoreEvents } from '../../events.js';
import type { KnownAnswer } from './answer.js';
import type { Observed } from './check-loaded.js';
import type { Proof } from './proof.js';

export interface CheckOptions extends OptionsOf<typeof loadOptions>, OpenContext {
  /** Ordinal among the visible GPUs; default 0. */
  readonly device?: number;
  /** Number of runs of the same inputs; default 3. */
  readonly repeat?: number;
}

/** The request that `check-child` is sent. */
export interface CheckRequest extends Omit<CheckOptions, 'emit' | 'signal'> {
  readonly planPath: string;
  readonly answer: KnownAnswer | undefined;
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
  const loading = valuesOf(loadOptions, options);
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
