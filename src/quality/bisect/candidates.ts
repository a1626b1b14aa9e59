import { sha256 } from '../../base/files/digest.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { plural } from '../../base/text/quantity.js';
import { canonicalJson } from '../../engines/identity/canonical-json.js';
import { digestModelFile } from '../../engines/identity/model-digest.js';
import { catalogue, type ErrorCode, ExitCode, TrtforgeError } from '../../errors.js';
import { ignoreEvents } from '../../events.js';
import { convertModel } from '../../formats/precision/convert.js';
import type { FormatId } from '../../formats/precision/formats/index.js';
import type { ConversionOptions } from '../../formats/precision/options.js';
import { exactly } from '../verify/repair.js';
import type { Judge } from './judge.js';
import type { BisectContext } from './request.js';
import type { Outcome } from './search.js';
import type { Trial, Trials } from './trials.js';

/** What a candidate changes. */
export interface Change {
  /** Nodes that stay FP32, by name. */
  readonly keep: readonly string[];
}

interface Conversion {
  /** The model that is converted; its nodes have names of their own. */
  readonly model: string;
  readonly precision: FormatId;
  readonly options: ConversionOptions;
}

/** Tries changes: converts the reference with them, judges the result, and keeps what came of it. What was tried before is not tried again. */
export class Candidates {
  readonly budget: number;
  /** How many of the trials this run made. */
  tried = 0;
  readonly #conversion: Conversion;
  readonly #judge: Judge;
  readonly #trials: Trials;
  /** Where candidates are written, one after the other. */
  readonly #path: string;
  readonly #context: BisectContext;

  constructor(
    conversion: Conversion,
    judge: Judge,
    trials: Trials,
    { path, budget, context }: { path: string; budget: number; context: BisectContext },
  ) {
    this.#conversion = conversion;
    this.#judge = judge;
    this.#trials = trials;
    this.#path = path;
    this.budget = budget;
    this.#context = context;
  }

  /** What a change came to; null where the budget is spent. Throws what stops every candidate: TF_CANCELLED, and that this machine cannot run or build. */
  async outcome(change: Change, what = describeChange(change)): Promise<Outcome | null> {
    return (await this.trial(change, what))?.outcome ?? null;
  }

  /** The same with its cost and reasons. */
  async trial(change: Change, what = describeChange(change)): Promise<Trial | null> {
    const { signal, emit } = this.#context;
    const key = sha256(canonicalJson({ keep: [...change.keep].sort() }));
    const known = this.#trials.find(key);
    if (known !== undefined) return known;
    if (this.#spent() >= this.budget) return null;
    throwIfCancelled(signal, 'searching');
    emit?.({ type: 'progress', phase: 'bisect', done: this.#spent(), total: this.budget, detail: what });
    this.tried++;
    return this.#trials.add({ ...(await this.#try(change)), what, key, kept: change.keep.length });
  }

  /** Writes the model that a change makes. */
  async write(change: Change, path: string): Promise<void> {
    const { model, precision, options } = this.#conversion;
    const keepNodes = [...(options.keepNodes ?? []), ...change.keep.map(exactly)];
    await convertModel(model, path, { ...options, precision, keepNodes }, this.#silent());
  }

  /** Trials that cost a run; one that is the same as another costs a conversion. */
  #spent(): number {
    return this.#trials.all.filter(({ same }) => same === null).length;
  }

  async #try(change: Change): Promise<Omit<Trial, 'id' | 'what' | 'key' | 'kept'>> {
    const ms: Trial['ms'] = { convert: null, build: null, run: null };
    const nothing = { model: null, program: null, same: null, ms };
    try {
      const model = await timed(ms, 'convert', async () => {
        await this.write(change, this.#path);
        return digestModelFile(this.#path);
      });
      const twin = this.#trials.all.find((trial) => trial.model === model);
      if (twin !== undefined)
        return {
          ...nothing,
          model,
          outcome: twin.outcome,
          reasons: twin.reasons,
          same: twin.same ?? twin.id,
        };
      const { outcome, reasons } = await timed(ms, 'run', () => this.#judge.judge(this.#path));
      return { ...nothing, model, outcome, reasons: [...reasons] };
    } catch (error) {
      return { ...nothing, outcome: 'unresolved', reasons: [whyUnresolved(error)] };
    }
  }

  #silent() {
    return { emit: ignoreEvents, signal: this.#context.signal };
  }
}

/** Faults of one candidate, although the machine is at fault as a rule. */
const ofCandidate: ReadonlySet<ErrorCode> = new Set(['TF_GPU_MEMORY', 'TF_CONTEXT_FAILED', 'TF_RUN_FAILED']);

/** Why a candidate shows nothing; rethrows what would stop the next one as well. */
function whyUnresolved(error: unknown): string {
  if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
  const isOfMachine = catalogue[error.code].exitCode === ExitCode.machineCannot;
  if (isOfMachine && !ofCandidate.has(error.code)) throw error;
  return error.message;
}

const describeChange = ({ keep }: Change): string =>
  keep.length === 0 ? 'the conversion as it is' : `${plural(keep.length, 'node')} in FP32`;

async function timed<T>(ms: Trial['ms'], part: keyof Trial['ms'], work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  const result = await work();
  ms[part] = performance.now() - started;
  return result;
}
