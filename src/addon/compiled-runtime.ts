import type {
  NativeEngine,
  NativeEngineFacts,
  NativeMeasurement,
  NativeOutput,
  NativeRuntime,
  NativeShape,
  SmallTensors,
} from './native-engine.js';
import type { NativeJob } from './native-job.js';

/** An object of the compiled module; it lives until JavaScript collects this. */
export type Handle = object;

/** A call as the module prepared it. Slots are its device tensors and host outputs, by number. */
export interface PreparedCall {
  readonly handle: Handle;
  readonly graph: boolean;
  readonly graphRefusal: string | null;
  readonly smallTensors: SmallTensors;
  readonly outputs: readonly NativeOutput[];
  readonly slots: readonly { readonly name: string; readonly input: boolean; readonly bytes: number }[];
}

/** A binding as the module takes it: no memory means that the call owns a pinned and a device buffer. */
export interface CompiledBinding {
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
