import type { NativeBinding, NativeContext, NativeShape } from '../../../addon/native-engine.js';
import { finished } from '../../../addon/native-job.js';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { TrtforgeError } from '../../../errors.js';
import type { ByName, NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import { list, mapOf, same } from '../check-inputs.js';
import type { RunOptions } from '../session.js';
import { type CacheBounds, CachedCall, CallCache } from './call-cache.js';
import { type CallShape, callShapeFrom, callShapeOf, chooseProfile, fits } from './choose-profile.js';
import { DeviceState } from './device-state.js';
import { EngineCall } from './engine-call.js';
import type {
  CallShapes,
  EngineContext,
  EngineRunner,
  EngineState,
  PreparedCall,
  RunTarget,
} from './engine-interface.js';
import type { LoadedEngine } from './load-engine.js';
import type { CudaGraph, EngineSessionOptions } from './options.js';
import { PendingWork } from './pending-work.js';
import { PlainCall, StatefulCall } from './prepared-call.js';

/** The settings that all contexts of a session share. */
export interface ContextSettings {
  readonly engine: LoadedEngine;
  readonly options: EngineSessionOptions;
  readonly keep: CacheBounds;
  /** Called each time a call goes on without a CUDA graph. */
  readonly onFallback: (why: string) => void;
  readonly checkOpen: () => void;
}

interface CallRequest {
  readonly shape: CallShape;
  readonly profile: number;
  readonly graph: boolean;
  readonly device?: readonly NativeBinding[];
  readonly signal?: AbortSignal;
}

/** Runs calls one after the other. TensorRT fixes the profile of a context, so there is a context of its own for each profile, made when first needed. */
export class ProfileContexts implements EngineContext {
  readonly pending: PendingWork;
  readonly #settings: ContextSettings;
  readonly #contexts = new Map<number, Promise<NativeContext>>();
  readonly #cache: CallCache<CachedCall>;
  readonly #graph: CudaGraph;
  readonly #whenClosed: (context: ProfileContexts) => void;
  #closing: Promise<void> | undefined;

  constructor(settings: ContextSettings, whenClosed: (context: ProfileContexts) => void = () => {}) {
    this.#settings = settings;
    this.#graph = settings.options.cudaGraph ?? 'auto';
    this.pending = new PendingWork(settings.options.memory);
    this.#whenClosed = whenClosed;
    this.#cache = new CallCache(settings.keep);
  }

  async run(passed: ByName<Tensor>, options: RunTarget & RunOptions = {}): Promise<NamedTensors> {
    this.#checkOpen();
    const tensors = mapOf('inputs', passed);
    throwIfCancelled(options.signal, 'running an engine');
    const cached = this.#cached(tensors, options.profile) ?? this.#admit(tensors, options.profile);
    return this.pending.during(() =>
      cached.use(async () => {
        const call = await this.#ready(cached);
        return call.run(tensors, targetsOf(options), options.signal);
      }),
    );
  }

  runSync(passed: ByName<Tensor>, target: RunTarget = {}): NamedTensors {
    this.#checkOpen();
    const tensors = mapOf('inputs', passed);
    const cached = this.#cached(tensors, target.profile);
    if (cached?.call === undefined) {
      const shape = callShapeOf(this.#inputs, tensors);
      chooseProfile(this.#inputs, shape, target.profile);
      throw new TrtforgeError(
        'TF_SESSION_NOT_PREPARED',
        `No call is prepared for ${this.#inputs.map(({ name }, at) => `${name} ${list(shape.dims[at] ?? [])}`).join(', ')}.`,
      );
    }
    const { call } = cached;
    // Capturing beside the next run would use the same activations.
    const canCapture = this.#settings.options.memory === undefined;
    if (cached.repeats() && canCapture && this.#wantsGraph(cached))
      void this.pending.during(() => this.#addGraph(cached));
    return this.pending.duringSync(() => call.runSync(tensors, targetsOf(target)));
  }

  /** Whether `runSync` of these tensors would find its call. */
  isPrepared(tensors: NamedTensors, profile: number | undefined): boolean {
    return this.#cached(tensors, profile)?.call !== undefined;
  }

  async prepare(...[shapes, options = {}]: Parameters<EngineRunner['prepare']>): Promise<PreparedCall> {
    this.#checkOpen();
    throwIfCancelled(options.signal, 'preparing a call');
    const { state, signal } = options;
    const ours = state === undefined ? undefined : this.#ownState(state);
    const shape = callShapeFrom(this.#inputs, ours === undefined ? shapes : withState(shapes, ours));
    const profile = chooseProfile(this.#inputs, shape, options.profile);
    const graph = (options.cudaGraph ?? this.#graph) !== 'never';
    const request = { shape, profile, graph, signal };
    return this.pending.during(async () =>
      ours === undefined
        ? new PlainCall(await this.#make(request), this.pending)
        : this.#prepareStateful(request, ours),
    );
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.pending.idle();
    const made = await Promise.allSettled(this.#contexts.values());
    await Promise.all(
      made.map((context) => (context.status === 'fulfilled' ? context.value.close().done : undefined)),
    );
    this.#whenClosed(this);
  }

  get #inputs() {
    return this.#settings.engine.bindings.inputs;
  }

  #checkOpen(): void {
    this.#settings.checkOpen();
    if (this.#closing !== undefined)
      throw new TrtforgeError('TF_SESSION_CLOSED', 'A context was used after it was closed.');
  }

  #cached(tensors: NamedTensors, profile: number | undefined): CachedCall | undefined {
    const inputs = this.#inputs;
    return this.#cache.find((entry) => entry.asked === profile && fits(inputs, entry.shape, tensors));
  }

  /** New shapes: everything is checked here, before anything is asked of the library. */
  #admit(tensors: NamedTensors, asked: number | undefined): CachedCall {
    const shape = callShapeOf(this.#inputs, tensors);
    const profile = chooseProfile(this.#inputs, shape, asked);
    const cached = new CachedCall(shape, profile, asked);
    this.#cache.add(cached);
    return cached;
  }

  /** The call to run: made at the first use; with `auto` a second use of the same shapes is worth a CUDA graph. */
  async #ready(cached: CachedCall): Promise<EngineCall> {
    const repeats = cached.repeats();
    if (cached.making !== undefined) await cached.making;
    else if (cached.call === undefined) await this.#makeFirst(cached);
    else if (repeats && this.#wantsGraph(cached)) await this.#addGraph(cached);
    if (cached.call === undefined) await this.#makeFirst(cached);
    return cached.call!;
  }

  async #makeFirst(cached: CachedCall): Promise<void> {
    const { shape, profile } = cached;
    const graph = this.#graph === 'always';
    cached.graphTried = graph;
    try {
      await cached.make(this.#make({ shape, profile, graph }));
    } catch (error) {
      if (cached.call === undefined) this.#cache.remove(cached);
      throw error;
    }
    this.#cache.trim();
  }

  #wantsGraph(cached: CachedCall): boolean {
    return this.#graph === 'auto' && !cached.graphTried && cached.making === undefined;
  }

  /** Replaces a call by one with a CUDA graph. Where that fails the old one goes on. */
  async #addGraph(cached: CachedCall): Promise<void> {
    const { shape, profile } = cached;
    cached.graphTried = true;
    try {
      await cached.make(this.#make({ shape, profile, graph: true }));
    } catch (error) {
      this.#settings.onFallback(error instanceof Error ? error.message : String(error));
    }
  }

  async #make({ shape, profile, graph, device = [], signal }: CallRequest): Promise<EngineCall> {
    const { engine, onFallback } = this.#settings;
    const context = await this.#contextOf(profile);
    const onDevice = new Set(device.map(({ name }) => name));
    const host = [
      ...engine.bindings.inputs.filter(({ hostValues }) => !hostValues),
      ...engine.bindings.outputs,
    ];
    const bindings = [
      ...device,
      ...host
        .filter(({ name }) => !onDevice.has(name))
        .map(({ name }): NativeBinding => ({ name, kind: 'host' })),
    ];
    const job = context.prepare({ shapes: this.#nativeShapes(shape), bindings, graph });
    const native = await finished(job, signal, 'preparing a call', (call) => call.close());
    if (native.graphFallback !== null) onFallback(native.graphFallback);
    return new EngineCall(native, engine.bindings, { profile, shape, onDevice });
  }

  async #prepareStateful(request: CallRequest, state: DeviceState): Promise<PreparedCall> {
    await this.#checkStateOutputs(request, state);
    const make = (side: 0 | 1) => this.#make({ ...request, device: state.bindings(side) });
    // Preparing runs the engine once, and the addon puts memory that is not the call's own back as it was: not while another run is using it.
    const calls = await state.inOrder(async (): Promise<[EngineCall, EngineCall]> => {
      const first = await make(0);
      try {
        return [first, await make(1)];
      } catch (error) {
        first.close();
        throw error;
      }
    });
    return new StatefulCall(calls, state, this.pending);
  }

  /** An output that is larger than the memory it is to go to would be written past its end. */
  async #checkStateOutputs({ shape, profile }: CallRequest, state: DeviceState): Promise<void> {
    const context = await this.#contextOf(profile);
    const outputs = context.outputsFor(this.#nativeShapes(shape));
    for (const tensor of state.tensors) {
      const at = this.#inputs.findIndex(({ name }) => name === tensor.input);
      const given = shape.dims[at] ?? [];
      const made = outputs.find(({ name }) => name === tensor.output)?.shape ?? null;
      if (same(given, tensor.shape) && made !== null && same(made, tensor.shape)) continue;
      throw new TrtforgeError(
        'TF_SESSION_INPUT',
        `The state ${tensor.input} is ${list(tensor.shape)}; with these shapes the engine reads ${list(given)} and ${tensor.output} is ${made === null ? 'of a shape that depends on the data' : list(made)}.`,
      );
    }
  }

  #nativeShapes(shape: CallShape): readonly NativeShape[] {
    return this.#inputs.map(({ name }, at) => ({
      name,
      shape: shape.dims[at] ?? [],
      values: shape.values[at] ?? null,
    }));
  }

  #contextOf(profile: number): Promise<NativeContext> {
    const known = this.#contexts.get(profile);
    if (known !== undefined) return known;
    const { engine, options } = this.#settings;
    const made = engine.native.createContext({
      profile,
      profiling: false,
      activations: options.memory?.memory(engine.native),
    }).done;
    this.#contexts.set(profile, made);
    // Memory may be free later: a context that could not be made is tried again at the next use.
    made.catch(() => this.#contexts.delete(profile));
    return made;
  }

  #ownState(state: EngineState): DeviceState {
    if (state instanceof DeviceState && state.engine === this.#settings.engine.native) {
      state.checkOpen();
      return state;
    }
    throw new TrtforgeError('TF_SESSION_INPUT', 'The state belongs to another session.');
  }
}

const targetsOf = ({ outputs }: RunTarget) =>
  outputs === undefined || outputs === 'pinned' ? outputs : mapOf('outputs', outputs);

/** Shapes of the state's own inputs are known. */
function withState(shapes: CallShapes, state: DeviceState): CallShapes {
  const own = state.tensors.map(({ input, shape }) => [input, shape] as const);
  return new Map([...own, ...mapOf('shapes', shapes)]);
}
