import { requireAddon } from './addon.js';
import { jobOf, type NativeJob, rethrown } from './native-job.js';

/** ONNX Runtime's C interface (`native/src/ort_*`), as data goes in and out of it. Every call names the library it means. */
export interface NativeOnnxRuntime {
  /** Loads a `libonnxruntime.so` into this process. Throws TF_LIBRARY_LOAD_FAILED, TF_LIBRARY_TOO_OLD (before 1.20). */
  probe(libraryPath: string): OnnxRuntimeBuild;
  /** Why the loader does not load a shared library, by path or name; null where it does. What loads stays loaded. */
  loadError(library: string): string | null;
  /** Rejects with TF_LIBRARY_…, TF_ONNXRUNTIME_MISSING for a provider's library, TF_USAGE for an option that a provider rejects, TF_ONNXRUNTIME_FAILED. */
  open(request: {
    readonly library: string;
    readonly modelPath: string;
    /** Where external data is; default: beside the model. */
    readonly weightsFolder?: string | undefined;
    /** 0: ONNX Runtime's own number. */
    readonly threads: number;
    /** Before the CPU, which is always there. */
    readonly providers: readonly AppendedProvider[];
    /** Session configuration entries. */
    readonly config: readonly Setting[];
    /** Start of the name of the file for a record of the runs; null: no record. */
    readonly profilePrefix: string | null;
    readonly device: number;
  }): NativeJob<NativeOrtSession>;
}

export interface OnnxRuntimeBuild {
  /** `1.30.0` */
  readonly version: string;
  /** The library's own build: branch, commit, flags. */
  readonly buildInfo: string;
}

export type Setting = readonly [key: string, value: string];

export interface AppendedProvider {
  readonly name: 'cuda' | 'tensorrt';
  readonly options: readonly Setting[];
}

/** Which provider took a node, as ONNX Runtime names both. */
export interface PlacedNode {
  readonly provider: string;
  readonly name: string;
  readonly operator: string;
}

export interface NativeOrtSession extends OnnxRuntimeBuild {
  /** Empty before 1.24, and without `session.record_ep_graph_assignment_info`. */
  readonly placement: readonly PlacedNode[];
  /** Nothing is copied yet: the bytes must stay as they are until the last run. Throws TF_SESSION_CLOSED. */
  bind(request: NativeOrtBinding): NativeOrtCall;
  /** The file with the record of the runs so far. */
  endProfiling(): string;
  /** Stops a run and frees all. */
  close(): NativeJob<void>;
}

export interface NativeOrtBinding {
  readonly inputs: readonly {
    readonly name: string;
    /** `TensorProto.DataType`. */
    readonly type: number;
    readonly shape: readonly number[];
    readonly bytes: Uint8Array;
  }[];
  /** `feeds`: the input of the next run that the output becomes, without leaving the device. Such an input may then be left out. */
  readonly outputs: readonly { readonly name: string; readonly feeds: string | null }[];
  /** Inputs are copied to the device once, and outputs stay there. */
  readonly resident: boolean;
}

export interface NativeOrtOutput {
  readonly name: string;
  readonly type: number;
  readonly shape: readonly number[];
  readonly data: ArrayBuffer;
}

/** One set of inputs. Runs of a session follow one another on its own thread. */
export interface NativeOrtCall {
  /** Rejects with TF_ONNXRUNTIME_FAILED, TF_CANCELLED, TF_SESSION_CLOSED. */
  run(): Promise<void>;
  /** Ends the run after the node that it is at; the call runs no more. */
  cancel(): void;
  /** Copies of the outputs of the last run that are on the host. */
  outputs(): readonly NativeOrtOutput[];
}

type Handle = object;

interface CompiledOnnxRuntime {
  ortProbe(libraryPath: string): OnnxRuntimeBuild;
  loadError(library: string): string | null;
  ortOpen(
    ...request: Parameters<NativeOnnxRuntime['open']>
  ): NativeJob<OnnxRuntimeBuild & { readonly placement: readonly PlacedNode[]; readonly handle: Handle }>;
  ortBind(session: Handle, request: NativeOrtBinding): Handle;
  ortRun(call: Handle): Promise<void>;
  ortCancel(call: Handle): void;
  ortOutputs(call: Handle): readonly NativeOrtOutput[];
  ortEndProfiling(session: Handle): string;
  ortClose(session: Handle): NativeJob<void>;
}

/** Throws TF_NATIVE_UNSUPPORTED, TF_NATIVE_NOT_BUILT. */
export function loadOnnxRuntime(): NativeOnnxRuntime {
  const compiled = requireAddon() as CompiledOnnxRuntime;
  return {
    probe: (libraryPath) => rethrown(() => compiled.ortProbe(libraryPath)),
    loadError: (library) => rethrown(() => compiled.loadError(library)),
    open: (request) => {
      const opening = jobOf(rethrown(() => compiled.ortOpen(request)));
      return { ...opening, done: opening.done.then((opened) => sessionOf(compiled, opened)) };
    },
  };
}

function sessionOf(
  compiled: CompiledOnnxRuntime,
  { handle, ...facts }: Awaited<ReturnType<CompiledOnnxRuntime['ortOpen']>['done']>,
): NativeOrtSession {
  return {
    ...facts,
    bind: (request) => {
      const call = rethrown(() => compiled.ortBind(handle, request));
      return {
        run: () => jobOf({ done: rethrown(() => compiled.ortRun(call)), cancel: () => {} }).done,
        cancel: () => rethrown(() => compiled.ortCancel(call)),
        outputs: () => rethrown(() => compiled.ortOutputs(call)),
      };
    },
    endProfiling: () => rethrown(() => compiled.ortEndProfiling(handle)),
    close: () => jobOf(rethrown(() => compiled.ortClose(handle))),
  };
}
