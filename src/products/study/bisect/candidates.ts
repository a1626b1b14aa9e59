import { join } from 'node:path';
import { z } from 'zod';
import { canonicalJson, sha256 } from '../../../base/files/digest.js';
import { meanOf } from '../../../base/statistics.js';
import { formatMs, plural } from '../../../base/text/quantity.js';
import { digestModelFile } from '../../../engines/identity/model-digest.js';
import type { PlanProgram } from '../../../engines/plan/program.js';
import { catalogue, type ErrorCode, ExitCode, TrtforgeError } from '../../../errors.js';
import { ignoreEvents, inPhase } from '../../../events.js';
import {
  type CandidateEngines,
  type Freedom,
  programKey,
  programOf,
} from '../../../quality/known-answer/candidate-engines.js';
import { type Change, type Conversion, writeChange } from '../conversion.js';
import type { Outcome } from '../search.js';
import { Trials } from '../trials.js';
import type { Judge, Judgement } from './judge.js';
import type { BisectContext } from './options.js';
import { candidateSchema } from './result.js';

/** Where a search keeps what it tried. */
const form = {
  file: 'candidates.json',
  schema: 'trtforge.bisect-candidates/1',
  trial: candidateSchema.extend({
    /** Digest of its changes. */
    key: z.string(),
    /** Digest of the model that the changes make, and of how an engine is built from it; null where there is none. */
    model: z.string().nullable(),
    /** Digest of the compiled program of the engine; null for a model, and where the program cannot be read. */
    program: z.string().nullable(),
  }),
};
/** A candidate with what names it, so that no run tries it twice. */
type Trial = z.infer<typeof form.trial>;

export const candidateTrials = (folder: string, question: Readonly<Record<string, unknown>>): Trials<Trial> =>
  new Trials(folder, question, form);

export interface Searched {
  readonly conversion: Conversion;
  readonly judge: Pick<Judge, 'judge'>;
  readonly trials: Trials<Trial>;
  /** null where candidates are models. */
  readonly engines: CandidateEngines | null;
  /** The candidate that fails. */
  readonly failing: Pick<Judgement, 'outcome' | 'reasons'>;
  /** Candidates are written there, one after the other. */
  readonly work: string;
  readonly budget: number;
  /** After this, by `performance.now()`, no candidate is tried but the first: a search that is repeated goes on. */
  readonly until?: number;
}

/** The number of the candidate that the search begins with. */
const FAILING = 0;

/** Tries changes: converts the reference with them, builds an engine of it where engines are searched, judges it, and keeps what came of it. What was tried before is not tried again. */
export class Candidates {
  readonly searched: Searched;
  readonly #context: BisectContext;
  /** Programs of what this run built. */
  readonly #programs = new Map<string, PlanProgram | null>();
  readonly #failingProgram: string | null;

  constructor(searched: Searched, context: BisectContext) {
    this.searched = searched;
    this.#context = context;
    const { engines } = searched;
    this.#failingProgram = engines === null ? null : programKey(programOf(engines.engine));
  }

  /** A change's outcome; null: the budget is spent. Throws what stops every candidate: TF_CANCELLED, or that this machine cannot run or build. */
  async outcome(change: Change, what = describeChange(change)): Promise<Outcome | null> {
    return (await this.trial(change, what))?.outcome ?? null;
  }

  /** The same with its cost and reasons. */
  async trial(change: Change, what = describeChange(change)): Promise<Trial | null> {
    const { signal, emit } = this.#context;
    const { trials, budget } = this.searched;
    const key = keyOf(change);
    const known = trials.find(key);
    if (known !== undefined) return known;
    if (this.isSpent) return null;
    return trials.once(key, signal, async () => {
      emit?.({ type: 'progress', phase: 'bisect', done: this.#spent(), total: budget, detail: what });
      const made = await inPhase(
        `trial ${trials.all.length + 1}`,
        emit ?? ignoreEvents,
        () => this.#try(change),
        `${what}; ${this.#foreseen()}; Ctrl-C keeps what was tried`,
        ({ outcome }) => `${outcome === 'fail' ? 'FAIL' : outcome}: ${what}; ${this.#foreseen()}`,
      );
      return { ...made, what, kept: change.keep?.length ?? 0 };
    });
  }

  /** Number of trials that may follow the one that runs, and their duration if they are like those before. */
  #foreseen(): string {
    const { trials, budget, until } = this.searched;
    if (until !== undefined) return `${formatMs(Math.max(0, until - performance.now()))} left`;
    const left = Math.max(0, budget - this.#spent() - 1);
    const spent = trials.all.map(({ ms }) => (ms.convert ?? 0) + (ms.build ?? 0) + (ms.run ?? 0));
    return `at most ${left} more${spent.length === 0 ? '' : `, ${formatMs(left * meanOf(spent))}`}`;
  }

  /** The compiled program of a change that was tried; null where it cannot be read. Where an earlier run tried it, it is built once more. */
  async program(change: Change): Promise<PlanProgram | null> {
    if (this.searched.engines === null) return null;
    const key = keyOf(change);
    if (!this.#programs.has(key)) {
      await writeChange(this.searched.conversion, change, this.#model, this.#context.signal);
      await this.#build(change);
    }
    return this.#programs.get(key) ?? null;
  }

  get isSpent(): boolean {
    const { budget, trials, until = Number.POSITIVE_INFINITY } = this.searched;
    return this.#spent() >= budget || (trials.made > 0 && performance.now() >= until);
  }

  /** Trials that cost a build or a run; one that is the same model as another costs a conversion. */
  #spent(): number {
    return this.searched.trials.all.filter(({ same, ms }) => same === null || ms.build !== null).length;
  }

  async #try(change: Change): Promise<Omit<Trial, 'id' | 'what' | 'key' | 'kept'>> {
    const { judge, trials, engines, failing, conversion } = this.searched;
    const ms: Trial['ms'] = { convert: null, build: null, run: null };
    const made: { model: string | null; program: string | null } = { model: null, program: null };
    const sameAs = (twin: Pick<Trial, 'id' | 'outcome' | 'reasons' | 'same'>) => ({
      ...made,
      ms,
      outcome: twin.outcome,
      reasons: [...twin.reasons],
      same: twin.same ?? twin.id,
    });
    try {
      made.model = await timed(ms, 'convert', async () => {
        await writeChange(conversion, change, this.#model, this.#context.signal);
        return sha256(canonicalJson([await digestModelFile(this.#model), freedomOf(change)]));
      });
      const twin = trials.all.find(({ model }) => model === made.model);
      if (twin !== undefined) return sameAs(twin);
      const engine = engines && (await timed(ms, 'build', () => this.#build(change)));
      made.program = engine && programKey(this.#programs.get(keyOf(change)) ?? null);
      if (made.program !== null) {
        if (made.program === this.#failingProgram)
          return sameAs({ ...failing, reasons: [...failing.reasons], id: FAILING, same: null });
        const equal = trials.all.find(({ program }) => program === made.program);
        if (equal !== undefined) return sameAs(equal);
      }
      const { outcome, reasons } = await timed(ms, 'run', () => judge.judge({ model: this.#model, engine }));
      return { ...made, ms, same: null, outcome, reasons: [...reasons] };
    } catch (error) {
      return { ...made, ms, same: null, outcome: 'unresolved', reasons: [whyUnresolved(error)] };
    }
  }

  /** The engine of the model that was written last. */
  async #build(change: Change): Promise<string | null> {
    const { engines } = this.searched;
    if (engines === null) return null;
    const { path, program } = await engines.build(
      this.#model,
      join(this.searched.work, 'candidate.engine'),
      change,
    );
    this.#programs.set(keyOf(change), program);
    return path;
  }

  get #model(): string {
    return join(this.searched.work, 'candidate.onnx');
  }
}

const keyOf = ({ keep = [], outputs = [], unquantized, ...freedom }: Change): string =>
  sha256(
    canonicalJson({
      keep: [...keep].sort(),
      outputs: [...outputs].sort(),
      unquantized: unquantized?.toSorted(),
      ...freedomOf(freedom),
    }),
  );

const freedomOf = ({ tf32 }: Freedom) => ({ tf32: tf32 ?? true });

/** Faults of one candidate, although the machine is at fault as a rule. */
const ofCandidate: ReadonlySet<ErrorCode> = new Set(['TF_GPU_MEMORY', 'TF_CONTEXT_FAILED', 'TF_RUN_FAILED']);

/** Why a candidate shows nothing; rethrows what would stop the next one as well. */
export function whyUnresolved(error: unknown): string {
  if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
  const isOfMachine = catalogue[error.code].exitCode === ExitCode.machineCannot;
  if (isOfMachine && !ofCandidate.has(error.code)) throw error;
  return error.message;
}

function describeChange({ keep = [], outputs = [], tf32 }: Change): string {
  const changes = [
    ...(tf32 === false ? ['no TF32'] : []),
    ...(outputs.length === 0
      ? []
      : [outputs.length === 1 ? `"${outputs[0]}" as an output` : `${outputs.length} more outputs`]),
    ...(keep.length === 0 ? [] : [`${plural(keep.length, 'node')} in FP32`]),
  ];
  return changes.join(', ') || 'the conversion as it is';
}

/** Records what a step takes, also where it fails. */
async function timed<T>(ms: Trial['ms'], part: keyof Trial['ms'], work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  try {
    return await work();
  } finally {
    ms[part] = performance.now() - started;
  }
}
