import type { RunOptions } from '../../../engines/runtime/session.js';
import type {
  EngineSession,
  EngineState,
  PreparedCall,
} from '../../../engines/runtime/tensorrt/engine-interface.js';
import type { CudaGraph } from '../../../engines/runtime/tensorrt/engine-options.js';
import { TrtforgeError } from '../../../errors.js';
import type { StatePair } from '../../../formats/contract/contract.js';
import { canFeed } from '../../../formats/contract/state-pairs.js';
import { copiedTensor, type NamedTensors, type Tensor } from '../../../formats/tensor/tensor.js';
import type { ChunkRunner, Stepped } from './candidate.js';

export interface EngineRunnerOptions {
  /** The state that is fed back. */
  readonly state: readonly Pick<StatePair, 'input' | 'output'>[];
  /** Whether it stays on the device where it can; otherwise it is passed to every step. */
  readonly keepState: boolean;
  readonly cudaGraph?: CudaGraph;
  readonly profile?: number;
}

/** A runner over an engine in this process: one prepared call for each size of chunk, and the state on the GPU where the engine allows it. */
export interface EngineRunner extends ChunkRunner {
  /** The prepared calls, in the order in which their sizes came up. */
  readonly calls: readonly SizedCall[];
  close(): void;
}

/**
 * Runs chunks on an engine with prepared calls. With `state`, tensors fed back stay on the device from step to step and are read back only to be compared
 * with the reference, outside the times. Where the engine cannot keep them there (another shape out than in, values read on the host), they cross
 * the host, and `whyOnHost` is the reason.
 */
export function engineRunner(session: EngineSession, options: EngineRunnerOptions): EngineRunner {
  return new PreparedRunner(session, options);
}

/** A prepared call and what it was prepared for: the inputs, and the state, on the device or not. */
export interface SizedCall {
  readonly key: string;
  readonly call: PreparedCall;
  readonly inputs: NamedTensors;
  /** Zeros of the right shapes where the state is on the device. */
  readonly state: NamedTensors;
}

class PreparedRunner implements EngineRunner {
  readonly backend: string;
  readonly keepsState: boolean;
  readonly whyOnHost: string | null;
  readonly reusesBuffers = true;
  readonly #session: EngineSession;
  readonly #options: EngineRunnerOptions;
  readonly #calls = new Map<string, SizedCall>();
  #state: EngineState | undefined;

  constructor(session: EngineSession, options: EngineRunnerOptions) {
    this.#session = session;
    this.#options = options;
    this.backend = session.backend;
    this.whyOnHost = whyStateCrosses(session, options);
    this.keepsState = this.whyOnHost === null;
  }

  get calls(): readonly SizedCall[] {
    return [...this.#calls.values()];
  }

  async step(inputs: NamedTensors, state: NamedTensors | 'kept', run: RunOptions = {}): Promise<Stepped> {
    const onDevice = this.keepsState ? await this.#deviceState(state) : undefined;
    const passed = onDevice === undefined && state !== 'kept' ? new Map([...inputs, ...state]) : inputs;
    const { call } = await this.#callFor(passed, onDevice, run);
    const begun = performance.now();
    for (const [name, tensor] of passed) {
      if (this.#isHostValue(name)) continue;
      copyInto(name, call.input(name), tensor);
    }
    const copied = performance.now();
    await call.run(run);
    const ran = performance.now();
    const outputs = new Map<string, Tensor>();
    const fedBack = new Map(onDevice?.tensors.map(({ input, output }) => [output, input]));
    for (const { name } of this.#session.outputs) {
      const input = fedBack.get(name);
      outputs.set(name, input === undefined ? call.output(name) : await onDevice!.read(input));
    }
    return { outputs, times: { copyMs: copied - begun, runMs: ran - copied } };
  }

  close(): void {
    for (const { call } of this.#calls.values()) call.close();
    this.#calls.clear();
    this.#state?.close();
    this.#state = undefined;
  }

  #isHostValue(name: string): boolean {
    return this.#session.inputs.find((input) => input.name === name)?.hostValues === true;
  }

  async #deviceState(state: NamedTensors | 'kept'): Promise<EngineState> {
    if (state === 'kept') {
      if (this.#state === undefined) throw new TrtforgeError('TF_INTERNAL', 'There is no state to keep.');
      return this.#state;
    }
    this.#state ??= this.#session.state(
      Object.fromEntries(this.#options.state.map(({ input, output }) => [input, output])),
      Object.fromEntries([...state].map(([name, { shape }]) => [name, shape])),
    );
    for (const { input } of this.#state.tensors) {
      const tensor = state.get(input);
      if (tensor !== undefined) await this.#state.write(input, tensor);
    }
    return this.#state;
  }

  async #callFor(
    inputs: NamedTensors,
    state: EngineState | undefined,
    { signal }: RunOptions,
  ): Promise<SizedCall> {
    const key = [...inputs].map(([name, tensor]) => this.#keyOf(name, tensor)).join(' ');
    const known = this.#calls.get(key);
    if (known !== undefined) return known;
    const shapes = new Map(
      [...inputs].map(([name, tensor]) => [name, this.#isHostValue(name) ? tensor : tensor.shape]),
    );
    const { cudaGraph, profile } = this.#options;
    const call = await this.#session.prepare(shapes, { state, cudaGraph, profile, signal });
    const fedBack = new Set(this.#options.state.map(({ input }) => input));
    const made: SizedCall = {
      key,
      call,
      inputs: copies([...inputs].filter(([name]) => !fedBack.has(name))),
      state: copies([
        ...[...inputs].filter(([name]) => fedBack.has(name)),
        ...(state?.tensors ?? []).map(({ input, ...tensor }) => [input, zeros(tensor)] as const),
      ]),
    };
    this.#calls.set(key, made);
    return made;
  }

  /** Host values are part of what a call is prepared for; of the others only the shape is. */
  #keyOf(name: string, { shape, bytes }: Tensor): string {
    const values = this.#isHostValue(name) ? `=${Buffer.from(bytes).toString('hex')}` : '';
    return `${name}[${shape.join('x')}]${values}`;
  }
}

/** Copies tensors: those read from a reference lie in memory that is used again. */
const copies = (tensors: readonly (readonly [string, Tensor])[]): NamedTensors =>
  new Map(tensors.map(([name, tensor]) => [name, copiedTensor(tensor)]));

const zeros = ({
  dtype,
  shape,
  bytes,
}: Pick<Tensor, 'dtype' | 'shape'> & { readonly bytes: number }): Tensor => ({
  dtype,
  shape,
  bytes: new Uint8Array(bytes),
});

function copyInto(name: string, target: Tensor, source: Tensor): void {
  if (target.dtype !== source.dtype || target.bytes.length !== source.bytes.length) {
    throw new TrtforgeError(
      'TF_SESSION_INPUT',
      `${name} is ${source.dtype} of ${source.bytes.length} bytes; the engine takes ${target.dtype} of ${target.bytes.length}.`,
    );
  }
  target.bytes.set(source.bytes);
}

/** The reason why the state cannot stay on the device; null where there is none. */
function whyStateCrosses(
  { inputs, outputs }: Pick<EngineSession, 'inputs' | 'outputs'>,
  { state, keepState }: EngineRunnerOptions,
): string | null {
  if (!keepState) return 'the state is passed to every step';
  if (state.length === 0) return 'nothing is fed back';
  for (const { input, output } of state) {
    const into = inputs.find(({ name }) => name === input);
    const from = outputs.find(({ name }) => name === output);
    if (into === undefined || from === undefined) return `the engine has no ${into ? output : input}`;
    if (into.hostValues) return `the values of ${input} are read on the host`;
    if (into.dtype !== from.dtype) return `${output} is ${from.dtype} and ${input} is ${into.dtype}`;
    if (!canFeed(from, into)) {
      const text = (shape: readonly (number | null)[]) => `[${shape.map((size) => size ?? '?').join(', ')}]`;
      return `${output} is ${text(from.shape)} and ${input} is ${text(into.shape)}, so it must be filled up or cut between steps`;
    }
  }
  return null;
}
