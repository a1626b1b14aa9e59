import type { NativeHostData } from '../../../addon/native-engine.js';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { TrtforgeError } from '../../../errors.js';
import type { ElementArray, Tensor } from '../../../formats/tensor/tensor.js';
import type { RunOptions } from '../session.js';
import type { DeviceState } from './device-state.js';
import { type EngineCall, elementsOfBuffer } from './engine-call.js';
import type { PreparedCall } from './engine-interface.js';
import type { PendingWork } from './pending-work.js';

const NOTHING: readonly NativeHostData[] = [];

type Elements = Readonly<Record<string, ElementArray>>;

const elements = (tensors: ReadonlyMap<string, Tensor>): Elements =>
  Object.freeze(Object.fromEntries([...tensors].map(([name, tensor]) => [name, elementsOfBuffer(tensor)])));

/** One call, its buffers, nothing in between. */
export class PlainCall implements PreparedCall {
  readonly profile: number;
  readonly cudaGraph: boolean;
  readonly cudaGraphFallback: string | null;
  readonly inputs: Elements;
  readonly outputs: Elements;
  readonly #call: EngineCall;
  readonly #pending: PendingWork;
  #closed = false;

  constructor(call: EngineCall, pending: PendingWork) {
    this.profile = call.profile;
    this.cudaGraph = call.native.graph;
    this.cudaGraphFallback = call.native.graphFallback;
    this.inputs = elements(call.inputs);
    this.outputs = elements(call.outputs);
    this.#call = call;
    this.#pending = pending;
  }

  runSync(): void {
    if (this.#closed) throw closedCall();
    this.#pending.duringSync(() => this.#call.native.runSync(NOTHING, NOTHING));
  }

  async run({ signal }: RunOptions = {}): Promise<void> {
    if (this.#closed) throw closedCall();
    throwIfCancelled(signal, 'running an engine');
    await this.#pending.during(() => this.#call.start(NOTHING, NOTHING, signal));
  }

  input(name: string): Tensor {
    return inputOf(this.#call, name);
  }

  output(name: string): Tensor {
    if (this.#closed) throw closedCall();
    return this.#call.output(name);
  }

  close(): void {
    this.#closed = true;
    this.#call.close();
  }
}

/**
 * Two calls that take turns (see DeviceState). The caller's arrays are the buffers of the first; when it is the second's turn, tensors that are not
 * state are copied between the two on the host.
 */
export class StatefulCall implements PreparedCall {
  readonly profile: number;
  readonly cudaGraph: boolean;
  readonly cudaGraphFallback: string | null;
  readonly inputs: Elements;
  readonly outputs: Elements;
  readonly #calls: readonly [EngineCall, EngineCall];
  readonly #copiesIn: readonly NativeHostData[];
  readonly #copiesOut: readonly NativeHostData[];
  readonly #state: DeviceState;
  readonly #pending: PendingWork;
  #last: EngineCall;
  #closed = false;

  constructor(calls: readonly [EngineCall, EngineCall], state: DeviceState, pending: PendingWork) {
    const [first, second] = calls;
    this.profile = first.profile;
    this.cudaGraph = first.native.graph && second.native.graph;
    this.cudaGraphFallback = first.native.graphFallback ?? second.native.graphFallback;
    this.inputs = elements(first.inputs);
    this.outputs = elements(first.outputs);
    this.#copiesIn = hostData(first.inputs);
    this.#copiesOut = hostData(first.outputs);
    this.#calls = calls;
    this.#last = first;
    this.#state = state;
    this.#pending = pending;
  }

  runSync(): void {
    if (this.#closed) throw closedCall();
    const state = this.#state;
    state.checkIdle();
    const turn = state.side;
    const call = this.#calls[turn];
    this.#pending.duringSync(() => {
      if (turn === 0) call.native.runSync(NOTHING, NOTHING);
      else call.native.runSync(this.#copiesIn, this.#copiesOut);
    });
    this.#last = call;
    state.advance();
  }

  async run({ signal }: RunOptions = {}): Promise<void> {
    if (this.#closed) throw closedCall();
    throwIfCancelled(signal, 'running an engine');
    await this.#pending.during(() => this.#state.inOrder(() => this.#step(signal)));
  }

  async #step(signal: AbortSignal | undefined): Promise<void> {
    const turn = this.#state.side;
    this.#last = this.#calls[turn];
    if (turn === 0) await this.#last.start(NOTHING, NOTHING, signal);
    else await this.#calls[0].keep(() => this.#last.start(this.#copiesIn, this.#copiesOut, signal));
    this.#state.advance();
  }

  input(name: string): Tensor {
    return inputOf(this.#calls[0], name);
  }

  output(name: string): Tensor {
    if (this.#closed) throw closedCall();
    return this.#calls[0].outputs.get(name) ?? this.#last.output(name);
  }

  close(): void {
    this.#closed = true;
    for (const call of this.#calls) call.close();
  }
}

const hostData = (tensors: ReadonlyMap<string, Tensor>): readonly NativeHostData[] =>
  [...tensors].map(([name, { bytes }]) => ({ name, data: bytes }));

function inputOf(call: EngineCall, name: string): Tensor {
  const tensor = call.inputs.get(name);
  if (tensor !== undefined) return tensor;
  throw new TrtforgeError(
    'TF_SESSION_INPUT',
    `There is no buffer of an input ${name} here; there is ${[...call.inputs.keys()].join(', ')}.`,
  );
}

const closedCall = () =>
  new TrtforgeError('TF_SESSION_CLOSED', 'A prepared call was used after it was closed.');
