import { type GraphView, isOnnxDomain, nodeLabel, opsets, qualifiedOpType } from '../graph.js';
import type { ModelProto, NodeProto } from '../onnx_pb.js';
import type { Findings } from './findings.js';
import { isIntegerOperator } from './quantization.js';

/**
 * What TensorRT's ONNX parser knows, from the public operator lists (docs/operators.md of onnx/onnx-tensorrt) for TensorRT 8.6, 10.0, 10.1 and 10.15.
 * The lists name operator types only; each may have restrictions of its own, which the parser checks.
 */
const OPERATOR_LIST_VERSION = '10.15';

/** Opsets by TensorRT version, newest first: the same lists; 11 from NVIDIA's ONNX opset guide. */
const opsetRanges: readonly { readonly version: string; readonly newest: number }[] = [
  { version: '11.0', newest: 25 },
  { version: '10.15', newest: 24 },
  { version: '10.0', newest: 20 },
  { version: '9.0', newest: 19 },
  { version: '8.6', newest: 17 },
];
const OLDEST_OPSET = 9;

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
const OWN: ReadonlySet<string> = new Set(
  (
    'TRT_FP8QuantizeLinear TRT_FP8DequantizeLinear TRT_INT4QuantizeLinear TRT_INT4DequantizeLinear TRT_MXFP8QuantizeLinear ' +
    'TRT_MXFP8DequantizeLinear TRT_MXFP8DynamicQuantize TRT_FP4DynamicQuantize TRT_DynamicQuantize TRT_BlockQuantize TRT_AveragePool TRT_Conv ' +
    'TRT_Deconv TRT_FloorDiv TRT_Gather TRT_MatMul TRT_MaxPool TRT_MoE TRT_Resize TRT_Scale TRT_Shuffle TRT_Slice TRT_TopK_Min TRT_TopK_Max'
  ).split(' '),
);

/** Of ONNX Runtime's domain, what TensorRT-RTX 1.7 imports. */
const RTX_CONTRIB: ReadonlySet<string> = new Set([
  ...['GroupQueryAttention', 'MultiHeadAttention', 'MatMulNBits', 'QMoE', 'SimplifiedLayerNormalization'],
]);

/** Plug-ins of libnvinfer_plugin (the folders of NVIDIA/TensorRT's plugin/), without those that their authors call obsolete. */
const PLUGINS: ReadonlySet<string> = new Set(
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

const firstVersion = new Map(since86.split(' ').map((type) => [type, '8.6']));
for (const [version, types] of additions)
  for (const type of types.split(' ')) firstVersion.set(type, version);

/** The first of the listed TensorRT versions whose parser imports an operator of the ONNX domain; undefined when none up to 10.15 does. */
const tensorrtSince = (opType: string): string | undefined => firstVersion.get(opType);

/** The version before which a user is reported that an operator is recent; older TensorRT is out of use. */
const COMMON_VERSIONS = new Set(['8.6', '10.0']);

/** Findings about operator types and opsets. */
export function lintOperators(proto: ModelProto, views: readonly GraphView[], findings: Findings): void {
  lintOpsets(proto, views, findings);
  const functions = new Set(proto.functions.map(({ domain, name }) => `${domain}::${name}`));
  for (const [type, { count, first, where }] of operatorUses(views)) {
    if (functions.has(`${first.domain}::${first.opType}`) || isIntegerOperator(first)) continue;
    const times = count === 1 ? '1 node' : `${count} nodes`;
    if (OWN.has(first.opType)) continue;
    if (PLUGINS.has(first.opType)) {
      findings.add(
        'op-plugin',
        where,
        `${type} (${times}) is a plug-in that comes with TensorRT (libnvinfer_plugin) and is not part of TensorRT-RTX.`,
      );
      continue;
    }
    if (!isOnnxDomain(first.domain) && RTX_CONTRIB.has(first.opType)) {
      findings.add(
        'op-plugin',
        where,
        `${type} (${times}) is imported by TensorRT-RTX 1.7; TensorRT needs a plug-in for it.`,
      );
      continue;
    }
    // The parser looks operators up by their type alone.
    if (!isOnnxDomain(first.domain) && !firstVersion.has(first.opType)) {
      findings.add(
        'op-unknown',
        where,
        `${type} (${times}) is not an ONNX operator; TensorRT needs a plug-in or a model function for it.`,
      );
      continue;
    }
    const since = tensorrtSince(first.opType);
    if (since === undefined) {
      findings.add(
        'op-unknown',
        where,
        `${type} (${times}) is not among the operators of TensorRT ${OPERATOR_LIST_VERSION}'s ONNX parser; it needs a plug-in or another export.`,
      );
    } else if (!COMMON_VERSIONS.has(since)) {
      findings.add(
        'op-needs-newer-tensorrt',
        where,
        `${type} (${times}) needs TensorRT ${since} or newer (by the operator lists of 10.1 and 10.15).`,
      );
    }
  }
}

function lintOpsets(proto: ModelProto, views: readonly GraphView[], findings: Findings): void {
  const versions = opsets(proto);
  const opset = versions['ai.onnx'];
  if (opset !== undefined) lintOpset(opset, findings);
  const missing = new Set<string>();
  for (const view of views) {
    // A function brings its own imports.
    if (view.kind === 'function') continue;
    for (const { domain } of view.nodes) {
      const name = isOnnxDomain(domain) ? 'ai.onnx' : domain;
      if (!Object.hasOwn(versions, name)) missing.add(name);
    }
  }
  for (const domain of missing) {
    findings.add(
      'opset-missing',
      'opset_import',
      domain === 'ai.onnx'
        ? 'The model does not state the ONNX opset of its operators.'
        : `Nodes of domain "${domain}" are used, but the model imports no version of it.`,
    );
  }
}

function lintOpset(opset: number, findings: Findings): void {
  if (opset > opsetRanges[0]!.newest) {
    findings.add(
      'opset-too-new',
      'opset_import',
      `Opset ${opset} is newer than TensorRT ${opsetRanges[0]!.version} knows (up to ${opsetRanges[0]!.newest}).`,
    );
  } else if (opset > (opsetRanges.find(({ version }) => version === OPERATOR_LIST_VERSION)?.newest ?? 0)) {
    const needed = opsetRanges.findLast(({ newest }) => newest >= opset);
    findings.add(
      'opset-too-new',
      'opset_import',
      `Opset ${opset} needs TensorRT ${needed?.version} or newer.`,
    );
  } else if (opset < OLDEST_OPSET) {
    findings.add(
      'opset-too-old',
      'opset_import',
      `Opset ${opset} is older than TensorRT supports (from ${OLDEST_OPSET}); convert the model to a newer one.`,
    );
  }
}

function operatorUses(
  views: readonly GraphView[],
): Map<string, { count: number; first: NodeProto; where: string }> {
  const uses = new Map<string, { count: number; first: NodeProto; where: string }>();
  for (const view of views) {
    if (view.kind === 'training') continue;
    for (const node of view.nodes) {
      const type = qualifiedOpType(node);
      const known = uses.get(type);
      if (known === undefined)
        uses.set(type, { count: 1, first: node, where: `${view.path}/${nodeLabel(node)}` });
      else known.count += 1;
    }
  }
  return uses;
}
