import type { Gpu } from '../../addon/addon.js';
import type {
  HostGrowth,
  NativeEngineFacts,
  NativeGpuState,
  NativeMeasurement,
  NativeShape,
} from '../../addon/native-engine.js';
import type { OptionsOf } from '../../base/options/option.js';
import { type SupervisedSession, startSupervised } from '../../base/process/supervise.js';
import type { EngineBinding } from '../../engines/runtime/tensorrt/engine-interface.js';
import type { loadOptions } from '../../engines/runtime/tensorrt/options.js';
import type { Work } from '../../events.js';
import type { ModeRequest } from '../../tensorrt/trtexec/options.js';
import type { BenchRequest, InputRequest } from './options.js';
import type { ColdPhase } from './result.js';

/** A GPU before anything of ours is on it. */
export interface GpuFound {
  readonly gpu: Gpu;
  readonly driver: string | null;
  readonly state: NativeGpuState | null;
  /** The process that will use it. */
  readonly pid: number;
}

interface OpenRequest extends OptionsOf<typeof loadOptions> {
  readonly engine: string;
  readonly device: number;
}

export interface BenchedEngine {
  readonly facts: NativeEngineFacts;
  readonly inputs: readonly EngineBinding[];
  /** `TensorRT 10.6.0.26` */
  readonly backend: string;
  readonly fileBytes: number;
  /** From the passport; null where there is none. */
  readonly passport: { readonly name: string; readonly identity: string } | null;
}

interface MeasureRequest {
  /** Its path, for messages. */
  readonly engine: string;
  readonly inputs: readonly EngineBinding[];
  readonly profile: number;
  readonly shapes: readonly NativeShape[];
  readonly fill: InputRequest;
  readonly mode: ModeRequest;
}

export interface Measured {
  readonly measurement: NativeMeasurement;
  readonly during: readonly NativeGpuState[];
  readonly after: NativeGpuState | null;
}

type LayerRequest = Omit<MeasureRequest, 'mode'> & { readonly runs: number };

interface ColdRequest extends OpenRequest, Pick<BenchRequest, 'shapes' | 'inputs'> {
  /** Whether a CUDA graph is captured after the first answer. */
  readonly graph: boolean;
}

export interface ColdStart {
  readonly ms: Readonly<Record<ColdPhase, number | null>>;
  readonly hostMemory: HostGrowth;
  /** The files of TensorRT that were loaded. */
  readonly libraries: readonly string[];
}

export interface RawLayers {
  /** The inspector's JSON. */
  readonly inspector: string;
  readonly times: readonly { readonly name: string; readonly ms: number; readonly runs: number }[];
}

/** The measurer of an engine: one GPU, one engine, one operation after another. Errors are those of `loadEngine` and `native-engine.ts`. */
export interface Measurer {
  gpu(device: number): Promise<GpuFound>;
  /** Once, after `gpu`. */
  open(request: OpenRequest): Promise<BenchedEngine>;
  measure(request: MeasureRequest): Promise<Measured>;
  layers(request: LayerRequest): Promise<RawLayers>;
  /** In place of the others, once: all that a process does up to its first answer. */
  cold(request: ColdRequest): Promise<ColdStart>;
  close(): Promise<void>;
}

/** One call on a measurer, as it crosses to the child. */
export type MeasurerCall =
  | { readonly call: 'gpu'; readonly request: number }
  | { readonly call: 'open'; readonly request: OpenRequest }
  | { readonly call: 'measure'; readonly request: MeasureRequest }
  | { readonly call: 'layers'; readonly request: LayerRequest }
  | { readonly call: 'cold'; readonly request: ColdRequest };

interface MeasurerOptions extends Work {
  /** For the error of a child that dies: "measuring model.engine". */
  readonly doing: string;
}

export type StartMeasurer = (options: MeasurerOptions) => Measurer;

/** A measurer in a child process of its own: TensorRT may abort it, cancelling kills it, and columns cross as typed arrays. */
export const measureInChild: StartMeasurer = ({ emit, signal, environment, doing }) => {
  const module = new URL('../../../dist/quality/bench/measurer-child.js', import.meta.url);
  const child: SupervisedSession = startSupervised(module, { emit, doing, env: environment });
  const ask = (call: MeasurerCall) => child.request(call, signal);
  return {
    gpu: (request) => ask({ call: 'gpu', request }) as Promise<GpuFound>,
    open: (request) => ask({ call: 'open', request }) as Promise<BenchedEngine>,
    measure: (request) => ask({ call: 'measure', request }) as Promise<Measured>,
    layers: (request) => ask({ call: 'layers', request }) as Promise<RawLayers>,
    cold: (request) => ask({ call: 'cold', request }) as Promise<ColdStart>,
    close: () => child.close(),
  };
};
