import type { NativeDeviceMemory, NativeEngine, NativeEngineFacts } from '../../../addon/native-engine.js';
import * as is from '../../../base/options/kinds.js';
import { type OptionsOf, optional } from '../../../base/options/option.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import type { ByName, ElementArray, NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import type { Toolchain } from '../../../tensorrt/toolchain/toolchain.js';
import { engineLoading, onlyLoadOptions } from '../../../tensorrt/trtexec/options.js';
import { trustOptions } from '../../store/trust.js';
import type { Binding, RunOptions, Session } from '../session.js';

/** Options of loading engines, besides the GPU; everything that opens engines has the same. */
export const enginesOptions = {
  ...onlyLoadOptions,
  /** Plug-in libraries that the engine needs. */
  plugins: optional(is.list<string>(), {
    flags: '--plugin <library>',
    ...engineLoading,
    trust: true,
    describe: 'engines: a plug-in library it needs',
    repeat: true,
  }),
  /** A toolchain, or the name of one; default: the first that loads the plan. */
  toolchain: optional(is.either(is.text, is.object<Toolchain>()), {
    flags: '--toolchain <name>',
    ...engineLoading,
    trust: true,
    describe:
      'engines: which TensorRT, by its name in `trtforge toolchain list` or its folder (default: the first that loads it)',
  }),
};

/** The same for what opens one: no two engines have the same identity. */
export const loadOptions = {
  ...enginesOptions,
  /** The identity that the engine must have, so that no other one passes in its place; a path in a store (`by-identity/xx/ID/`) states it already. */
  identity: optional(is.identity, {
    flags: '--identity <id>',
    group: 'Engine loading',
    describe: 'engines: reject one that has not this identity, as trtforge build printed it',
  }),
};

/** And how it runs, step by step. */
export const engineOptions = {
  ...loadOptions,
  /** Default `auto`: as soon as shapes repeat. */
  cudaGraph: optional(is.words('auto', 'always', 'never'), {
    flags: '--cuda-graph <when>',
    ...engineLoading,
    describe: 'engines: replay runs from a CUDA graph (default: auto, as soon as shapes repeat)',
  }),
};

/** Every request that opens an engine has these, under these names. They have no effect on a model. */
export interface EngineLoadOptions extends OptionsOf<typeof engineOptions> {}

export type CudaGraph = NonNullable<EngineLoadOptions['cudaGraph']>;

type Load = OptionsOf<typeof onlyLoadOptions>;

/** As the addon takes them. */
export const nativeLoad = ({ weightBudget, allowHostCode = false }: Load) => ({
  weightBudget: weightBudget ?? null,
  allowHostCode,
});

/** Rejects a budget for an engine whose weights are not streamed; `subject` begins the sentence: `model.engine was`. Throws TF_OPTION_UNSUPPORTED. */
export function assertStreamed(subject: string, isStreamed: boolean, { weightBudget }: Load): void {
  if (weightBudget === undefined || isStreamed) return;
  throw new TrtforgeError(
    'TF_OPTION_UNSUPPORTED',
    `${subject} not built with weight streaming, so a budget for its weights has no effect.`,
    { remedy: 'Leave the budget out, or build the engine with --builder-config flags=weight-streaming.' },
  );
}

/** The addon would take any word for `automatic` and any number for bytes. Throws TF_SIZE_INVALID. */
export function checkWeightBudget({ weightBudget: budget }: Load): void {
  if (budget === undefined || budget === 'automatic') return;
  if (Number.isSafeInteger(budget) && budget >= 0) return;
  throw new TrtforgeError(
    'TF_SIZE_INVALID',
    `A weight budget of ${budget} is neither bytes nor "automatic".`,
  );
}

/** For the result of a measurement. */
export const askedBudget = ({ weightBudget }: Load) =>
  weightBudget === undefined ? {} : { weightBudgetAsked: weightBudget };

/** A loaded engine, as far as its activations go. */
interface PoolEngine {
  readonly native: NativeEngine;
  readonly gpu: { readonly index: number };
  readonly plan: { readonly path: string };
}

/**
 * GPU memory for the activations of several engines of this process, one run at a time: as many bytes as the largest engine needs, in the place of the sum.
 * Sessions join when they are opened; the memory is allocated at the first run, and freed with the last session.
 */
export class ActivationPool {
  /** Bytes that the largest profile of each engine needs. */
  readonly #members = new Map<NativeEngine, number>();
  #gpu: number | undefined;
  #memory: NativeDeviceMemory | undefined;
  #isBusy = false;

  /** Bytes of the memory: what the largest engine needs. */
  get bytes(): number {
    return this.#memory?.bytes ?? Math.max(0, ...this.#members.values());
  }

  /** Bytes that the same engines take with memory of their own each. */
  get separateBytes(): number {
    return [...this.#members.values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Throws TF_SESSION_INPUT for an engine on another GPU, and for one that needs more than the memory has after the first run. */
  join({ native, gpu, plan }: PoolEngine): void {
    const needed = native.facts.deviceMemoryBytes;
    if (this.#gpu !== undefined && this.#gpu !== gpu.index)
      throw new TrtforgeError(
        'TF_SESSION_INPUT',
        `${plan.path} is on GPU ${gpu.index}, the activation pool on GPU ${this.#gpu}.`,
        { remedy: 'Make one pool for each GPU.' },
      );
    if (this.#memory !== undefined && needed > this.#memory.bytes)
      throw new TrtforgeError(
        'TF_SESSION_INPUT',
        `${plan.path} needs ${needed} bytes for activations; the pool has ${this.#memory.bytes} since its first run.`,
        { remedy: 'Open all engines of a pool before the first of them runs.' },
      );
    this.#gpu = gpu.index;
    this.#members.set(native, needed);
  }

  leave(native: NativeEngine): void {
    this.#members.delete(native);
    if (this.#members.size > 0) return;
    this.#memory?.close();
    this.#memory = undefined;
    this.#gpu = undefined;
  }

  /** Throws TF_GPU_MEMORY. */
  memory(native: NativeEngine): NativeDeviceMemory {
    this.#memory ??= native.allocate(this.bytes);
    return this.#memory;
  }

  /** Begins a run, which ends with the function that is returned. Throws TF_SESSION_BUSY while another is under way. */
  take(): () => void {
    if (this.#isBusy)
      throw new TrtforgeError(
        'TF_SESSION_BUSY',
        'A run was requested while another run uses the same activation pool.',
      );
    this.#isBusy = true;
    return () => {
      this.#isBusy = false;
    };
  }
}

/** Memory for the activations of sessions that run in turn, which is their option `memory`. */
export const activationPool = (): ActivationPool => new ActivationPool();

/** min, opt and max of one input in one optimization profile: dimensions, or the values of a shape tensor. */
export interface BindingRange {
  readonly min: readonly number[];
  readonly opt: readonly number[];
  readonly max: readonly number[];
}

/** An input or output of an engine. Open dimensions are null; symbols are gone by the time a plan is built. */
export interface EngineBinding extends Binding {
  readonly shape: readonly (number | null)[];
  /** True for an input whose values decide shapes: it stays on the host, and its values must lie within the profile. */
  readonly hostValues: boolean;
  /** One per profile; empty for outputs. */
  readonly profiles: readonly BindingRange[];
}

/** The inputs of a call: shapes, and for inputs with `hostValues` a tensor of their values. */
export type CallShapes = ByName<readonly number[] | Tensor>;

/** Where a run happens, and where its outputs go. */
export interface RunTarget {
  /** Profile to run in; default the smallest that takes the shapes. */
  readonly profile?: number;
  /**
   * Where outputs go. Default: into fresh memory. `pinned`: they stay in the call's own buffers, valid until the next run of the same shapes, and
   * nothing is copied. Tensors: their bytes are written over (dtype and shape must be the output's); outputs that are not named get fresh memory.
   */
  readonly outputs?: 'pinned' | ByName<Tensor>;
}

/**
 * Shapes and buffers fixed for many runs: write `inputs`, run, read `outputs`; nothing is allocated or copied on the host. The arrays are pinned memory
 * of the call, the same from run to run, and end with `close`. One run at a time: the buffers are the call's own.
 */
export interface PreparedCall {
  readonly profile: number;
  readonly cudaGraph: boolean;
  /** Why there is no CUDA graph although one was requested; null otherwise. */
  readonly cudaGraphFallback: string | null;
  /** Elements by name; types under a byte and 8-bit floats are bytes. Tensors of the state and host values are not here. */
  readonly inputs: Readonly<Record<string, ElementArray>>;
  /** Outputs whose shape depends on the data are not here: `output(name)` gives them. */
  readonly outputs: Readonly<Record<string, ElementArray>>;
  /** Blocks this thread until the outputs are there. Throws TF_RUN_FAILED, TF_SESSION_CLOSED. */
  runSync(): void;
  /** The same off this thread. */
  run(options?: RunOptions): Promise<void>;
  /** An input's buffer as a tensor. */
  input(name: string): Tensor;
  /** An output of the last run; over the call's own buffer, or a copy where its shape depends on the data. */
  output(name: string): Tensor;
  close(): void;
}

/** Tensors that stay on the GPU between runs; each is an input whose next content is an output of the run before. */
export interface EngineState {
  readonly tensors: readonly {
    readonly input: string;
    readonly output: string;
    readonly dtype: Binding['dtype'];
    readonly shape: readonly number[];
    readonly bytes: number;
  }[];
  /** Runs since the state was made or reset. */
  readonly steps: number;
  /** All zeros again. */
  reset(): Promise<void>;
  /** The present content of one tensor, by the input's name; copied from the GPU. */
  read(input: string): Promise<Tensor>;
  /** Overwrites the present content of one tensor. Throws TF_SESSION_INPUT when dtype or shape differ. */
  write(input: string, tensor: Tensor): Promise<void>;
  close(): void;
}

/** A runner of an engine: a session (which spreads runs over its contexts) or one context of it. */
export interface EngineRunner {
  /**
   * Takes one tensor for each input. The first run of new shapes prepares buffers, a repeated one a CUDA graph. Inputs must not change before
   * the run begins, arrays for outputs until the promise settles. Throws TF_SESSION_INPUT, TF_PROFILE_MISFIT (names the tensor, the shape and the valid ranges), TF_RUN_FAILED, TF_GPU_MEMORY.
   */
  run(inputs: ByName<Tensor>, options?: RunTarget & RunOptions): Promise<NamedTensors>;
  /** The same, blocking this thread. Throws TF_SESSION_NOT_PREPARED for shapes that `run` has not yet seen. */
  runSync(inputs: ByName<Tensor>, target?: RunTarget): NamedTensors;
  /** The fastest way: a call whose shapes and buffers are fixed. It belongs to the caller, who closes it. */
  prepare(
    shapes: CallShapes,
    options?: RunOptions & {
      readonly profile?: number;
      readonly cudaGraph?: CudaGraph;
      /** Tensors of it stay on the device: each run reads what the run before wrote. */
      readonly state?: EngineState;
    },
  ): Promise<PreparedCall>;
}

export interface EngineContext extends EngineRunner, AsyncDisposable {
  close(): Promise<void>;
}

/** A TensorRT engine on a GPU, in this process. */
export interface EngineSession extends Session, EngineRunner {
  readonly inputs: readonly EngineBinding[];
  readonly outputs: readonly EngineBinding[];
  readonly facts: SessionFacts;
  run(inputs: ByName<Tensor>, options?: RunTarget & RunOptions): Promise<NamedTensors>;
  /** One more context: activations and a stream of its own, for runs at the same time as others. */
  context(): EngineContext;
  /**
   * Device memory for tensors that are fed back, input name to the output that becomes its next content. Zero-filled.
   * Shapes are the engine's own; inputs with open dimensions need theirs in `shapes`.
   * Throws TF_SESSION_INPUT for pairs that do not fit each other, TF_GPU_MEMORY.
   */
  state(
    pairs: Readonly<Record<string, string>>,
    shapes?: Readonly<Record<string, readonly number[]>>,
  ): EngineState;
  /**
   * Replaces the engine's weights by those of another model with the same graph, converted as the engine's was; for an engine that was built with `refit`, between runs.
   * Contexts, prepared calls and states stay; CUDA graphs are captured again. The file of the engine stays as it is: `trtforge engine refit` writes one.
   * Throws TF_SESSION_BUSY, TF_ENGINE_NOT_REFITTABLE, TF_REFIT_MODEL_MISMATCH, TF_OPTION_UNSUPPORTED, TF_REFIT_FAILED (then nothing runs until another refit succeeds).
   */
  refit(model: string, options?: RunOptions): Promise<void>;
  /** The report of the engine's inspector, as JSON text; see `engines/layers/read-layers.ts`. */
  layers(): Promise<string>;
}

export interface SessionFacts {
  readonly planPath: string;
  readonly toolchain: Toolchain;
  /** Whether a passport vouched for the plan. */
  readonly passport: boolean;
  readonly gpu: { readonly index: number; readonly name: string; readonly computeCapability: number };
  readonly engine: NativeEngineFacts;
  /** Why calls went on without a CUDA graph, each reason once. */
  readonly cudaGraphFallbacks: readonly string[];
}

const callOptions = { count: optional(is.whole(0)), bytes: optional(is.whole(0)) };

export const engineSessionOptions = {
  /** Ordinal of the GPU among the visible ones; default 0. */
  device: optional(is.whole(0)),
  /** Default true: a plan without passport is rejected, since nothing states what it is. */
  requirePassport: optional(is.flag),
  /** Contexts that `run` spreads over; default 1. */
  contexts: optional(is.whole(1)),
  /** Number of calls that `run` keeps ready per context, and the pinned memory that they may use; default 16 and 2 GiB. */
  keepCalls: optional(is.object<OptionsOf<typeof callOptions>>(callOptions)),
  /** Activations that this session shares with others, one run at a time; default: memory of its own for each context. */
  memory: optional(is.instance(ActivationPool, 'the result of activationPool()')),
  ...trustOptions,
  ...engineOptions,
};

export interface EngineSessionOptions extends OptionsOf<typeof engineSessionOptions>, WorkContext {}
