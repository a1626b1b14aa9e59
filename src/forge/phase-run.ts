import type { GpuList } from '../addon/addon.js';
import { throwIfCancelled } from '../base/process/cancel.js';
import type { ResolvedBuild } from '../engines/builder/options.js';
import { TrtforgeError } from '../errors.js';
import { type EventListener, inPhase, type Work, type WorkEvent } from '../events.js';
import type { ModelFacts } from '../formats/onnx/model-facts.js';
import type { ConversionResult } from '../formats/precision/result.js';
import type { BenchResult } from '../quality/bench/result.js';
import type { ExplainedIssue } from '../quality/explain/explained-issue.js';
import { explaining, issuesOf } from '../quality/explain/failure.js';
import type { SilentlyBuilt } from '../quality/explain/known-issues/issue.js';
import type { VerifyContext } from '../quality/verify/options.js';
import type { VerifyResult } from '../quality/verify/result.js';
import type { ForgedEngine, ForgeResult, ReportPhase } from '../report/forge-result.js';
import type { Machine } from './environment.js';
import type { ForgeOptions, ForgeSeams } from './options.js';
import type { RunRoot } from './run-root.js';

/** The context of a phase besides the findings of earlier phases. */
export interface PhaseContext extends Work, Pick<VerifyContext, 'backEnds'> {
  /** The ONNX file at work: nodes that a failing library names are looked up in it. */
  readonly model?: string;
}

/** The outcome of a phase: facts for the phases after it, and one line for people. */
export interface PhaseOutcome<S> {
  readonly found: Partial<S>;
  readonly detail: string;
}

/** One step of the way. It reads what was found so far and adds to it; it changes nothing that is there. */
export interface Phase<S> {
  readonly name: string;
  /** It only reads and decides: nothing is written before the first phase that does more. */
  readonly decides?: true;
  /** Why it cannot or need not run, or null. */
  skip(soFar: Partial<S>): string | null;
  /** The facts known beforehand, shown while it runs: `last built in 4.2 s`. */
  expect?(soFar: Partial<S>): Promise<string | undefined>;
  run(soFar: Partial<S>, context: PhaseContext): Promise<PhaseOutcome<S>>;
  /** The library that built the engine that a phase has found, where it finds one: issues that no line shows are found too. */
  built?(found: Partial<S>): SilentlyBuilt | null;
}

/** Where the events of each phase are written down. */
export type PhaseLog = (phase: string, event: WorkEvent) => void;

/** Milliseconds since the run started. */
export type Clock = () => number;

/** Phases over one subject, in one go or in several: what was found stays readable after a failure. */
export class PhaseRun<S> {
  found: Partial<S> = {};
  readonly phases: ReportPhase[] = [];
  /** The error that stopped the run; null while every phase ended or was skipped. */
  error: ForgeResult['error'] = null;
  /** Known issues that the lines of phases show which ended well. */
  readonly issues: ExplainedIssue[] = [];
  /** Whether a phase has begun that does more than decide. */
  hasBegun = false;
  #stopped: string | undefined;
  readonly #context: PhaseContext;
  readonly #log: PhaseLog;
  readonly #clock: Clock;
  readonly #begin: () => void;

  /** `begin` is called before the first phase that runs and does more than decide. */
  constructor(context: PhaseContext, log: PhaseLog, clock: Clock, begin: () => void = () => {}) {
    this.#context = context;
    this.#log = log;
    this.#clock = clock;
    this.#begin = begin;
  }

  /**
   * Runs phases in order, after those that ran before. A phase that throws stops the run and is recorded with its code and remedy, those after it as
   * not reached.
   */
  async advance(phases: readonly Phase<S>[]): Promise<void> {
    for (const phase of phases) this.phases.push(await this.#recordOf(phase));
  }

  /** The run as it is, which goes on by itself: what becomes of it shows in this one only. */
  fork(): PhaseRun<S> {
    const copy = new PhaseRun<S>(this.#context, this.#log, this.#clock, this.#begin);
    Object.assign(copy, { found: this.found, error: this.error, hasBegun: this.hasBegun });
    copy.phases.push(...this.phases);
    copy.issues.push(...this.issues);
    copy.#stopped = this.#stopped;
    return copy;
  }

  /** Keeps later phases from running; they are recorded as not reached for this reason. */
  stop(reason: string): void {
    this.#stopped ??= reason;
  }

  async #recordOf(phase: Phase<S>): Promise<ReportPhase> {
    if (this.#stopped !== undefined) return notStarted(phase.name, 'not-reached', this.#stopped);
    const reason = phase.skip(this.found);
    if (reason !== null) {
      this.#context.emit({ type: 'phase-skipped', phase: phase.name, reason });
      return notStarted(phase.name, 'skipped', reason);
    }
    if (phase.decides !== true && !this.hasBegun) {
      this.#begin();
      this.hasBegun = true;
    }
    return this.#run(phase);
  }

  async #run(phase: Phase<S>): Promise<ReportPhase> {
    const { emit, signal } = this.#context;
    const startMs = this.#clock();
    const steps = recordSteps(this.#clock);
    const listen: EventListener = (event) => {
      this.#log(phase.name, event);
      steps.listen(event);
      // A callee may name its own phase as this one is named; the listener gets one of them.
      if (!('phase' in event) || event.phase !== phase.name || event.type === 'progress') emit(event);
    };
    const record = (status: ReportPhase['status'], detail: string): ReportPhase => ({
      name: phase.name,
      status,
      startMs,
      ms: this.#clock() - startMs,
      detail,
      steps: steps.ended(),
    });
    try {
      throwIfCancelled(signal, `starting ${phase.name}`);
      const expected = await phase.expect?.(this.found);
      const work = () =>
        explaining((emitExplained) => phase.run(this.found, { ...this.#context, emit: emitExplained }), {
          ...this.#context,
          emit: listen,
          built: (outcome) => phase.built?.(outcome.found) ?? null,
        });
      const { result, issues } = await inPhase(phase.name, emit, work, expected);
      this.found = { ...this.found, ...result.found };
      this.issues.push(...issues);
      return record('done', result.detail);
    } catch (thrown) {
      this.error = describeError(phase.name, thrown);
      this.stop(`the run stopped in ${phase.name}`);
      const message = `${this.error.code} ${this.error.message}`;
      this.#log(phase.name, { type: 'log', source: 'trtforge', severity: 'error', message });
      return record('failed', `${this.error.code}: ${this.error.message}`);
    }
  }
}

const notStarted = (name: string, status: 'skipped' | 'not-reached', detail: string): ReportPhase => ({
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
  return { phase, code, message, remedy, exitCode, issues: issues.length === 0 ? undefined : [...issues] };
}

/** The findings of the phases, each its own part. */
export interface Forged {
  readonly inspection: ModelFacts;
  /** Everything the engine depends on, decided. */
  readonly prepared: ResolvedBuild;
  readonly conversion: ConversionResult;
  readonly obtained: ForgedEngine;
  readonly verification: VerifyResult;
  readonly engineVerification: VerifyResult;
  readonly bench: BenchResult;
}

/** The values that every phase may read; the same for the whole run. */
export interface Run {
  readonly options: ForgeOptions;
  readonly root: RunRoot;
  readonly commandLine: string | null;
  readonly profileFrom?: ForgeSeams['profileFrom'];
  /** With no other GPU than that of the run; `visible` are all. */
  readonly machine: Machine;
  readonly visible: GpuList;
  readonly environment: NodeJS.ProcessEnv;
  readonly build: ForgeSeams['build'];
  readonly afterFailure?: ForgeSeams['afterFailure'];
  readonly healer?: ForgeSeams['healer'];
  /** Where the engine goes, and stays while its identity is the same; default: under its readable name into the run root's `engines`. */
  readonly engine?: string;
  /** Whether more than the build uses the typed model; default: yes, it is verified. */
  readonly needsTypedModel?: (prepared: ResolvedBuild) => boolean;
}

export type ForgePhase = Phase<Forged>;
