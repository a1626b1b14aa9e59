import { einsumProducts } from './einsum.js';
import { type Call, elementsIn, unknown } from './rule-input.js';
import { add, isNumber, type MaybeSize, multiply, type Shape } from './size.js';

/** Floating-point operations of a node: a multiply-add is two. */
type FlopRule = (call: Call, outputs: readonly (Shape | undefined)[]) => MaybeSize;

const of = (shape: Shape | undefined): MaybeSize => elementsIn(shape ?? unknown());

/** So many for each element of the first output. */
const perOutput =
  (count: number): FlopRule =>
  (_, [output]) =>
    multiply(of(output), count);

/** So many for each element of the first input. */
const perInput =
  (count: number): FlopRule =>
  (call) =>
    multiply(elementsIn(call.shape(0)), count);

/** Every element of the result is a sum of `terms` products; a bias adds one. */
const products = (output: Shape | undefined, terms: MaybeSize, hasBias: boolean): MaybeSize =>
  multiply(of(output), add(multiply(terms, 2), hasBias ? 1 : 0));

const convolution =
  (weight: number, bias: number): FlopRule =>
  (call, [output]) =>
    products(output, elementsIn(call.shape(weight).slice(1)), bias > 0 && call.has(bias));

/** Every element of the input meets [filters / group, kernel…] of the weight. */
const deconvolution: FlopRule = (call, [output]) =>
  add(
    multiply(elementsIn(call.shape(0)), elementsIn(call.shape(1).slice(1)), 2),
    call.has(2) ? of(output) : 0,
  );

const gemm: FlopRule = (call, [output]) =>
  products(output, call.dim(0, call.int('transA', 0) === 0 ? 1 : 0), call.has(2));

const einsum: FlopRule = (call) => {
  const shapes = call.inputs.map((_, index) => call.shape(index));
  return multiply(2, einsumProducts(call.text('equation', ''), shapes));
};

/** Per gate, step and direction: hidden × (features + hidden) multiply-adds. */
const recurrent =
  (gates: number): FlopRule =>
  (call) => {
    const hidden = call.int('hidden_size', 0) || call.dim(2, 2);
    const directions = call.text('direction', 'forward') === 'bidirectional' ? 2 : 1;
    const [first, second, features] = call.shape(0);
    return multiply(first, second, directions, gates, hidden, add(features, hidden), 2);
  };

/** Scores, their softmax, and the sum of values. */
const attention: FlopRule = (_, [output, keys, , scores]) =>
  add(multiply(of(scores), add(multiply(keys?.[3], 2), 5)), multiply(of(output), scores?.[3], 2));

const pool: FlopRule = (call, [output]) => multiply(of(output), ...(call.ints('kernel_shape') ?? unknown()));
/** Between its operands. */
const variadic: FlopRule = (call, [output]) => multiply(of(output), call.inputs.length - 1);

/** 5·n·log2(n) of a fast transform of n points. */
function transforms(count: MaybeSize, points: MaybeSize): MaybeSize {
  return isNumber(points) && points > 0
    ? multiply(count, Math.round(5 * points * Math.log2(points)))
    : undefined;
}

const stft: FlopRule = (call, [output]) =>
  transforms(multiply(output?.[0], output?.[1]), call.has(3) ? call.scalar(3) : call.dim(2, 0));

const dft: FlopRule = (call, [output]) => {
  const rank = call.rank(0);
  const axis = call.has(2) ? (call.numbers(2)[0] ?? unknown()) : call.int('axis', call.opset < 20 ? 1 : -2);
  const points = call.has(1) ? call.scalar(1) : call.dim(0, axis);
  const at = call.axis(axis, rank);
  return transforms(
    elementsIn((output ?? unknown()).filter((_, each) => each !== at && each !== rank - 1)),
    points,
  );
};

const many = (names: string, rule: FlopRule): readonly (readonly [string, FlopRule])[] =>
  names.split(/\s+/).map((name) => [name, rule]);

/** FLOPs of operators of the ONNX domain. Those that are not here move, select, compare or convert, and count nothing. */
export const flopRules: ReadonlyMap<string, FlopRule> = new Map<string, FlopRule>([
  ['ConvInteger', convolution(1, 0)],
  ['Conv', convolution(1, 2)],
  ['QLinearConv', convolution(3, 8)],
  ['DeformConv', convolution(1, 3)],
  ['ConvTranspose', deconvolution],
  ...many('MatMul MatMulInteger QLinearMatMul', (call, [output]) =>
    products(output, call.shape(0).at(-1), false),
  ),
  ['Gemm', gemm],
  ['Einsum', einsum],
  ['LSTM', recurrent(4)],
  ['GRU', recurrent(3)],
  ['RNN', recurrent(1)],
  ['Attention', attention],
  ['STFT', stft],
  ['DFT', dft],
  ['Det', () => undefined],
  ...many(
    `Abs Acos Acosh Add Asin Asinh Atan Atanh Ceil Celu Clip Cos Cosh CumProd CumSum Div Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log Mish Mod
    Mul Neg PRelu Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Swish Tan Tanh ThresholdedRelu`,
    perOutput(1),
  ),
  ...many('Max Mean Min Sum', variadic),
  ...many('BatchNormalization DequantizeLinear DynamicQuantizeLinear QuantizeLinear', perOutput(2)),
  ...many('LpNormalization RMSNormalization RotaryEmbedding', perOutput(4)),
  ...many('LogSoftmax Softmax', perOutput(5)),
  ...many(
    'GroupNormalization InstanceNormalization LayerNormalization MeanVarianceNormalization',
    perOutput(8),
  ),
  ['LRN', (call, [output]) => multiply(of(output), 2 * call.int('size', 1))],
  ...many('AveragePool LpPool MaxPool', pool),
  ...many(
    `ArgMax ArgMin GlobalAveragePool GlobalLpPool GlobalMaxPool ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
    ReduceSum ReduceSumSquare`,
    perInput(1),
  ),
]);
