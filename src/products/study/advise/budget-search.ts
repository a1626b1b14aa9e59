import { meanOf, paretoFront } from '../../../base/statistics.js';
import { formatBytes, plural } from '../../../base/text/quantity.js';
import { TrtforgeError } from '../../../errors.js';
import { measure } from '../../../quality/verify/result.js';
import { mostThatFits } from '../search.js';
import { undoSlow } from './latency.js';
import type { AdviseContext, Budget } from './options.js';
import type { Advice, AdvisedUnit, Choice } from './result.js';
import type { Choices } from './tried-units.js';
import type { Unit, Units } from './units.js';

interface FoundChoice {
  readonly units: readonly Unit[];
  readonly without: Choice;
  readonly all: Choice;
  readonly chosen: Choice;
  readonly latency: Advice['latency'];
  readonly alone: ReadonlyMap<Unit, Choice>;
}

/** Units alone whose task is scored: an evaluation takes longer than all the rest. */
const MOST_SCORED = 8;

/** The search of one budget: what it tries, what it takes, and why. */
export class BudgetSearch {
  readonly #units: Units;
  readonly #choices: Choices;
  readonly #budget: Budget;
  readonly #context: AdviseContext;
  #fp32: Choice | null = null;
  #without: Choice | undefined;
  #all: Choice | undefined;

  constructor(units: Units, choices: Choices, budget: Budget, context: AdviseContext) {
    this.#units = units;
    this.#choices = choices;
    this.#budget = budget;
    this.#context = context;
  }

  async run(withActivations: boolean): Promise<FoundChoice> {
    const { scorer, timeEngine } = this.#context;
    const { units } = this.#units;
    if (scorer !== undefined) this.#fp32 = await this.#choices.fp32();
    this.#progress(0, 'without codes');
    const without = await this.#choices.of([], 'set', 'without codes');
    this.#without = without;
    if (!this.#fits(without)) throw this.#unreachable(without);
    const all = await this.#choices.of(units, 'set', `all ${plural(units.length, 'unit')}`);
    this.#all = all;
    const alone = new Map<Unit, Choice>();
    for (const [index, unit] of units.entries()) {
      this.#progress(index + 1, unit.name);
      const isScored = scorer === undefined;
      alone.set(unit, await this.#choices.of([unit], 'alone', `"${unit.name}" alone`, { isScored }));
    }
    if (scorer !== undefined)
      for (const unit of this.#mostSensitive(alone))
        alone.set(unit, await this.#choices.of([unit], 'alone', `"${unit.name}" alone, scored`));
    const withinBudget = this.#fits(all) ? units : await this.#most(withActivations, all, alone);
    const { units: chosen, latency } =
      timeEngine === undefined
        ? { units: withinBudget, latency: null }
        : await this.#timed(withinBudget, without, all);
    const last = chosen.length === 0 ? without : await this.#set(chosen);
    return { units: chosen, without, all, chosen: last, latency, alone };
  }

  summary(found: FoundChoice, label: string) {
    const { units, chosen, without, all, alone, latency } = found;
    const choices = this.#choices.all;
    return {
      task: this.#task(),
      headline: this.#headline(found, label),
      units: this.#units.units.map((unit): AdvisedUnit => {
        const { sqnrDb, cosineMean, cosineMin, metric } = alone.get(unit)!;
        return {
          name: unit.name,
          nodes: [...unit.nodes],
          op: unit.op,
          macsShare: share(unit.macs, this.#units.macs),
          weightsShare: share(unit.weights, this.#units.weights),
          alone: { sqnrDb, cosineMean, cosineMin, metric, noise: measure(this.#noise(alone.get(unit)!)) },
          quantized: units.includes(unit),
          why: this.#why(unit, found, label),
        };
      }),
      choices: [...choices],
      front: paretoFront(
        choices.filter(({ role, metric }) => role !== 'fp32' && (this.#fp32 === null || metric !== null)),
        (choice) => [choice.bytes, -this.#closeness(choice)],
      ).map(({ id }) => id),
      without: without.id,
      all: all.id,
      chosen: chosen.id,
      drop: this.#lossOf(chosen),
      latency,
    };
  }

  /** The units to score; for the others a metric shows chance: it is over fewer samples than their error could be seen in. */
  #mostSensitive(alone: ReadonlyMap<Unit, Choice>): readonly Unit[] {
    return [...alone]
      .sort(([, a], [, b]) => this.#noise(b) - this.#noise(a))
      .slice(0, MOST_SCORED)
      .map(([unit]) => unit);
  }

  /** Units in the order of what they save for the error that they make. */
  async #most(
    withActivations: boolean,
    all: Choice,
    alone: ReadonlyMap<Unit, Choice>,
  ): Promise<readonly Unit[]> {
    const { units, macs, weights } = this.#units;
    const noiseOf = (unit: Unit) => this.#noise(alone.get(unit)!);
    const gainOf = (unit: Unit) =>
      withActivations ? share(unit.macs, macs) + share(unit.weights, weights) : share(unit.weights, weights);
    const order = [...units].sort((a, b) => noiseOf(a) * gainOf(b) - noiseOf(b) * gainOf(a));
    // Errors of different nodes add up nearly as if they were independent.
    const sum = units.reduce((total, unit) => total + noiseOf(unit), 0);
    const scale = sum > 0 && Number.isFinite(sum) ? this.#noise(all) / sum : 1;
    const budget = this.#budget;
    const limit =
      budget.kind === 'sqnr'
        ? 10 ** (-budget.db / 10) - powerOf(this.#without!.sqnrDb)
        : this.#noise(all) / 2;
    let noise = 0;
    const beyond = order.findIndex((unit) => {
      noise += scale * noiseOf(unit);
      return !(noise <= limit);
    });
    const guess = beyond < 0 ? order.length : beyond;
    return mostThatFits(order, {
      guess,
      fits: async (chosen) => this.#fits(await this.#set(chosen)),
      mayFit: (chosen, unit) => {
        const before = this.#choices.all.find(({ units: names }) => isSame(names, chosen));
        return before === undefined || this.#noise(before) + scale * noiseOf(unit) <= this.#mostNoise();
      },
    });
  }

  /** The limit of an addition by estimate: the budget with a little room, or the smallest error that went beyond the metric's. */
  #mostNoise(): number {
    if (this.#budget.kind === 'sqnr')
      return 1.03 * 10 ** (-this.#budget.db / 10) - powerOf(this.#without!.sqnrDb);
    const failing = this.#choices.all.filter((choice) => choice.role === 'set' && !this.#fits(choice));
    return Math.min(...failing.map((choice) => this.#noise(choice)));
  }

  async #timed(
    units: readonly Unit[],
    without: Choice,
    all: Choice,
  ): Promise<{ readonly units: readonly Unit[]; readonly latency: Advice['latency'] }> {
    const timed = new Map<number, NonNullable<Advice['latency']>['choices'][number]>();
    const time = async (chosen: readonly Unit[]) => {
      const { id } = chosen.length === 0 ? without : await this.#set(chosen);
      const known = timed.get(id);
      if (known !== undefined) return known;
      const times = await this.#choices.timed(chosen);
      timed.set(id, { id, ...times });
      return times;
    };
    if (!this.#fits(all)) await time(this.#units.units);
    const found = await undoSlow(units, time, async (chosen) => this.#fits(await this.#set(chosen)));
    const { undone, slower, isSlower, speedup } = found;
    return {
      units: found.units,
      latency: {
        choices: [...timed.values()],
        speedup,
        undone: [...undone],
        isSlower,
        slower: [...slower],
      },
    };
  }

  #set(units: readonly Unit[]): Promise<Choice> {
    const { length } = this.#units.units;
    this.#progress(length + 1, `${units.length} of ${length} units`);
    const what = units.length === 0 ? 'without codes' : `${units.length} of ${plural(length, 'unit')}`;
    return this.#choices.of(units, 'set', what);
  }

  #fits(choice: Choice): boolean {
    const budget = this.#budget;
    if (budget.kind === 'sqnr') return Number(choice.sqnrDb) >= budget.db;
    return this.#dropped(choice) <= budget.drop;
  }

  /** Higher is better. */
  #closeness(choice: Choice): number {
    return this.#budget.kind === 'sqnr' ? Number(choice.sqnrDb) : -this.#dropped(choice);
  }

  #dropped({ metric }: Choice): number {
    const lost = (this.#fp32?.metric ?? 0) - (metric ?? 0);
    return this.#context.scorer?.higherIsBetter === false ? -lost : lost;
  }

  /**
   * The error that the codes of a choice add. A budget in decibels is about the tensor with the least, so that one counts; a metric is made of all of them,
   * boxes in pixels and scores, so there each counts by its share in the error of all units.
   */
  #noise(choice: Choice): number {
    const [without, all] = [this.#without, this.#all];
    if (without === undefined) return 0;
    const added = (of: Choice) =>
      of.tensorsDb.map((db, at) => Math.max(0, powerOf(db) - powerOf(without.tensorsDb[at]!)));
    if (this.#budget.kind === 'sqnr' || all === undefined)
      return Math.max(0, powerOf(choice.sqnrDb) - powerOf(without.sqnrDb));
    const whole = added(all);
    return meanOf(added(choice).map((power, at) => (whole[at] === 0 ? 0 : power / whole[at]!)));
  }

  #task(): Advice['task'] {
    const { scorer } = this.#context;
    if (scorer === undefined) return null;
    const { task, name, unit, higherIsBetter } = scorer;
    return { id: task, metric: { name, value: this.#fp32?.metric ?? null, unit, higherIsBetter } };
  }

  #lossOf(choice: Choice): Advice['drop'] {
    const reference = this.#fp32?.metric ?? null;
    if (reference === null) return null;
    const metric = this.#dropped(choice);
    return { metric, relative: reference === 0 ? null : metric / reference };
  }

  #unreachable(best: Choice): TrtforgeError {
    const budget = this.#budget;
    return new TrtforgeError(
      'TF_BUDGET_UNREACHABLE',
      budget.kind === 'sqnr'
        ? `No choice keeps ${budget.db} dB: with no node quantized it is ${figure(best.sqnrDb)} dB, the best reached.`
        : `No choice keeps the budget of ${budget.drop}: with no node quantized the metric is ${this.#dropped(best)} worse than that of FP32, the best reached.`,
      { details: { budget, best: budget.kind === 'sqnr' ? best.sqnrDb : this.#dropped(best) } },
    );
  }

  #headline({ units, chosen, latency }: FoundChoice, label: string): string {
    const all = this.#units.units.length;
    const metric =
      chosen.metric === null ? '' : `, ${this.#context.scorer?.name} ${chosen.metric.toFixed(4)}`;
    const speed = latency === null ? '' : `, ${latency.speedup.toFixed(2)} times as fast as not quantized`;
    const slower =
      latency?.isSlower === true ? ` ${label} is slower here than the model that is not quantized.` : '';
    return `${units.length} of ${plural(all, 'unit')} in ${label}: ${figure(chosen.sqnrDb)} dB${metric}, ${formatBytes(chosen.bytes)}${speed}.${slower}`;
  }

  #why(unit: Unit, { units, chosen, alone, latency }: FoundChoice, label: string): string {
    const own = `alone it leaves ${figure(alone.get(unit)!.sqnrDb)} dB`;
    if (units.includes(unit)) return `Quantized: ${own}, and the budget is kept.`;
    const undone = latency?.undone.find((each) => each.unit === unit.name);
    if (undone !== undefined)
      return `Undone: its layers take ${undone.ms.after.toFixed(4)} ms in ${label} and ${undone.ms.before.toFixed(4)} ms without.`;
    const failed = this.#choices.all
      .filter((choice) => choice.role === 'set' && choice.units.includes(unit.name) && !this.#fits(choice))
      .sort((a, b) => a.units.length - b.units.length)
      .at(0);
    const limit = this.#budget.kind === 'sqnr' ? `${this.#budget.db} dB` : `a loss of ${this.#budget.drop}`;
    if (failed === undefined)
      return `Left out: ${own}; with the ${chosen.units.length} others the budget of ${limit} would not be kept, by estimate.`;
    const reached =
      this.#budget.kind === 'sqnr'
        ? `${figure(failed.sqnrDb)} dB`
        : `a loss of ${this.#dropped(failed).toFixed(4)}`;
    return `Left out: ${own}; with it among ${plural(failed.units.length, 'unit')} the model has ${reached}, beyond the budget of ${limit}.`;
  }

  #progress(done: number, detail: string): void {
    const total = this.#units.units.length + 2;
    this.#context.emit?.({ type: 'progress', phase: 'advise', done, total, detail });
  }
}

const figure = (value: Choice['sqnrDb']): string =>
  typeof value === 'number' ? value.toFixed(1) : String(value);

/** Of the error, over that of the values. */
const powerOf = (sqnrDb: Choice['sqnrDb']): number => 10 ** (-Number(sqnrDb) / 10);

const share = (part: number, total: number): number => (total === 0 ? 0 : part / total);

const isSame = (names: readonly string[], units: readonly Unit[]): boolean =>
  names.length === units.length && units.every(({ name }) => names.includes(name));
