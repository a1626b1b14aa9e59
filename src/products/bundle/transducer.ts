import { inDtype } from '../../engines/run/input-dtype.js';
import type { Binding, RunOptions, Session } from '../../engines/runtime/session.js';
import { TrtforgeError } from '../../errors.js';
import type { LogitFacts } from '../../formats/contract/model-meta.js';
import { type Named, pairStates } from '../../formats/contract/state.js';
import { elementCount, packedBytes } from '../../formats/tensor/dtype.js';
import {
  float32Values,
  integerTensor,
  type NamedTensors,
  numbersOf,
  type Tensor,
  tensorFrom,
} from '../../formats/tensor/tensor.js';

/** The runner of a component: the part of a session that decoding needs. */
export interface Runner extends Pick<Session, 'inputs' | 'outputs'> {
  run(inputs: NamedTensors, options?: RunOptions): Promise<NamedTensors>;
}

/** The facts of a bundle that a decoder needs besides its models. */
export interface TransducerFacts extends LogitFacts {
  /** Smallest shapes the engines take, by component and input: narrower calls are padded with zeros. */
  readonly smallest: Readonly<Record<'predictor' | 'joint', ReadonlyMap<string, readonly number[]>>>;
  /** Axis of time in what the encoder returns and the joint network takes. */
  readonly timeAxis: number;
  /** Axis of tokens in what the predictor returns and the joint network takes. */
  readonly tokenAxis: number;
}

export interface Encoded {
  readonly output: Tensor;
  /** Steps of the first row that are no padding. */
  readonly steps: number;
}

/** An encoder's inputs besides features: states that it returned for the chunk before (none: zeros), and the smallest shapes of its inputs. */
interface EncoderSetting {
  readonly states?: NamedTensors;
  readonly smallest?: ReadonlyMap<string, readonly number[]>;
}

/**
 * Features [batch, mels, frames] to encoder steps; every row is `frames` long. Fewer frames than the encoder takes are padded with zeros. States are the
 * inputs that come back as outputs by their names (`pairStates`).
 */
export async function encode(
  encoder: Runner,
  features: Tensor,
  frames: number,
  timeAxis: number,
  { states = new Map(), smallest = new Map() }: EncoderSetting = {},
): Promise<Encoded & { readonly states: NamedTensors }> {
  const stateInputs = encoderStates(encoder);
  const own = encoder.inputs.filter((input) => !stateInputs.includes(input));
  const audio = inputOf({ inputs: own }, isFloat, 'encoder', 'features');
  const fewest = smallest.get(audio.name)?.[FRAME_AXIS] ?? 0;
  const padded =
    (features.shape[FRAME_AXIS] ?? 0) < fewest ? window(features, FRAME_AXIS, 0, fewest) : features;
  const inputs = new Map([[audio.name, inDtype(audio, padded, 'the features')]]);
  const length = own.find(isInteger);
  const batch = features.shape[0] ?? 1;
  if (length !== undefined) {
    const shape = length.shape?.length === 2 ? [batch, 1] : [batch];
    inputs.set(
      length.name,
      inDtype(length, integerTensor('int64', shape, new Array<number>(batch).fill(frames)), 'the lengths'),
    );
  }
  for (const state of stateInputs)
    inputs.set(state.name, states.get(state.name) ?? zeros(state, smallest.get(state.name)));
  const outputs = await encoder.run(inputs);
  const returned = returnedAs(encoder);
  const results = encoder.outputs.filter((output) => ![...returned.values()].includes(output));
  const output = firstFloat({ outputs: results }, outputs);
  const lengths = results.find(isInteger);
  const counted = lengths === undefined ? undefined : numbersOf(outputs.get(lengths.name)!)[0];
  const axisSteps = output.shape[timeAxis] ?? 0;
  return {
    output,
    steps: Math.max(0, Math.min(counted ?? axisSteps, axisSteps)),
    states: new Map([...returned].map(([state, { name }]) => [state, outputs.get(name)!])),
  };
}

/** Axis of the frames in features. */
export const FRAME_AXIS = 2;

/** The inputs of an encoder that are states: a streaming encoder has some. */
export const encoderStates = (encoder: Pick<Runner, 'inputs' | 'outputs'>): readonly Binding[] => {
  const returned = returnedAs(encoder);
  return encoder.inputs.filter(({ name }) => returned.has(name));
};

/** The output that each state comes back as, by their names. */
export function returnedAs<T extends Named>({
  inputs,
  outputs,
}: {
  readonly inputs: readonly Named[];
  readonly outputs: readonly T[];
}): ReadonlyMap<string, T> {
  const byName = new Map(outputs.map((output) => [output.name, output]));
  return new Map(pairStates(inputs, outputs).map(({ input, output }) => [input, byName.get(output)!]));
}

/** The predictor, which has seen `tokens`: what it returns for the last of them. */
export class PredictorState {
  readonly #predictor: Runner;
  readonly #facts: TransducerFacts;
  #states: NamedTensors = new Map();
  output: Tensor | undefined;

  constructor(predictor: Runner, facts: TransducerFacts) {
    this.#predictor = predictor;
    this.#facts = facts;
  }

  /** The same state, to be fed something else. */
  fork(): PredictorState {
    const forked = new PredictorState(this.#predictor, this.#facts);
    forked.#states = this.#states;
    forked.output = this.output;
    return forked;
  }

  /** Feeds one token (the blank at the start) and keeps the states that come back. */
  async feed(token: number): Promise<void> {
    const tokens = inputOf(this.#predictor, isInteger, 'predictor', 'tokens');
    const smallest = this.#facts.smallest.predictor;
    const [batch = 1] = smallest.get(tokens.name) ?? [1];
    const inputs = new Map([
      [
        tokens.name,
        inDtype(
          tokens,
          integerTensor('int64', [batch, 1], new Array<number>(batch).fill(token)),
          'the token',
        ),
      ],
    ]);
    const states = this.#predictor.inputs.filter(isFloat);
    for (const state of states)
      inputs.set(state.name, this.#states.get(state.name) ?? zeros(state, smallest.get(state.name)));
    const outputs = await this.#predictor.run(inputs);
    const returned = returnedStates(this.#predictor, states);
    this.#states = new Map(states.map((state) => [state.name, outputs.get(returned.get(state.name)!.name)!]));
    const taken = new Set([...returned.values()].map(({ name }) => name));
    const output = this.#predictor.outputs.find((one) => isFloat(one) && !taken.has(one.name));
    if (output === undefined) throw notATransducer('The predictor has no output but its states.');
    this.output = outputs.get(output.name)!;
  }
}

/** States come back by their names; under other names states come back in the order they go in, after the output. */
function returnedStates(predictor: Runner, states: readonly Binding[]): ReadonlyMap<string, Binding> {
  const floats = predictor.outputs.filter(isFloat);
  const last = floats.slice(floats.length - states.length);
  const named = returnedAs({ inputs: predictor.inputs, outputs: floats });
  return new Map(
    states.map((state, index) => {
      const found = named.get(state.name) ?? last[index];
      if (found === undefined)
        throw notATransducer(`The predictor does not return its state "${state.name}".`);
      return [state.name, found];
    }),
  );
}

/** The logits of one encoder step and the predictor's last output, first row. */
export async function jointLogits(
  joint: Runner,
  { output }: Encoded,
  step: number,
  predicted: Tensor,
  facts: TransducerFacts,
): Promise<Float32Array> {
  const [fromEncoder, fromPredictor] = jointBindings(joint);
  const atLeast = (binding: Binding, axis: number) => facts.smallest.joint.get(binding.name)?.[axis] ?? 1;
  const frame = window(output, facts.timeAxis, step, atLeast(fromEncoder, facts.timeAxis));
  const token = window(predicted, facts.tokenAxis, 0, atLeast(fromPredictor, facts.tokenAxis));
  const outputs = await joint.run(
    new Map([
      [fromEncoder.name, inDtype(fromEncoder, frame, "the encoder's output")],
      [fromPredictor.name, inDtype(fromPredictor, token, "the predictor's output")],
    ]),
  );
  const logits = firstFloat(joint, outputs);
  return float32Values(logits).slice(0, logits.shape.at(-1) ?? 0);
}

function jointBindings(joint: Runner): readonly [Binding, Binding] {
  const floats = joint.inputs.filter(isFloat);
  const encoder = floats.find(({ name }) => /^enc/i.test(name)) ?? floats[0];
  const predictor =
    floats.find(({ name }) => /^(?:pred|dec)/i.test(name)) ?? floats.find((one) => one !== encoder);
  if (encoder === undefined || predictor === undefined)
    throw notATransducer('The joint network has no two floating-point inputs.');
  return [encoder, predictor];
}

/** `count` places of an axis from `start` on, as float32; beyond both ends zeros. */
export function window(tensor: Tensor, axis: number, start: number, count: number): Tensor {
  const size = tensor.shape[axis] ?? 1;
  const inner = elementCount(tensor.shape.slice(axis + 1));
  const outer = elementCount(tensor.shape.slice(0, axis));
  const values = float32Values(tensor);
  const [first, end] = [Math.max(0, start), Math.max(0, Math.min(start + count, size))];
  const out = new Float32Array(outer * count * inner);
  for (let row = 0; row < outer && first < end; row++) {
    const kept = values.subarray((row * size + first) * inner, (row * size + end) * inner);
    out.set(kept, (row * count + first - start) * inner);
  }
  return tensorFrom('float32', tensor.shape.with(axis, count), out);
}

const isFloat = ({ dtype }: Binding): boolean => /float/.test(dtype);
const isInteger = ({ dtype }: Binding): boolean => /^u?int/.test(dtype);

function inputOf(
  runner: Pick<Runner, 'inputs'>,
  fits: (binding: Binding) => boolean,
  component: string,
  what: string,
): Binding {
  const found = runner.inputs.find(fits);
  if (found === undefined) throw notATransducer(`The ${component} has no input for the ${what}.`);
  return found;
}

function firstFloat(runner: Pick<Runner, 'outputs'>, outputs: NamedTensors): Tensor {
  const tensor = outputs.get(runner.outputs.find(isFloat)?.name ?? '');
  if (tensor === undefined) throw notATransducer('A component has no floating-point output.');
  return tensor;
}

/** A state before the first call. */
function zeros({ dtype, shape }: Binding, smallest: readonly number[] | undefined): Tensor {
  const dims = smallest ?? (shape ?? []).map((size) => (typeof size === 'number' ? size : 1));
  return { dtype, shape: dims, bytes: new Uint8Array(packedBytes(dtype, elementCount(dims))) };
}

const notATransducer = (message: string) =>
  new TrtforgeError('TF_BUNDLE_MISMATCH', message, {
    remedy:
      'Only bundles of an encoder, a predictor and a joint network are decoded. For others: `bundle forge --no-check`, and `stream verify` without --decoder.',
  });
