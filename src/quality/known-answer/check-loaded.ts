import type { EngineBinding } from '../../engines/runtime/tensorrt/engine-interface.js';
import { sessionOf } from '../../engines/runtime/tensorrt/engine-session.js';
import type { LoadedEngine } from '../../engines/runtime/tensorrt/load-engine.js';
import { dtypes } from '../../formats/tensor/dtype.js';
import type { KnownAnswer } from './answer.js';
import { type MadeInput, ofEngine } from './made-inputs.js';
import { type Checked, EngineRunner, runChecks } from './run-checks.js';

export interface LoadedCheckOptions {
  /** Undefined: an engine that has none is compared with itself alone. */
  readonly answer: KnownAnswer | undefined;
  readonly repeat?: number;
  readonly signal?: AbortSignal;
}

/** The findings of an engine's checks, and their place. */
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
  const checked = await runChecks(runner, ofEngine(answer ?? bareAnswer(session.inputs), session), repeat);
  return {
    ...checked,
    gpu: { name: gpu.name, uuid: gpu.uuid },
    driver: addon.gpus().driverVersion,
    library: `${toolchain.product} ${toolchain.version}`,
    ms: performance.now() - started,
  };
}

/** Inputs for an engine that has no known answer, at the optimum of its first profile: what it gives can only be compared with itself. */
function bareAnswer(inputs: readonly EngineBinding[]): KnownAnswer {
  const hasProfiles = inputs.some(({ profiles }) => profiles.length > 0);
  const made = inputs.map(({ name, dtype, shape, hostValues, profiles: [range] }): MadeInput => {
    if (hostValues)
      return {
        name,
        dtype,
        shape: [...shape] as number[],
        spread: { kind: 'values', values: [...range!.opt] },
      };
    // Small integers are indices of any table.
    const spread =
      dtypes[dtype].kind === 'float'
        ? ({ kind: 'normal', mean: 0, deviation: 1 } as const)
        : ({ kind: 'uniform', low: 0, high: 1 } as const);
    return { name, dtype, shape: [...(range?.opt ?? (shape as number[]))], spread };
  });
  const one = { name: hasProfiles ? 'profile 0, opt' : 'fixed shapes', profile: hasProfiles ? 0 : null };
  return {
    schema: 'trtforge.known-answer/1',
    reference: '',
    precision: 'tf32',
    seed: 0,
    generator: 1,
    cases: [{ ...one, steps: 1, inputs: made, outputs: [] }],
    rows: null,
    state: {},
    left: [],
    builtOn: null,
  };
}
