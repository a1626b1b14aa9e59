import { throwIfCancelled } from '../../base/process/cancel.js';
import { hasRandomNode } from '../../engines/identity/model-graph.js';
import { areDrawable, areRunnable } from '../../engines/identity/passport.js';
import { type Profile, type ProfileEnd, profileEnds } from '../../engines/profiles/profile.js';
import { type PlannedInput, planInputs } from '../../engines/run/drawn-inputs.js';
import { inTypesOf } from '../../engines/run/input-dtype.js';
import type { BackEnd } from '../../engines/runtime/back-end.js';
import { openSession } from '../../engines/runtime/open-session.js';
import type { Session } from '../../engines/runtime/session.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { editModel } from '../../formats/onnx/model.js';
import { quantizedFormatNamed } from '../../formats/precision/formats/index.js';
import { magnitudesOf } from '../../formats/tensor/compare/pair-sums.js';
import { slicedAxis } from '../../formats/tensor/compare/slices.js';
import { dtypes, elementCount } from '../../formats/tensor/dtype.js';
import { float32Values, floatTensor, type NamedTensors, type Tensor } from '../../formats/tensor/tensor.js';
import { floatReader, tensorReader } from '../../formats/tensor/tensor-reader.js';
import { reachingOutputs } from '../verify/reached-by.js';
import type { VerifyPrecision } from '../verify/result.js';
import { limitsFor, probabilitiesOf, toleranceOf } from '../verify/tolerance.js';
import { type AnswerCase, type AnsweredOutput, DRAWN_CODES, hasOutputs, type KnownAnswer } from './answer.js';
import { judgeAnswer } from './judge.js';
import {
  type MadeInput,
  madeInputs,
  outputRows,
  rowsOf,
  runSteps,
  sameRows,
  statesAmong,
} from './made-inputs.js';
import {
  coarser,
  comparedAs,
  distanceOf,
  MOST_PLACES,
  type Sketch,
  sizesOnly,
  sketchOf,
  sliceErrors,
} from './sketch.js';

/** The source of a recorded answer. */
interface AnswerRequest {
  /** The FP32 model. */
  readonly reference: string;
  /** The precision that the limits are for. */
  readonly precision: VerifyPrecision;
  /** Of the engine; none for fixed shapes. */
  readonly profiles: readonly Profile[];
  readonly threads?: number;
}

export interface AnswerContext extends WorkContext {
  /** Aborted when no more time is left: what is recorded by then counts, and with nothing that is TF_CANCELLED. */
  readonly limit?: AbortSignal;
  /** Default: every back end there is. */
  readonly backEnds?: readonly BackEnd[];
}

/** In a passport, as JSON. */
const MOST_BYTES = 20_000;

const OTHER_ROWS = 'rounding alone chooses other rows';

const SEED = 0;
/** Runs one after the other of a model with states. */
const STEPS = 3;

/** Rows of the reference that differ by no more than this share of an output's root mean square are the same. */
const SAME_ROWS = 1e-4;

/**
 * Runs the reference on inputs that are made by recipe, at every end of every profile, and keeps a sketch of what it gives. What cannot be kept, or only rounding
 * decides, is listed in `left`. Throws what opening and running the reference throw for the first case; TF_PROFILE_INVALID for another size that does not run; TF_CANCELLED.
 */
export async function recordAnswer(
  request: AnswerRequest,
  context: AnswerContext = {},
): Promise<KnownAnswer> {
  const { reference, threads } = request;
  const { limit } = context;
  const signals = [context.signal, limit].flatMap((each) => each ?? []);
  const signal = signals.length === 0 ? undefined : AbortSignal.any(signals);
  await using session = await openSession(reference, { threads }, { ...context, signal }, context.backEnds);
  const run = (inputs: NamedTensors) =>
    session.run(inTypesOf(session.inputs, inputs, 'the known answer'), { signal });
  const recorder = new Recorder(request, session, run, limit);
  await editModel(reference, async (model) => {
    if (hasRandomNode(model.proto))
      throw new TrtforgeError('TF_USAGE', `${reference} draws random numbers: no answer is known of it.`);
    for (const wanted of casesOf(request.profiles)) {
      throwIfCancelled(context.signal, `recording what ${reference} gives`);
      const planned = planInputs(model, session.inputs, { shapes: wanted.shapes });
      const inputs = planned.map((input) => madeBy(input, wanted.values));
      await recorder.add(wanted, inputs);
    }
  });
  await recorder.findRows();
  const answer = fitted(recorder.answer());
  if (hasOutputs(answer)) return answer;
  const why = answer.left.slice(0, 3).join('; ');
  throw new TrtforgeError('TF_USAGE', `Nothing that ${reference} gives can be kept: ${why}.`, {
    remedy: `Compare the engine with the model: trtforge verify ENGINE --against ${reference}`,
  });
}

type WantedCase = Pick<AnswerCase, 'name' | 'profile'> & Pick<ProfileEnd, 'shapes' | 'values'>;

const casesOf = (profiles: readonly Profile[]): readonly WantedCase[] =>
  profiles.length === 0
    ? [{ name: 'fixed shapes', profile: null, shapes: new Map(), values: new Map() }]
    : profileEnds(profiles).map(({ end, ...sizes }) => ({
        ...sizes,
        name: `profile ${sizes.profile}, ${end}`,
      }));

function madeBy({ name, dtype, shape, range }: PlannedInput, values: WantedCase['values']): MadeInput {
  const listed = values.get(name);
  const spread = listed === undefined ? range!.spread : { kind: 'values', values: listed };
  // As JSON has it, without what is undefined: a passport equals the one read from its file.
  return JSON.parse(JSON.stringify({ name, dtype, shape, spread }));
}

/** Shape tensors keep their values. */
const zeroed = (input: MadeInput): MadeInput =>
  input.spread.kind === 'values' ? input : { ...input, spread: { kind: 'uniform', low: 0, high: 0 } };

class Recorder {
  readonly left: string[] = [];
  readonly #request: AnswerRequest;
  readonly #session: Session;
  readonly #run: (inputs: NamedTensors) => Promise<NamedTensors>;
  readonly #isOrdered: (output: string) => boolean;
  readonly #limit: AbortSignal | undefined;
  readonly #cases: AnswerCase[] = [];
  /** By output, whose positions are judged each by its own size. */
  readonly #axes = new Map<string, number>();
  #rows: number | null = null;
  #state: Readonly<Record<string, string>> = {};

  constructor(
    request: AnswerRequest,
    session: Session,
    run: (inputs: NamedTensors) => Promise<NamedTensors>,
    limit: AbortSignal | undefined,
  ) {
    this.#limit = limit;
    this.#request = request;
    this.#session = session;
    this.#run = run;
    const reaching = reachingOutputs(request.reference);
    this.#isOrdered = (output) => reaching(output).isOrdered || reaching(output).isCount;
  }

  /**
   * Work on a case. One that the reference cannot run, or not in time, is left out unless it is needed. Where zeros do not run either it is the size, and
   * TF_PROFILE_INVALID.
   */
  async #trying(
    name: string,
    work: () => Promise<void>,
    isNeeded = this.#cases.length === 0,
    zeros?: () => Promise<unknown>,
  ): Promise<void> {
    try {
      await work();
    } catch (error) {
      const isLate = this.#limit?.aborted === true;
      const isOurs = error instanceof TrtforgeError && (error.code !== 'TF_CANCELLED' || isLate);
      if (isNeeded || !isOurs) throw error;
      if (!isLate && (await zeros?.().catch(() => undefined)) === undefined && zeros !== undefined)
        throw new TrtforgeError(
          'TF_PROFILE_INVALID',
          `${this.#request.reference} does not run at ${name}: ${error.message}`,
          { cause: error },
        );
      // No message of the library: it may name files, and passports travel.
      this.left.push(
        `${name}: ${isLate ? 'no time was left for the reference' : 'the reference does not run so'}`,
      );
    }
  }

  async add({ name, profile }: WantedCase, inputs: readonly MadeInput[]): Promise<void> {
    const zeros = () => this.#run(madeInputs({ seed: SEED }, inputs.map(zeroed)));
    const record = async () => {
      if (!areDrawable(inputs) || !areRunnable([...this.#cases, { inputs, steps: 1 }]))
        throw new TrtforgeError('TF_USAGE', `The inputs of ${name} are too large: no answer is kept of it.`);
      const made = madeInputs({ seed: SEED }, inputs);
      const outputs = await this.#run(made);
      if (this.#cases.length === 0) await this.#findAxes(name, outputs, inputs);
      const kept = await this.#keep(name, outputs, () => this.#run(rounded(made)));
      this.#cases.push({ name, profile, steps: 1, inputs: [...inputs], outputs: [...kept] });
      if (this.#cases.length > 1) return;
      this.#state = statesAmong(inputs, outputs);
      if (Object.keys(this.#state).length > 0) await this.#addSteps({ name, profile }, inputs);
    };
    await this.#trying(name, record, undefined, zeros);
  }

  async #addSteps(from: Pick<AnswerCase, 'name' | 'profile'>, all: readonly MadeInput[]): Promise<void> {
    const inputs = all.map((input) => (input.name in this.#state ? zeroed(input) : input));
    const name = `${from.name}, ${STEPS} steps`;
    const last = (make: (tensors: NamedTensors) => NamedTensors) =>
      runSteps(
        (tensors) => this.#run(tensors),
        { seed: SEED, inputs, steps: STEPS, state: this.#state },
        make,
      );
    const kept = await this.#keep(name, await last((tensors) => tensors), () => last(rounded));
    this.#cases.push({ ...from, name, steps: STEPS, inputs, outputs: [...kept] });
  }

  /** As `verify` finds it, by other inputs as well: what is small by chance is another position then. */
  async #findAxes(name: string, outputs: NamedTensors, inputs: readonly MadeInput[]): Promise<void> {
    const sampleOf = (tensor: Tensor) => ({ shape: tensor.shape, values: floatReader(tensorReader(tensor)) });
    // The same twice: as many elements as both runs have.
    const maySlice = ([, tensor]: readonly [string, Tensor]) =>
      dtypes[tensor.dtype].kind === 'float' && slicedAxis([tensor, tensor].map(sampleOf)) !== null;
    const sliced = [...outputs].filter(maySlice);
    if (sliced.length === 0) return;
    const find = async () => {
      const others = await this.#run(madeInputs({ seed: SEED }, inputs, 1));
      for (const [output, tensor] of sliced) {
        const axis = slicedAxis([tensor, others.get(output) ?? tensor].map(sampleOf));
        if (axis !== null) this.#axes.set(output, axis);
      }
    };
    await this.#trying(`${name}, sizes by position`, find, false);
  }

  /** Sketches of outputs with their limits; of those that are sets, only what is the same with inputs that are rounded to BF16. */
  async #keep(
    name: string,
    outputs: NamedTensors,
    again: () => Promise<NamedTensors>,
  ): Promise<readonly AnsweredOutput[]> {
    const kept: AnsweredOutput[] = [];
    let other: NamedTensors | undefined;
    for (const { name: output } of this.#session.outputs) {
      const tensor = outputs.get(output);
      if (tensor === undefined) continue;
      const as = comparedAs(tensor, this.#isOrdered(output));
      const sketch = sketchOf(output, tensor, as, MOST_PLACES, this.#axes.get(output));
      const elements = elementCount(tensor.shape);
      if (elements === 0 || sketch.nan + sketch.infinite === elements) {
        this.left.push(`${name}, ${output}: the reference gives nothing that is finite`);
        continue;
      }
      const limit = this.#limitOf(sketch, tensor);
      const answered = { ...sketch, limit, measured: null };
      const blind = limit.slices?.filter((most, at) => most >= sketch.slices!.rms[at]!).length ?? 0;
      if (blind > 0)
        this.left.push(
          `${name}, ${output}: zeros pass at ${blind} positions of an axis, near 0 on drawn inputs`,
        );
      if (sketch.as === 'set') {
        other ??= await again();
        const found = sketchOf(output, other.get(output)!, 'set', MOST_PLACES, sketch.slices?.axis);
        if (judgeAnswer(answered, found).outcome !== 'pass') {
          this.left.push(`${name}, ${output}: ${OTHER_ROWS}`);
          continue;
        }
      }
      kept.push(answered);
    }
    return kept;
  }

  /** As `verify` has it for one sample. */
  #limitOf({ name, as, l2, max, slices }: Sketch, tensor: Tensor): AnsweredOutput['limit'] {
    const { precision } = this.#request;
    if (as === 'exact') return { rms: toleranceOf(precision).differing, max: 0 };
    if (!['float', 'complex'].includes(dtypes[tensor.dtype].kind)) return { rms: 0, max: 0 };
    const reader = floatReader(tensorReader(tensor), name);
    const elements = Math.max(1, elementCount(tensor.shape));
    const rms = l2 / Math.sqrt(elements);
    const shares = probabilitiesOf(reader, tensor.shape.at(-1) ?? 1, magnitudesOf(reader));
    const types = { precision, dtype: tensor.dtype, shares };
    const usual = limitsFor(name, types, rms, { atol: [], rtol: [] }).usual!;
    const whole = { rms: usual.rms(elements, rms, 'whole', true), max: usual.max(max) };
    if (slices == null) return whole;
    const each = elements / tensor.shape[slices.axis]!;
    const bySlice = slices.rms.map((own) => Number(usual.rms(each, own, 'slice').toPrecision(4)));
    return { ...whole, slices: bySlice };
  }

  /** Looks for the smallest case whose rows do not depend on each other, by running the reference on rows that are all the same. */
  async findRows(): Promise<void> {
    const sized = this.#cases.flatMap(({ inputs, steps }, at) => {
      const rows = rowsOf(inputs);
      return rows === undefined || steps > 1 ? [] : [{ at, inputs, rows }];
    });
    const [smallest] = sized.toSorted((a, b) => a.rows - b.rows);
    if (smallest === undefined) return;
    const { at, inputs, rows } = smallest;
    await this.#trying('rows that are the same', async () => {
      const outputs = await this.#run(sameRows(madeInputs({ seed: SEED }, inputs), inputs));
      const isSame = [...outputs].every(([name, tensor]) => {
        const [first, ...others] = outputRows(tensor, rows) ?? [];
        return first !== undefined && others.every((row) => areNear(name, first, row, SAME_ROWS));
      });
      if (isSame) this.#rows = at;
    });
  }

  answer(): KnownAnswer {
    const { precision } = this.#request;
    return {
      schema: 'trtforge.known-answer/1',
      reference: this.#session.backend,
      precision,
      seed: SEED,
      generator: 1,
      cases: this.#cases,
      rows: this.#rows,
      state: { ...this.#state },
      left: this.left,
      builtOn: null,
    };
  }
}

/** Whether the distance of two tensors is at most a share of the first one's length. */
function areNear(name: string, one: Tensor, other: Tensor, share: number): boolean {
  if (Buffer.compare(one.bytes, other.bytes) === 0) return true;
  const [a, b] = [sketchOf(name, one, 'values'), sketchOf(name, other, 'values')];
  return a.nan === b.nan && a.infinite === b.infinite && distanceOf(a, b) <= share * a.l2;
}

/** FP32 inputs with the digits of BF16, which moves outputs about as much as the arithmetic of FP16 does. */
const rounded = (tensors: NamedTensors): NamedTensors =>
  new Map(
    [...tensors].map(([name, tensor]) => [
      name,
      tensor.dtype === 'float32'
        ? floatTensor(
            'float32',
            tensor.shape,
            float32Values(floatTensor('bfloat16', tensor.shape, float32Values(tensor))),
          )
        : tensor,
    ]),
  );

/** The answer with what an engine was off where it was built; of codes that is half the limit from then on, within reason, if it `widens`. */
export function withMeasured(
  answer: KnownAnswer,
  builtOn: KnownAnswer['builtOn'],
  found: readonly (readonly Sketch[])[],
  widens = true,
): KnownAnswer {
  const isCoded = widens && quantizedFormatNamed(answer.precision) !== undefined;
  const widened = (limit: number, measured: number) =>
    isCoded ? Math.min(DRAWN_CODES * limit, Math.max(limit, 2 * measured)) : limit;
  const left = [...answer.left];
  const cases = answer.cases.map((each, at) => ({
    ...each,
    outputs: each.outputs.flatMap((output) => {
      const own = found[at]?.find(({ name }) => name === output.name);
      const { outcome, measured } = judgeAnswer(output, own);
      if (own === undefined || measured === null) return output;
      if (output.as === 'set' && outcome !== 'pass') {
        left.push(`${each.name}, ${output.name}: ${OTHER_ROWS}`);
        return [];
      }
      const { limit } = output;
      const bySlice = sliceErrors(output, own).map(({ least, estimated }) => Math.max(least, estimated));
      const wide = {
        rms: widened(limit.rms, measured.rms),
        max: widened(limit.max, measured.max),
        ...(limit.slices && { slices: limit.slices.map((one, at) => widened(one, bySlice[at] ?? 0)) }),
      };
      const after = { ...output, limit: output.as === 'values' ? wide : limit, measured };
      if (!isCoded || output.as !== 'values' || judgeAnswer(after, own).outcome !== 'fail') return after;
      left.push(`${each.name}, ${output.name}: drawn inputs are far beyond the ranges of the codes`);
      return [];
    }),
  }));
  return { ...answer, cases, left, builtOn };
}

/** Places, sums of slices, more places, cases, then outputs go until a passport can carry the answer. */
function fitted(answer: KnownAnswer): KnownAnswer {
  const size = Buffer.byteLength(JSON.stringify(answer));
  const places = answer.cases[0]?.outputs[0]?.sums.length ?? 0;
  if (size <= MOST_BYTES) return answer;
  // The last case that has sums of slices loses its own first: what is wrong at the optimum is often wrong at the ends.
  const summed = answer.cases.findLastIndex(({ outputs }) =>
    outputs.some(({ slices }) => slices?.sums.length),
  );
  const hasSums = places <= 16 && summed >= 0;
  const less = hasSums ? sizesOnly : places > 4 ? coarser : undefined;
  if (less !== undefined) {
    const cases = answer.cases.map((each, at) =>
      less === sizesOnly && at !== summed ? each : { ...each, outputs: each.outputs.map((one) => less(one)) },
    );
    return fitted({ ...answer, cases });
  }
  const last = answer.cases.at(-1);
  if (last === undefined) return answer;
  const at = answer.cases.length - 1;
  if (at > 0)
    return fitted({
      ...answer,
      cases: answer.cases.slice(0, at),
      rows: answer.rows === at ? null : answer.rows,
      left: [...answer.left, `${last.name}: a passport has no room for it`],
    });
  const full = 'a passport has no room for the inputs alone';
  if (last.outputs.length < 2) return { ...answer, cases: [], rows: null, left: [full] };
  const outputs = last.outputs.slice(0, Math.ceil(last.outputs.length / 2));
  const [first, second, ...more] = last.outputs.slice(outputs.length).map(({ name }) => name);
  const names = [first, second].filter((name) => name !== undefined).join(', ');
  const left = `${last.name}, ${names}${more.length > 0 ? ` and ${more.length} more` : ''}: a passport has no room`;
  return fitted({ ...answer, cases: [{ ...last, outputs }], left: [...answer.left, left] });
}
