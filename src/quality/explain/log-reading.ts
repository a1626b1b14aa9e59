import * as is from '../../base/options/kinds.js';
import { type OptionsOf, optional } from '../../base/options/option.js';
import { LONGEST_LINE, parseLine } from '../../tensorrt/trtexec/log/lines.js';
import type { ExplainedIssue } from './explained-issue.js';
import { type FinderLine, LISTED_LINES, LISTED_UNEXPLAINED } from './issue-finder.js';
import type { KnownIssue } from './known-issues/issue.js';
import { beginsRun, type LoggedRun, type RunOutcome, RunReading } from './logged-run.js';
import { type ModelNodes, openModelNodes } from './model-nodes.js';
import { inOrder } from './severity.js';

/** Runs that are listed; all of them count. */
export const LISTED_RUNS = 1000;

/** The worst first: what one run hides, another must not excuse. */
const OUTCOMES: readonly RunOutcome[] = ['failed', 'died', 'passed', 'unknown'];

/** The options for reading a log, besides the core's known issues. */
export const explainOptions = {
  /** The ONNX file at work, or what reads it: nodes that the log names are looked up in it. */
  model: optional(is.either(is.text, is.object<ModelNodes>())),
  knownIssues: optional(is.list<KnownIssue>()),
};

export interface ExplainMeans extends OptionsOf<typeof explainOptions> {}

/** The result of reading the lines of a log. */
export interface ReadLog {
  readonly lines: number;
  readonly tensorrtVersion: string | null;
  readonly commandLine: string | null;
  readonly outcome: RunOutcome;
  readonly runs: LoggedRun[];
  readonly issues: ExplainedIssue[];
  readonly unexplained: { line: number; text: string }[];
  readonly lastLine: string | null;
}

/** Matches the lines of a log with the known issues as they come, run by run, in constant memory. */
export class LogReading {
  readonly #known: ExplainMeans['knownIssues'];
  readonly #model: ModelNodes | undefined;
  readonly #issues = new Map<string, ExplainedIssue>();
  readonly #unexplained: ReadLog['unexplained'] = [];
  readonly #runs: LoggedRun[] = [];
  #deciding: RunReading | undefined;
  #current: RunReading;
  #number = 0;

  constructor({ model, knownIssues }: ExplainMeans = {}) {
    this.#model = typeof model === 'string' ? openModelNodes(model) : model;
    this.#known = knownIssues;
    this.#current = new RunReading(knownIssues);
  }

  /** One raw line without its line end. */
  take(raw: string): void {
    this.#number++;
    const text = raw.slice(0, LONGEST_LINE).replace(/\r$/, '');
    for (const { severity, message } of parseLine(raw, this.#number)) {
      const line: FinderLine = { number: this.#number, text, message, severity };
      if (beginsRun(line) && this.#current.run !== null) {
        this.#close();
        this.#current = new RunReading(this.#known);
      }
      this.#current.take(line);
    }
  }

  /** Once, after the last line. */
  result(): ReadLog {
    this.#close();
    const { run = null, outcome = 'unknown', lastLine = null } = this.#deciding ?? {};
    return {
      lines: this.#number,
      tensorrtVersion: run?.tensorrtVersion ?? null,
      commandLine: run?.commandLine ?? null,
      outcome,
      runs: this.#runs,
      issues: inOrder([...this.#issues.values()]),
      unexplained: this.#unexplained,
      lastLine,
    };
  }

  #close(): void {
    const { run, outcome, unexplained } = this.#current;
    for (const issue of this.#current.issues(this.#model)) this.#keep(issue);
    this.#unexplained.push(...unexplained.slice(0, LISTED_UNEXPLAINED - this.#unexplained.length));
    if (run !== null && this.#runs.length < LISTED_RUNS) this.#runs.push(run);
    const before = this.#deciding?.outcome ?? 'unknown';
    if (OUTCOMES.indexOf(outcome) <= OUTCOMES.indexOf(before)) this.#deciding = this.#current;
  }

  /** The same issue in several runs is reported once, as the worst of them has it. */
  #keep(issue: ExplainedIssue): void {
    const before = this.#issues.get(issue.id);
    if (before === undefined) {
      this.#issues.set(issue.id, issue);
      return;
    }
    const [worse = issue] = inOrder([before, issue]);
    this.#issues.set(issue.id, {
      ...worse,
      count: before.count + issue.count,
      lines: [...before.lines, ...issue.lines].slice(0, LISTED_LINES),
    });
  }
}
