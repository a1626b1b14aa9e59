import { TrtforgeError } from '../errors.js';
import { type EventListener, inPhase, type WorkEvent } from '../events.js';
import type { ExplainedIssue } from '../quality/explain/explained-issue.js';
import { explaining, issuesOf } from '../quality/explain/failure.js';
import type { SilentlyBuilt } from '../quality/explain/silent-issues.js';
import type { ForgeResult, ReportPhase } from '../report/result.js';

/** What a phase is given besides what earlier phases found. */
export interface PhaseContext {
  readonly emit: EventListener;
  readonly signal?: AbortSignal;
  /** The ONNX file at work: nodes that a failing library names are looked up in it. */
  readonly model?: string;
}

/** What came of a phase: facts for the phases after it, and one line for people. */
export interface PhaseOutcome<S> {
  readonly found: Partial<S>;
  readonly detail: string;
}

/** One step of the way. It reads what was found so far and adds to it; it changes nothing that is there. */
export interface Phase<S> {
  readonly name: string;
  /** It only reads and decides: nothing is written before the first phase that does more. */
  readonly decides?: true;
  /** Why it cannot or need not run here, or null. */
  skip(soFar: Partial<S>): string | null;
  /** What is known beforehand, shown while it runs: «last built in 4.2 s». */
  expect?(soFar: Partial<S>): Promise<string | undefined>;
  run(soFar: Partial<S>, context: PhaseContext): Promise<PhaseOutcome<S>>;
  /** What made the engine that a phase has found, where it finds one: issues that no line shows are told too. */
  built?(found: Partial<S>): SilentlyBuilt | null;
}

export interface PhasesOutcome<S> {
  readonly found: Partial<S>;
  readonly phases: readonly ReportPhase[];
  /** What stopped the run; null when every phase ended or was skipped. */
  readonly error: ForgeResult['error'];
  /** Known issues that the lines of phases show which ended well. */
  readonly issues: readonly ExplainedIssue[];
}

/** Where the events of each phase are written down. */
export type PhaseLog = (phase: string, event: WorkEvent) => void;

/** Milliseconds since the run started. */
export type Clock = () => number;

/**
 * Runs phases in order. A phase that throws stops the run and is recorded with its code and remedy, those after it as not reached:
 * the caller still has everything that was found. `begin` is called before the first phase that runs and does more than decide; `before` is what earlier phases found.
 */
export async function runPhases<S>(
  phases: readonly Phase<S>[],
  context: PhaseContext,
  log: PhaseLog,
  clock: Clock,
  begin: () => void = () => {},
  before: Partial<S> = {},
): Promise<PhasesOutcome<S>> {
  let begun = false;
  const records: ReportPhase[] = [];
  const issues: ExplainedIssue[] = [];
  let found = before;
  let error: ForgeResult['error'] = null;
  for (const phase of phases) {
    if (error !== null) {
      records.push(notStarted(phase.name, 'not-reached', `the run stopped in ${error.phase}`));
      continue;
    }
    const reason = phase.skip(found);
    if (reason !== null) {
      context.emit({ type: 'phase-skipped', phase: phase.name, reason });
      records.push(notStarted(phase.name, 'skipped', reason));
      continue;
    }
    if (phase.decides !== true && !begun) begin();
    begun ||= phase.decides !== true;
    const ended = await runPhase(phase, found, context, log, clock);
    records.push(ended.record);
    found = { ...found, ...ended.found };
    issues.push(...ended.issues);
    error = ended.error;
  }
  return { found, phases: records, error, issues };
}

async function runPhase<S>(
  phase: Phase<S>,
  soFar: Partial<S>,
  context: PhaseContext,
  log: PhaseLog,
  clock: Clock,
) {
  const startMs = clock();
  const steps = recordSteps(clock);
  const emit: EventListener = (event) => {
    log(phase.name, event);
    steps.listen(event);
    // A callee may name its own phase as we name ours; the listener hears one of them.
    if (!('phase' in event) || event.phase !== phase.name || event.type === 'progress') context.emit(event);
  };
  const record = (status: ReportPhase['status'], detail: string): ReportPhase => ({
    name: phase.name,
    status,
    startMs,
    ms: clock() - startMs,
    detail,
    steps: steps.ended(),
  });
  try {
    if (context.signal?.aborted) throw new TrtforgeError('TF_CANCELLED', `Cancelled before ${phase.name}.`);
    const expected = await phase.expect?.(soFar);
    const { result, issues } = await inPhase(
      phase.name,
      context.emit,
      () =>
        explaining((heard) => phase.run(soFar, { ...context, emit: heard }), {
          ...context,
          emit,
          built: (outcome) => phase.built?.(outcome.found) ?? null,
        }),
      expected,
    );
    return { record: record('done', result.detail), found: result.found, error: null, issues };
  } catch (thrown) {
    const error = describeError(phase.name, thrown);
    log(phase.name, {
      type: 'log',
      source: 'trtforge',
      severity: 'error',
      message: `${error.code} ${error.message}`,
    });
    return { record: record('failed', `${error.code}: ${error.message}`), found: {}, error, issues: [] };
  }
}

export const notStarted = (name: string, status: 'skipped' | 'not-reached', detail: string): ReportPhase => ({
  name,
  status,
  startMs: null,
  ms: null,
  detail,
  steps: [],
});

/** The inner phases of a phase, once they have ended. */
function recordSteps(clock: Clock) {
  const started = new Map<string, number>();
  const ended: { name: string; startMs: number; ms: number }[] = [];
  const listen: EventListener = (event) => {
    if (event.type === 'phase-start') started.set(event.phase, clock());
    const startMs = event.type === 'phase-end' ? started.get(event.phase) : undefined;
    if (event.type === 'phase-end' && startMs !== undefined)
      ended.push({ name: event.phase, startMs, ms: clock() - startMs });
  };
  return { listen, ended: () => [...ended].sort((a, b) => a.startMs - b.startMs) };
}

function describeError(phase: string, thrown: unknown): NonNullable<ForgeResult['error']> {
  const error =
    thrown instanceof TrtforgeError
      ? thrown
      : new TrtforgeError(
          'TF_INTERNAL',
          `trtforge itself failed: ${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}`,
          { cause: thrown },
        );
  const { code, message, remedy, exitCode } = error;
  const issues = issuesOf(error);
  return { phase, code, message, remedy, exitCode, ...(issues.length === 0 ? {} : { issues: [...issues] }) };
}
