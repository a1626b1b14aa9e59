import * as is from '../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../base/options/option.js';
import { type ErrorCode, TrtforgeError } from '../../errors.js';
import type { EventListener, WorkEvent } from '../../events.js';
import { parseLine, severityLetters } from '../../tensorrt/trtexec/log/lines.js';
import type { ExplainedIssue } from './explained-issue.js';
import type { FinderLine, IssueFinder } from './issue-finder.js';
import { inOrder, type KnownIssue, placeSentences, type SilentlyBuilt } from './known-issues/issue.js';

/** The result of work that calls TensorRT, and the known issues that its log shows although it succeeded. */
export interface Explained<T> {
  readonly result: T;
  readonly issues: readonly ExplainedIssue[];
}

export const explainingOptions = {
  /** Hears every event, as it would without. */
  emit: needed(is.callback<EventListener>()),
  /** The ONNX file at work: nodes that error lines name are looked up in it. */
  model: optional(is.text),
  /** TensorRT's version where it is known: some texts mean different things in different majors. */
  version: optional(is.text),
  /** Known issues beside the core's own: what products bring. Asked for with the library's first line. */
  knownIssues: optional(is.callback<() => Promise<readonly KnownIssue[]>>()),
  built: optional(is.callback<(result: never) => SilentlyBuilt | null>()),
};

export interface ExplainingOptions<T = unknown> extends Omit<OptionsOf<typeof explainingOptions>, 'built'> {
  /** The build of the result, where it is a new engine of the model: issues that no line shows are reported too. */
  readonly built?: (result: T) => SilentlyBuilt | null;
}

/**
 * Runs work that calls TensorRT or trtexec and looks its lines up among the known issues. A failure comes back as the same error with `details.issues`,
 * and with a remedy that states what is known to help. This is the one place where failures meet the known issues.
 *
 * ```ts
 * const { result, issues } = await explaining((emit) => buildOrLoad(requested, { emit }), { emit, model: requested.model });
 * ```
 */
export async function explaining<T>(
  work: (emit: EventListener) => Promise<T>,
  options: ExplainingOptions<T>,
): Promise<Explained<T>> {
  const listener = new IssueListener(options.version ?? null, options.knownIssues);
  try {
    const result = await work((event) => {
      listener.take(event);
      options.emit(event);
    });
    const issues = await listener.issues(options.model, true);
    return { result, issues: inOrder([...issues, ...(await silentIn(result, options))]) };
  } catch (error) {
    throw error instanceof TrtforgeError ? await explained(error, listener, options.model) : error;
  }
}

/** Loaded only for a new engine: finding one in the store takes milliseconds. */
async function silentIn<T>(result: T, { model, built }: ExplainingOptions<T>): Promise<ExplainedIssue[]> {
  const builder = built?.(result) ?? null;
  if (builder === null || model === undefined) return [];
  const { silentIssuesOf } = await import('./silent-issues.js');
  return silentIssuesOf(model, builder);
}

/** Error lines are remembered so that an error which repeats them does not count them twice. */
const REMEMBERED = 1000;

/**
 * Hears what the library reports. The known issues are loaded with its first line: work that asks no library, such as finding an engine in the store, pays
 * nothing for them.
 */
class IssueListener {
  readonly #version: string | null;
  readonly #seen = new Set<string>();
  #waiting: FinderLine[] = [];
  #number = 0;
  #finder: IssueFinder | undefined;
  #loading: Promise<IssueFinder> | undefined;

  readonly #more: () => Promise<readonly KnownIssue[]>;

  constructor(version: string | null, more: ExplainingOptions['knownIssues']) {
    this.#version = version;
    this.#more = more ?? (async () => []);
  }

  take(event: WorkEvent): void {
    if (event.type !== 'log' || event.severity === 'verbose' || event.source === 'trtforge') return;
    this.#take(event.message, severityLetters[event.severity]);
  }

  /** Lines that came with the error itself; those heard before are left out. */
  read(text: string): void {
    for (const line of text.split('\n')) {
      const isKnown =
        this.#seen.has(line) || parseLine(line, 1).every(({ message }) => this.#seen.has(message));
      if (!isKnown) this.#take(line, 'E');
    }
  }

  /** `passed` reports that the work they come from went well. */
  async issues(path: string | undefined, passed: boolean): Promise<ExplainedIssue[]> {
    if (this.#number === 0) return [];
    const finder = await this.#load();
    if (path === undefined || (passed && !finder.namesNodes)) return finder.issues({ passed });
    // Loaded only now: most work goes well, and the model's reader is not needed.
    const { openModelNodes } = await import('./model-nodes.js');
    return finder.issues({ model: openModelNodes(path), passed });
  }

  #take(message: string, severity: FinderLine['severity']): void {
    for (const text of message.split('\n')) {
      this.#number++;
      if (severity !== 'I' && this.#seen.size < REMEMBERED) this.#seen.add(text);
      // A line that a child prints before it dies has trtexec's own prefix.
      for (const line of parseLine(text, this.#number))
        this.#waiting.push({ ...line, text, severity: line.severity ?? severity });
    }
    if (this.#finder === undefined) void this.#load();
    else this.#drain(this.#finder);
  }

  #load(): Promise<IssueFinder> {
    this.#loading ??= Promise.all([import('./issue-finder.js'), this.#more()]).then(([room, more]) => {
      this.#finder = new room.IssueFinder(more);
      this.#finder.version = this.#version;
      return this.#finder;
    });
    return this.#loading.then((finder) => {
      this.#drain(finder);
      return finder;
    });
  }

  #drain(finder: IssueFinder): void {
    for (const line of this.#waiting) finder.take(line);
    this.#waiting = [];
  }
}

/** The known issues that `explaining` put into an error; none for any other. */
export const issuesOf = (error: TrtforgeError): readonly ExplainedIssue[] =>
  Array.isArray(error.details?.issues) ? (error.details.issues as readonly ExplainedIssue[]) : [];

/** Errors that carry the library's or trtexec's own failure. Any other has a cause of its own, and its remedy stands. */
const OF_THE_LIBRARY: ReadonlySet<string> = new Set<ErrorCode>([
  'TF_BUILD_FAILED',
  'TF_BUILDER_UNAVAILABLE',
  'TF_CHILD_DIED',
  'TF_CONTEXT_FAILED',
  'TF_GPU_MEMORY',
  'TF_LIBRARY_LOAD_FAILED',
  'TF_MODEL_REJECTED',
  'TF_PLAN_LOAD_FAILED',
  'TF_RUN_FAILED',
  'TF_TRTEXEC_FAILED',
  'TF_TRTEXEC_MISREAD',
  'TF_TIMEOUT',
]);

async function explained(
  error: TrtforgeError,
  listener: IssueListener,
  model: string | undefined,
): Promise<TrtforgeError> {
  if (!OF_THE_LIBRARY.has(error.code) || issuesOf(error).length > 0) return error;
  const lastLines = linesOf(error.details?.lastLines);
  for (const line of lastLines) listener.read(line);
  listener.read(error.message);
  const death = error.code === 'TF_CHILD_DIED' ? [deathIssue(error, lastLines)] : [];
  const issues = inOrder([...(await listener.issues(model, false)), ...death]);
  if (issues.length === 0) return error;
  const { code, message, details } = error;
  return new TrtforgeError(code, message, {
    remedy: remedyOf(error, issues),
    cause: error,
    details: { ...details, issues },
  });
}

/** Number of issues that a remedy names; all of them are in the details. */
const IN_REMEDY = 2;

function remedyOf(error: TrtforgeError, issues: readonly ExplainedIssue[]): string {
  // An option that trtexec misread was passed right: the remedies for wrong options do not apply.
  if (error.code === 'TF_TRTEXEC_MISREAD') return error.remedy;
  const telling = issues.filter(({ severity, id }) => severity === 'error' && id !== 'process-died');
  if (telling.length === 0) return error.remedy;
  return telling
    .slice(0, IN_REMEDY)
    .map(({ cause, remedy, model }) => [cause, ...placeSentences(model), remedy].join(' '))
    .join(' ');
}

function deathIssue({ details, remedy }: TrtforgeError, lastLines: readonly string[]): ExplainedIssue {
  const signal = typeof details?.signal === 'string' ? details.signal : null;
  const how =
    signal === null ? `ended with exit code ${String(details?.exitCode)}` : `was killed by ${signal}`;
  const last = lastLines.at(-1);
  return {
    id: 'process-died',
    severity: 'error',
    cause: `The process ${how}${signal === null ? '' : `, ${SIGNALS[signal] ?? 'a signal'}`}.${last === undefined ? '' : ` Its last line is "${last.trim()}".`}`,
    remedy,
    versions: 'all',
    source: 'measured',
    count: 1,
    lines: lastLines.map((text, index) => ({ line: index + 1, text })),
    model: null,
  };
}

const SIGNALS: Readonly<Record<string, string>> = {
  SIGABRT: 'which is the library ending the process itself',
  SIGSEGV: 'a crash inside the library or the driver',
  SIGBUS: 'a crash: a file it had mapped became shorter, or shared memory is full',
  SIGKILL: "usually the kernel's out-of-memory killer",
  SIGFPE: 'a crash: a division by zero inside the library',
  SIGILL: 'a crash: an instruction this processor does not have',
  SIGTERM: 'on request',
};

const linesOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((line) => typeof line === 'string') : [];
