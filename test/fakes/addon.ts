import type {
  NativeCall,
  NativeContext,
  NativeDeviceMemory,
  NativeEngine,
  NativeEngineTensor,
  NativeHostData,
  NativeRuntime,
  NativeShape,
} from '../../src/addon/native-engine.js';
import type { NativeJob } from '../../src/addon/native-job.js';
import type { EngineAddon } from '../../src/engines/runtime/tensorrt/load-engine.js';
import { TrtforgeError } from '../../src/errors.js';
import { type Dtype, dtypes, elementCount, packedBytes } from '../../src/formats/tensor/dtype.js';

/** What a fake kernel sees: bytes of every input, as they lie on the device, and where each output goes. */
export type Kernel = (
  tensors: Readonly<Record<string, Uint8Array>>,
  shapes: ReadonlyMap<string, readonly number[]>,
) => void;

export interface FakeSpec {
  readonly tensors: readonly NativeEngineTensor[];
  /** Shape of each output from the inputs'; null where it depends on the data. */
  readonly outputShape: (name: string, shapes: ReadonlyMap<string, NativeShape>) => readonly number[] | null;
  readonly kernel: Kernel;
  /** Of data-dependent outputs, after the kernel: shape and bytes. */
  readonly found?: (name: string) => { readonly shape: readonly number[]; readonly bytes: Uint8Array };
  readonly graphFallback?: string;
  readonly profiles?: number;
}

/** What an engine says of itself where nothing depends on it. */
export const fakeFacts: NativeEngine['facts'] = {
  name: 'fake',
  layers: 1,
  profiles: 1,
  auxStreams: 0,
  deviceMemoryBytes: 0,
  deviceMemoryBytesPerProfile: [0],
  streamableWeightsBytes: 0,
  weightBudgetBytes: 0,
  refittable: false,
  tensors: [],
  libraryVersion: '1.7.1.116',
  loadMs: 1,
  readMs: 0,
  deserializeMs: 1,
  hostMemory: { peakBytes: 1, anonymousBytes: 1, mappedBytes: 0 },
  gpuMemory: { freeBefore: 2, freeAfter: 1, total: 3 },
};

/** An addon in memory: the contract of native-engine.ts over typed arrays, so that what the sessions do with it can be seen. */
export class FakeAddon implements EngineAddon {
  readonly opened: Parameters<NativeRuntime['openEngine']>[0][] = [];
  /** In order: `context 0`, `prepare x[2,3] graph`, `run`, `close call`, … */
  readonly log: string[] = [];
  gpuList = [
    {
      index: 0,
      name: 'Fake 89',
      uuid: 'GPU-0',
      computeCapability: 89,
      memoryBytes: 2 ** 34,
      multiprocessors: 1,
    },
  ];
  reason: string | null = null;
  failures = new Map<string, TrtforgeError>();
  /** Milliseconds that a run takes on its own thread. */
  runMs = 0;
  /** A run ends after this, and not by the clock. */
  runLasts: Promise<unknown> | undefined;
  running = 0;
  mostRunning = 0;
  live = 0;
  readonly #spec: FakeSpec;

  constructor(spec: FakeSpec) {
    this.#spec = spec;
  }

  gpus = () => ({
    gpus: this.gpuList,
    cudaVersion: '13.0',
    driverVersion: '580.1',
    reason: this.reason,
  });
  gpuState = () => null;
  measure = () => {
    throw new Error('not measured here');
  };

  openEngine(request: Parameters<NativeRuntime['openEngine']>[0]): NativeJob<NativeEngine> {
    this.opened.push(request);
    return this.job('open', () => this.#engine());
  }

  job<T>(name: string, work: () => T, lasts: number | Promise<unknown> = 0): NativeJob<T> {
    const failure = this.failures.get(name);
    let cancelled = false;
    const done = new Promise<T>((resolve, reject) => {
      const end = () => {
        if (cancelled) return reject(new TrtforgeError('TF_CANCELLED', 'Cancelled by the fake.'));
        if (failure !== undefined) return reject(failure);
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      };
      if (typeof lasts === 'object') void lasts.then(end);
      else if (lasts > 0) setTimeout(end, lasts);
      else setImmediate(end);
    });
    return {
      done,
      cancel: () => {
        cancelled = true;
      },
    };
  }

  #engine(): NativeEngine {
    const { tensors, profiles = 1 } = this.#spec;
    return {
      facts: { ...fakeFacts, profiles, tensors },
      createContext: ({ profile }) =>
        this.job('context', () => {
          this.log.push(`context ${profile}`);
          return this.#context();
        }),
      layers: () => this.job('layers', () => '{"Layers":[]}'),
      refit: ({ modelPath, changed }) =>
        this.job('refit', () => {
          this.log.push(`refit ${modelPath} ${changed}`);
        }),
      serialize: () => this.job('serialize', () => 1),
      allocate: (bytes) => new FakeMemory(this, bytes),
      close: () =>
        this.job('close', () => {
          this.log.push('close engine');
        }),
    };
  }

  #context(): NativeContext {
    return {
      outputsFor: (shapes) => this.#outputs(shapes),
      prepare: (request) => this.job('prepare', () => this.#prepare(request)),
      layerTimes: () => [],
      close: () =>
        this.job('close', () => {
          this.log.push('close context');
        }),
    };
  }

  #outputs(shapes: readonly NativeShape[]) {
    const byName = new Map(shapes.map((shape) => [shape.name, shape]));
    return this.#spec.tensors
      .filter(({ mode }) => mode === 'output')
      .map((tensor) => {
        const shape = this.#spec.outputShape(tensor.name, byName);
        return { name: tensor.name, shape, bytes: shape === null ? 1024 : bytesOf(tensor, shape) };
      });
  }

  #prepare({ shapes, bindings, graph }: Parameters<NativeContext['prepare']>[0]): NativeCall {
    const fixed = new Map(shapes.map(({ name, shape }) => [name, shape]));
    const outputs = this.#outputs(shapes);
    for (const { name, shape } of outputs) if (shape !== null) fixed.set(name, shape);
    this.log.push(
      `prepare ${shapes.map(({ name, shape, values }) => `${name}[${values ?? shape}]`).join(' ')}${graph ? ' graph' : ''}`,
    );
    const dataDependent = outputs.filter(({ shape }) => shape === null).map(({ name }) => name);
    const refusal = graph
      ? (this.#spec.graphFallback ??
        (dataDependent.length > 0 ? `The shape of ${dataDependent[0]} depends on the data.` : null))
      : null;
    const pinned = new Map<string, ArrayBuffer>();
    const memory = new Map<string, () => Uint8Array>();
    for (const binding of bindings) {
      const tensor = this.#spec.tensors.find(({ name }) => name === binding.name)!;
      const shape = fixed.get(binding.name);
      if (shape === undefined) continue;
      const bytes = bytesOf(tensor, shape);
      if (binding.kind === 'device') {
        memory.set(binding.name, () =>
          (binding.memory as FakeMemory).content.subarray(binding.offset, binding.offset + bytes),
        );
      } else {
        const buffer = new ArrayBuffer(bytes);
        pinned.set(binding.name, buffer);
        memory.set(binding.name, () => new Uint8Array(buffer));
      }
    }
    this.live++;
    let closed = false;
    let found: { name: string; shape: readonly number[]; bytes: Uint8Array }[] = [];
    const compute = (inputs: readonly NativeHostData[], into: readonly NativeHostData[]) => {
      if (closed) throw new TrtforgeError('TF_SESSION_CLOSED', 'The call is closed.');
      const failure = this.failures.get('run');
      if (failure !== undefined) throw failure;
      for (const { name, data } of inputs) new Uint8Array(pinned.get(name)!).set(bytesIn(data));
      const values = shapes.flatMap(({ name, values: host }) =>
        host === null ? [] : [[name, new Uint8Array(Float64Array.from(host).buffer)] as const],
      );
      this.#spec.kernel(
        Object.fromEntries([...[...memory].map(([name, at]) => [name, at()] as const), ...values]),
        fixed,
      );
      found = dataDependent.map((name) => ({ name, ...this.#spec.found!(name) }));
      for (const { name, data } of into) bytesIn(data).set(new Uint8Array(pinned.get(name)!));
      this.log.push('run');
    };
    return {
      graph: graph && refusal === null,
      graphFallback: refusal,
      smallTensors: 'copied',
      outputs,
      buffer: (name) => {
        const buffer = pinned.get(name);
        if (buffer === undefined) throw new TrtforgeError('TF_SESSION_INPUT', `no buffer ${name}`);
        return buffer;
      },
      runSync: compute,
      run: (inputs, into) => {
        this.running++;
        this.mostRunning = Math.max(this.mostRunning, this.running);
        const job = this.job('run-job', () => compute(inputs, into), this.runLasts ?? this.runMs);
        void job.done.then(
          () => this.running--,
          () => this.running--,
        );
        return job;
      },
      lastShapes: () => found.map(({ name, shape }) => ({ name, shape })),
      readOutput: (name) => found.find((each) => each.name === name)!.bytes.slice().buffer,
      close: () => {
        closed = true;
        this.live--;
        this.log.push('close call');
      },
    };
  }
}

class FakeMemory implements NativeDeviceMemory {
  readonly bytes: number;
  content: Uint8Array;
  readonly #addon: FakeAddon;

  constructor(addon: FakeAddon, bytes: number) {
    this.#addon = addon;
    this.bytes = bytes;
    this.content = new Uint8Array(bytes);
    addon.live++;
  }

  write(data: ArrayBufferView, offset: number): NativeJob<void> {
    return this.#addon.job('write', () => this.content.set(bytesIn(data), offset));
  }

  read(offset: number, bytes: number): NativeJob<ArrayBuffer> {
    return this.#addon.job('read', () => this.content.slice(offset, offset + bytes).buffer as ArrayBuffer);
  }

  close(): void {
    this.#addon.live--;
    this.content = new Uint8Array(0);
  }
}

const bytesIn = (data: ArrayBufferView): Uint8Array =>
  new Uint8Array(data.buffer, data.byteOffset, data.byteLength);

const dtypeOf = ({ dtype }: NativeEngineTensor): Dtype =>
  (Object.keys(dtypes) as Dtype[]).find((name) => dtypes[name].tensorrt === dtype)!;

const bytesOf = (tensor: NativeEngineTensor, shape: readonly number[]): number =>
  packedBytes(dtypeOf(tensor), elementCount(shape));

export const range = (min: number[], opt: number[], max: number[]) => ({ min, opt, max });

export const tensor = (
  name: string,
  mode: 'input' | 'output',
  shape: readonly number[],
  more: Partial<Omit<NativeEngineTensor, 'dtype'>> & { readonly dtype?: Dtype } = {},
): NativeEngineTensor => {
  const { dtype = 'float32', ...rest } = more;
  return {
    name,
    mode,
    shape,
    dtype: dtypes[dtype].tensorrt ?? -1,
    location: 'device',
    shapeTensor: false,
    format: 0,
    profiles: [],
    ...rest,
  };
};

const floats = (bytes: Uint8Array): Float32Array =>
  new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);

/** y = 2 x, x [batch, 3]: profile 0 takes 1 to 4 rows, profile 1 takes 2 to 16. */
export const doubling: FakeSpec = {
  profiles: 2,
  tensors: [
    tensor('x', 'input', [-1, 3], {
      profiles: [range([1, 3], [2, 3], [4, 3]), range([2, 3], [8, 3], [16, 3])],
    }),
    tensor('y', 'output', [-1, 3]),
  ],
  outputShape: (_, shapes) => shapes.get('x')?.shape ?? [],
  kernel: ({ x, y }) => {
    floats(y!).set(floats(x!).map((value) => 2 * value));
  },
};

/** A filter: y = x + state, next = 0.5 state + x; state [4] is fed back. */
export const streaming: FakeSpec = {
  tensors: [
    tensor('x', 'input', [4]),
    tensor('state', 'input', [4]),
    tensor('y', 'output', [4]),
    tensor('next', 'output', [4]),
  ],
  outputShape: () => [4],
  kernel: ({ x, state, y, next }) => {
    const before = Float32Array.from(floats(state!));
    floats(y!).set(floats(x!).map((value, at) => value + before[at]!));
    floats(next!).set(floats(x!).map((value, at) => 0.5 * before[at]! + value));
  },
};
