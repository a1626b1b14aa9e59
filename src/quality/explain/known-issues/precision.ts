import { behaviour } from '../../../behaviour/facts.js';
import { type KnownIssue, tensorrtIssue } from './issue.js';

export const precisionIssues: readonly KnownIssue[] = [
  {
    id: 'layernorm-fp16-overflow',
    severity: 'warning',
    pattern:
      /Detected layernorm nodes in FP16|Running layernorm after self-attention in FP16 may cause overflow/,
    cause: 'A normalization written out in primitive operators runs in FP16, and its squares can overflow.',
    remedy: 'Export at opset 17 or later (LayerNormalization), keep the normalization in FP32, or use BF16.',
    versions: '8.6 to 10.x',
    source: tensorrtIssue(2781),
  },
  {
    id: 'fp16-subnormal-weights',
    severity: 'warning',
    pattern:
      /weights are affected by this issue: Detected (?:subnormal FP16 values|values less than smallest positive FP16)|Subnormal FP16 values detected/,
    cause:
      "Weights lie below FP16's normal range and lose precision or become zero; the lines have their number or names.",
    remedy: 'Verify the accuracy; keep those layers in FP32, or use BF16.',
    versions: '8.4 to 10.x',
    source: 'measured',
  },
  {
    id: 'fp16-overflow-weights',
    severity: 'warning',
    pattern:
      /weights are affected by this issue: Detected (?:finite FP32 values which would overflow in FP16|FP32 infinity values)/,
    cause:
      "Weights are larger than FP16's 65504 and were replaced by the largest number or infinity: the results of their layers are wrong.",
    remedy:
      'Keep those layers in FP32 (`trtforge convert --keep-nodes`) or use BF16; `trtforge inspect --check-weights` names the weights.',
    versions: '8.4 to 10.x',
    source: tensorrtIssue(3101),
  },
  {
    id: 'int8-scale-missing',
    severity: 'warning',
    pattern: /Missing scale and zero-point for tensor (?<tensor>[^\s,]{1,500}),/,
    cause: 'The tensor {tensor} has no INT8 range, so its layers run in a higher precision.',
    remedy: 'Quantize with Q/DQ nodes. For integer tensors the line is normal.',
    versions: 'up to 10.x',
    source: tensorrtIssue(1785),
  },
  {
    id: 'int8-scales-widened',
    severity: 'note',
    pattern: /Converting conv activation scales to fp32/,
    cause: 'The scales of quantized convolutions are kept in FP32 in the engine, which changes no value.',
    remedy: 'Nothing.',
    versions: 'tensorrt-rtx 1.7',
    source: 'measured',
  },
  {
    id: 'refit-needs-gpu',
    severity: 'error',
    pattern: /graph_jit\.cpp:\d+: CHECK\(status == CUDA_SUCCESS\) failed/,
    cause: `tensorrt-rtx's compiler called CUDA, which is not here: engines whose weights are stripped or can be refitted (${behaviour['flags-need-gpu'].value.join(', ')}) are not built without a GPU.`,
    remedy: 'Leave these flags out, or build where there is a GPU.',
    versions: 'tensorrt-rtx 1.7',
    source: 'measured',
  },
  {
    id: 'int8-constant-without-dequantize',
    severity: 'error',
    pattern: /Quantized constant \((?<tensor>[^)]{1,300})\) is only allowed before DQ/,
    cause:
      'The stored INT8 values {tensor} are read by another operator than DequantizeLinear, such as a Cast with a product by the scale behind it.',
    remedy:
      'Build with --precision fp16, or convert first (`trtforge convert`): a DequantizeLinear takes the place of a Cast. `trtforge inspect` names the node.',
    versions: 'tensorrt-rtx 1.7',
    source: 'measured',
  },
  {
    id: 'no-low-precision-conv',
    severity: 'error',
    pattern: /No low-precision conv kernel available for this strongly-typed Conv/,
    cause:
      'A grouped convolution or transposed convolution in FP16 has no strongly typed kernel in this version.',
    remedy: 'Keep that operator in FP32 (`trtforge convert --keep-ops ConvTranspose`), or use 10.16.1.',
    versions: '11.2.1',
    source: tensorrtIssue(4838),
  },
  {
    id: 'turing-fp32-products',
    severity: 'error',
    pattern:
      /Cannot compile operation '(?<node>[^']{1,300})' for Turing \(SM75\): FP32 GEMM is not supported/,
    cause: 'tensorrt-rtx has no FP32 matrix products for sm_75 (Turing), and {node} is one.',
    remedy: 'Build for sm_75 with --precision fp16, or leave sm_75 out of the target.',
    versions: 'tensorrt-rtx 1.7',
    source: 'measured',
  },
  {
    id: 'weak-typing-deprecated',
    severity: 'note',
    pattern: /Weakly-typed networks have been deprecated/,
    cause: 'Precision flags are gone in TensorRT 11.',
    remedy: 'Build from a typed model: `trtforge convert`.',
    versions: '10.14 to 10.16',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/CHANGELOG.md',
  },
  {
    id: 'precision-flag-dropped',
    severity: 'warning',
    pattern: /setting (?<flag>\w+) mode is not allowed if graph is strongly typed/,
    cause:
      'The network is strongly typed, so the {flag} flag was dropped: the engine computes in the types the ONNX has, FP32 for an FP32 model.',
    remedy: '`trtforge convert MODEL --precision fp16` writes the types into the model.',
    versions: '9.1 to 10.16',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v10.16/samples/common/sampleEngines.cpp',
  },
  {
    id: 'int8-random-ranges',
    severity: 'error',
    hiddenBySuccess: true,
    pattern:
      /^&&&& RUNNING (?![^\n]{0,8000}--(?:calib|stronglyTyped|loadEngine))[^\n]{0,8000} --(?:int8|best)(?: |$)/,
    majors: [8, 10],
    cause:
      'trtexec ran with --int8 (or --best, which includes it) without a calibration cache, and no line reports Q/DQ nodes in the model: it makes up random ranges, and what the engine computes is meaningless. Its speed is real.',
    remedy: 'Quantize the model with Q/DQ nodes, or pass --calib; use such an engine for timing only.',
    unless: /Calibrator won't be used in explicit/,
    versions: '8.6 to 10.16',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v10.16/samples/common/sampleEngines.cpp',
  },
  {
    id: 'fp16-not-native',
    severity: 'warning',
    pattern: /Half2 support requested on hardware without native FP16 support/,
    cause: 'This GPU has no fast FP16 units: the engine is smaller, not faster.',
    remedy: 'Measure against FP32 before you choose it.',
    versions: '7.x to 10.x',
    source: tensorrtIssue(218),
  },
  {
    id: 'dla-not-there',
    severity: 'error',
    pattern: /Cannot create DLA engine, (?<core>-?\d+) not available/,
    cause: 'This device has no DLA core {core}; only Jetson and Drive have any.',
    remedy: 'Leave --useDLACore out.',
    versions: '8.6 and later',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/common/sampleEngines.cpp',
  },
  {
    id: 'dla-fallback',
    severity: 'warning',
    pattern: /[Ll]ayer (?<node>.{1,500}?) is not (?:supported|running) on DLA/,
    cause: 'The layer {node} runs on the GPU: the DLA has no such layer.',
    remedy: 'Change the layer, or count on the GPU for it.',
    versions: 'all',
    source: tensorrtIssue(2318),
  },
];
