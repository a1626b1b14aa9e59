import { z } from 'zod';
import { TrtforgeError } from '../errors.js';
import { type ByteSource, openFile } from '../system/byte-source.js';
import { LONGEST_LINE, parseLine, rawLines } from '../trtexec/log-lines.js';
import { type ExplainedIssue, explainedIssueSchema, logLineSchema } from './explained-issue.js';
import { IssueFinder } from './issue-finder.js';
import type { ModelNodes } from './model-nodes.js';
import { inOrder } from './severity.js';

export const explainResultSchema = z.object({
  schema: z.literal('trtforge.explain/1'),
  log: z.string(),
  /** As the banner says; null where the log is not trtexec's. */
  tensorrtVersion: z.string().nullable(),
  /** As the banner says it. */
  commandLine: z.string().nullable(),
  /** `died`: a run began and the log stops without its last line. `unknown`: no trtexec run is in the log. */
  outcome: z.enum(['passed', 'failed', 'died', 'unknown']),
  issues: z.array(explainedIssueSchema),
  /** Error lines that are neither known nor the mere consequence of another. */
  unexplained: z.array(logLineSchema),
  /** The last line, where the log stops without a verdict. */
  lastLine: z.string().nullable(),
});

export type ExplainResult = z.infer<typeof explainResultSchema>;

/** Explains a log of trtexec, or of anything that prints TensorRT's messages, in constant memory. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_USAGE for what is no text. */
export function explainLog(path: string, model?: ModelNodes): ExplainResult {
  const file = openFile(path);
  try {
    refuseBinary(file);
    return explainLines(path, rawLines(file), model);
  } finally {
    file.close();
  }
}

/** Control characters that no text has, as a share of the first bytes: none in recorded logs, 8 % and more in models, plans and archives. */
const MOST_CONTROLS = 0.03;

function refuseBinary(file: ByteSource): void {
  const buffer = Buffer.alloc(512);
  const start = buffer.subarray(0, file.read(buffer, 0, buffer.length));
  const controls = start.filter((byte) => byte < 0x20 && byte !== 0x1b && (byte < 0x08 || byte > 0x0d));
  if (controls.length <= start.length * MOST_CONTROLS) return;
  throw new TrtforgeError('TF_USAGE', `${file.path} is no text, so it is no log.`, {
    remedy:
      'Give what TensorRT or trtexec printed; a log in UTF-16 becomes readable with iconv -f utf-16 -t utf-8.',
  });
}

/** The same for raw lines from anywhere; `log` names them. */
export function explainLines(log: string, lines: Iterable<string>, model?: ModelNodes): ExplainResult {
  const reading = new LogReading();
  for (const line of lines) reading.take(line);
  return reading.result(log, model);
}

const BANNER = /^&&&& (?<state>RUNNING|PASSED|FAILED) \S+ \[TensorRT v\d+\](?:[^#]*# (?<command>.*))?/s;

class LogReading {
  readonly #finder = new IssueFinder();
  #number = 0;
  #command: string | null = null;
  #outcome: ExplainResult['outcome'] = 'unknown';
  #lastLine: string | null = null;

  take(raw: string): void {
    this.#number++;
    const text = raw.slice(0, LONGEST_LINE).replace(/\r$/, '');
    if (text.trim() !== '') this.#lastLine = text;
    for (const { severity, message } of parseLine(raw, this.#number)) {
      if (severity === null) this.#takeBanner(message);
      this.#finder.take({ number: this.#number, text, message, severity });
    }
  }

  result(log: string, model?: ModelNodes): ExplainResult {
    const finder = this.#finder;
    const outcome = this.#outcome === 'died' && finder.has(...ENDS) ? 'failed' : this.#outcome;
    return {
      schema: 'trtforge.explain/1',
      log,
      tensorrtVersion: finder.version,
      commandLine: this.#command,
      outcome,
      issues: inOrder([
        ...finder.issues({ model, passed: outcome === 'passed' }),
        ...(outcome === 'died' ? [died(this.#lastLine ?? '', this.#command)] : []),
        ...(outcome === 'passed' && finder.unexplained.length > 0 ? [passedWithErrors(finder)] : []),
      ]),
      unexplained: finder.unexplained,
      lastLine: outcome === 'died' ? this.#lastLine : null,
    };
  }

  #takeBanner(message: string): void {
    const groups = BANNER.exec(message)?.groups;
    if (groups === undefined) return;
    this.#command = groups.command ?? null;
    this.#outcome = groups.state === 'RUNNING' ? 'died' : groups.state === 'PASSED' ? 'passed' : 'failed';
  }
}

/** trtexec ends some failures without its last line: then the error itself is the end. */
const ENDS = [
  ...[
    'no-gpu',
    'driver-too-old',
    'option-unknown',
    'option-removed',
    'option-removed-precision',
    'plan-empty',
  ],
  ...['library-not-found', 'uncaught-exception', 'assertion-failed', 'process-crashed'],
];

function passedWithErrors({ unexplained }: IssueFinder): ExplainedIssue {
  return {
    id: 'passed-with-errors',
    severity: 'warning',
    cause: `The run says PASSED, and ${unexplained.length === 1 ? 'an error line that nobody knows stands' : `${unexplained.length} error lines that nobody knows stand`} before that.`,
    remedy: 'Do not take the verdict alone: look at the lines, and verify the engine against the model.',
    versions: 'all',
    source: 'measured',
    count: unexplained.length,
    lines: unexplained.slice(0, 20),
    model: null,
  };
}

/** What to look at when a process ended without a word. */
const LOOK =
  "Look at the exit status (134 is an abort, 137 the kernel's out-of-memory killer) and at dmesg; try once more with --verbose.";

/** After these lines a build of a large model is silent for minutes: a log that ends here may be of one that still runs. */
const SILENT_AFTER =
  /Compiler backend is used during engine build|Total (?:Activation|Weights) Memory|Engine generation completed|\[BlockAssignment\]|Global timing cache in use|Local timing cache in use/;

function died(lastLine: string, command: string | null): ExplainedIssue {
  const loading = command?.includes('--loadEngine') === true;
  const silent = SILENT_AFTER.test(lastLine)
    ? 'If it still runs, wait: TensorRT says nothing for five to ten minutes here on large models. '
    : '';
  return {
    id: 'process-died',
    severity: 'error',
    cause: `The log stops without a verdict: the process was killed or aborted. Its last line is «${lastLine.trim()}».`,
    remedy: loading
      ? 'While loading an engine this is nearly always a file that is no plan: `trtforge inspect` recognises foreign headers and can strip them.'
      : `${silent}${LOOK}`,
    versions: 'all',
    source: 'measured',
    count: 1,
    lines: [],
    model: null,
  };
}
