import { TrtforgeError } from '../errors.js';
import type { CompiledBinding, CompiledRuntime, Handle } from './compiled-runtime.js';
import { CompiledCall } from './native-call.js';
import type {
  NativeBinding,
  NativeCall,
  NativeContext,
  NativeDeviceMemory,
  NativeEngine,
  NativeEngineFacts,
  NativeOutput,
  NativeRuntime,
  NativeShape,
} from './native-engine.js';
import { convertedJob, endWithProcess, jobOf, type NativeJob, rethrown } from './native-job.js';

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
