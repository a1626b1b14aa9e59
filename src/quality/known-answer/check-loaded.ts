import { sessionOf } from '../../engines/runtime/tensorrt/engine-session.js';
import type { LoadedEngine } from '../../engines/runtime/tensorrt/load-engine.js';
import type { KnownAnswer } from './answer.js';
import { bareAnswer } from './bare-answer.js';
import { type Checked, runChecks } from './run-checks.js';
import { EngineRunner } from './runner.js';

export interface LoadedCheckOptions {
  /** Undefined: an engine that has none is compared with itself alone. */
  readonly answer: KnownAnswer | undefined;
  readonly repeat?: number;
  readonly signal?: AbortSignal;
}

/** What the checks of an engine found, and where. */
export interface Observed extends Checked {
  readonly gpu: { readonly name: string; readonly uuid: string };
  readonly driver: string | null;
  readonly library: string;
  readonly ms: number;
}

/** Checks an engine that is loaded, in this process; it stays open. Throws TF_CANCELLED. */
export async function checkLoaded(
  engine: LoadedEngine,
  { answer, repeat, signal }: LoadedCheckOptions,
): Promise<Observed> {
  const { gpu, addon, toolchain } = engine;
  const started = performance.now();
  // Closing a session closes its engine, which is the caller's.
  await using session = sessionOf({ ...engine, close: async () => {} }, {});
  await using runner = new EngineRunner(session, signal);
  const checked = await runChecks(runner, answer ?? bareAnswer(session.inputs), repeat);
  return {
    ...checked,
    gpu: { name: gpu.name, uuid: gpu.uuid },
    driver: addon.gpus().driverVersion,
    library: `${toolchain.product} ${toolchain.version}`,
    ms: performance.now() - started,
  };
}
