import type { NativeEngineFacts } from '../../../addon/native-engine.js';
import type { ByName, ElementArray, NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import type { Toolchain } from '../../../tensorrt/toolchain/toolchain.js';
import type { Binding, RunOptions, Session } from '../session.js';
import type { CudaGraph } from './options.js';

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
