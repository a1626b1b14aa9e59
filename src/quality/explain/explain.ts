import { z } from 'zod';
import { openFile } from '../../base/files/byte-source.js';
import { rawLines } from '../../tensorrt/trtexec/log/lines.js';
import { explainedIssueSchema, logLineSchema } from './explained-issue.js';
import { type ExplainMeans, LogReading } from './log-reading.js';
import { loggedRunSchema, runOutcomeSchema } from './logged-run.js';
import { FIRST_BYTES, refuseBinary } from './text-only.js';

export const explainResultSchema = z.object({
  schema: z.literal('trtforge.explain/1'),
  log: z.string(),
  /** How many the log has. */
  lines: z.int().nonnegative(),
  /** As the banner of the run that decides the outcome says; null where the log is not trtexec's. */
  tensorrtVersion: z.string().nullable(),
  /** As that banner says it. */
  commandLine: z.string().nullable(),
  /** Of the worst run: one that passes excuses none that failed. */
  outcome: runOutcomeSchema,
  /** One after another; the first 1000. */
  runs: z.array(loggedRunSchema),
  /** Each judged by how its own run ended. */
  issues: z.array(explainedIssueSchema),
  /** Error lines that are neither known nor the mere consequence of another. */
  unexplained: z.array(logLineSchema),
  /** The last line, where the run that decides stops without a verdict. */
  lastLine: z.string().nullable(),
});

export type ExplainResult = z.infer<typeof explainResultSchema>;

/** Explains a log of trtexec, or of anything that prints TensorRT's messages, in constant memory. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_USAGE for what is no text. */
export function explainLog(path: string, means?: ExplainMeans): ExplainResult {
  const file = openFile(path);
  try {
    const start = Buffer.alloc(FIRST_BYTES);
    refuseBinary(path, start.subarray(0, file.read(start, 0, start.length)));
    return explainLines(path, rawLines(file), means);
  } finally {
    file.close();
  }
}

/** The same for raw lines from anywhere; `log` names them. */
export function explainLines(log: string, lines: Iterable<string>, means?: ExplainMeans): ExplainResult {
  const reading = new LogReading(means);
  for (const line of lines) reading.take(line);
  return explanation(log, reading);
}

/** What was read, as a result. */
export const explanation = (log: string, reading: LogReading): ExplainResult => ({
  schema: 'trtforge.explain/1',
  log,
  ...reading.result(),
});
