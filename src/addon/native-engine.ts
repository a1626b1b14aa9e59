import type { NativeEvent, NativeJob } from './native-job.js';

/**
 * Engines loaded onto a GPU, as the addon hands them out. Three objects, each owning the one below it: the engine (weights), its contexts
 * (activations, one stream, one worker thread each), and their calls (shapes, buffers, and the CUDA graph where there is one).
 * Data types, modes and formats are the library's numbers, as everywhere on this side of the addon; `toolchain.ts` names them.
 */

export interface NativeEngineTensor {
  readonly name: string;
  /** `nvinfer1::DataType`. */
  readonly dtype: number;
  readonly mode: 'input' | 'output';
  /** Host tensors are shape tensors: their values decide shapes. */
  readonly location: 'device' | 'host';
  readonly shapeTensor: boolean;
  /** -1 where the engine leaves the dimension open. */
  readonly shape: readonly number[];
  /** `nvinfer1::TensorFormat`; 0 is linear, the only one `prepare` takes. */
  readonly format: number;
  /** Inputs only, one per profile: shapes, or for a shape tensor the values. */
  readonly profiles: readonly {
    readonly min: readonly number[];
    readonly opt: readonly number[];
    readonly max: readonly number[];
  }[];
}

/** Growth of a process's resident memory, bytes. */
export interface HostGrowth {
  /** At most; an upper bound where the process once was larger. */
  readonly peakBytes: number;
  /** In the end: memory of its own, and pages of files, which are also the page cache's. */
  readonly anonymousBytes: number;
  readonly mappedBytes: number;
}

export interface NativeEngineFacts {
  readonly name: string;
  readonly layers: number;
  readonly profiles: number;
  readonly auxStreams: number;
  /** Activation memory of a context, largest profile. */
  readonly deviceMemoryBytes: number;
  /** Activation memory per profile; the same number for each where the library (before 10.1) cannot report it. */
  readonly deviceMemoryBytesPerProfile: readonly number[];
  /** 0 for engines without weight streaming. */
  readonly streamableWeightsBytes: number;
  /** Of these, what stays on the GPU: the budget that was set, or that the library chose. */
  readonly weightBudgetBytes: number;
  readonly refittable: boolean;
  readonly tensors: readonly NativeEngineTensor[];
  readonly libraryVersion: string;
  readonly loadMs: number;
  /** Of these, until the pages of the plan were in memory. */
  readonly readMs: number;
  /** Of these, inside the library while it made the engine of the plan. */
  readonly deserializeMs: number;
  /** How much this process grew meanwhile. */
  readonly hostMemory: HostGrowth;
  /** GPU memory in use before and after loading, whole GPU, as the driver reports. */
  readonly gpuMemory: { readonly freeBefore: number; readonly freeAfter: number; readonly total: number };
}

export interface NativeEngine {
  readonly facts: NativeEngineFacts;
  /** Activation memory is allocated here. Errors: TF_GPU_MEMORY, TF_CONTEXT_FAILED. */
  createContext(request: {
    readonly profile: number;
    /** Emits per-layer times (`layerTimes`); slower, never for latency. */
    readonly profiling: boolean;
    /** Memory for activations that other contexts use too, one at a time; absent for memory of its own. */
    readonly activations?: NativeDeviceMemory | undefined;
  }): NativeJob<NativeContext>;
  /** The report of `IEngineInspector` on the whole engine, as JSON text. Detail depends on the verbosity the plan was built with. */
  layers(): NativeJob<string>;
  /**
   * Replaces the engine's weights by those of an ONNX file; no run may be under way. Contexts and calls stay, CUDA graphs are captured again.
   * Errors: TF_ENGINE_NOT_REFITTABLE, TF_REFIT_MODEL_MISMATCH, TF_REFIT_FAILED (the engine may then have some of the weights).
   */
  refit(
    request: {
      readonly parserLibrary: string;
      readonly modelPath: string;
      /** Names of the weights whose values are not those that the engine was built with. */
      readonly changed: readonly string[];
    },
    onEvent: (event: NativeEvent) => void,
  ): NativeJob<void>;
  /** Writes the engine as it is now; `flags` are bits of `SerializationFlag`. Gives the plan's bytes. Errors: TF_REFIT_FAILED, TF_WRITE_FAILED. */
  serialize(planPath: string, flags: number): NativeJob<number>;
  /** Device memory that outlives calls, zero-filled. Throws TF_GPU_MEMORY. */
  allocate(bytes: number): NativeDeviceMemory;
  /** Closes every context and call made from it first. */
  close(): NativeJob<void>;
}

export interface NativeShape {
  readonly name: string;
  readonly shape: readonly number[];
  /** Values of a shape tensor on the host; null for device tensors. */
  readonly values: readonly number[] | null;
}

export interface NativeOutput {
  readonly name: string;
  /** Null where it depends on the data: known only after a run, and the output cannot be part of a graph. */
  readonly shape: readonly number[] | null;
  /** Bytes its buffer needs at these shapes; an upper bound where the shape depends on the data. */
  readonly bytes: number;
}

export interface NativeContext {
  /** Output shapes and sizes for these input shapes. Throws TF_SESSION_INPUT with the library's own message where it rejects them. */
  outputsFor(shapes: readonly NativeShape[]): readonly NativeOutput[];
  /**
   * Fixes shapes and buffers for many runs: allocates what `host` bindings need (pinned and device), runs once without a graph, then
   * captures one when asked. Several calls may be kept; running one after another re-binds what differs.
   */
  prepare(request: {
    readonly shapes: readonly NativeShape[];
    /** One for each device input and output; the same memory may be an input here and an output of another call. */
    readonly bindings: readonly NativeBinding[];
    /** Copies, launch and copies back as one CUDA graph. */
    readonly graph: boolean;
    /** Transfer of tensors of `host` bindings up to 4 KiB to the GPU; default `measured`: the faster of both ways in a few runs, with a graph only. */
    readonly smallTensors?: SmallTensors | 'measured';
  }): NativeJob<NativeCall>;
  /** Milliseconds per layer in order, summed over the runs since the context was made; needs `profiling`. */
  layerTimes(): readonly { readonly name: string; readonly ms: number; readonly runs: number }[];
  close(): NativeJob<void>;
}

/** `host`: the call owns a pinned buffer and a device buffer and copies between them. `device`: the tensor is where the caller specifies and nothing is copied. */
export type NativeBinding =
  | { readonly name: string; readonly kind: 'host' }
  | {
      readonly name: string;
      readonly kind: 'device';
      readonly memory: NativeDeviceMemory;
      readonly offset: number;
    };

/** `mapped`: the GPU uses them in pinned memory, in place of copies. */
export type SmallTensors = 'copied' | 'mapped';

export interface NativeCall {
  /** Whether a graph was captured; otherwise why not, in a sentence (null when none was requested). */
  readonly graph: boolean;
  readonly graphFallback: string | null;
  readonly smallTensors: SmallTensors;
  readonly outputs: readonly NativeOutput[];
  /** Pinned memory of a `host` binding: write inputs here before a run, read outputs after it. Valid until `close`. Throws TF_SESSION_INPUT for another name. */
  buffer(name: string): ArrayBuffer;
  /**
   * Copies the passed views into the inputs' pinned buffers (several threads for large ones, overlapped with the transfer), runs, waits, and
   * copies outputs into the passed views. A view that already is the pinned buffer is not copied. Blocks the calling thread.
   * Throws TF_RUN_FAILED, TF_GPU_MEMORY.
   */
  runSync(inputs: readonly NativeHostData[], outputs: readonly NativeHostData[]): void;
  /**
   * The same on the context's own thread; runs of one context are answered in order. Inputs are read before this returns. Outputs are written by that
   * thread: give it views whose memory nobody can transfer or resize before the job is done.
   */
  run(inputs: readonly NativeHostData[], outputs: readonly NativeHostData[]): NativeJob<void>;
  /** Shapes and bytes of data-dependent outputs of the last run; their bytes are read with `readOutput`. */
  lastShapes(): readonly { readonly name: string; readonly shape: readonly number[] }[];
  /** Bytes of a data-dependent output of the last run, copied to the host. */
  readOutput(name: string): ArrayBuffer;
  close(): void;
}

export interface NativeHostData {
  readonly name: string;
  readonly data: ArrayBufferView;
}

export interface NativeDeviceMemory {
  readonly bytes: number;
  /** Reads the data before it returns. */
  write(data: ArrayBufferView, offset: number): NativeJob<void>;
  read(offset: number, bytes: number): NativeJob<ArrayBuffer>;
  close(): void;
}

/**
 * Per inference, milliseconds on the GPU's clock, the same for all streams; the first timed event is 0. Columns are equally long, in the order of `inputStart`.
 * Without transfers an inference's input begins and ends where its compute begins, and its output where its compute ends.
 */
export interface NativeMeasurement {
  readonly streams: Int32Array;
  readonly inputStart: Float64Array;
  readonly inputEnd: Float64Array;
  readonly computeStart: Float64Array;
  readonly computeEnd: Float64Array;
  readonly outputStart: Float64Array;
  readonly outputEnd: Float64Array;
  /** Host time spent in the enqueue, or the launch of the graph, of each inference; copies are not in it. */
  readonly enqueueMs: Float64Array;
  /** From the first timed inference's begin to the last one's end, GPU's clock, milliseconds; never less than `durationMs`. */
  readonly wallMs: number;
  /** Those that began to compute before `warmUpMs`, of all streams; they are in no column. */
  readonly warmUpInferences: number;
  readonly graph: boolean;
  readonly graphRefusal: string | null;
  /** In use on the whole GPU, by anyone: the most of before, after the buffers and the first run, and at the end. */
  readonly gpuMemory: { readonly peakUsed: number; readonly total: number };
}

/** A GPU as NVML sees it now. A field the board cannot answer is null. */
export interface NativeGpuState {
  readonly smClockMHz: number | null;
  readonly memoryClockMHz: number | null;
  readonly maxSmClockMHz: number | null;
  readonly maxMemoryClockMHz: number | null;
  readonly temperatureC: number | null;
  readonly slowdownTemperatureC: number | null;
  readonly powerW: number | null;
  readonly powerLimitW: number | null;
  /** Bits of nvmlClocksEventReasons. */
  readonly throttleReasons: number | null;
  readonly utilizationPercent: number | null;
  readonly memoryUsedBytes: number | null;
  readonly memoryTotalBytes: number | null;
  readonly persistenceMode: boolean | null;
  readonly migMode: boolean | null;
  readonly eccErrorsUncorrected: number | null;
  /** Every process with a context on this GPU, this one included. */
  readonly processes: readonly { readonly pid: number; readonly usedBytes: number | null }[] | null;
}

export interface NativeRuntime {
  /** Loads a plan. Errors: TF_GPU_UNAVAILABLE, TF_PLAN_LOAD_FAILED, TF_GPU_MEMORY, TF_LIBRARY_LOAD_FAILED, TF_LIBRARY_UNSUPPORTED. */
  openEngine(
    request: {
      readonly inferenceLibrary: string;
      readonly pluginLibrary: string | null;
      readonly pluginPaths: readonly string[];
      readonly planPath: string;
      /** Names the engine on the time lines of profilers. */
      readonly label: string;
      /** Ordinal of the CUDA device among the visible ones. */
      readonly device: number;
      /** Version-compatible plans carry their own runtime, which is code: it runs only where this is true. */
      readonly allowHostCode: boolean;
      /** Bytes of weights that stay on the GPU, `automatic` for the library's choice, null for all. Only for engines built with weight streaming. */
      readonly weightBudget: number | 'automatic' | null;
      readonly verbose: boolean;
    },
    onEvent: (event: NativeEvent) => void,
  ): NativeJob<NativeEngine>;
  /** One measurement on an engine that is open, entirely in C++: no JavaScript between two inferences. Makes its own contexts and closes them. */
  measure(
    engine: NativeEngine,
    request: {
      readonly profile: number;
      readonly shapes: readonly NativeShape[];
      /** Raw bytes of each input; seeded by the caller. */
      readonly inputs: readonly NativeHostData[];
      /** Contexts that run at once, each with its own streams. */
      readonly streams: number;
      readonly warmUpMs: number;
      /** From the first timed inference on. */
      readonly durationMs: number;
      /** At least this many timed inferences per stream, however long they take. */
      readonly iterations: number;
      /** Host to device and back in every inference, overlapped with the compute of the inference before as trtexec does. */
      readonly transfers: boolean;
      readonly graph: boolean;
      /** The waiting thread spins; otherwise it sleeps until the GPU wakes it (events with CU_EVENT_BLOCKING_SYNC, trtexec's default). */
      readonly spinWait: boolean;
      /** Pause between inferences of a stream, milliseconds. */
      readonly idleMs: number;
      /** A host thread for each stream, in place of one that serves all in turn as trtexec does by default. */
      readonly threads?: boolean;
    },
  ): NativeJob<NativeMeasurement>;
  /** Null where NVML is absent or does not know the GPU. `uuid` as in `Gpu.uuid`. */
  gpuState(uuid: string): NativeGpuState | null;
}
