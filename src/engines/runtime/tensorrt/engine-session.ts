import { join } from 'node:path';
import type { NativeEvent } from '../../../addon/native-job.js';
import { removeIfAllowed } from '../../../base/files/files.js';
import { makeScratch } from '../../../base/files/folders.js';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { plural } from '../../../base/text/quantity.js';
import { TrtforgeError } from '../../../errors.js';
import { ignoreEvents } from '../../../events.js';
import type { ByName, NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import { mapOf } from '../check-inputs.js';
import type { RunOptions } from '../session.js';
import { DeviceState } from './device-state.js';
import type {
  EngineContext,
  EngineSession,
  EngineState,
  RunTarget,
  SessionFacts,
} from './engine-interface.js';
import { type EngineAddon, type LoadedEngine, loadEngine, logTeller } from './load-engine.js';
import type { EngineSessionOptions } from './options.js';
import { type ContextSettings, ProfileContexts } from './profile-contexts.js';

const KEEP_CALLS = 16;
const KEEP_BYTES = 2 ** 31;

/**
 * Loads a TensorRT engine onto a GPU, in this process. Throws what `loadEngine` throws; the plan is checked before the library sees it, but a library
 * that aborts all the same ends this process: `openSupervisedEngine` runs it in another.
 */
export async function openEngineSession(
  planPath: string,
  options: EngineSessionOptions & { readonly addon?: EngineAddon } = {},
): Promise<EngineSession> {
  const engine = await loadEngine(planPath, options);
  try {
    return sessionOf(engine, options);
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** A session over an engine that is loaded; closing it closes the engine. Throws TF_SESSION_INPUT for a pool that the engine cannot use. */
export const sessionOf = (engine: LoadedEngine, options: EngineSessionOptions): EngineSession =>
  new LoadedSession(engine, options, true);

/** A session over an engine of the caller's: closing it leaves the engine loaded. */
export const borrowingSession = (engine: LoadedEngine): EngineSession => new LoadedSession(engine, {}, false);

class LoadedSession implements EngineSession {
  readonly backend: string;
  readonly facts: SessionFacts;
  readonly #engine: LoadedEngine;
  readonly #settings: ContextSettings;
  /** Those that `run` spreads over. */
  readonly #pool: readonly ProfileContexts[];
  readonly #contexts: Set<ProfileContexts>;
  readonly #states = new Set<DeviceState>();
  readonly #isOwner: boolean;
  readonly #tellLog: (event: NativeEvent) => void;
  #isRefitting = false;
  #closing: Promise<void> | undefined;

  constructor(engine: LoadedEngine, options: EngineSessionOptions, isOwner: boolean) {
    const { emit = ignoreEvents, keepCalls = {}, contexts = 1 } = options;
    const { gpu, toolchain, native, plan } = engine;
    const fallbacks: string[] = [];
    options.memory?.join(engine);
    this.#engine = engine;
    this.#isOwner = isOwner;
    this.#tellLog = logTeller(toolchain.product, emit);
    this.backend = `${toolchain.product === 'tensorrt' ? 'TensorRT' : 'TensorRT-RTX'} ${native.facts.libraryVersion} (${gpu.name})`;
    this.facts = {
      planPath: plan.path,
      toolchain,
      passport: plan.passport !== null,
      gpu: { index: gpu.index, name: gpu.name, computeCapability: gpu.computeCapability },
      engine: native.facts,
      cudaGraphFallbacks: fallbacks,
    };
    this.#settings = {
      engine,
      options,
      keep: { count: keepCalls.count ?? KEEP_CALLS, bytes: keepCalls.bytes ?? KEEP_BYTES },
      onFallback: (why) => {
        if (fallbacks.includes(why)) return;
        fallbacks.push(why);
        const message = `Runs go on without a CUDA graph: ${why}`;
        emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
      },
      checkOpen: () => this.#checkOpen(),
    };
    this.#pool = Array.from({ length: Math.max(1, contexts) }, () => new ProfileContexts(this.#settings));
    this.#contexts = new Set(this.#pool);
  }

  get inputs() {
    return this.#engine.bindings.inputs;
  }

  get outputs() {
    return this.#engine.bindings.outputs;
  }

  run(tensors: ByName<Tensor>, options?: RunTarget & RunOptions): Promise<NamedTensors> {
    return this.#leastBusy().run(tensors, options);
  }

  runSync(passed: ByName<Tensor>, target?: RunTarget): NamedTensors {
    const tensors = mapOf('inputs', passed);
    const [first] = this.#pool;
    const prepared =
      this.#pool.length === 1
        ? first
        : this.#pool.find((context) => context.isPrepared(tensors, target?.profile));
    return (prepared ?? first!).runSync(tensors, target);
  }

  prepare: EngineSession['prepare'] = (shapes, options) => this.#pool[0]!.prepare(shapes, options);

  context(): EngineContext {
    this.#checkOpen();
    const context = new ProfileContexts(this.#settings, (closed) => this.#contexts.delete(closed));
    this.#contexts.add(context);
    return context;
  }

  state(
    pairs: Readonly<Record<string, string>>,
    shapes: Readonly<Record<string, readonly number[]>> = {},
  ): EngineState {
    this.#checkOpen();
    const { native, bindings } = this.#engine;
    const state = new DeviceState(native, bindings, pairs, shapes, (closed) => this.#states.delete(closed));
    this.#states.add(state);
    return state;
  }

  async refit(model: string, { signal }: RunOptions = {}): Promise<void> {
    if (typeof model !== 'string' || model === '')
      throw new TrtforgeError('TF_USAGE', '`session.refit` needs the path of an ONNX model.', {
        remedy: 'Pass it: `session.refit("retrained.onnx")`.',
      });
    this.#checkIdle();
    const { native, toolchain, plan } = this.#engine;
    // Loaded only now: who runs an engine needs no converter.
    const { refittingParser, skeletonOf, typedForRefit, weightsToRefit, withRefitRemedy } = await import(
      '../../plan/refit.js'
    );
    const parserLibrary = refittingParser(toolchain);
    const folder = makeScratch('refit');
    try {
      const skeleton = skeletonOf(plan);
      const modelPath = await typedForRefit(skeleton, model, join(folder, 'typed.onnx'), { signal });
      const changed = await weightsToRefit(skeleton, model, modelPath, { signal });
      throwIfCancelled(signal, `refitting ${plan.path}`);
      this.#checkIdle();
      this.#isRefitting = true;
      await native.refit({ parserLibrary, modelPath, changed }, this.#tellLog).done.catch((error) => {
        throw withRefitRemedy(error, skeleton, model);
      });
    } finally {
      this.#isRefitting = false;
      removeIfAllowed(folder);
    }
  }

  layers(): Promise<string> {
    this.#checkOpen();
    return this.#engine.native.layers().done;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const closed = await Promise.allSettled([...this.#contexts].map((context) => context.close()));
    await Promise.all([...this.#states].map((state) => state.end()));
    this.#settings.options.memory?.leave(this.#engine.native);
    if (this.#isOwner) await this.#engine.close();
    for (const outcome of closed) if (outcome.status === 'rejected') throw outcome.reason;
  }

  #leastBusy(): ProfileContexts {
    let chosen = this.#pool[0]!;
    for (const context of this.#pool) if (context.pending.count < chosen.pending.count) chosen = context;
    return chosen;
  }

  #checkIdle(): void {
    this.#checkOpen();
    const runs = [...this.#contexts].reduce((sum, { pending }) => sum + pending.count, 0);
    if (runs === 0) return;
    throw new TrtforgeError(
      'TF_SESSION_BUSY',
      `${this.facts.planPath} has ${plural(runs, 'run')} under way: its weights cannot be replaced meanwhile.`,
    );
  }

  #checkOpen(): void {
    if (this.#isRefitting)
      throw new TrtforgeError('TF_SESSION_BUSY', `The weights of ${this.facts.planPath} are being replaced.`);
    if (this.#closing === undefined) return;
    throw new TrtforgeError('TF_SESSION_CLOSED', `${this.facts.planPath} was used after it was closed.`);
  }
}
