import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { sha256 } from '../../src/base/files/digest.js';
import type { TrtforgeError } from '../../src/errors.js';
import { buildModel, GraphBuilder } from '../../src/formats/onnx/builder.js';
import { writeModel } from '../../src/formats/onnx/write.js';
import type {
  MeasuredFacts,
  StreamsBuilder,
  StreamsEngine,
  StreamsMeter,
} from '../../src/products/deepstream/effects.js';
import type { StreamsPaths } from '../../src/products/deepstream/names.js';
import { type StreamsMode, seedMode } from '../../src/products/deepstream/options.js';
import { streamsLogText } from '../../src/products/deepstream/trtexec-form-log.js';
import type { BenchResult, BenchRun } from '../../src/quality/bench/result.js';

/** Images per second of a GPU at a batch. */
export type Rates = (batch: number, engineMaxBatch: number) => number;

/** A measurement as bench gives it, of so many images per second. */
export function benchResult(
  batch: number,
  imagesPerSecond: number,
  mode: StreamsMode = seedMode,
): {
  readonly result: BenchResult;
  readonly run: BenchRun;
} {
  const qps = imagesPerSecond / batch;
  const mean = 1000 / qps;
  const gpuMs = {
    count: 1000,
    min: mean * 0.9,
    max: mean * 1.2,
    mean,
    median: mean,
    p90: mean * 1.05,
    p95: mean * 1.1,
    p99: mean * 1.15,
    coefficientOfVariation: 0.01,
    interpolated: { p90: mean * 1.05, p95: mean * 1.1, p99: mean * 1.15 },
  };
  const measuredMode = {
    kind: 'gpu-only' as const,
    ...mode,
    graphFallback: null,
    streams: 1,
    iterations: 10,
    idleMs: 0,
  };
  const run: BenchRun = {
    batch,
    shapes: [{ name: 'images', shape: [batch, 3, 64, 64] }],
    profile: 0,
    gpuMs,
    endToEndMs: null,
    qps,
    itemsPerSecond: imagesPerSecond,
    mode: measuredMode,
    inputMs: null,
    outputMs: null,
    enqueueMs: { ...gpuMs, mean: 0.05 },
    wallMs: 10_003.5,
    warmUpInferences: 100,
    peakGpuBytes: null,
    doubts: [],
    gpuStates: { before: null, during: [], after: null },
    samples: null,
  };
  const result: BenchResult = {
    schema: 'trtforge.bench/1',
    subject: {
      path: 'net.engine',
      bytes: 4096,
      name: null,
      identity: null,
      contextBytes: 64 << 20,
      loadedBytes: null,
      loadMs: null,
      layers: null,
    },
    backend: 'TensorRT 10.6.0.26',
    gpu: { name: 'Test GPU', uuid: 'GPU-0', driver: null },
    gpuMs,
    endToEndMs: null,
    qps,
    itemsPerSecond: imagesPerSecond,
    mode: measuredMode,
    valleys: [],
    runs: [run],
    layers: null,
    warnings: [],
  };
  return { result, run };
}

/** A builder and a meter that leave real files and note what they did. */
export class PaperGpu {
  readonly did: string[] = [];
  /** Changes the identity of every engine: another model, other options. */
  identity = 'a';
  /** What goes wrong in place of a deed. */
  readonly failures = new Map<string, TrtforgeError>();
  /** The process dies at the nth deed: before it left anything, or when its files are there and nobody was told. */
  death: { readonly at: number; readonly when: 'before' | 'after' } | null = null;
  readonly #paths: StreamsPaths;
  readonly #rates: Rates;
  readonly #facts: Partial<MeasuredFacts>;

  constructor(paths: StreamsPaths, rates: Rates, facts: Partial<MeasuredFacts> = {}) {
    this.#paths = paths;
    this.#rates = rates;
    this.#facts = facts;
  }

  readonly builder: StreamsBuilder = {
    find: async (maxBatch) => {
      const engine = this.#engine(maxBatch);
      return existsSync(engine.path) && sha256(readFileSync(engine.path)) === engine.sha256 ? engine : null;
    },
    build: async (maxBatch) => {
      this.#note(`build ${maxBatch}`);
      const engine = this.#engine(maxBatch);
      mkdirSync(dirname(engine.path), { recursive: true });
      writeFileSync(engine.path, this.#plan(maxBatch));
      this.#die('after');
      return engine;
    },
  };

  meter(mode: StreamsMode = seedMode, gpu = 'Test GPU'): StreamsMeter {
    return {
      tool: 'trtforge',
      mode,
      gpu,
      measure: async (engine, batch, logPath) => {
        this.#note(`measure ${batch} on ${engine.maxBatch}`);
        const { result, run } = benchResult(batch, this.#rates(batch, engine.maxBatch), mode);
        const gpuBytes = 1 << 30;
        mkdirSync(dirname(logPath), { recursive: true });
        writeFileSync(
          logPath,
          streamsLogText({ result, run, enginePath: engine.path, gpuBytes, at: new Date(0) }),
        );
        this.#die('after');
        return {
          backend: 'paper',
          gpu: 'Test GPU',
          graph: mode.graph,
          contextBytes: null,
          gpuBytes,
          warnings: [],
          ...this.#facts,
        };
      },
    };
  }

  #note(what: string): void {
    this.did.push(what);
    this.#die('before');
    const failure = this.failures.get(what);
    if (failure !== undefined) throw failure;
  }

  #die(when: 'before' | 'after'): void {
    if (this.death?.when === when && this.death.at === this.did.length) throw new Error('killed');
  }

  #plan(maxBatch: number): Buffer {
    return Buffer.from(`plan ${this.identity} for batches up to ${maxBatch}`);
  }

  #engine(maxBatch: number): StreamsEngine {
    const plan = this.#plan(maxBatch);
    return {
      maxBatch,
      path: this.#paths.engine(maxBatch),
      bytes: plan.length,
      sha256: sha256(plan),
      identity: this.identity,
      buildSeconds: 60.25,
      library: 'tensorrt 10.6.0.26',
      warnings: [],
    };
  }
}

/** Writes a model that takes pictures of 3 x 64 x 64 and gives them back through a Relu; its batch is open. */
export async function writePictureModel(folder: string, name = 'net'): Promise<string> {
  const path = join(folder, 'models', name, 'model', `${name}.onnx`);
  mkdirSync(dirname(path), { recursive: true });
  const graph = new GraphBuilder(basename(path));
  graph.input('images', 'float32', ['batch', 3, 64, 64]);
  graph.node('Relu', { name: 'relu', inputs: ['images'], outputs: ['y'] });
  graph.output('y', 'float32', ['batch', 3, 64, 64]);
  await writeModel(buildModel(graph), path);
  return path;
}
