import { TrtforgeError } from '../errors.js';
import type {
  NativeBinding,
  NativeCall,
  NativeContext,
  NativeDeviceMemory,
  NativeEngine,
  NativeEngineFacts,
  NativeHostData,
  NativeMeasurement,
  NativeOutput,
  NativeRuntime,
  NativeShape,
  SmallTensors,
} from './native-engine.js';
import {
  convertedJob,
  endWithProcess,
  jobOf,
  type NativeJob,
  rethrown,
  toTrtforgeError,
} from './native-job.js';

/** An object of the compiled module; it lives until JavaScript collects this. */
type Handle = object;

/** A call as the module prepared it. Slots are its device tensors and host outputs, by number. */
interface PreparedCall {
  readonly handle: Handle;
  readonly graph: boolean;
  readonly graphRefusal: string | null;
  readonly smallTensors: SmallTensors;
  readonly outputs: readonly NativeOutput[];
  readonly slots: readonly { readonly name: string; readonly input: boolean; readonly bytes: number }[];
}

/** A binding as the module takes it: no memory means that the call owns a pinned and a device buffer. */
interface CompiledBinding {
  readonly name: string;
  readonly memory: Handle | null;
  readonly offset: number;
}

interface CompiledCallRequest {
  readonly shapes: readonly NativeShape[];
  readonly bindings: readonly CompiledBinding[];
  readonly graph: boolean;
  readonly smallTensors: SmallTensors | 'measured';
}

/** The exports of the compiled module for engines: functions over handles. Failures are plain Errors that carry `code` and `details`. */
export interface CompiledRuntime {
  openEngine(
    ...request: Parameters<NativeRuntime['openEngine']>
  ): NativeJob<{ readonly handle: Handle; readonly facts: NativeEngineFacts }>;
  engineLayers(engine: Handle): NativeJob<string>;
  engineRefit(engine: Handle, ...request: Parameters<NativeEngine['refit']>): NativeJob<void>;
  engineSerialize(engine: Handle, planPath: string, flags: number): NativeJob<number>;
  engineClose(engine: Handle): NativeJob<void>;
  engineAllocate(engine: Handle, bytes: number): Handle;
  /** No `activations` means memory of the context's own. */
  createContext(
    engine: Handle,
    request: { readonly profile: number; readonly profiling: boolean; readonly activations: Handle | null },
  ): NativeJob<Handle>;
  contextOutputs(context: Handle, shapes: readonly NativeShape[]): readonly NativeOutput[];
  contextLayerTimes(
    context: Handle,
  ): readonly { readonly name: string; readonly ms: number; readonly runs: number }[];
  contextClose(context: Handle): NativeJob<void>;
  prepareCall(context: Handle, request: CompiledCallRequest): NativeJob<PreparedCall>;
  callBuffer(call: Handle, slot: number): ArrayBuffer;
  /** A run with nothing to copy. */
  callLaunch(call: Handle): void;
  callRunSync(
    call: Handle,
    inputs: readonly (number | ArrayBufferView)[],
    outputs: readonly (number | ArrayBufferView)[],
  ): void;
  callRun(
    call: Handle,
    id: number,
    inputs: readonly (number | ArrayBufferView)[],
    outputs: readonly (number | ArrayBufferView)[],
  ): Promise<void>;
  callCancel(call: Handle, id: number): void;
  callLastShapes(call: Handle): readonly { readonly name: string; readonly shape: readonly number[] }[];
  callReadOutput(call: Handle, name: string): ArrayBuffer;
  callClose(call: Handle): void;
  memoryWrite(memory: Handle, data: ArrayBufferView, offset: number): NativeJob<void>;
  memoryRead(memory: Handle, offset: number, bytes: number): NativeJob<ArrayBuffer>;
  memoryClose(memory: Handle): void;
  measure(engine: Handle, request: Parameters<NativeRuntime['measure']>[1]): NativeJob<NativeMeasurement>;
}

/** Slot numbers and views in turns, as the compiled module takes them. */
type SlotViews = (number | ArrayBufferView)[];

const nothing: SlotViews = [];
const finished = (): void => {};

/** A prepared call. What a run needs of JavaScript is decided here once, so that a run over pinned buffers is a single call of the module. */
class CompiledCall implements NativeCall {
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

/** Engines of the compiled module as the objects of `native-engine.ts`. */
export function runtimeOf(compiled: CompiledRuntime): Pick<NativeRuntime, 'openEngine' | 'measure'> {
  return {
    openEngine(request, onEvent) {
      const opening = rethrown(() => compiled.openEngine(request, onEvent));
      return convertedJob(opening, ({ handle, facts }) => new CompiledEngine(compiled, handle, facts));
    },
    measure(engine, request) {
      if (!(engine instanceof CompiledEngine)) throw foreign('engine');
      return endWithProcess(jobOf(rethrown(() => compiled.measure(engine.handle, request))));
    },
  };
}

/** A close that is over at once for the caller that closes again. */
const once = (close: () => NativeJob<void>): (() => NativeJob<void>) => {
  let closing: NativeJob<void> | undefined;
  return () => {
    closing ??= jobOf(rethrown(close));
    return closing;
  };
};

class CompiledEngine implements NativeEngine {
  readonly close: () => NativeJob<void>;
  readonly #compiled: CompiledRuntime;

  constructor(
    compiled: CompiledRuntime,
    readonly handle: Handle,
    readonly facts: NativeEngineFacts,
  ) {
    this.#compiled = compiled;
    this.close = once(() => compiled.engineClose(handle));
  }

  createContext(request: Parameters<NativeEngine['createContext']>[0]): NativeJob<NativeContext> {
    const { activations } = request;
    if (activations !== undefined && !(activations instanceof CompiledMemory)) throw foreign('device memory');
    const compiled = { ...request, activations: activations?.handle ?? null };
    const creating = rethrown(() => this.#compiled.createContext(this.handle, compiled));
    return convertedJob(creating, (handle) => new CompiledContext(this.#compiled, this, handle));
  }

  layers(): NativeJob<string> {
    return jobOf(rethrown(() => this.#compiled.engineLayers(this.handle)));
  }

  refit(...request: Parameters<NativeEngine['refit']>): NativeJob<void> {
    return endWithProcess(jobOf(rethrown(() => this.#compiled.engineRefit(this.handle, ...request))));
  }

  serialize(planPath: string, flags: number): NativeJob<number> {
    return endWithProcess(
      jobOf(rethrown(() => this.#compiled.engineSerialize(this.handle, planPath, flags))),
    );
  }

  allocate(bytes: number): NativeDeviceMemory {
    const handle = rethrown(() => this.#compiled.engineAllocate(this.handle, bytes));
    return new CompiledMemory(this.#compiled, handle, bytes);
  }
}

class CompiledContext implements NativeContext {
  readonly close: () => NativeJob<void>;
  readonly #compiled: CompiledRuntime;
  readonly #handle: Handle;

  /** The engine is held so that it is not collected before its contexts. */
  constructor(
    compiled: CompiledRuntime,
    readonly engine: CompiledEngine,
    handle: Handle,
  ) {
    this.#compiled = compiled;
    this.#handle = handle;
    this.close = once(() => compiled.contextClose(handle));
  }

  outputsFor(shapes: readonly NativeShape[]): readonly NativeOutput[] {
    return rethrown(() => this.#compiled.contextOutputs(this.#handle, shapes));
  }

  prepare({
    shapes,
    bindings,
    graph,
    smallTensors = 'measured',
  }: Parameters<NativeContext['prepare']>[0]): NativeJob<NativeCall> {
    const request = { shapes, graph, smallTensors, bindings: bindings.map(compiledBinding) };
    const preparing = rethrown(() => this.#compiled.prepareCall(this.#handle, request));
    return convertedJob(preparing, (prepared) => new CompiledCall(this.#compiled, this, prepared));
  }

  layerTimes(): readonly { readonly name: string; readonly ms: number; readonly runs: number }[] {
    return rethrown(() => this.#compiled.contextLayerTimes(this.#handle));
  }
}

class CompiledMemory implements NativeDeviceMemory {
  readonly #compiled: CompiledRuntime;

  constructor(
    compiled: CompiledRuntime,
    readonly handle: Handle,
    readonly bytes: number,
  ) {
    this.#compiled = compiled;
  }

  write(data: ArrayBufferView, offset: number): NativeJob<void> {
    return jobOf(rethrown(() => this.#compiled.memoryWrite(this.handle, data, offset)));
  }

  read(offset: number, bytes: number): NativeJob<ArrayBuffer> {
    return jobOf(rethrown(() => this.#compiled.memoryRead(this.handle, offset, bytes)));
  }

  close(): void {
    rethrown(() => this.#compiled.memoryClose(this.handle));
  }
}

function compiledBinding(binding: NativeBinding): CompiledBinding {
  if (binding.kind === 'host') return { name: binding.name, memory: null, offset: 0 };
  if (!(binding.memory instanceof CompiledMemory)) throw foreign('device memory');
  return { name: binding.name, memory: binding.memory.handle, offset: binding.offset };
}

const foreign = (what: string): TrtforgeError =>
  new TrtforgeError('TF_INTERNAL', `The ${what} passed was not made by this addon.`);
