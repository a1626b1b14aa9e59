import { z } from 'zod';
import { obtainedEngineSchema, profileOriginSchema } from '../engines/builder/result.js';
import { ExitCode } from '../errors.js';
import { modelFactsSchema } from '../formats/onnx/model-facts.js';
import { conversionSchema } from '../formats/precision/result.js';
import { benchResultSchema } from '../quality/bench/result.js';
import { explainedIssueSchema } from '../quality/explain/explained-issue.js';
import { verifyResultSchema } from '../quality/verify/result.js';

const exitCodeSchema = z.literal(Object.values(ExitCode));

/** The outcome of a run that builds engines. */
export const runOutcomeSchema = z.enum(['pass', 'fail', 'inconclusive', 'built', 'error']);

const forgedEngineSchema = obtainedEngineSchema.extend({
  /** `kept`: it was in the folder already. */
  source: z.enum([...obtainedEngineSchema.shape.source.options, 'kept']),
});

const phaseSchema = z.object({
  name: z.string(),
  status: z.enum(['done', 'failed', 'skipped', 'not-reached']),
  /** From the start of the run; null for a phase that never started. */
  startMs: z.number().nullable(),
  ms: z.number().nullable(),
  /** Its result, or the reason why it was skipped. */
  detail: z.string(),
  steps: z.array(z.object({ name: z.string(), startMs: z.number(), ms: z.number() })),
});

const errorSchema = z.object({
  /** The phase it stopped. */
  phase: z.string(),
  code: z.string(),
  message: z.string(),
  remedy: z.string(),
  exitCode: exitCodeSchema,
  /** Known issues that the lines of the failing phase show, the worst first. */
  issues: z.array(explainedIssueSchema).optional(),
});

/** What an engine takes. */
const priceSchema = z.object({
  what: z.enum(['failed', 'healed', 'fp32']),
  /** In a higher precision than the one asked for, of so many; null where nothing was converted. */
  nodes: z.object({ higher: z.number(), all: z.number() }).nullable(),
  /** Share of the FLOPs that these nodes have; null where sizes are not known. */
  flops: z.number().nullable(),
  /** Bytes of the model with its external data, and of the engine; null where there is none. */
  modelBytes: z.number().nullable(),
  engineBytes: z.number().nullable(),
  /** Median on the GPU of this run; null where none ran it. */
  gpuMs: z.number().nullable(),
});

/** What `--heal` did after a failed comparison. Conversion, engine and comparisons of the result are then those of the healed one where a search found it. */
export const healSchema = z.object({
  /** `found`: the search has a candidate that passes. `ended`: its time was over before. `none`: there is none, or none that a conversion makes. */
  outcome: z.enum(['found', 'ended', 'none']),
  headline: z.string(),
  reasons: z.array(z.string()),
  /** What failed, in one sentence. */
  failed: z.string(),
  /** What each search raised: nodes by name, to which precision, and the option that names them, as patterns. */
  raised: z.array(
    z.object({
      nodes: z.array(z.string()),
      to: z.string(),
      option: z.enum(['keep-nodes', 'high-precision-nodes']),
    }),
  ),
  /** False: the engine is built without TF32. */
  tf32: z.boolean(),
  /** Whether the search came to its end within its time. */
  isSmallest: z.boolean(),
  /** Whether the verdict is on samples that the search has not seen. */
  isUnseen: z.boolean(),
  /** Candidates, those of earlier runs too. */
  tried: z.number(),
  limitMs: z.number(),
  /** What was tried, for the run that goes on. */
  folder: z.string(),
  prices: z.array(priceSchema),
});

/** Everything a report shows; `report.json` of a run root. Page, Markdown and terminal are functions of this and of nothing else. */
export const forgeResultSchema = z.object({
  schema: z.literal('trtforge.forge/2'),
  /** The version of trtforge that ran. */
  version: z.string(),
  startedAt: z.iso.datetime(),
  totalMs: z.number(),
  request: z.object({ model: z.string(), precision: z.string(), target: z.string().nullable() }),
  /** The profiles that --profile-from made. */
  profileFrom: z.array(profileOriginSchema).default([]),
  runRoot: z.string(),
  /** Paths, as the run root was passed: the plan, its passport. */
  engine: z.string().nullable(),
  passport: z.string().nullable(),
  /** Null where none was written: nothing had begun, or the report of an earlier run that finished was left there. */
  report: z.string().nullable(),
  exitCode: exitCodeSchema,
  verdict: z.object({
    /** `built`: there is an engine and nothing was compared. `error`: the request was wrong, or trtforge itself failed. */
    outcome: runOutcomeSchema,
    /** One sentence. */
    headline: z.string(),
    reasons: z.array(z.string()),
  }),
  error: errorSchema.nullable(),
  /** Known issues that the phases' lines show although the phases ended well. */
  issues: z.array(explainedIssueSchema).optional(),
  phases: z.array(phaseSchema),
  /** The results of `inspect` and `convert`, as they print them. */
  model: modelFactsSchema.nullable(),
  conversion: conversionSchema.nullable(),
  /** The engine with its passport. */
  build: forgedEngineSchema.nullable(),
  /** The typed model against the original. */
  verification: verifyResultSchema.nullable(),
  /** The engine, on its GPU, against the original. */
  engineVerification: verifyResultSchema.nullable().default(null),
  /** The engine's speed on the GPU at hand. */
  bench: benchResultSchema.nullable().default(null),
  /** null where nothing failed, or nobody asked. */
  heal: healSchema.nullable().default(null),
  environment: z.array(z.object({ name: z.string(), text: z.string() })),
  /** The command line of this run; null where a program called the library. */
  repeat: z.string().nullable(),
  files: z.array(z.object({ path: z.string(), what: z.string() })),
});

/** The result of `trtforge report`: the file it wrote, or the content itself when it went to stdout. */
export const renderedReportSchema = z.object({
  schema: z.literal('trtforge.report/1'),
  format: z.enum(['html', 'markdown', 'json', 'svg']),
  path: z.string().nullable(),
  content: z.string().nullable(),
});

export type RenderedReport = z.infer<typeof renderedReportSchema>;
export interface ForgeResult extends z.infer<typeof forgeResultSchema> {}
export type Heal = NonNullable<ForgeResult['heal']>;
/** The engine that the build phase obtained. */
export type ForgedEngine = NonNullable<ForgeResult['build']>;
export type ReportPhase = ForgeResult['phases'][number];
export type Outcome = z.infer<typeof runOutcomeSchema>;

/** A result and the folder that it lies in. */
export interface RunOf<R> {
  readonly root: string;
  readonly result: R;
}

/** A result that was read from `path`, a folder or a file. */
export interface ResultAt<R> extends RunOf<R> {
  readonly path: string;
}
