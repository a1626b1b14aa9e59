import { behaviour } from './facts.js';
import { always, before, isWithin, type Range, rangeText, since } from './versions.js';

/**
 * Operators that TensorRT's ONNX parser knows, from the public operator lists (docs/operators.md of onnx/onnx-tensorrt) for TensorRT 8.6, 10.0, 10.1
 * and 10.15, its changelog for the versions between, and the release notes of TensorRT 11.0 to 11.4.
 * The lists name operator types only; each may have restrictions of its own, which the parser checks.
 */
export const operatorLists = {
  newest: '11.4',
  /** Operators added since are recent; those of older lists are in every TensorRT that is in use. */
  recent: '10.1',
  /** Opsets of a newer version than this one are recent too. */
  recentOpset: '10.15',
} as const;

/**
 * Opsets by TensorRT version, newest first: the same lists, the ONNX release that the parser's changelog names for 10.6 (1.17) and 10.11 (1.18), and 11 from
 * NVIDIA's ONNX opset guide. The parser reads a model of a newer opset all the same, operator by operator (measured with TensorRT-RTX 1.7.1).
 */
export const opsetRanges: readonly { readonly version: string; readonly newest: number }[] = [
  { version: '11.0', newest: 25 },
  { version: '10.15', newest: 24 },
  { version: '10.11', newest: 23 },
  { version: '10.6', newest: 22 },
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
  ['10.4', 'BlackmanWindow HammingWindow HannWindow'],
  ['10.5', 'STFT'],
  ['10.14', 'Attention'],
  ['10.15', 'RMSNormalization RotaryEmbedding TensorScatter'],
  ['11.0', 'Swish'],
  ['11.2', 'DFT'],
];

/** GridSample of volumes, whose input has five axes. */
export const GRID_SAMPLE_3D = 'GridSample 3D';

/** Further operators, imported under any domain: layers as TensorRT writes them, and quantization as ModelOpt exports it. */
export const ownOperators: ReadonlySet<string> = new Set(
  (
    'TRT_Attention TRT_KVCacheUpdate TRT_FP8QuantizeLinear TRT_FP8DequantizeLinear TRT_INT4QuantizeLinear TRT_INT4DequantizeLinear TRT_MXFP8QuantizeLinear ' +
    'TRT_MXFP8DequantizeLinear TRT_MXFP8DynamicQuantize TRT_FP4DynamicQuantize TRT_DynamicQuantize TRT_BlockQuantize TRT_AveragePool TRT_Conv ' +
    'TRT_Deconv TRT_FloorDiv TRT_Gather TRT_MatMul TRT_MaxPool TRT_MoE TRT_Resize TRT_Scale TRT_Shuffle TRT_Slice TRT_TopK_Min TRT_TopK_Max'
  ).split(' '),
);

/** Of ONNX Runtime's domain, what TensorRT-RTX imports (`contrib-operators`). */
export const contribOperators: ReadonlySet<string> = new Set([
  ...['GroupQueryAttention', 'MultiHeadAttention', 'MatMulNBits', 'QMoE', 'SimplifiedLayerNormalization'],
]);

/** Plug-ins of libnvinfer_plugin (the folders of NVIDIA/TensorRT's plugin/), without those that their authors call obsolete. */
export const pluginOperators: ReadonlySet<string> = new Set(
  (
    'EfficientNMS_TRT EfficientNMS_ONNX_TRT EfficientNMS_Explicit_TF_TRT EfficientNMS_Implicit_TF_TRT BatchedNMS_TRT BatchedNMSDynamic_TRT ' +
    'BatchTilePlugin_TRT CoordConvAC CropAndResize CropAndResizeDynamic CustomEmbLayerNormPluginDynamic CustomFCPluginDynamic CustomGeluPluginDynamic ' +
    'CustomQKVToContextPluginDynamic CustomSkipLayerNormPluginDynamic DecodeBbox3DPlugin DetectionLayer_TRT DisentangledAttention_TRT ' +
    'FlattenConcat_TRT GenerateDetection_TRT GridAnchor_TRT GridAnchorRect_TRT InstanceNormalization_TRT LReLU_TRT ModulatedDeformConv2d ' +
    'MultilevelCropAndResize_TRT MultilevelProposeROI_TRT MultiscaleDeformableAttnPlugin_TRT NMS_TRT NMSDynamic_TRT Normalize_TRT PillarScatterPlugin ' +
    'PriorBox_TRT Proposal ProposalDynamic ProposalLayer_TRT PyramidROIAlign_TRT Region_TRT Reorg_TRT ResizeNearest_TRT ROIAlign_TRT RPROI_TRT ' +
    'SpecialSlice_TRT VoxelGeneratorPlugin'
  ).split(' '),
);

/** Plug-ins that the release notes of TensorRT 11.0 name as removed. */
const removedPlugins =
  'BatchTilePlugin_TRT CoordConvAC CropAndResize CropAndResizeDynamic CustomGeluPluginDynamic LReLU_TRT NMS_TRT NMSDynamic_TRT Normalize_TRT Proposal ' +
  'ProposalDynamic SpecialSlice_TRT';

/** The TensorRT versions that have an operator, of those that the lists name. */
export const operatorRanges: ReadonlyMap<string, Range> = new Map(
  [
    [always, since86] as const,
    ...additions.map(([version, types]) => [since(version), types] as const),
    [before('11'), removedPlugins] as const,
  ].flatMap(([range, types]) => types.split(' ').map((type) => [type, range] as const)),
).set(GRID_SAMPLE_3D, since('11.2'));

/** Of operators that TensorRT has, those that TensorRT-RTX lacks: its plug-ins, and what was measured (`rtx-parser`). */
const notInRtx: ReadonlySet<string> = new Set([
  ...pluginOperators,
  ...'DFT DeformConv NonMaxSuppression NonZero'.split(' '),
]);

/** Who has an operator that a version lacks, for a sentence; null where it has it, or where nothing is known. */
export function operatorElsewhere(
  type: string,
  { product, version }: { readonly product: 'tensorrt' | 'tensorrt-rtx'; readonly version: string },
): string | null {
  const range = operatorRanges.get(type);
  const text = `TensorRT${range === undefined ? '' : ` ${rangeText(range)}`}`;
  if (product === 'tensorrt') return range === undefined || isWithin(version, range) ? null : text;
  if (notInRtx.has(type)) return text;
  return range === undefined || isWithin(behaviour['rtx-parser'].value, range) ? null : text;
}
