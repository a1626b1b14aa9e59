import { attributeOf } from '../onnx/attributes.js';
import { rearrangers } from '../onnx/graph.js';
import type { NodeProto } from '../onnx/onnx_pb.js';

/**
 * Properties of operators beyond their types: which only move or choose values, which are light, which inputs may have any
 * type, and which stay FP32 by default and why.
 */

/** Hand values on unchanged (or pick among them): converting one between two FP32 neighbours would round and save nothing. */
export const movers: ReadonlySet<string> = new Set([
  ...rearrangers,
  ...`GatherElements GatherND Concat Split Pad DepthToSpace SpaceToDepth Scatter ScatterElements ScatterND TensorScatter Where Dropout
  Compress ReverseSequence CenterCropPad Trilu Neg Abs Relu Max Min Clip MaxPool GlobalMaxPool ReduceMax ReduceMin`.split(
    /\s+/,
  ),
]);

/** Movers that pick values of input 0, which may be a stored table. */
export const lookups: ReadonlySet<string> = new Set('Gather GatherElements GatherND Slice Split'.split(' '));

/** Inputs that are added to the rest of what an operator computes. */
const addedInputs: ReadonlyMap<string, readonly number[]> = new Map(
  Object.entries({
    Conv: [2],
    ConvTranspose: [2],
    Gemm: [2],
    BatchNormalization: [2, 3],
    InstanceNormalization: [2],
    GroupNormalization: [2],
    LayerNormalization: [2],
    LSTM: [3],
    GRU: [3],
    RNN: [3],
  }),
);
export const sums: ReadonlySet<string> = new Set(['Add', 'Sub', 'Sum', 'Mean']);
const summing: ReadonlySet<string> = new Set([...sums, 'Where']);
const limiting: ReadonlySet<string> = new Set(['Max', 'Min', 'Clip']);

/** The role of an input in the result: a limit beyond a type's range limits nothing, and an addend below it changes nothing; a factor scales all. */
export function weightRole(operator: string, index: number): 'addend' | 'limit' | 'factor' {
  if (limiting.has(operator)) return 'limit';
  return summing.has(operator) || addedInputs.get(operator)?.includes(index) === true ? 'addend' : 'factor';
}

/** Decide by comparing: their answer should come from the values as they arrive, never from a rounding made for them. */
export const choosers: ReadonlySet<string> = new Set(
  'Equal Greater Less GreaterOrEqual LessOrEqual ArgMax ArgMin TopK NonZero IsNaN IsInf Unique Sign'.split(
    ' ',
  ),
);

/** One cheap step per element: alone between FP32 neighbours on all sides it stays with them. */
export const light: ReadonlySet<string> = new Set(
  'Add Sub Mul Div Sum Mean Sqrt Reciprocal Log Floor Ceil Round Mod Sigmoid Tanh'.split(' '),
);

/** Make floats out of nothing, of integers, or of another float type: their type follows what reads them. */
export const sources: ReadonlySet<string> = new Set(['Cast', 'ConstantOfShape']);

/** Inputs that are only looked at for their shape, or taken in any type: no cast is ever put before them. */
const anyTypeInputs: ReadonlyMap<string, ReadonlySet<number>> = new Map(
  'Shape Size RandomNormalLike RandomUniformLike EyeLike Cast'.split(' ').map((type) => [type, new Set([0])]),
);

export const takesAnyType = (operator: string, index: number): boolean =>
  anyTypeInputs.get(operator)?.has(index) ?? false;

/** Type variables that stay as they are when the rest of the operator is converted: coordinates and settings, not data. */
const fixedVariables: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['Resize', new Set(['T2'])],
  ['Dropout', new Set(['T1'])],
  ['OneHot', new Set(['T1', 'T2'])],
  ['LayerNormalization', new Set(['U'])],
  ['Shape', new Set(['T'])],
  ['Size', new Set(['T'])],
]);

export const isFixedVariable = (operator: string, variable: string): boolean =>
  fixedVariables.get(operator)?.has(variable) ?? false;

const squares =
  'squares or exponentiates its input, so the result leaves the 16-bit range (or its precision) long before the input does';
const accumulates =
  'adds up along an axis; in 16 bits the running sum stops growing once it is 2048 times (FP16) or 256 times (BF16) the next term';
const spectrum = 'computes spectra, whose dynamic range is that of the signal squared';
const coordinates =
  'takes positions in pixels or in [-1, 1]; 16 bits cannot distinguish neighbouring pixels beyond about 1024 (FP16) or 128 (BF16) of them';
const random = 'draws random numbers; another type would draw another sequence';
const angle = 'takes an angle, and a large angle in 16 bits is off by whole turns';
const counts = 'counts in steps, and a 16-bit count stops being exact beyond 2048 (FP16) or 256 (BF16)';
const sequence =
  'handles sequences of tensors, whose element type is part of the type of every operator around them';
const runtime =
  'makes a constant matrix, which ONNX Runtime can do in FP32 only, so the result could not be verified there';
const bits = 'reads the bits of a value as another type of the same width';
const loss = 'is a training loss, a sum over the whole batch';
const detection = 'compares box coordinates in pixels';

/** Operators that stay FP32 unless `--convert-ops` names them, each with the end of the sentence "… stays FP32 because it …". */
const keptOperators: ReadonlyMap<string, string> = new Map(
  Object.entries({
    Pow: squares,
    Exp: squares,
    Cosh: squares,
    Sinh: squares,
    ReduceSumSquare: squares,
    ReduceL2: squares,
    ReduceLogSum: squares,
    ReduceLogSumExp: squares,
    ReduceProd: squares,
    LpNormalization: squares,
    LpPool: squares,
    GlobalLpPool: squares,
    MeanVarianceNormalization: squares,
    Det: squares,
    CumSum: accumulates,
    CumProd: accumulates,
    ReduceSum: accumulates,
    ReduceL1: accumulates,
    Range: counts,
    Sin: angle,
    Cos: angle,
    Tan: angle,
    DFT: spectrum,
    STFT: spectrum,
    HannWindow: spectrum,
    HammingWindow: spectrum,
    BlackmanWindow: spectrum,
    MelWeightMatrix: spectrum,
    GridSample: coordinates,
    AffineGrid: coordinates,
    RoiAlign: coordinates,
    MaxRoiPool: coordinates,
    DeformConv: coordinates,
    NonMaxSuppression: detection,
    BitCast: bits,
    EyeLike: runtime,
    RandomNormal: random,
    RandomNormalLike: random,
    RandomUniform: random,
    RandomUniformLike: random,
    Bernoulli: random,
    Multinomial: random,
    SequenceConstruct: sequence,
    SequenceInsert: sequence,
    SequenceAt: sequence,
    SplitToSequence: sequence,
    ConcatFromSequence: sequence,
    SequenceMap: sequence,
    Optional: sequence,
    OptionalGetElement: sequence,
    NegativeLogLikelihoodLoss: loss,
    SoftmaxCrossEntropyLoss: loss,
  }),
);

/** Whether an operator stays FP32 by default because its result may be beyond FP16's range, though its input is not. */
export const leavesRange = (operator: string, node: NodeProto): boolean =>
  [squares, accumulates, spectrum].some((why) => why === keptByDefault(operator, node));

/** Whether an operator gives other numbers every time. */
export const drawsNumbers = (operator: string): boolean => keptOperators.get(operator) === random;

/** Why an operator stays FP32 by default, where it does: by its type, or because it adds up what it scatters. */
export function keptByDefault(operator: string, node: NodeProto): string | undefined {
  const why = keptOperators.get(operator);
  if (why !== undefined || !operator.startsWith('Scatter')) return why;
  const reduction = attributeOf(node, 'reduction');
  return reduction === undefined || Buffer.from(reduction.s).toString() === 'none' ? undefined : accumulates;
}
