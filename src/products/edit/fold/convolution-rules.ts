import { attributeOf, textAttribute } from '../../../formats/onnx/attributes.js';
import type { NodeProto } from '../../../formats/onnx/onnx_pb.js';
import type { Shape } from '../../../formats/onnx/shapes/size.js';
import { tensorFrom } from '../../../formats/tensor/tensor.js';
import { intOf, intsOf, isPassed, type Rewrite, type Round, type Rule } from './round.js';

/** A convolution of constants that takes arithmetic on its channels into them, and makes `output` then. */
class FoldedConvolution {
  readonly weight: string;
  readonly bias: string | undefined;
  /** Of its weights. */
  readonly rank: number;
  readonly channels: number;
  readonly #conv: NodeProto;
  readonly #output: string;
  readonly #round: Round;
  /** The shape of weights with one number for each channel. */
  readonly #perChannel: readonly number[];
  readonly #arithmetic: NodeProto[] = [];

  private constructor(conv: NodeProto, dims: Shape, output: string, round: Round) {
    const [, weight = '', bias] = conv.input;
    const channelAxis = conv.opType === 'ConvTranspose' ? 1 : 0;
    const channels = Number(dims[channelAxis]);
    this.weight = weight;
    this.bias = isPassed(bias) ? bias : undefined;
    this.rank = dims.length;
    this.channels = channels;
    this.#conv = conv;
    this.#output = output;
    this.#round = round;
    this.#perChannel = dims.map((_, axis) => (axis === channelAxis ? channels : 1));
  }

  /** undefined where its weights or its bias are no constants, and for a transposed one of several groups. */
  static of(conv: NodeProto, output: string, round: Round): FoldedConvolution | undefined {
    const [, weight = '', bias] = conv.input;
    const dims = round.shape(weight);
    const isGrouped = conv.opType === 'ConvTranspose' && intOf(conv, 'group', 1) !== 1;
    if (!round.constants.has(weight) || dims === undefined || isGrouped) return undefined;
    if (isPassed(bias) && !round.constants.has(bias)) return undefined;
    return new FoldedConvolution(conv, dims, output, round);
  }

  /** Adds a node of arithmetic, and returns the name of its result. */
  add(opType: string, ...inputs: string[]): string {
    const { node, name } = this.#round.node(opType, `${this.#output}_${opType}`, inputs);
    this.#arithmetic.push(node);
    return name;
  }

  /** The weights times a list of one factor for each channel. */
  scaledWeight(factors: string): string {
    const shape = this.#round.integers(`${this.#output}_channels`, this.#perChannel);
    return this.add('Mul', this.weight, this.add('Reshape', factors, shape));
  }

  /** The convolution with these weights and this bias, behind the arithmetic that makes them. */
  rewrite(weight: string, bias: string | undefined): Rewrite {
    const [input = ''] = this.#conv.input;
    const inputs = [input, weight, ...(bias === undefined ? [] : [bias])];
    const conv = this.#round.made(this.#conv, { input: inputs, output: [this.#output] });
    return { nodes: [...this.#arithmetic, conv], rounds: true };
  }
}

/** A convolution before a node that scales and shifts its channels by constants takes both into its weights. */
export const intoConvolution: Rule = (node, round) => {
  const at = node.input.findIndex((name) => round.onlyMaker(name, 'Conv', 'ConvTranspose') !== undefined);
  const maker = round.producers.get(node.input[at] ?? '');
  if (maker === undefined || at > 1 || (at === 1 && !/^(?:Add|Mul)$/.test(node.opType))) return undefined;
  const [output = ''] = node.output;
  const conv = FoldedConvolution.of(maker, output, round);
  if (conv === undefined) return undefined;
  return node.opType === 'BatchNormalization'
    ? foldNormalization(node, conv, round)
    : foldArithmetic(node, node.input[1 - at] ?? '', conv, round);
};

function foldNormalization(node: NodeProto, conv: FoldedConvolution, round: Round): Rewrite {
  const [, scale = '', shift = '', mean = '', variance = ''] = node.input;
  const isConstant = [scale, shift, mean, variance].every((name) => round.constants.has(name));
  if (!isConstant || node.output.filter(isPassed).length > 1 || intOf(node, 'training_mode', 0) !== 0)
    return undefined;
  if (round.types.get(scale) !== 'float32' || round.types.get(conv.weight) !== 'float32') return undefined;
  const epsilon = round.store(
    `${node.output[0] ?? ''}_epsilon`,
    tensorFrom('float32', [], Float32Array.of(attributeOf(node, 'epsilon')?.f ?? 1e-5)),
  );
  const factors = conv.add('Div', scale, conv.add('Sqrt', conv.add('Add', variance, epsilon)));
  const centred = conv.bias === undefined ? conv.add('Neg', mean) : conv.add('Sub', conv.bias, mean);
  const weight = conv.scaledWeight(factors);
  return conv.rewrite(weight, conv.add('Add', conv.add('Mul', centred, factors), shift));
}

/** Of Add, Sub, Mul and Div with a constant that has one number for each channel, or one for all. */
function foldArithmetic(
  { opType, output: [output = ''] }: NodeProto,
  constant: string,
  conv: FoldedConvolution,
  round: Round,
): Rewrite {
  const { weight, bias, rank, channels } = conv;
  const shape = round.shape(constant);
  // [C, 1, 1], or a single one.
  const isPerChannel =
    round.constants.has(constant) &&
    shape !== undefined &&
    shape.length <= rank &&
    shape.every((size, index) => size === 1 || (index === shape.length - rank + 1 && size === channels));
  if (!isPerChannel) return undefined;
  const list = conv.add('Reshape', constant, round.integers(`${output}_list`, [-1]));
  const numbers = conv.add('Expand', list, round.integers(`${output}_count`, [channels]));
  if (opType === 'Mul' || opType === 'Div') {
    const scaled = conv.scaledWeight(opType === 'Mul' ? numbers : conv.add('Reciprocal', numbers));
    return conv.rewrite(scaled, bias === undefined ? undefined : conv.add(opType, bias, numbers));
  }
  if (bias !== undefined) return conv.rewrite(weight, conv.add(opType, bias, numbers));
  return conv.rewrite(weight, opType === 'Sub' ? conv.add('Neg', numbers) : numbers);
}

/** A convolution pads by itself. */
export const ofPadded: Rule = (node, round) => {
  const before = round.onlyMaker(node.input[0], 'Pad');
  const rank = round.shape(node.input[0])?.length ?? round.shape(node.input[1])?.length;
  if (before === undefined || rank === undefined) return undefined;
  if (textAttribute(before, 'mode', 'constant') !== 'constant' || isPassed(before.input[3])) return undefined;
  const value = isPassed(before.input[2])
    ? round.only(before.input[2])
    : (attributeOf(before, 'value')?.f ?? 0);
  const pads = intsOf(before, 'pads') ?? round.numbers(before.input[1]);
  if (
    value !== 0 ||
    pads?.length !== 2 * rank ||
    !['NOTSET', ''].includes(textAttribute(node, 'auto_pad', 'NOTSET'))
  )
    return undefined;
  const outer = [pads[0], pads[1], pads[rank], pads[rank + 1]];
  const spatial = [...pads.slice(2, rank), ...pads.slice(rank + 2)];
  if (outer.some((size) => size !== 0) || spatial.some((size) => size < 0)) return undefined;
  const own = intsOf(node, 'pads') ?? spatial.map(() => 0);
  const sum = spatial.map((size, axis) => size + (own[axis] ?? 0));
  const inputs = [before.input[0]!, ...node.input.slice(1)];
  return { nodes: [round.made(node, { input: inputs, ints: { pads: sum } })], rounds: true };
};

/** A convolution of what one number scales has the number in its weights. */
export const ofScaled: Rule = (node, round) => {
  const before = round.onlyMaker(node.input[0], 'Mul');
  const weight = node.input[1] ?? '';
  if (before === undefined || !round.constants.has(weight)) return undefined;
  const at = before.input.findIndex((name) => round.constants.has(name) && round.only(name) !== undefined);
  const [factor = '', x = ''] = at === 0 ? before.input : before.input.toReversed();
  const isOne = at >= 0 && round.shape(factor)?.length === 0;
  if (!isOne || !round.isSameShape(x, before.output[0])) return undefined;
  const { node: product, name } = round.node('Mul', `${node.output[0]}_weight`, [weight, factor]);
  const made = round.made(node, { input: [x, name, ...node.input.slice(2)] });
  return { nodes: [product, made], rounds: true };
};
