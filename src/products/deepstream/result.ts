import { z } from 'zod';
import { ExitCode } from '../../errors.js';
import { stopReasons } from './decision.js';

const positive = z.int().positive();
const seconds = z.number().nonnegative();

const streamsModeSchema = z.strictObject({
  warmUpMs: z.number().nonnegative(),
  durationMs: z.number().nonnegative(),
  graph: z.boolean(),
  spinWait: z.boolean(),
});

/** Lies beside a log and states what it belongs to; a log without it, or that it does not fit, is measured again. */
export const measurementRecordSchema = z.strictObject({
  schema: z.literal('trtforge.deepstream-measurement/1'),
  batch: positive,
  engine: z.strictObject({ file: z.string(), sha256: z.string(), bytes: positive, maxBatch: positive }),
  tool: z.enum(['trtforge', 'trtexec']),
  mode: streamsModeSchema,
  log: z.strictObject({ sha256: z.string() }),
  /** Loading, warming up and measuring. */
  seconds,
  backend: z.string(),
  gpu: z.string().nullable(),
  /** Whether a CUDA graph was used; null where nobody stated. */
  graph: z.boolean().nullable(),
  contextBytes: z.number().nonnegative().nullable(),
  gpuBytes: z.number().nonnegative().nullable(),
  warnings: z.array(z.string()),
  /** UTC, ISO 8601. */
  at: z.string(),
});

const measurementSchema = z.object({
  batch: positive,
  /** Of the engine it was measured on. */
  engineMaxBatch: positive,
  /** Inferences of whole batches a second. */
  qps: z.number().nonnegative(),
  imagesPerSecond: z.number().nonnegative(),
  gpuMeanMs: z.number().nonnegative(),
  /** `gpuMeanMs` over the batch. */
  gpuMsPerImage: z.number().nonnegative(),
  gpuP99Ms: z.number().nonnegative().nullable(),
  seconds,
  log: z.string(),
  /** `measured` now, or found on `disk`. */
  source: z.enum(['measured', 'disk']),
  writtenBy: z.enum(['trtforge', 'trtexec', 'unknown']),
  backend: z.string(),
  gpu: z.string().nullable(),
  graph: z.boolean().nullable(),
  contextBytes: z.number().nonnegative().nullable(),
  gpuBytes: z.number().nonnegative().nullable(),
  warnings: z.array(z.string()),
});

const engineSchema = z.object({
  maxBatch: positive,
  path: z.string(),
  bytes: positive,
  sha256: z.string(),
  identity: z.string().nullable(),
  buildSeconds: seconds.nullable(),
  /** `built` now (or taken from the store), or found in its place on `disk`. */
  source: z.enum(['built', 'disk']),
  /** At its largest batch. */
  peak: measurementSchema.nullable(),
});

const sensitivitySchema = z.object({
  batch: positive,
  imagesPerSecond: z.number().nonnegative(),
  gpuMeanMs: z.number().nonnegative(),
  /** Against the best smaller batch measured here, in percent; negative is a loss. Null for the smallest. */
  changePercent: z.number().nullable(),
  log: z.string(),
});

/** The result of `trtforge deepstream size`. */
export const streamsResultSchema = z.object({
  schema: z.literal('trtforge.deepstream-size/1'),
  model: z.object({
    name: z.string(),
    file: z.string(),
    onnx: z.string(),
    input: z.string(),
    layout: z.enum(['NCHW', 'NHWC', 'other']),
    channels: positive.nullable(),
    height: positive.nullable(),
    width: positive.nullable(),
  }),
  /** Holds `models/`. */
  root: z.string(),
  /** The engine of the first frame rate, below the root. */
  engine: z.string().nullable(),
  maxBatch: positive.nullable(),
  /** The first frame rate, and its PEAK_GPU_STREAMS = floor(images per second / fps): an upper bound. */
  fps: z.number().positive(),
  peakGpuStreams: z.int().nonnegative().nullable(),
  /** One for each frame rate asked for. */
  answers: z.array(
    z.object({
      fps: z.number().positive(),
      peakGpuStreams: z.int().nonnegative(),
      maxBatch: positive,
      /** The streams in one batch of that engine: the smaller of the two. */
      streams: z.int().nonnegative(),
    }),
  ),
  /** Batch 1 on the first engine. */
  baseline: measurementSchema.nullable(),
  engines: z.array(engineSchema),
  stop: z.object({ reason: z.enum(stopReasons), text: z.string() }),
  sensitivity: z.array(sensitivitySchema).nullable(),
  /** Step 4 is building all engines, step 5 measuring all batches, each whenever it was done; null where no log reports. */
  steps: z.object({
    step4Seconds: seconds.nullable(),
    step5Seconds: seconds.nullable(),
    totalSeconds: seconds.nullable(),
  }),
  builder: z.enum(['native', 'trtexec']),
  meter: z.enum(['trtforge', 'trtexec']),
  mode: streamsModeSchema,
  /** benchmark_data.json; null where there was no answer to write. */
  data: z.string().nullable(),
  /** The summary as DeepStream's scripts print it, line by line. */
  summary: z.array(z.string()),
  notes: z.array(z.string()),
  warnings: z.array(z.string()),
  exitCode: z.literal([ExitCode.pass, ExitCode.inconclusive]),
});

export interface StreamsResult extends z.infer<typeof streamsResultSchema> {}
/** A result before it is written: where that was and what was printed come last. */
export type StreamsBody = Omit<StreamsResult, 'summary' | 'data'>;
export type StreamsMeasurement = NonNullable<StreamsResult['baseline']>;
export type StreamsEngineResult = StreamsResult['engines'][number];
export type StreamsSensitivity = NonNullable<StreamsResult['sensitivity']>[number];
export type MeasurementRecord = z.infer<typeof measurementRecordSchema>;

/** The work left out of every sizing, whatever was measured. */
export const upperBoundWarning =
  'PEAK_GPU_STREAMS is an upper bound of inference alone: decoding, scaling, muxing, tracking and drawing are not in it. A pipeline reaches 60 to 90 % of it, and often the decoder (NVDEC) is the limit.';
