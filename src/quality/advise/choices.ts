import { statSync } from 'node:fs';
import { z } from 'zod';
import { sha256 } from '../../base/files/digest.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { canonicalJson } from '../../engines/identity/canonical-json.js';
import { TrtforgeError } from '../../errors.js';
import { ignoreEvents } from '../../events.js';
import { openModel } from '../../formats/onnx/model.js';
import { convertModel } from '../../formats/precision/convert.js';
import type { FormatId } from '../../formats/precision/formats/index.js';
import type { ConversionOptions } from '../../formats/precision/options.js';
import { exactly } from '../../formats/precision/requested.js';
import { KeptTrials } from '../bisect/kept-trials.js';
import { measure } from '../verify/result.js';
import type { Fp32Judge } from './fp32-judge.js';
import type { AdviseContext, EngineTimes } from './request.js';
import { type Choice, choiceSchema } from './result.js';
import type { Unit, Units } from './units.js';

interface Conversion {
  /** The FP32 model, whose nodes have names of their own. */
  readonly model: string;
  readonly precision: FormatId;
  readonly options: ConversionOptions;
}

interface Place {
  /** Where what was tried is kept. */
  readonly folder: string;
  /** Digest of all that decides a choice besides its units. */
  readonly question: string;
  /** Where candidates are written, one after the other. */
  readonly path: string;
}

const keptSchema = choiceSchema.extend({ key: z.string() });

/** Converts a model with some of its units quantized, judges the result, and keeps what came of it: what was tried before is not tried again. */
export class Choices {
  /** How many this run tried. */
  tried = 0;
  readonly #conversion: Conversion;
  readonly #units: Units;
  readonly #judge: Fp32Judge;
  readonly #kept: KeptTrials<z.infer<typeof keptSchema>>;
  readonly #path: string;
  readonly #context: AdviseContext;

  constructor(conversion: Conversion, units: Units, judge: Fp32Judge, place: Place, context: AdviseContext) {
    this.#conversion = conversion;
    this.#units = units;
    this.#judge = judge;
    this.#kept = new KeptTrials(place.folder, place.question, {
      file: 'choices.json',
      schema: 'trtforge.advised-choices/1',
      trial: keptSchema,
    });
    this.#path = place.path;
    this.#context = context;
  }

  get all(): readonly Choice[] {
    return this.#kept.all.map(({ key, ...choice }) => choice);
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
      const bytes = await this.write(units, this.#path);
      const converted = performance.now();
      const { sqnrDb, cosineMean, cosineMin, tensors } = await this.#judge.judge(this.#path);
      const run = performance.now() - converted;
      const [metric, score] = isScored ? await this.#score(this.#path) : [null, 0];
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
    const { model, precision, options } = this.#conversion;
    const { unquantizedNodes } = this.pattern(units);
    const { bytes } = await convertModel(
      model,
      path,
      { ...options, precision, unquantizedNodes, allowUnconverted: true },
      { emit: ignoreEvents, signal: this.#context.signal },
    );
    return bytes.after;
  }

  /** Times of the engine of a choice. */
  async timed(units: readonly Unit[]): Promise<EngineTimes> {
    const { timeEngine } = this.#context;
    if (timeEngine === undefined) throw new TrtforgeError('TF_INTERNAL', 'Nothing measures engines.');
    await this.write(units, this.#path);
    return timeEngine(this.#path, this.#judge.samples[0]!);
  }

  /** What keeps the nodes of all other units out: one pattern, or none where there are no others. */
  pattern(units: readonly Unit[]): { readonly unquantizedNodes: readonly RegExp[] } {
    const others = this.#units.units.filter((unit) => !units.includes(unit)).flatMap(({ nodes }) => nodes);
    const [only, ...more] = others;
    if (only === undefined) return { unquantizedNodes: [] };
    if (more.length === 0) return { unquantizedNodes: [exactly(only)] };
    const names = others.map((name) => exactly(name).source.slice(1, -1));
    return { unquantizedNodes: [new RegExp(`^(?:${names.join('|')})$`)] };
  }

  async #once(key: string, make: () => Promise<Omit<Choice, 'id'>>): Promise<Choice> {
    const known = this.#kept.find(key);
    if (known !== undefined) return withoutKey(known);
    throwIfCancelled(this.#context.signal, 'advising');
    const choice = await make();
    this.tried++;
    return withoutKey(this.#kept.add({ ...choice, key }));
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

const withoutKey = ({ key: _, ...choice }: z.infer<typeof keptSchema>): Choice => choice;

function bytesOf(path: string): number {
  const model = openModel(path);
  try {
    return [...new Set(model.files())].reduce((sum, file) => sum + statSync(file).size, 0);
  } finally {
    model.close();
  }
}
