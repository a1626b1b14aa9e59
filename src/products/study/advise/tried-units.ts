import { statSync } from 'node:fs';
import { z } from 'zod';
import { canonicalJson, sha256 } from '../../../base/files/digest.js';
import { TrtforgeError } from '../../../errors.js';
import { viewModel } from '../../../formats/onnx/model.js';
import { measure } from '../../../quality/verify/result.js';
import { type Change, type Conversion, writeChange } from '../conversion.js';
import { Trials } from '../trials.js';
import type { Fp32Judge } from './fp32-judge.js';
import type { AdviseContext, EngineTimes } from './options.js';
import { type Choice, choiceSchema } from './result.js';
import type { Unit, Units } from './units.js';

interface Place {
  /** Where what was tried is kept. */
  readonly folder: string;
  /** All that decides a choice besides its units. */
  readonly question: Readonly<Record<string, unknown>>;
  /** Where candidates are written, one after the other. */
  readonly path: string;
  /** After this, by `performance.now()`, TimeEnded is thrown in place of a trial, but for the first: a search that is repeated goes on. */
  readonly until?: number;
}

export class TimeEnded extends Error {}

const form = {
  file: 'choices.json',
  schema: 'trtforge.advised-choices/1',
  trial: choiceSchema.extend({ key: z.string() }),
};

/** Converts a model with some of its units quantized, judges the result, and keeps what came of it: what was tried before is not tried again. */
export class Choices {
  readonly #conversion: Conversion;
  readonly #units: Units;
  readonly #judge: Fp32Judge;
  readonly #trials: Trials<z.infer<typeof form.trial>>;
  readonly #place: Place;
  readonly #context: AdviseContext;

  constructor(conversion: Conversion, units: Units, judge: Fp32Judge, place: Place, context: AdviseContext) {
    this.#conversion = conversion;
    this.#units = units;
    this.#judge = judge;
    this.#trials = new Trials(place.folder, place.question, form);
    this.#place = place;
    this.#context = context;
  }

  get all(): readonly Choice[] {
    return this.#trials.all.map(withoutKey);
  }

  /** Number of choices that this run tried. */
  get tried(): number {
    return this.#trials.made;
  }

  /** The model as it is: what the metric of the task is compared with. */
  async fp32(): Promise<Choice> {
    const { model } = this.#conversion;
    return this.#once('fp32', async () => {
      const [metric, score] = await this.#score(model);
      const exact = {
        sqnrDb: measure(Number.POSITIVE_INFINITY),
        cosineMean: 1,
        cosineMin: 1,
        tensorsDb: [],
        metric,
      };
      const none = { units: [], macsShare: 0, weightsShare: 0, bytes: bytesOf(model) };
      return { what: 'FP32', role: 'fp32', ...exact, ...none, ms: { convert: 0, run: 0, score } };
    });
  }

  /** Throws what converting, running and scoring throw, TF_CANCELLED. */
  async of(
    units: readonly Unit[],
    role: Choice['role'],
    what: string,
    { isScored = true }: { readonly isScored?: boolean } = {},
  ): Promise<Choice> {
    const names = units.map(({ name }) => name);
    const key = sha256(canonicalJson({ names: [...names].sort(), isScored }));
    return this.#once(key, async () => {
      const started = performance.now();
      const bytes = await this.write(units, this.#place.path);
      const converted = performance.now();
      const { sqnrDb, cosineMean, cosineMin, tensors } = await this.#judge.judge(this.#place.path);
      const run = performance.now() - converted;
      const [metric, score] = isScored ? await this.#score(this.#place.path) : [null, 0];
      const share = (amount: (unit: Unit) => number, total: number) =>
        total === 0 ? 0 : units.reduce((sum, unit) => sum + amount(unit), 0) / total;
      return {
        what,
        role,
        units: names,
        sqnrDb: measure(sqnrDb),
        cosineMean: measure(cosineMean),
        cosineMin: measure(cosineMin),
        tensorsDb: tensors.map((tensor) => measure(tensor.sqnrDb)),
        metric,
        bytes,
        macsShare: share(({ macs }) => macs, this.#units.macs),
        weightsShare: share(({ weights }) => weights, this.#units.weights),
        ms: { convert: converted - started, run, score },
      };
    });
  }

  /** Writes the model with these units quantized, and returns its bytes. */
  async write(units: readonly Unit[], path: string): Promise<number> {
    await writeChange(this.#conversion, this.change(units), path, this.#context.signal);
    return bytesOf(path);
  }

  /** Times of the engine of a choice. */
  async timed(units: readonly Unit[]): Promise<EngineTimes> {
    const { timeEngine } = this.#context;
    if (timeEngine === undefined) throw new TrtforgeError('TF_INTERNAL', 'Nothing measures engines.');
    await this.write(units, this.#place.path);
    return timeEngine(this.#place.path, this.#judge.samples[0]!);
  }

  /** The nodes of all other units have no codes. */
  change(units: readonly Unit[]): Change {
    const others = this.#units.units.filter((unit) => !units.includes(unit));
    return { unquantized: others.flatMap(({ nodes }) => nodes) };
  }

  async #once(key: string, make: () => Promise<Omit<Choice, 'id'>>): Promise<Choice> {
    const trial = () => {
      if (this.tried > 0 && performance.now() >= (this.#place.until ?? Number.POSITIVE_INFINITY))
        throw new TimeEnded();
      return make();
    };
    return withoutKey(await this.#trials.once(key, this.#context.signal, trial));
  }

  /** The metric and the milliseconds that it took. */
  async #score(path: string): Promise<readonly [number | null, number]> {
    const { scorer } = this.#context;
    if (scorer === undefined) return [null, 0];
    const started = performance.now();
    const value = await scorer.score(path);
    if (value === null)
      throw new TrtforgeError(
        'TF_EVAL_DATA',
        `The task ${scorer.task} has no ${scorer.name}: nothing was scored.`,
        {
          remedy: 'Pass data with something to score, or leave --data out and judge by signal to noise.',
        },
      );
    return [value, performance.now() - started];
  }
}

const withoutKey = ({ key: _, ...choice }: z.infer<typeof form.trial>): Choice => choice;

function bytesOf(path: string): number {
  return viewModel(path, (model) =>
    [...new Set(model.files())].reduce((sum, file) => sum + statSync(file).size, 0),
  );
}
