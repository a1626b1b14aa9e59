import { attributeOf } from '../../../formats/onnx/attributes.js';
import { isOnnxDomain } from '../../../formats/onnx/graph.js';
import type { NodeProto } from '../../../formats/onnx/onnx_pb.js';
import { equals, isNumber } from '../../../formats/onnx/shapes/size.js';
import { intoConvolution, ofPadded, ofScaled } from './convolution-rules.js';
import { intOf, intsOf, isPassed, type Round, type Rule } from './round.js';

const input = ({ input: [first = ''] }: NodeProto) => ({ alias: first });

/** An operator that leaves its first input as it is where that has the shape of the output already. */
const whereShapeStays: Rule = (node, round) =>
  round.isSameShape(node.input[0], node.output[0]) ? input(node) : undefined;

/** A reduction of axes that have one element each. */
const reduction: Rule = (node, round) =>
  round.isSameShape(node.input[0], node.output[0]) ? { ...input(node), rounds: true } : undefined;

/** Where the first states are, and peepholes of an LSTM: those of zeros are the default. */
const FIRST_STATE = 5;

const recurrent: Rule = (node, round) => {
  const isZero = (name: string) => {
    const stored = round.constants.get(name);
    if (stored === undefined || stored.dims.length === 0) return round.only(name) === 0;
    return [...round.editing.weight(stored).chunks()].every((chunk) => chunk.every((byte) => byte === 0));
  };
  const inputs = node.input.map((name, at) =>
    at >= FIRST_STATE && isPassed(name) && isZero(name) ? '' : name,
  );
  while (inputs.at(-1) === '') inputs.pop();
  return inputs.join() === node.input.join() ? undefined : { nodes: [round.made(node, { input: inputs })] };
};

/** Adding 0, multiplying by 1 and the like, where broadcasting does nothing. */
const neutral =
  (value: number, ...sides: readonly number[]): Rule =>
  (node, round) => {
    const side = sides.find((at) => round.only(node.input[at]) === value);
    const kept = side === undefined ? undefined : node.input[1 - side];
    if (kept === undefined || !round.isSameShape(kept, node.output[0])) return undefined;
    // -0 + 0 is 0.
    return node.opType === 'Add' ? { alias: kept, rounds: true } : { alias: kept };
  };

const single: Rule = (node) => (node.input.filter(isPassed).length === 1 ? input(node) : undefined);

const cast: Rule = (node, round) => {
  const [from, to] = [round.types.get(node.input[0] ?? ''), round.types.get(node.output[0] ?? '')];
  if (from !== undefined && from === to) return input(node);
  const before = round.onlyMaker(node.input[0], 'Cast');
  const first = before && round.types.get(before.input[0] ?? '');
  if (before === undefined || !holds(from, first)) return undefined;
  const rest = node.input.slice(1);
  return first === to ? input(before) : { nodes: [round.made(node, { input: [before.input[0]!, ...rest] })] };
};

/** Whether every value of one type is one of another. */
function holds(wide: string | undefined, narrow: string | undefined): boolean {
  const wider: Readonly<Record<string, readonly string[]>> = {
    float16: ['float32', 'float64'],
    bfloat16: ['float32', 'float64'],
    float32: ['float64'],
    int32: ['int64', 'float64'],
    int8: ['int16', 'int32', 'int64', 'float32', 'float64'],
    uint8: ['int32', 'int64', 'float32', 'float64'],
    bool: ['uint8', 'int32', 'int64', 'float16', 'float32', 'float64'],
  };
  return wide !== undefined && wider[narrow ?? '']?.includes(wide) === true;
}

const transpose: Rule = (node, round) => {
  const rank = round.shape(node.input[0])?.length ?? intsOf(node, 'perm')?.length;
  if (rank === undefined) return undefined;
  const perm = (of: NodeProto) =>
    intsOf(of, 'perm') ?? Array.from({ length: rank }, (_, axis) => rank - 1 - axis);
  const own = perm(node);
  if (own.every((axis, at) => axis === at)) return input(node);
  const before = round.onlyMaker(node.input[0], 'Transpose');
  if (before === undefined) return undefined;
  const first = perm(before);
  const both = own.map((axis) => first[axis]!);
  return { nodes: [round.made(node, { input: [before.input[0]!], ints: { perm: both } })] };
};

const reshapers = ['Reshape', 'Squeeze', 'Unsqueeze', 'Flatten'];

/** A reshape of a reshaped value reads what that was made of; a shape that is known but for one size is stored. */
const reshape: Rule = (node, round) => {
  const same = whereShapeStays(node, round);
  if (same !== undefined) return same;
  const maker = round.producers.get(node.input[0] ?? '');
  const isReshaped = maker !== undefined && isOnnxDomain(maker.domain) && reshapers.includes(maker.opType);
  if (isReshaped && round.isSameShape(maker.input[0], node.output[0])) return input(maker);
  const before = round.onlyMaker(node.input[0], ...reshapers);
  const [source = ''] = (before ?? node).input;
  if (intOf(node, 'allowzero', 0) !== 0) return undefined;
  if (node.opType === 'Reshape' && before !== undefined) {
    const sizes = round.numbers(node.input[1]);
    if (sizes?.every((size) => size !== 0))
      return { nodes: [round.made(node, { input: [source, node.input[1]!] })] };
  }
  const target = round.shape(node.output[0]);
  const isStored = node.opType === 'Reshape' && round.constants.has(node.input[1] ?? '');
  if (target === undefined || isStored || (node.opType !== 'Reshape' && before === undefined))
    return undefined;
  const from = round.shape(source);
  let open = 0;
  const sizes = target.map((size, axis) => {
    if (isNumber(size) && size > 0) return size;
    if (size !== undefined && from !== undefined && equals(size, from[axis])) return 0;
    open++;
    return -1;
  });
  // A size of 0 beside one that is inferred leaves that one undetermined.
  if (open > 1 || target.includes(0)) return undefined;
  const shape = round.integers(`${node.output[0]}_shape`, sizes);
  const made = round.made(node, { input: [source, shape] });
  return { nodes: [{ ...made, opType: 'Reshape', attribute: [] }] };
};

/** What a Slice takes, by its axes; undefined where constants do not decide it. */
function slices({ input: [, starts, ends, axes, steps] }: NodeProto, rank: number, round: Round) {
  const [from, to] = [round.numbers(starts), round.numbers(ends)];
  const along = isPassed(axes) ? round.numbers(axes) : from?.map((_, at) => at);
  const by = isPassed(steps) ? round.numbers(steps) : from?.map(() => 1);
  if (from === undefined || to === undefined || along === undefined || by === undefined) return undefined;
  return from.map((start, at) => [(along[at]! + rank) % rank, start, to[at]!, by[at]!] as const);
}

/** A slice of everything, and one of a slice along other axes. */
const slice: Rule = (node, round) => {
  const rank = round.shape(node.input[0])?.length ?? Number.NaN;
  const own = slices(node, rank, round);
  const steps = isPassed(node.input[4]) ? round.numbers(node.input[4]) : [1];
  const same = steps?.every((step) => step === 1) ? whereShapeStays(node, round) : undefined;
  const before = round.onlyMaker(node.input[0], 'Slice');
  const first = before && slices(before, rank, round);
  if (same !== undefined || before === undefined || first === undefined || own === undefined) return same;
  const both = [...first, ...own];
  if (Number.isNaN(rank) || new Set(both.map(([axis]) => axis)).size < both.length) return undefined;
  const list = (what: string, at: 0 | 1 | 2 | 3) => {
    const most = Number.MAX_SAFE_INTEGER;
    const values = both.map((part) => Math.max(-most, Math.min(most, part[at])));
    return round.integers(`${node.output[0]}_${what}`, values);
  };
  const inputs = [list('starts', 1), list('ends', 2), list('axes', 0), list('steps', 3)];
  return { nodes: [round.made(node, { input: [before.input[0]!, ...inputs] })] };
};

const pad: Rule = (node, round) => {
  const pads = intsOf(node, 'pads') ?? round.numbers(node.input[1]);
  return pads?.every((size) => size === 0) ? input(node) : undefined;
};

const dropout: Rule = (node, round) => {
  const training = isPassed(node.input[2]) ? round.only(node.input[2]) : 0;
  const isMaskRead = isPassed(node.output[1]) && round.readers(node.output[1]).length > 0;
  return training === 0 && !isMaskRead && !round.outputs.has(node.output[1] ?? '') ? input(node) : undefined;
};

const concat: Rule = (node, round) => {
  if (node.input.length === 1) return input(node);
  const axis = (of: NodeProto) => {
    const own = intOf(of, 'axis', 1);
    return own < 0 ? own + (round.shape(of.output[0])?.length ?? Number.NaN) : own;
  };
  const inner = node.input.map((name) => {
    const maker = round.onlyMaker(name, 'Concat');
    if (round.shape(name)?.[axis(node)] === 0) return [];
    return maker !== undefined && axis(maker) === axis(node) ? maker.input : [name];
  });
  if (inner.every((names, at) => names.length === 1 && names[0] === node.input[at])) return undefined;
  if (inner.flat().length === 0) return undefined;
  return { nodes: [round.made(node, { input: inner.flat() })] };
};

/** A reduction that drops its axes, and an Unsqueeze that puts them back. */
const unsqueeze: Rule = (node, round) => {
  const before = round.producers.get(node.input[0] ?? '');
  const axesOf = (of: NodeProto) => intsOf(of, 'axes') ?? round.numbers(of.input[1]);
  const isReduction =
    before !== undefined && /^Reduce/.test(before.opType) && intOf(before, 'keepdims', 1) === 0;
  if (!isReduction || round.onlyMaker(node.input[0], before.opType) === undefined)
    return reshape(node, round);
  const rank = round.shape(node.output[0])?.length ?? Number.NaN;
  const sorted = (axes: readonly number[] | undefined) =>
    axes
      ?.map((axis) => (axis + rank) % rank)
      .sort()
      .join();
  // A reduction of no axes is one of all.
  if (!sorted(axesOf(node)) || sorted(axesOf(node)) !== sorted(axesOf(before))) return reshape(node, round);
  const made = round.made(before, { output: [node.output[0]!] });
  made.attribute = made.attribute.filter(({ name }) => name !== 'keepdims');
  return { nodes: [made] };
};

/** A product of two matrices, and a bias that does not make it larger. */
const intoGemm: Rule = (node, round) => {
  const at = node.input.findIndex((name) => round.onlyMaker(name, 'MatMul', 'Gemm') !== undefined);
  const product = round.producers.get(node.input[at] ?? '');
  if (product === undefined || at > 1) return undefined;
  const bias = node.input[1 - at] ?? '';
  const [a = '', b = '', c] = product.input;
  const isMatrix = [a, b, node.output[0]].every((name) => round.shape(name)?.length === 2);
  const size = round.shape(b)?.[product.opType === 'Gemm' && intOf(product, 'transB', 0) === 1 ? 0 : 1];
  const shape = round.shape(bias);
  const fits = shape !== undefined && shape.length <= 2 && shape.length > 0 && equals(shape.at(-1), size);
  const isRow = fits && (shape.length === 1 || shape[0] === 1);
  const isKnown = round.constants.has(bias) && round.types.get(a)?.startsWith('float') === true;
  const isScaled = attributeOf(product, 'alpha') !== undefined || attributeOf(product, 'beta') !== undefined;
  if (!isMatrix || !isRow || !isKnown || isPassed(c) || isScaled) return undefined;
  const made = round.made(product, { input: [a, b, bias], output: [...node.output] });
  return { nodes: [{ ...made, opType: 'Gemm' }], rounds: true };
};

const firstOf =
  (...rules: readonly Rule[]): Rule =>
  (node, round) => {
    for (const rule of rules) {
      const rewrite = rule(node, round);
      if (rewrite !== undefined) return rewrite;
    }
    return undefined;
  };

/** What becomes of each operator. */
export const rules: Readonly<Record<string, Rule>> = {
  Identity: input,
  Dropout: dropout,
  Cast: cast,
  CastLike: cast,
  Transpose: transpose,
  Reshape: reshape,
  Flatten: reshape,
  Squeeze: reshape,
  Unsqueeze: unsqueeze,
  Expand: whereShapeStays,
  Tile: whereShapeStays,
  Slice: slice,
  Pad: pad,
  Concat: concat,
  Sum: single,
  Max: single,
  Min: single,
  Mean: single,
  Add: firstOf(neutral(0, 0, 1), intoConvolution, intoGemm),
  Sub: firstOf(neutral(0, 1), intoConvolution),
  Mul: firstOf(neutral(1, 0, 1), intoConvolution),
  Div: firstOf(neutral(1, 1), intoConvolution),
  Pow: neutral(1, 1),
  BatchNormalization: intoConvolution,
  Conv: firstOf(ofPadded, ofScaled),
  ReduceMax: whereShapeStays,
  ReduceMin: whereShapeStays,
  ReduceMean: reduction,
  ReduceSum: reduction,
  ReduceProd: reduction,
  RNN: recurrent,
  GRU: recurrent,
  LSTM: recurrent,
};
