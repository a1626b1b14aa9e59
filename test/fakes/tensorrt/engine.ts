/**
 * Engines that run without a GPU: fake libraries (in this folder), compiled once into `build/fake/`, whose plans describe small networks
 * that are really computed. Tests only; nothing here is NVIDIA's.
 *
 * The addon asks the loader for `libcuda.so.1`, so the fake for it is found only where LD_LIBRARY_PATH names its folder when a process STARTS:
 * run what you test in a child process with `environment` (`spawnSync(process.execPath, [...], { env: environment({...}) })`), or in vitest under a worker
 * started so. Setting LD_LIBRARY_PATH inside a running process does nothing.
 *
 * What the fakes do at a wish (all are environment variables of the child; the first seven may change while it runs):
 *   FAKE_ENQUEUE=N            enqueueV3 is refused from the Nth of the process on
 *   FAKE_CAPTURE=refused      the library synchronises while a stream captures
 *   FAKE_FAULT=1              whoever waits for the GPU is told of an illegal memory access
 *   FAKE_PINNED=none          no memory can be pinned
 *   FAKE_ALLOCATION_FAILS=N   allocations of device memory fail from the Nth on, counted from when the wish was made
 *   FAKE_CONTEXT=missing|memory, FAKE_LOAD=fails|memory   no context; no engine
 *   FAKE_LOAD=cuts, FAKE_LOADED=FILE   the plan loses its end while it is loaded
 *   FAKE_LOADS=N              a load goes on when N are under way
 *   FAKE_REFIT=missing|fails|half   a weight is missing; the weights are not taken; the engine takes half of each
 *   FAKE_RUN=aborts           the process aborts in enqueueV3
 *   FAKE_COMPUTE_US=N, FAKE_COPY_US=N   how long an inference and a copy take on the fake GPU's clock
 *   FAKE_GPUS=N               how many GPUs there are (1), each with name, UUID, memory and context of its own; CUDA_VISIBLE_DEVICES chooses among them
 *   FAKE_GPU_BYTES=N[,N…]     size of the memory of each; FAKE_GPU=none|broken|full: no GPU, or no memory for a context
 *   FAKE_PLAN=FILE            the plan that a build gives; what is parsed has its tensors
 *   FAKE_CALLS=FILE           what the libraries were asked, a line each
 */
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Fake, FakeBench, fakes } from './library.js';

/** Name, type, sizes; -1 is one that the profile's rows are for, and in an output the first open one of the first input. */
type FakeTensor = readonly [name: string, dtype: 'float32' | 'int64', shape: readonly number[]];

export interface NetworkPlan {
  /**
   * `affine`: y = 2x + 1. `copy`: y = x, of any dtype. `state`: state_out = state + x, y = 2 state_out. `nonzero`: y = the places of x that are not 0 (data-dependent).
   * `shape`: y = x again and again, of the shape that the host tensor s says; host output t = 2s. x is [rows, inner]; of `nonzero` [rows].
   * `means`: each of `outputs` divides the first of `inputs` of its type into as many parts as it has elements, and gives their means.
   */
  readonly kind: 'affine' | 'copy' | 'state' | 'nonzero' | 'shape' | 'means';
  /** Of `means`. */
  readonly inputs?: readonly FakeTensor[];
  readonly outputs?: readonly FakeTensor[];
  /** Elements of a row; 64 unless told. */
  readonly inner?: number;
  /** Fixed in place of open rows. */
  readonly rows?: number;
  /** Of `copy`: `nvinfer1::DataType`. */
  readonly dtype?: number;
  /** Rows: least, usual, most; one profile of [1, 8, 64] unless told. */
  readonly profiles?: readonly (readonly [number, number, number])[];
  readonly memory?: number;
  readonly streamable?: number;
  readonly auxStreams?: number;
  /** Scalar weights of an engine that can be refitted; `affine` has `two` and `one`. */
  readonly weights?: Readonly<Record<string, number>>;
  /** The plan loads only where host code is allowed. */
  readonly hostCode?: boolean;
  /** What the inspector says: JSON on one line. */
  readonly layers?: string;
}

export interface FakeEngine {
  readonly fake: Fake;
  readonly inferenceLibrary: string;
  readonly bench: FakeBench;
  /** For a child process. */
  environment(more?: Record<string, string | undefined>): NodeJS.ProcessEnv;
  /** Lays the libraries out as an installation, for TENSORRT_HOME; gives `home`. */
  install(home: string): string;
  /** Writes a plan and returns its path. */
  writePlan(path: string, network: NetworkPlan): string;
}

export async function fakeEngine(fake: Fake, given?: FakeBench): Promise<FakeEngine> {
  const bench = given ?? (await FakeBench.plain());
  return {
    fake,
    inferenceLibrary: bench.library(fake),
    bench,
    // What measures seconds of the fake GPU's clock takes milliseconds: that clock need not be ours.
    environment: (more = {}) => ({
      ...process.env,
      ...bench.environment({ FAKE_CLOCK: 'paper', FAKE_COMPUTE_US: '2000', ...more }),
    }),
    install(home) {
      const { version } = fakes[fake];
      mkdirSync(join(home, 'lib'), { recursive: true });
      const { inference, parser } = bench.toolchain(fake).libraries;
      for (const [file, stem] of [
        [inference, 'nvinfer'],
        [parser ?? '', 'nvonnxparser'],
      ] as const) {
        const library = `lib${stem}.so.${version}`;
        copyFileSync(file, join(home, 'lib', library));
        symlinkSync(library, join(home, 'lib', `lib${stem}.so.${version.split('.')[0]}`));
      }
      return home;
    },
    writePlan(path, network) {
      writeFileSync(path, planBytes(fake, network));
      return path;
    },
  };
}

/** The bytes of a plan: the header of a real one, then lines that the fake reads. */
export function planBytes(fake: Fake, network: NetworkPlan): Buffer {
  const {
    kind,
    inner,
    rows,
    dtype,
    profiles = [],
    memory,
    streamable,
    auxStreams,
    hostCode,
    weights,
    layers,
    inputs = [],
    outputs = [],
  } = network;
  const lines = ['fake-network', `kind ${kind}`];
  const hostcode = hostCode === true ? 1 : undefined;
  const numbers = { inner, rows, dtype, memory, streamable, auxstreams: auxStreams, hostcode };
  for (const [name, value] of Object.entries(numbers))
    if (value !== undefined) lines.push(`${name} ${value}`);
  for (const [side, tensors] of Object.entries({ input: inputs, output: outputs }))
    for (const [name, type, shape] of tensors)
      lines.push(`${side} ${name} ${type === 'int64' ? 8 : 0} ${shape.join(' ')}`);
  for (const profile of profiles) lines.push(`profile ${profile.join(' ')}`);
  if (weights !== undefined) lines.push('refit 1');
  for (const [name, value] of Object.entries(weights ?? {})) lines.push(`weight ${name} ${value}`);
  if (layers !== undefined) lines.push(`layers ${layers}`);
  const body = Buffer.from(`${lines.join('\n')}\n`);
  const header = Buffer.alloc(32);
  header.write(fake === 'rtx1' ? 'vtrt' : 'ftrt', 'latin1');
  header.writeBigUInt64LE(BigInt(header.length + body.length), 16);
  header.set(fakes[fake].version.split('.').map(Number), 24);
  return Buffer.concat([header, body]);
}
