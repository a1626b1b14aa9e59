import { z } from 'zod';
import { openFile } from '../system/byte-source.js';
import { knownIssues } from './known-issues/index.js';
import type { KnownIssue } from './known-issues/issue.js';
import { type LogLine, readLog } from './log-lines.js';

/** How many line numbers an issue lists; a tactic can be skipped thousands of times. */
const LISTED_LINES = 20;

const lineSchema = z.object({ line: z.int().positive(), text: z.string() });

export const explainResultSchema = z.object({
  schema: z.literal('trtforge.explain/1'),
  log: z.string(),
  /** As the banner says; null where the log is not trtexec's. */
  tensorrtVersion: z.string().nullable(),
  command: z.string().nullable(),
  /** `died`: a run began and the log stops without its last line. `unknown`: no trtexec run is in the log. */
  outcome: z.enum(['passed', 'failed', 'died', 'unknown']),
  issues: z.array(
    z.object({
      id: z.string(),
      severity: z.enum(['error', 'warning', 'note']),
      cause: z.string(),
      remedy: z.string(),
      versions: z.string(),
      source: z.string(),
      count: z.int().positive(),
      /** The first of them. */
      lines: z.array(lineSchema),
    }),
  ),
  /** Error lines that are neither known nor the mere consequence of another. */
  unexplained: z.array(lineSchema),
  /** The last line, where the log stops without a verdict. */
  lastLine: z.string().nullable(),
});

export type ExplainResult = z.infer<typeof explainResultSchema>;
type ExplainedIssue = ExplainResult['issues'][number];

/** Lines that only report that something before them failed. */
const CONSEQUENCE =
  /^(?:Engine set up failed|Inference set up failed|Building engine failed|Engine could not be created from network|Failed to create engine from model or file|Network And Config setup failed|Parsing model failed|Failed to parse onnx file|Got invalid engine!|Engine deserialization failed|Builder creation failed|Required optimization profile is invalid)/;

/** Explains a log of trtexec, or of anything that prints TensorRT's messages, in constant memory. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE. */
export function explainLog(path: string): ExplainResult {
  const file = openFile(path);
  try {
    return explainLines(path, readLog(file));
  } finally {
    file.close();
  }
}

function explainLines(log: string, lines: Iterable<LogLine>): ExplainResult {
  const found = new Map<string, ExplainedIssue>();
  const unexplained: z.infer<typeof lineSchema>[] = [];
  let version: string | null = null;
  let command: string | null = null;
  let outcome: ExplainResult['outcome'] = 'unknown';
  let lastLine: string | null = null;

  for (const line of lines) {
    const banner =
      /^&&&& (?<state>RUNNING|PASSED|FAILED) \S+ \[TensorRT v(?<code>\d+)\].*?# (?<command>.*)$/.exec(
        line.text,
      );
    if (banner?.groups !== undefined) {
      version = versionOfCode(Number(banner.groups.code));
      command = banner.groups.command ?? null;
      outcome =
        banner.groups.state === 'RUNNING' ? 'died' : banner.groups.state === 'PASSED' ? 'passed' : 'failed';
    }
    if (line.text.trim() !== '') lastLine = line.text;
    if (line.severity === 'V') continue;
    const match = firstMatch(line.text, version);
    if (match !== undefined) note(found, match, line);
    else if ((line.severity === 'E' || line.severity === 'F') && !CONSEQUENCE.test(line.message)) {
      unexplained.push({ line: line.number, text: line.text });
    }
  }
  if (outcome === 'died' && endsKnownly(found)) outcome = 'failed';
  const issues = [...found.values(), ...(outcome === 'died' ? [died(lastLine ?? '', command)] : [])];
  return {
    schema: 'trtforge.explain/1',
    log,
    tensorrtVersion: version,
    command,
    outcome,
    issues: issues.sort((one, other) => RANK[one.severity] - RANK[other.severity]),
    unexplained,
    lastLine: outcome === 'died' ? lastLine : null,
  };
}

const RANK = { error: 0, warning: 1, note: 2 } as const;

/** trtexec ends some failures without its last line (unknown option, no GPU, an assertion): then the error itself is the end. */
const endsKnownly = (found: ReadonlyMap<string, ExplainedIssue>): boolean =>
  ['no-gpu', 'option-unknown', 'option-removed', 'option-removed-precision', 'plan-empty'].some((id) =>
    found.has(id),
  );

interface Match {
  readonly issue: KnownIssue;
  readonly groups: Readonly<Record<string, string | undefined>>;
}

function firstMatch(text: string, version: string | null): Match | undefined {
  for (const issue of knownIssues) {
    if (!inMajors(issue, version)) continue;
    const match = issue.pattern.exec(text);
    if (match !== null) return { issue, groups: match.groups ?? {} };
  }
  return undefined;
}

function inMajors({ majors }: KnownIssue, version: string | null): boolean {
  if (majors === undefined) return true;
  const major = Number(version?.split('.')[0]);
  return major >= majors[0] && major <= majors[1];
}

function note(found: Map<string, ExplainedIssue>, { issue, groups }: Match, line: LogLine): void {
  const filled = (text: string) =>
    text.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => groups[name] ?? '');
  const seen = found.get(issue.id);
  const lines = [...(seen?.lines ?? []), { line: line.number, text: line.text }].slice(0, LISTED_LINES);
  const { id, severity, versions, source } = issue;
  found.set(id, {
    ...(seen ?? { id, severity, cause: filled(issue.cause), remedy: filled(issue.remedy), versions, source }),
    count: (seen?.count ?? 0) + 1,
    lines,
  });
}

function died(lastLine: string, command: string | null): ExplainedIssue {
  const loading = command?.includes('--loadEngine') === true;
  return {
    id: 'process-died',
    severity: 'error',
    cause: `The log stops without a verdict: the process was killed or aborted. Its last line is «${lastLine.trim()}».`,
    remedy: loading
      ? 'While loading an engine this is nearly always a file that is no plan: `trtforge inspect` recognises foreign headers and can strip them.'
      : "Look at the exit status (134 is an abort, 137 the kernel's out-of-memory killer) and at dmesg; try once more with --verbose.",
    versions: 'all',
    source: 'measured',
    count: 1,
    lines: [],
  };
}

/** 8601 is 8.6.1 (thousands, hundreds, rest); 100600 is 10.6.0 (ten thousands). */
function versionOfCode(code: number): string {
  const [major, rest] =
    code >= 10_000 ? [Math.floor(code / 10_000), code % 10_000] : [Math.floor(code / 1000), code % 1000];
  return `${major}.${Math.floor(rest / 100)}.${rest % 100}`;
}
