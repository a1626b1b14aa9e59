import { broadcast, merged } from './broadcast.js';
import { einsumShape } from './einsum.js';
import {
  blocks,
  concat,
  flatten,
  gather,
  gatherND,
  oneHot,
  pad,
  range,
  reshape,
  shapeRange,
  slice,
  split,
  squeeze,
  topK,
  transpose,
  unsqueeze,
} from './movement-rules.js';
import { allShapes, type Call, elementsIn, unknown } from './rule-input.js';
import { add, divide, divideExactly, multiply, type Shape, subtract } from './size.js';
import { convolved, deconvolved, pooled, resized, unpooled } from './window-rules.js';

/** Gives the shapes of a node's outputs, as many as it knows. An undefined dimension is not known; a missing or undefined shape has no known rank. */
type ShapeRule = (call: Call) => readonly (Shape | undefined)[];

const same: ShapeRule = (call) => [call.shape(0)];
/** Before opset 7 the first operand had the shape of the result. */
const broadcasts: ShapeRule = (call) => [call.opset < 7 ? call.shape(0) : broadcast(...allShapes(call))];

function reduced(call: Call): readonly Shape[] {
  const shape = call.shape(0);
  const axes = call.intsFrom(1, 'axes') ?? [];
  if (axes.length === 0 && call.int('noop_with_empty_axes', 0) !== 0) return [shape];
  return [without(call, axes.length === 0 ? shape.map((_, axis) => axis) : axes)];
}

/** The first input's shape with axes of size 1, or without them, as `keepdims` states. */
function without(call: Call, axes: readonly number[]): Shape {
  const shape = call.shape(0);
  const gone = call.axes(axes, shape.length);
  if (call.int('keepdims', 1) !== 0) return shape.map((size, axis) => (gone.has(axis) ? 1 : size));
  return shape.filter((_, axis) => !gone.has(axis));
}

/** `[…, m, k] × […, k, n]`; operands of rank 1 lose the axis that they got. */
function matrixProduct(a: Shape, b: Shape): Shape {
  if (a.length === 0 || b.length === 0) return unknown();
  const [left, right] = [a.length === 1 ? [1, ...a] : a, b.length === 1 ? [...b, 1] : b];
  merged(left.at(-1), right.at(-2));
  return [
    ...broadcast(left.slice(0, -2), right.slice(0, -2)),
    ...(a.length === 1 ? [] : [left.at(-2)]),
    ...(b.length === 1 ? [] : [right.at(-1)]),
  ];
}

function gemm(call: Call): readonly Shape[] {
  const [rows, columns] = [call.int('transA', 0) === 0 ? 0 : 1, call.int('transB', 0) === 0 ? 1 : 0];
  return [[call.dim(0, rows), call.dim(1, columns)]];
}

function recurrent(call: Call): readonly Shape[] {
  const [first, second] = call.shape(0);
  const directions = call.text('direction', 'forward') === 'bidirectional' ? 2 : 1;
  const hidden = call.int('hidden_size', 0) || call.dim(2, 2);
  if (call.int('layout', 0) === 0) {
    const state = [directions, second, hidden];
    return [[first, directions, second, hidden], state, state];
  }
  const state = [first, directions, hidden];
  return [[first, second, directions, hidden], state, state];
}

/** Rank 4 is [batch, heads, length, size], rank 3 [batch, length, heads × size]. */
function attention(call: Call): readonly (Shape | undefined)[] {
  const [query, key, value] = [call.shape(0), call.shape(1), call.shape(2)];
  const heads = query.length === 4 ? query[1] : call.int('q_num_heads', 0);
  const kvHeads = key.length === 4 ? key[1] : call.int('kv_num_heads', 0);
  const perHead = (shape: Shape) => (shape.length === 4 ? shape[3] : divideExactly(shape[2], kvHeads));
  const lengthOf = (shape: Shape) => shape.at(shape.length === 4 ? 2 : 1);
  const total = add(lengthOf(key), call.has(4) ? call.dim(4, 2) : 0);
  return [
    query.length === 4 ? query.with(3, perHead(value)) : query.with(2, multiply(heads, perHead(value))),
    [query[0], kvHeads, total, perHead(key)],
    [query[0], kvHeads, total, perHead(value)],
    [query[0], heads, lengthOf(query), total],
  ];
}

/** [batch, signal, 1 or 2] to [batch, frames, bins, 2]. */
function stft(call: Call): readonly Shape[] {
  const [batch, signal] = call.shape(0);
  const length = call.has(3) ? call.scalar(3) : call.dim(2, 0);
  const bins = call.int('onesided', 1) === 0 ? length : add(divide(length, 2), 1);
  return [[batch, add(divide(subtract(signal, length), call.scalar(1)), 1), bins, 2]];
}

function dft(call: Call): readonly Shape[] {
  const shape = call.shape(0);
  const axis = call.axis(
    call.has(2) ? (call.numbers(2)[0] ?? unknown()) : call.int('axis', call.opset < 20 ? 1 : -2),
    shape.length,
  );
  const isInverse = call.int('inverse', 0) !== 0;
  const isHalf = call.int('onesided', 0) !== 0;
  // Half of the bins stand for 2·(bins - 1) points.
  const points = isHalf && isInverse ? multiply(subtract(shape[axis], 1), 2) : shape[axis];
  const length = call.has(1) ? call.scalar(1) : points;
  const bins = isHalf && !isInverse ? add(divide(length, 2), 1) : length;
  return [shape.with(shape.length - 1, isHalf && isInverse ? 1 : 2).with(axis, bins)];
}

const attributeShape: ShapeRule = (call) => [call.ints('shape') ?? unknown()];
const windowFunction: ShapeRule = (call) => [[call.scalar(0)]];
const globalPool: ShapeRule = (call) => [call.shape(0).map((size, axis) => (axis < 2 ? size : 1))];
const fromElements: ShapeRule = (call) => [call.elements(0)];

const many = (names: string, rule: ShapeRule): readonly (readonly [string, ShapeRule])[] =>
  names.split(/\s+/).map((name) => [name, rule]);

/** Operators whose operands are stretched to one shape. */
export const elementwise: ReadonlySet<string> = new Set(
  'Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or PRelu Pow Sub Sum Where Xor'.split(
    ' ',
  ),
);

/** Rules by which operators of the ONNX domain determine the shapes of their outputs. */
export const shapeRules: ReadonlyMap<string, ShapeRule> = new Map<string, ShapeRule>([
  ...many(
    `Abs Acos Acosh Asin Asinh Atan Atanh Bernoulli BitCast BitwiseNot Cast CastLike Ceil Celu Clip Cos Cosh CumProd CumSum DequantizeLinear Elu Erf Exp
    EyeLike Floor Gelu GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization IsInf IsNaN LRN LeakyRelu Log LogSoftmax
    LpNormalization MeanVarianceNormalization Mish Neg Not QuantizeLinear RandomNormalLike RandomUniformLike Reciprocal Relu ReverseSequence
    RMSNormalization RotaryEmbedding Round Scatter ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Swish Tan Tanh
    TensorScatter ThresholdedRelu Trilu`,
    same,
  ),
  ...[...elementwise].map((name) => [name, broadcasts] as const),
  ...many(
    'ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare',
    reduced,
  ),
  ...many('ArgMax ArgMin', (call) => [without(call, [call.int('axis', 0)])]),
  ...many('MatMul MatMulInteger', (call) => [matrixProduct(call.shape(0), call.shape(1))]),
  ['QLinearMatMul', (call) => [matrixProduct(call.shape(0), call.shape(3))]],
  ['Gemm', gemm],
  ['Einsum', (call) => [einsumShape(call.text('equation', ''), allShapes(call))]],
  ['Det', (call) => [call.shape(0).slice(0, -2)]],
  ...many('Conv ConvInteger DeformConv', (call) => [convolved(call, 1)]),
  ['QLinearConv', (call) => [convolved(call, 3)]],
  ['ConvTranspose', (call) => [deconvolved(call)]],
  ...many('AveragePool LpPool MaxPool', (call) => [pooled(call), pooled(call)]),
  ['MaxUnpool', (call) => [unpooled(call)]],
  ...many('GlobalAveragePool GlobalLpPool GlobalMaxPool', globalPool),
  ...many('Resize Upsample', (call) => [resized(call)]),
  [
    'RoiAlign',
    (call) => [[call.dim(1, 0), call.dim(0, 1), call.int('output_height', 1), call.int('output_width', 1)]],
  ],
  ['MaxRoiPool', (call) => [[call.dim(1, 0), call.dim(0, 1), ...(call.ints('pooled_shape') ?? unknown())]]],
  ['GridSample', (call) => [[...call.shape(0).slice(0, 2), ...call.shape(1).slice(1, -1)]]],
  [
    'AffineGrid',
    (call) => {
      const size = call.elements(1);
      return [[size[0], ...size.slice(2), size.length - 2]];
    },
  ],
  ['BatchNormalization', (call) => [call.shape(0), ...call.node.output.slice(1).map(() => call.shape(1))]],
  ['Dropout', (call) => [call.shape(0), call.shape(0)]],
  [
    'LayerNormalization',
    (call) => {
      const shape = call.shape(0);
      const from = call.axis(call.int('axis', -1), shape.length);
      const statistics = shape.map((size, axis) => (axis < from ? size : 1));
      return [shape, statistics, statistics];
    },
  ],
  ['DynamicQuantizeLinear', (call) => [call.shape(0), [], []]],
  ...many('LSTM GRU RNN', recurrent),
  ['Attention', attention],
  ['Reshape', reshape],
  ['Flatten', flatten],
  ['Squeeze', squeeze],
  ['Unsqueeze', unsqueeze],
  ['Transpose', transpose],
  ['Concat', concat],
  ['Split', split],
  ['Slice', slice],
  ['Gather', gather],
  ['GatherElements', (call) => [call.shape(1)]],
  ['GatherND', gatherND],
  ['Expand', (call) => [broadcast(call.shape(0), call.elements(1))]],
  [
    'Tile',
    (call) => {
      const repeats = call.elements(1);
      return [call.shape(0).map((size, axis) => multiply(size, repeats[axis]))];
    },
  ],
  ['Pad', pad],
  ['Shape', (call) => [[shapeRange(call).length]]],
  ['Size', () => [[]]],
  ['ConstantOfShape', fromElements],
  ['Range', range],
  ['OneHot', oneHot],
  ['NonZero', (call) => [[call.rank(0), undefined]]],
  ['TopK', topK],
  [
    'Unique',
    (call) => {
      const kept =
        call.ints('axis') === undefined
          ? [undefined]
          : call.shape(0).with(call.axis(call.int('axis', 0), call.rank(0)), undefined);
      return [kept, [undefined], [undefined], [undefined]];
    },
  ],
  [
    'Compress',
    (call) => [
      call.ints('axis') === undefined
        ? [undefined]
        : call.shape(0).with(call.axis(call.int('axis', 0), call.rank(0)), undefined),
    ],
  ],
  ['NonMaxSuppression', () => [[undefined, 3]]],
  ...many('DepthToSpace SpaceToDepth', blocks),
  [
    'CenterCropPad',
    (call) => {
      const shape = call.shape(0);
      const axes = call.ints('axes') ?? shape.map((_, axis) => axis);
      const sizes = call.elements(1);
      return [
        axes.reduce<Shape>((all, axis, index) => all.with(call.axis(axis, all.length), sizes[index]), shape),
      ];
    },
  ],
  [
    'Col2Im',
    (call) => {
      const [batch, channels] = call.shape(0);
      return [[batch, divideExactly(channels, elementsIn(call.elements(2))), ...call.elements(1)]];
    },
  ],
  ...many('RandomNormal RandomUniform', attributeShape),
  ['Multinomial', (call) => [[call.dim(0, 0), call.int('sample_size', 1)]]],
  ...many('BlackmanWindow HammingWindow HannWindow', windowFunction),
  ['MelWeightMatrix', (call) => [[add(divide(call.scalar(1), 2), 1), call.scalar(0)]]],
  ['DFT', dft],
  ['STFT', stft],
]);
