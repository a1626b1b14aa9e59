/**
 * What TensorRT's ONNX parser knows, from the public operator lists (docs/operators.md of onnx/onnx-tensorrt) for TensorRT 8.6, 10.0, 10.1 and 10.15.
 * The lists name operator types only; each may have restrictions of its own, which the parser checks.
 */
export const operatorLists = {
  newest: '10.15',
  /** Whose lists name what is recent; operators of older lists are in every TensorRT that is in use. */
  recent: ['10.1', '10.15'],
} as const;

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

/** What the parser imports under any domain besides: layers as TensorRT writes them, and quantization as ModelOpt exports it. */
export const ownOperators: ReadonlySet<string> = new Set(
  (
    'TRT_FP8QuantizeLinear TRT_FP8DequantizeLinear TRT_INT4QuantizeLinear TRT_INT4DequantizeLinear TRT_MXFP8QuantizeLinear ' +
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

/** The first of the listed TensorRT versions whose parser imports an operator of the ONNX domain. */
export const operatorsSince: ReadonlyMap<string, string> = new Map(
  [['8.6', since86] as const, ...additions].flatMap(([version, types]) =>
    types.split(' ').map((type) => [type, version]),
  ),
);
