import { z } from 'zod';
import { violationSchema } from '../../../formats/contract/contract.js';
import { decisionDetailsSchema } from '../../../quality/tasks/agreement.js';
import { taskIdentitySchema } from '../../../quality/tasks/task.js';
import { measureSchema, outcomeSchema } from '../../../quality/verify/result.js';
import { passRules } from '../compare/tensor-parity.js';

/** A robust slope, 0 of fewer than two finite errors; each bound is 99.95 % certain, and infinite where too few chunks bound it. */
const slopeSchema = z.object({ perChunk: z.number(), low: measureSchema, high: measureSchema });

const spreadSchema = z.object({
  min: measureSchema,
  mean: measureSchema,
  p50: measureSchema,
  p95: measureSchema,
  p99: measureSchema,
  max: measureSchema,
});

const driftCheckSchema = z.object({
  name: z.enum(['max', 'pass-rate', 'p95', 'mean', 'slope', 'latency']),
  measured: measureSchema,
  limit: z.number(),
  outcome: outcomeSchema,
  sentence: z.string(),
});

/** The error of the main output over the stream: of each chunk its largest absolute error. */
const driftSchema = spreadSchema.extend({
  tensor: z.string(),
  /** Chunks whose error is a finite number: slopes, thirds and shape are about these. */
  chunks: z.number(),
  /** Chunks whose error is NaN or infinite: with one of them the figures over all chunks are "NaN". */
  unmeasured: z.number(),
  /** Share of one: chunks in which this output was within its tolerance. */
  passRate: z.number(),
  worstChunk: z.number(),
  slope: z.object({ robust: slopeSchema, leastSquares: slopeSchema.pick({ perChunk: true }) }),
  thirds: z.object({ first: measureSchema, last: measureSchema, ratio: measureSchema }),
  outliers: z.array(z.number()),
  shape: z.enum(['steady', 'growing', 'outliers', 'too-short']),
  checks: z.array(driftCheckSchema),
});

const tensorParitySchema = z.object({
  tensor: z.string(),
  /** Elements that were compared with the reference; 0 where nothing was valid or nothing could be compared. */
  compared: z.number(),
  /** Positions of a state that were valid; null: the whole tensor. */
  region: z.object({ axis: z.number(), from: z.number(), to: z.number() }).nullable(),
  maxAbs: measureSchema,
  meanAbs: measureSchema,
  /** Over max(|reference|, 1e-12). */
  maxRel: measureSchema,
  cosine: measureSchema,
  /** Largest error within the absolute, or largest relative error within the relative tolerance. */
  tensorRule: z.boolean(),
  /** numpy.allclose with the same tolerances. */
  allclose: z.boolean(),
  pass: z.boolean(),
});

const times = { copyMs: z.number(), runMs: z.number(), stateMs: z.number(), totalMs: z.number() };

const chunkSchema = z.object({
  /** `chunk_idx` of the reference. */
  chunk: z.number(),
  pass: z.boolean(),
  ...times,
  tensors: z.array(tensorParitySchema),
});

const outputSchema = z.object({
  tensor: z.string(),
  kind: z.enum(['float', 'exact']),
  /** The role of the tensor: fed back, or a result. */
  role: z.enum(['result', 'state']),
  tolerance: z.object({ absolute: z.number(), relative: z.number(), why: z.string() }).nullable(),
  chunks: z.number(),
  passed: z.number(),
  tensorRulePassed: z.number(),
  allclosePassed: z.number(),
  /** Of the chunks' largest errors. */
  maxAbs: spreadSchema,
  meanAbs: measureSchema,
  maxRel: measureSchema,
  minCosine: measureSchema,
  nonFinite: z.object({ candidate: z.number(), reference: z.number() }),
  /** Chunks in which a candidate of zeros would have passed. */
  zerosPass: z.number(),
  slope: slopeSchema,
  shape: z.enum(['steady', 'growing', 'outliers', 'too-short']),
});
export type ParityOutput = z.infer<typeof outputSchema>;

const columnSchema = z.object({
  mean: z.number(),
  p50: z.number(),
  p95: z.number(),
  p99: z.number(),
  max: z.number(),
});

const gpuTimesSchema = z.object({
  /** Shapes of the inputs of this size of chunk. */
  shapes: z.string(),
  profile: z.number(),
  /** Medians on the GPU's clock, measured after the stream on the same engine: state is transferred too here, as it is where it does not stay. */
  inputMs: z.number(),
  computeMs: z.number(),
  outputMs: z.number(),
  /** A step in a row of steps without comparing between them (median, host's clock): state stays where it stayed in the stream. */
  inARowMs: z.number(),
  /** `inARowMs` over the computing alone. */
  overGpu: z.number().nullable(),
});

/** The memory that the candidate takes, bytes. */
const memorySchema = z.object({
  /** The plan file; null for models. */
  planBytes: z.number().nullable(),
  /** Largest resident memory of the process that ran it; null where the system does not report it. */
  peakHostBytes: z.number().nullable(),
  /** In use on the GPU after the stream, everybody's; null where it ran on the CPU. */
  gpuBytes: z.number().nullable(),
});

const batchSchema = z.object({
  batch: z.number(),
  profile: z.number().nullable(),
  medianMs: z.number().nullable(),
  p95Ms: z.number().nullable(),
  itemsPerSecond: z.number().nullable(),
  /** Why this batch could not be run; null where it was. */
  error: z.string().nullable(),
});

export const profileTimesSchema = z.object({
  batches: z.array(batchSchema),
  switching: z.array(
    z.object({
      from: z.string(),
      to: z.string(),
      /** Whether the two run in different optimization profiles. */
      acrossProfiles: z.boolean(),
      stayMs: z.number(),
      alternateMs: z.number(),
      costMs: z.number(),
    }),
  ),
});

const explanationSchema = z.object({
  id: z.string(),
  severity: z.enum(['error', 'warning', 'note']),
  sentence: z.string(),
  remedy: z.string(),
  evidence: z.record(z.string(), z.unknown()),
});

/** The task of a stream: whether the candidate leads to the same decisions as the reference. */
const taskSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('not-judged'), why: z.string() }),
  decisionDetailsSchema.extend(taskIdentitySchema.shape),
]);
export type StreamTask = z.infer<typeof taskSchema>;
export type JudgedTask = Exclude<StreamTask, { kind: 'not-judged' }>;

/** The result of `stream verify`: a model or engine compared with a recorded stream, chunk by chunk. */
export const parityResultSchema = z.object({
  schema: z.literal('trtforge.stream-verify/1'),
  candidate: z.string(),
  reference: z.string(),
  candidateBackend: z.string(),
  /** The back end that recorded the reference; null where it is not stated. */
  referenceBackend: z.string().nullable(),
  /** The origin of an engine, by its passport; null for models and engines without one. */
  built: z.object({ model: z.string(), precision: z.string(), tf32: z.boolean() }).nullable(),
  mode: z.enum(['functional', 'closed-loop']),
  rule: z.enum(passRules),
  contract: z.object({
    name: z.string(),
    path: z.string().nullable(),
    form: z.string(),
    /** Its sentences that are no rules, so that nothing checked them. */
    notExecutable: z.array(z.object({ sentence: z.string(), why: z.string() })).optional(),
  }),
  state: z.object({
    /** Where the state is between steps; `reference`: every chunk begins with the recorded one. */
    place: z.enum(['device', 'host', 'reference', 'none']),
    why: z.string().nullable(),
    pairs: z.array(z.object({ input: z.string(), output: z.string() })),
  }),
  /** Chunks that were run; `passed` and `failed` add up to it. */
  chunks: z.number(),
  passed: z.number(),
  failed: z.number(),
  /** Share of one. */
  passRate: z.number(),
  outputs: z.array(outputSchema),
  verdicts: z.object({
    /** Outputs, shapes, lengths and every assertion of the contract. */
    contract: outcomeSchema,
    /** Errors within the tolerances, those of the main output in as many chunks and as far as the policy of the drift allows. */
    numeric: outcomeSchema,
    /** Whether both lead to the same decisions; null: not judged, `task` has the reason. */
    task: outcomeSchema.nullable(),
  }),
  task: taskSchema,
  violations: z.array(violationSchema),
  failures: z.array(
    z.object({
      chunk: z.number(),
      tensor: z.string(),
      kind: z.string(),
      maxAbs: measureSchema,
      reason: z.string(),
    }),
  ),
  /** null where no floating-point output was compared. */
  drift: driftSchema.nullable(),
  /** Host milliseconds of a step. The first call of each size of chunk makes buffers and is reported apart. */
  times: z.object({
    first: z.object(times).nullable(),
    rest: z
      .object({
        chunks: z.number(),
        copy: columnSchema,
        run: columnSchema,
        state: columnSchema,
        total: columnSchema,
      })
      .nullable(),
    /** The same steps as the reference's recorder timed them (`metadata.timing_ms.step`); null where it did not. */
    recorded: columnSchema.nullable(),
    /** Median of the candidate's steps over the median of the recorded ones. */
    overRecorded: z.number().nullable(),
  }),
  gpuTimes: z.array(gpuTimesSchema),
  memory: memorySchema,
  profiles: profileTimesSchema.nullable(),
  explanations: z.array(explanationSchema),
  dumps: z.array(z.string()),
  series: z.array(chunkSchema),
  warnings: z.array(z.string()),
  outcome: outcomeSchema,
  reasons: z.array(z.string()),
  /** The command line of this run; null where a program called the library. */
  repeat: z.string().nullable(),
});
export interface ParityResult extends z.infer<typeof parityResultSchema> {}
export type ParityDrift = NonNullable<ParityResult['drift']>;
export type ProfileTimes = z.infer<typeof profileTimesSchema>;
export type Explanation = z.infer<typeof explanationSchema>;
