import { z } from 'zod';
import { explainedIssueSchema } from '../../quality/explain/explained-issue.js';
import { forgeResultSchema, runOutcomeSchema } from '../../report/forge-result.js';
import { chainCheckSchema } from './chain-schema.js';

const bytes = z.int().nonnegative();
const seconds = z.number().nonnegative().nullable();
const shapes = z.record(z.string(), z.array(z.int().nonnegative()));

const environmentSchema = z.strictObject({
  tensorrt_version: z.string().nullable(),
  /** CUDA version that the driver supports. */
  cuda_version: z.string().nullable(),
  gpu: z.string().nullable(),
  driver: z.string().nullable(),
  /** Of the GPU, `9.0`. */
  compute_capability: z.string().nullable(),
  product: z.string().nullable(),
  toolchain: z.string().nullable(),
  platform: z.string(),
});

/** The steps that can fail, in this order: `read` reads and compares the meta file and the models, `prepare` decides every build. */
const stepNames = ['read', 'prepare', 'build', 'smoke run', 'chained check'] as const;

const failureSchema = z.strictObject({
  component: z.string().nullable(),
  /** The step that failed; null before the first step. Engines are complete and stay when it is a smoke run or the chained check. */
  step: z.enum(stepNames).nullable(),
  code: z.string(),
  message: z.string(),
  remedy: z.string(),
  /** Known issues that the builder's lines show. */
  issues: z.array(explainedIssueSchema).optional(),
});

const smokeSchema = z.strictObject({
  /** Whether the engine itself ran, or the typed model in its place. */
  ran: z.enum(['engine', 'typed model', 'model']),
  backend: z.string(),
  ms: z.number().nonnegative(),
  /** Why it was not the engine; null where it was. */
  instead: z.string().nullable(),
  outputs: z.array(
    z.strictObject({
      name: z.string(),
      dtype: z.string(),
      shape: z.array(z.int().nonnegative()),
      finite: z.boolean(),
    }),
  ),
});

export const componentReportSchema = z.strictObject({
  component: z.string(),
  /** built; kept: it was there with this identity; local, remote: from a store; earlier: not requested this time, as an earlier report has it. */
  status: z.enum(['built', 'kept', 'local', 'remote', 'failed', 'not-reached', 'earlier']),
  onnx: z.string(),
  engine: z.string(),
  /** trtexec as it was called, word by word; empty where the library built. */
  commands: z.object({ build: z.array(z.string()) }),
  engine_bytes: bytes.nullable(),
  engine_human: z.string().nullable(),
  profile: z.strictObject({ min: shapes, opt: shapes, max: shapes }),
  profile_index: z.literal(0),
  timings_sec: z.strictObject({ build: seconds, smoke: seconds, convert: seconds }),
  logs: z.strictObject({ build: z.string().nullable(), smoke: z.string().nullable() }),
  env: environmentSchema,
  engine_sha256: z.string().nullable(),
  onnx_sha256: z.string().nullable(),
  /** `sha256` is that of the lines `DIGEST  PATH` that sha256sum prints for the files in order; null without external data. */
  external_data: z.strictObject({ files: z.int().positive(), bytes, sha256: z.string() }).nullable(),
  layers: z.int().nonnegative().nullable(),
  /** null: no limit was set, so the builder may use what the device has. */
  workspace_bytes: bytes.nullable(),
  timing_cache_state: z.enum(['none', 'new', 'hit', 'rejected']).nullable(),
  staging: z.strictObject({ method: z.string(), files: z.int().positive() }).nullable(),
  smoke: smokeSchema.nullable(),
  warnings: z.array(z.string()),
  /** The run of forge over this component, with its model, conversion, engine, passport and failure; null where the run stopped before its profile was known. */
  forge: forgeResultSchema.nullable(),
});

const mismatchSchema = z.strictObject({
  component: z.string(),
  /** The input or output it is about; null for the component as a whole. */
  tensor: z.string().nullable(),
  message: z.string(),
});

/**
 * The result of building a bundle; also the content of `build_report.json`. Names are those of the report that speech exporters' build tools write, which
 * this is a superset of.
 */
export const bundleReportSchema = z.strictObject({
  schema: z.literal('trtforge.bundle/1'),
  version: z.string(),
  exitCode: z.union([z.literal(0), z.literal(1), z.literal(2), z.literal(3), z.literal(4), z.literal(5)]),
  meta: z.string(),
  model_name: z.string().nullable(),
  onnx_dir: z.string(),
  outdir: z.string(),
  /** Null where none was written: nothing had begun, or that of an earlier run that finished was left there. */
  report: z.string().nullable(),
  /** Passed to the builder; null where the product measures nothing or none was wanted. */
  timing_cache: z.string().nullable(),
  device: z.int().nonnegative(),
  fp16: z.boolean(),
  precision: z.string(),
  builder: z.enum(['native', 'trtexec']),
  target: z.string().nullable(),
  builder_optimization_level: z.int().nullable(),
  workspace_mb: z.number().nullable(),
  trtexec: z.strictObject({ path: z.string().nullable() }),
  /** Where models were staged and typed models lie; null once it is removed. */
  staging_dir: z.string().nullable(),
  started_utc: z.string(),
  finished_utc: z.string(),
  total_sec: z.number().nonnegative(),
  /** Of the bundle as a whole: reading, the chained check. Those of a component are in its `forge`, on the same clock. */
  phases: forgeResultSchema.shape.phases,
  /** The command line of this run; null where a program called the library. */
  repeat: z.string().nullable(),
  env: environmentSchema,
  /** The machine and the versions, by readable names. */
  environment: forgeResultSchema.shape.environment,
  components: z.array(componentReportSchema),
  checks: z.array(chainCheckSchema),
  /** Why there is no chained check, or none on the engines; empty where both were made. */
  not_checked: z.array(z.string()),
  /** Where the meta file and the models, or two models, contradict each other. */
  mismatches: z.array(mismatchSchema),
  warnings: z.array(z.string()),
  /** `built`: no chained check was made. */
  outcome: runOutcomeSchema,
  /** The failure in one line, present only when there is one. */
  error: z.string().optional(),
  failure: failureSchema.nullable(),
});

export interface BundleReport extends z.infer<typeof bundleReportSchema> {}
export type ComponentReport = z.infer<typeof componentReportSchema>;
export type BundleFailure = z.infer<typeof failureSchema>;
export type BundleEnvironment = z.infer<typeof environmentSchema>;
export type BundleMismatch = z.infer<typeof mismatchSchema>;
export type SmokeRun = z.infer<typeof smokeSchema>;
