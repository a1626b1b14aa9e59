import { TrtforgeError } from '../errors.js';
import type { CompiledRuntime, Handle, PreparedCall } from './compiled-runtime.js';
import type { NativeCall, NativeHostData, NativeOutput, SmallTensors } from './native-engine.js';
import { type NativeJob, rethrown, toTrtforgeError } from './native-job.js';

/** Slot numbers and views in turns, as the compiled module takes them. */
type SlotViews = (number | ArrayBufferView)[];

const nothing: SlotViews = [];
const finished = (): void => {};

/** A prepared call. What a run needs of JavaScript is decided here once, so that a run over pinned buffers is a single call of the module. */
export class CompiledCall implements NativeCall {
  readonly graph: boolean;
  readonly graphFallback: string | null;
  readonly smallTensors: SmallTensors;
  readonly outputs: readonly NativeOutput[];
  readonly #compiled: CompiledRuntime;
  readonly #handle: Handle;
  /** Held so that nothing above a call is collected before it. */
  readonly #owner: object;
  readonly #inputs = new Map<string, number>();
  readonly #outputs = new Map<string, number>();
  readonly #pinned: (ArrayBuffer | undefined)[];
  #closed = false;
  #runs = 0;

  constructor(compiled: CompiledRuntime, owner: object, prepared: PreparedCall) {
    this.graph = prepared.graph;
    this.graphFallback = prepared.graphRefusal;
    this.smallTensors = prepared.smallTensors;
    this.outputs = prepared.outputs;
    this.#compiled = compiled;
    this.#handle = prepared.handle;
    this.#owner = owner;
    this.#pinned = prepared.slots.map(() => undefined);
    for (const [slot, { name, input }] of prepared.slots.entries())
      (input ? this.#inputs : this.#outputs).set(name, slot);
  }

  buffer(name: string): ArrayBuffer {
    const slot = this.#inputs.get(name) ?? this.#outputs.get(name);
    if (slot === undefined) throw unknown(name, [...this.#inputs.keys(), ...this.#outputs.keys()]);
    const buffer = rethrown(() => this.#compiled.callBuffer(this.#handle, slot));
    this.#pinned[slot] = buffer;
    return buffer;
  }

  runSync(inputs: readonly NativeHostData[], outputs: readonly NativeHostData[]): void {
    const from = this.#views(inputs, this.#inputs);
    const to = this.#views(outputs, this.#outputs);
    try {
      if (from.length === 0 && to.length === 0) this.#compiled.callLaunch(this.#handle);
      else this.#compiled.callRunSync(this.#handle, from, to);
    } catch (error) {
      throw toTrtforgeError(error);
    }
  }

  run(inputs: readonly NativeHostData[], outputs: readonly NativeHostData[]): NativeJob<void> {
    const from = this.#views(inputs, this.#inputs);
    const to = this.#views(outputs, this.#outputs);
    const id = this.#runs++ >>> 0;
    const running = rethrown(() => this.#compiled.callRun(this.#handle, id, from, to));
    return {
      done: running.then(finished, (error: unknown) => {
        throw toTrtforgeError(error);
      }),
      cancel: () => this.#compiled.callCancel(this.#handle, id),
    };
  }

  lastShapes(): readonly { readonly name: string; readonly shape: readonly number[] }[] {
    return rethrown(() => this.#compiled.callLastShapes(this.#handle));
  }

  readOutput(name: string): ArrayBuffer {
    return rethrown(() => this.#compiled.callReadOutput(this.#handle, name));
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#pinned.fill(undefined);
    rethrown(() => this.#compiled.callClose(this.#handle));
  }

  /** The object this call was made from. */
  get owner(): object {
    return this.#owner;
  }

  /** The views to copy; views of the pinned memory itself are left out. */
  #views(passed: readonly NativeHostData[], slots: ReadonlyMap<string, number>): SlotViews {
    if (passed.length === 0) return nothing;
    const views: SlotViews = [];
    for (const { name, data } of passed) {
      const slot = slots.get(name);
      if (slot === undefined) throw unknown(name, [...slots.keys()]);
      if (data.buffer !== this.#pinned[slot] || data.byteLength !== data.buffer.byteLength)
        views.push(slot, data);
    }
    return views;
  }
}

const unknown = (name: string, names: readonly string[]): TrtforgeError =>
  new TrtforgeError('TF_SESSION_INPUT', `The call has no tensor ${name} here; it has ${names.join(', ')}.`);
