import type { Binding, RunOptions, Session } from '../../../engines/runtime/session.js';
import type { NamedTensors } from '../../../formats/tensor/tensor.js';
import type { StreamPlan } from './plan.js';
import type { ParityResult } from './result.js';

/** A candidate that is open: its bindings, what is known of it, and how it is run. */
export interface OpenCandidate {
  readonly backend: string;
  readonly inputs: readonly Binding[];
  readonly outputs: readonly Binding[];
  /** Whether float32 products are computed in full. */
  readonly isFullFloat32: boolean;
  /** Content digest of the model behind it; null when unknown. */
  readonly modelDigest: string | null;
  /** Of an engine with a passport. */
  readonly built: ParityResult['built'];
  runner(plan: StreamPlan): ChunkRunner;
  /** The measurements that are possible when the stream is over. */
  afterwards?(plan: StreamPlan): Promise<{
    readonly gpuTimes?: ParityResult['gpuTimes'];
    readonly memory?: ParityResult['memory'];
    readonly profiles?: ParityResult['profiles'];
    readonly warnings?: readonly string[];
  }>;
}

/** Host milliseconds of one step. */
export interface StepTimes {
  /** Inputs into buffers the runtime owns, and outputs out of them. 0 where the runtime is handed the tensors themselves. */
  readonly copyMs: number;
  /** From the call to its answer: on a GPU the transfers of what is not state, and the computing. */
  readonly runMs: number;
}

export interface Stepped {
  /** Every output of the model. Buffers may be the runner's own: valid until the next step. */
  readonly outputs: NamedTensors;
  readonly times: StepTimes;
}

/** Runs a stream chunk by chunk. */
export interface ChunkRunner {
  readonly backend: string;
  /** Whether a step can start from what the one before left on the device; otherwise its state must be passed. */
  readonly keepsState: boolean;
  /** Why the state does not stay on a device; null where it does. */
  readonly whyOnHost: string | null;
  /** Whether outputs lie in buffers that the next step writes. */
  readonly reusesBuffers: boolean;
  /** One step. `state` holds the tensors that are fed back, or is `kept`: what the last step left. */
  step(inputs: NamedTensors, state: NamedTensors | 'kept', options?: RunOptions): Promise<Stepped>;
}

/** A runner over any session: the state crosses the host in every step. */
export function sessionRunner(session: Session): ChunkRunner {
  return {
    backend: session.backend,
    keepsState: false,
    whyOnHost: 'this session takes and returns every tensor on the host',
    reusesBuffers: false,
    step: async (inputs, state, options) => {
      const all = state === 'kept' ? inputs : new Map([...inputs, ...state]);
      const started = performance.now();
      const outputs = await session.run(all, options);
      return { outputs, times: { copyMs: 0, runMs: performance.now() - started } };
    },
  };
}
