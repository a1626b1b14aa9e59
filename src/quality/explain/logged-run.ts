import { z } from 'zod';
import type { ExplainedIssue } from './explained-issue.js';
import { type FinderLine, IssueFinder } from './issue-finder.js';
import type { KnownIssue } from './known-issues/issue.js';
import type { ModelNodes } from './model-nodes.js';
import { silentIssuesOf } from './silent-issues.js';

/** `died`: the run began and its last line is missing. `unknown`: there is no trtexec run. */
export const runOutcomeSchema = z.enum(['passed', 'failed', 'died', 'unknown']);
export type RunOutcome = z.infer<typeof runOutcomeSchema>;

/** One run of trtexec in a log that may have several, as of a script that builds several engines. */
export const loggedRunSchema = z.object({
  /** Of its banner. */
  line: z.int().positive(),
  outcome: runOutcomeSchema,
  tensorrtVersion: z.string().nullable(),
  commandLine: z.string().nullable(),
});
export type LoggedRun = z.infer<typeof loggedRunSchema>;

const BANNER = /^&&&& (?<state>RUNNING|PASSED|FAILED) \S+ \[TensorRT v\d+\](?:[^#]*# (?<command>.*))?/s;

/** Whether a message begins a run. */
export const beginsRun = ({ message, severity }: FinderLine): boolean =>
  severity === null && BANNER.exec(message)?.groups?.state === 'RUNNING';

/** One run as far as its lines have come, compared with the known issues. */
export class RunReading {
  readonly #finder: IssueFinder;
  #line: number | null = null;
  #command: string | null = null;
  #outcome: RunOutcome = 'unknown';
  #lastLine = '';

  constructor(more: readonly KnownIssue[] = []) {
    this.#finder = new IssueFinder(more);
  }

  take(line: FinderLine): void {
    if (line.message.trim() !== '') this.#lastLine = line.text;
    if (line.severity === null) this.#takeBanner(line);
    this.#finder.take(line);
  }

  #takeBanner({ number, message }: FinderLine): void {
    const groups = BANNER.exec(message)?.groups;
    if (groups === undefined) return;
    this.#line ??= number;
    this.#command = groups.command ?? null;
    this.#outcome = groups.state === 'RUNNING' ? 'died' : groups.state === 'PASSED' ? 'passed' : 'failed';
  }

  get outcome(): RunOutcome {
    return this.#outcome === 'died' && this.#finder.has(...ENDS) ? 'failed' : this.#outcome;
  }

  /** Null where no banner was seen. */
  get run(): LoggedRun | null {
    const { version } = this.#finder;
    return this.#line === null
      ? null
      : { line: this.#line, outcome: this.outcome, tensorrtVersion: version, commandLine: this.#command };
  }

  get unexplained(): IssueFinder['unexplained'] {
    return this.#finder.unexplained;
  }

  /** Where the run stops without a verdict. */
  get lastLine(): string | null {
    return this.outcome === 'died' ? this.#lastLine : null;
  }

  issues(model: ModelNodes | undefined): readonly ExplainedIssue[] {
    const { outcome } = this;
    const finder = this.#finder;
    return [
      ...finder.issues({ model, passed: outcome === 'passed' }),
      ...(outcome === 'died' ? [died(this.#lastLine, this.#command)] : []),
      ...(outcome === 'passed' && finder.unexplained.length > 0 ? [passedWithErrors(finder)] : []),
      ...(outcome === 'passed' && model !== undefined && finder.version !== null
        ? silentIssuesOf(model, { product: 'tensorrt', version: finder.version })
        : []),
    ];
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
    cause: `The run prints PASSED, and ${unexplained.length === 1 ? 'an unexplained error line stands' : `${unexplained.length} unexplained error lines stand`} before that.`,
    remedy: 'Do not take the verdict alone: look at the lines, and verify the engine against the model.',
    versions: 'all',
    source: 'measured',
    count: unexplained.length,
    lines: unexplained.slice(0, 20),
    model: null,
  };
}

/** The places to look at when a process ended without a message. */
const LOOK =
  "Look at the exit status (134 is an abort, 137 the kernel's out-of-memory killer) and at dmesg; try once more with --verbose.";

/** After these lines a build of a large model is silent for minutes: a log that ends here may be of one that still runs. */
const SILENT_AFTER =
  /Compiler backend is used during engine build|Total (?:Activation|Weights) Memory|Engine generation completed|\[BlockAssignment\]|Global timing cache in use|Local timing cache in use/;

function died(lastLine: string, command: string | null): ExplainedIssue {
  const loading = command?.includes('--loadEngine') === true;
  const silent = SILENT_AFTER.test(lastLine)
    ? 'If it still runs, wait: TensorRT prints nothing for five to ten minutes here on large models. '
    : '';
  return {
    id: 'process-died',
    severity: 'error',
    cause: `The log stops without a verdict: the process was killed or aborted. Its last line is "${lastLine.trim()}".`,
    remedy: loading
      ? 'While loading an engine this is nearly always a file that is not a plan: `trtforge engine inspect` names foreign headers, and `trtforge engine strip-header` removes them.'
      : `${silent}${LOOK}`,
    versions: 'all',
    source: 'measured',
    count: 1,
    lines: [],
    model: null,
  };
}
