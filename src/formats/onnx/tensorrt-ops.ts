/**
 * What TensorRT's ONNX parser knows, from the public operator lists (docs/operators.md of onnx/onnx-tensorrt) for TensorRT 8.6, 10.0, 10.1 and 10.15.
 * The lists tell operator types only; each may have restrictions of its own, and the parser has the last word.
 */
export const OPERATOR_LIST_VERSION = '10.15';

/** Opsets by TensorRT version, newest first: the same lists; 11 from NVIDIA's ONNX opset guide. */
export const opsetRanges: readonly { readonly version: string; readonly newest: number }[] = [
  { version: '11.0', newest: 25 },
  { version: '10.15', newest: 24 },
  { version: '10.0', newest: 20 },
  { version: '9.0', newest: 19 },
  { version: '8.6', newest: 17 },
];
export const OLDEST_OPSET = 9;

const since86 =
  'Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization Cast Ceil Celu Clip Concat Constant ConstantOfShape ' +
  'Conv ConvTranspose Cos Cosh CumSum DepthToSpace DequantizeLinear Div Dropout Einsum Elu Equal Erf Exp Expand EyeLike Flatten Floor GRU Gather ' +
  'GatherElements GatherND Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual GridSample GroupNormalization HardSigmoid ' +
  'HardSwish Identity If ImageScaler InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax Loop ' +
  'LpNormalization LpPool MatMul Max MaxPool Mean MeanVarianceNormalization Min Mod Mul Neg NonMaxSuppression NonZero Not OneHot Or PRelu Pad ' +
  'ParametricSoftplus Pow QuantizeLinear RNN RandomNormal RandomNormalLike RandomUniform RandomUniformLike Range Reciprocal ReduceL1 ReduceL2 ' +
  'ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize ReverseSequence RoiAlign ' +
  'Round ScaledTanh Scan Scatter ScatterElements ScatterND Selu Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax Softplus Softsign ' +
  'SpaceToDepth Split Sqrt Squeeze Sub Sum Tan Tanh ThresholdedRelu Tile TopK Transpose Trilu Unsqueeze Upsample Where Xor';

const additions: readonly (readonly [version: string, types: string])[] = [
  ['10.0', 'CastLike Gelu Hardmax Mish'],
  ['10.1', 'DeformConv'],
  [
    '10.15',
    'Attention BlackmanWindow HammingWindow HannWindow RMSNormalization RotaryEmbedding STFT TensorScatter',
  ],
];

const firstVersion = new Map(since86.split(' ').map((type) => [type, '8.6']));
for (const [version, types] of additions)
  for (const type of types.split(' ')) firstVersion.set(type, version);

/** The first of the listed TensorRT versions whose parser imports an operator of the ONNX domain; undefined when none up to 10.15 does. */
export const tensorrtSince = (opType: string): string | undefined => firstVersion.get(opType);
