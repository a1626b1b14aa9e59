import { z } from 'zod';
import { operatorTimesSchema } from '../../engines/layers/result.js';
import { ortFactsSchema } from '../../engines/runtime/onnxruntime/ort-facts.js';

/** Milliseconds. Percentiles by trtexec's rule; `interpolated` has the same by numpy's. */
export const spreadSchema = z.object({
  count: z.int().positive(),
  min: z.number(),
  max: z.number(),
  mean: z.number(),
  median: z.number(),
  p90: z.number(),
  p95: z.number(),
  p99: z.number(),
  coefficientOfVariation: z.number().nullable(),
  interpolated: z.object({ p90: z.number(), p95: z.number(), p99: z.number() }),
  /** Those of `--percentile`, `p50`, `p99.9`; absent without it. */
  percentiles: z.record(z.string(), z.number()).optional(),
});

/** The mode of a measurement. */
export const modeSchema = z.object({
  /** `gpu-only`: nothing is copied between inferences; `with-transfers`: host to device and back in each; `end-to-end`: a call from outside, no GPU times. */
  kind: z.enum(['gpu-only', 'with-transfers', 'end-to-end']),
  /** Whether inferences were launched as a CUDA graph; null where there is no such thing. */
  graph: z.boolean().nullable(),
  /** Why not, when it was asked for and rejected. */
  graphFallback: z.string().nullable(),
  spinWait: z.boolean().nullable(),
  streams: z.int().positive(),
  warmUpMs: z.number().nonnegative(),
  durationMs: z.number().nonnegative(),
  iterations: z.int().nonnegative(),
  idleMs: z.number().nonnegative(),
});

/** A reason not to trust a measurement. `rule` is stable; `why` is a sentence. */
export const doubtSchema = z.object({ rule: z.string(), why: z.string() });

const gpuStateSchema = z.object({
  smClockMHz: z.number().nullable(),
  memoryClockMHz: z.number().nullable(),
  maxSmClockMHz: z.number().nullable(),
  maxMemoryClockMHz: z.number().nullable(),
  temperatureC: z.number().nullable(),
  slowdownTemperatureC: z.number().nullable(),
  powerW: z.number().nullable(),
  powerLimitW: z.number().nullable(),
  /** Names of nvmlClocksEventReasons: `gpu-idle`, `software-power-cap`, `hardware-thermal-slowdown`, … */
  throttleReasons: z.array(z.string()).nullable(),
  utilizationPercent: z.number().nullable(),
  memoryUsedBytes: z.number().nullable(),
  memoryTotalBytes: z.number().nullable(),
  persistenceMode: z.boolean().nullable(),
  migMode: z.boolean().nullable(),
  eccErrorsUncorrected: z.number().nullable(),
  processes: z.array(z.object({ pid: z.int(), usedBytes: z.number().nullable() })).nullable(),
});

const figures = {
  /** GPU compute time; null where no GPU was timed. */
  gpuMs: spreadSchema.nullable(),
  /** Input copy, compute and output copy; null where nothing was copied. Of `end-to-end`: whole calls on the host's clock. */
  endToEndMs: spreadSchema.nullable(),
  /** Inferences a second of wall time, as trtexec counts them. */
  qps: z.number().nonnegative(),
  /** qps times the batch. */
  itemsPerSecond: z.number().nonnegative(),
  mode: modeSchema,
};

const runSchema = z.object({
  /** First dimension of the first input; 1 where it has none. */
  batch: z.int().nonnegative(),
  shapes: z.array(z.object({ name: z.string(), shape: z.array(z.int().nonnegative()) })),
  /** Which optimization profile; null without an engine. */
  profile: z.int().nonnegative().nullable(),
  ...figures,
  inputMs: spreadSchema.nullable(),
  outputMs: spreadSchema.nullable(),
  enqueueMs: spreadSchema.nullable(),
  wallMs: z.number().nonnegative(),
  warmUpInferences: z.int().nonnegative().nullable(),
  /** Most memory in use on the GPU while it ran, everybody's; null where nobody asked. */
  peakGpuBytes: z.number().nullable(),
  doubts: z.array(doubtSchema),
  /** Before the engine was loaded, while it was measured (in order), and after; null where NVML does not answer. */
  gpuStates: z.object({
    before: gpuStateSchema.nullable(),
    during: z.array(gpuStateSchema),
    after: gpuStateSchema.nullable(),
  }),
  /** The file with every sample, where one was asked for. */
  samples: z.string().nullable(),
});

export const layerTimesSchema = z.object({
  runs: z.int().positive(),
  /** All layers together, milliseconds a run; profiling makes it slower than the measured time. */
  totalMs: z.number().nonnegative(),
  layers: z.array(
    z.object({
      /** Position in the engine as its inspector lists it; null when the inspector does not know the name. */
      index: z.int().nonnegative().nullable(),
      name: z.string(),
      type: z.string().nullable(),
      precision: z.string().nullable(),
      tactic: z.string().nullable(),
      onnxNodes: z.array(z.string()),
      /** Milliseconds a run. */
      ms: z.number().nonnegative(),
      /** Of all layers, a share of one. */
      share: z.number().nonnegative(),
    }),
  ),
});

const subjectSchema = z.object({
  /** The file that was measured. */
  path: z.string(),
  /** Bytes of that file. */
  bytes: z.int().nonnegative(),
  /** From the passport; null where there is none. */
  name: z.string().nullable(),
  identity: z.string().nullable(),
  /** Plug-in libraries that were loaded with it; absent for none. */
  plugins: z.array(z.string()).optional(),
  /** Activation memory of one context at the largest profile, bytes. */
  contextBytes: z.number().nullable(),
  /** Of an engine with weight streaming: weights that can be streamed, and how much of them may stay on the GPU; absent for others, and where trtexec does not state it. */
  streamableWeightsBytes: z.number().optional(),
  weightBudgetBytes: z.number().optional(),
  /** The budget that was asked for, bytes or the word; absent where none was. */
  weightBudgetAsked: z.union([z.number(), z.literal('automatic')]).optional(),
  /** GPU memory that loading it took, bytes; null where it was not requested. */
  loadedBytes: z.number().nullable(),
  loadMs: z.number().nullable(),
  layers: z.int().nonnegative().nullable(),
});

/** A batch that takes longer per item than a smaller one, beyond the noise of both measurements. */
const valleySchema = z.object({
  batch: z.int().positive(),
  /** The smaller batch that is fastest per item, and how much slower this one is: 0.14 for 14 %. */
  fastest: z.int().positive(),
  slower: z.number().positive(),
  /** Measured batches to use instead: the fastest smaller one, and the next larger one that is not a valley. */
  use: z.array(z.int().positive()).min(1),
  /** Whether nothing speaks against the two measurements. */
  isReliable: z.boolean(),
  message: z.string(),
});

const coldSpread = z.object({ median: z.number(), min: z.number(), max: z.number() });
/** Milliseconds of what a process does, in order. */
const coldTimes = z.object({
  /** Node.js, modules, the addon. */
  start: coldSpread,
  /** The plan compared with its passport, and a TensorRT found for it. */
  check: coldSpread,
  /** TensorRT and the driver loaded, the GPU's context made. */
  library: coldSpread,
  /** The pages of the plan into memory. */
  read: coldSpread,
  deserialize: coldSpread,
  contexts: coldSpread,
  /** Buffers, inputs to the GPU, the inference, outputs to the host. */
  firstCall: coldSpread,
  /** All before this, from the begin of the process to the first answer. */
  total: coldSpread,
  /** Null where no CUDA graph was asked for, or none could be made. */
  capture: coldSpread.nullable(),
});
export type ColdPhase = keyof z.infer<typeof coldTimes>;
export const coldPhases: readonly ColdPhase[] = coldTimes.keyof().options;

export const coldPhaseName = (phase: ColdPhase): string =>
  phase === 'firstCall' ? 'first call' : phase === 'capture' ? 'CUDA graph' : phase;

const coldSide = z.object({
  ms: coldTimes,
  /** Growth of the last process while the plan was deserialized, bytes: at most, and in the end by memory of its own and by pages of files. */
  hostMemory: z.object({ peakBytes: z.number(), anonymousBytes: z.number(), mappedBytes: z.number() }),
});

/** Starts of an engine in new processes. */
const coldSchema = z.object({
  /** Of each side. */
  starts: z.int().positive(),
  warm: coldSide,
  dropped: coldSide,
  /** What was dropped from the page cache before each start of `dropped`, and the most that stayed there; null where the kernel does not show it. */
  files: z.array(
    z.object({ path: z.string(), bytes: z.int().nonnegative(), stayedBytes: z.number().nullable() }),
  ),
});

/** The result of `trtforge bench`. The figures at the top are those of the first of `runs`. */
export const benchResultSchema = z.object({
  schema: z.literal('trtforge.bench/1'),
  subject: subjectSchema,
  /** The back end that ran it: `TensorRT 10.6.0.26`, `trtexec 10.6.0`, `ONNX Runtime 1.30.0 (CPU)`. */
  backend: z.string(),
  /** Of a model: library, options and placement; absent for engines. */
  onnxRuntime: ortFactsSchema.optional(),
  gpu: z.object({ name: z.string(), uuid: z.string(), driver: z.string().nullable() }).nullable(),
  ...figures,
  /** One for each batch or set of shapes. */
  runs: z.array(runSchema).min(1),
  /** In rising order of the batch. */
  valleys: z.array(valleySchema).default([]),
  /** Per-layer times at the shapes of the first run, where they were asked for. */
  layers: layerTimesSchema.nullable(),
  /** At the shapes of the first run; absent where it was not asked for. */
  cold: coldSchema.optional(),
  /** Every sentence a reader should know before using the numbers, those of `doubts` among them. */
  warnings: z.array(z.string()),
});

export interface BenchResult extends z.infer<typeof benchResultSchema> {}
export type BenchRun = z.infer<typeof runSchema>;
export type BenchMode = z.infer<typeof modeSchema>;
export type BenchSubject = z.infer<typeof subjectSchema>;
export type Valley = z.infer<typeof valleySchema>;
export type Doubt = z.infer<typeof doubtSchema>;
export type GpuState = z.infer<typeof gpuStateSchema>;
export type ColdStarts = z.infer<typeof coldSchema>;
export type LayerTimes = z.infer<typeof layerTimesSchema>;

const sideSchema = z.object({
  subject: benchResultSchema.shape.subject,
  backend: z.string(),
  /** All rounds together; null where no GPU was timed or nothing copied. */
  gpuMs: spreadSchema.nullable(),
  endToEndMs: spreadSchema.nullable(),
  /** Median compute time of each round in milliseconds, in order; each round has an execution context of its own. */
  roundMs: z.array(z.number().nonnegative()),
  /** Mean of the rounds. */
  qps: z.number().nonnegative(),
  itemsPerSecond: z.number().nonnegative(),
  mode: modeSchema,
  doubts: z.array(doubtSchema),
});

const ratioSchema = z.object({ ratio: z.number(), low: z.number(), high: z.number() });

/** The result of `trtforge bench compare A B`. Ratios are times of A over times of B: above 1, A is slower. */
export const benchComparisonSchema = z.object({
  schema: z.literal('trtforge.bench-compare/1'),
  candidate: sideSchema,
  reference: sideSchema,
  gpu: benchResultSchema.shape.gpu,
  batch: z.int().nonnegative(),
  rounds: z.int().min(2),
  /** Which ratio decides: `gpuMs` (gpu-only), `endToEndMs` (with transfers), `time-per-inference` (several streams). */
  metric: z.enum(['gpuMs', 'endToEndMs', 'time-per-inference']),
  /** Of medians per round, with the interval of 95 % confidence. */
  ratios: z.object({
    gpuMs: ratioSchema,
    endToEndMs: ratioSchema.nullable(),
    'time-per-inference': ratioSchema,
  }),
  /** `equal`: all of the interval is near 1; `inconclusive`: it contains 1 and is wide. */
  verdict: z.enum(['faster', 'slower', 'equal', 'inconclusive']),
  /** Where a limit was asked for: whether A stays within it. */
  gate: z
    .object({ limit: z.number(), outcome: z.enum(['pass', 'fail', 'inconclusive']), reason: z.string() })
    .nullable(),
  /** Times of both sides' layers, where they were asked for, and by ONNX operator: the candidate first. Earlier results lack it. */
  layers: z
    .object({
      candidate: layerTimesSchema.nullable(),
      reference: layerTimesSchema.nullable(),
      operators: operatorTimesSchema,
    })
    .nullable()
    .optional(),
  warnings: z.array(z.string()),
});

export interface BenchComparison extends z.infer<typeof benchComparisonSchema> {}
export type ComparedSide = z.infer<typeof sideSchema>;
