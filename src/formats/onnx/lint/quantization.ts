import { behaviour, seenOn } from '../../../behaviour/facts.js';
import { TrtforgeError } from '../../../errors.js';
import { type Dtype, dtypes, typeLabel } from '../../tensor/dtype.js';
import { numbersOf } from '../../tensor/tensor.js';
import { attributeOf } from '../attributes.js';
import { GraphUses, type GraphView, isOnnxDomain, nodeLabel } from '../graph.js';
import type { OnnxModel } from '../model.js';
import type { NodeProto } from '../onnx_pb.js';
import {
  type AttentionProducts,
  castCodes,
  isDequantize,
  isMove,
  isPairPart,
  isQuantize,
  type QuantizedGraph,
  type QuantizedOperand,
  type QuantizedOperation,
} from '../quantized-operations.js';
import { bytesOf } from '../weight.js';
import type { FindingCode, Findings } from './findings.js';

/** Something in how a model is quantized that TensorRT rejects, or that gains nothing or computes something else. */
export interface QuantizationProblem {
  readonly code: FindingCode;
  readonly message: string;
}

/** Operators with integer arithmetic of their own, which TensorRT's parser rejects. */
const INTEGER_OPERATORS: ReadonlySet<string> = new Set([
  'QLinearConv',
  'QLinearMatMul',
  'ConvInteger',
  'MatMulInteger',
  'DynamicQuantizeLinear',
]);
export const isIntegerOperator = ({ opType, domain }: NodeProto): boolean =>
  isOnnxDomain(domain) && INTEGER_OPERATORS.has(opType);

/** Types that TensorRT takes as codes, and the lowest compute capability that it builds them for; null: any. */
const CODES: Readonly<Record<string, string | null>> = {
  int8: null,
  float8_e4m3fn: '8.9',
  int4: '8.0',
  float4_e2m1fn: '10.0',
};
const labelOf = (dtype: string | undefined): string => (dtype === undefined ? '8-bit' : typeLabel(dtype));

/** Operators that gain by quantized operands; additions and poolings beside quantized ones too. */
const GAINS: ReadonlySet<string> = new Set(
  'Conv ConvTranspose Gemm MatMul Einsum Add Mul AveragePool GlobalAveragePool Concat Resize Attention'.split(
    ' ',
  ),
);

/** Functions of single values: TensorRT-RTX rounds for a pair in front of one and for the pair behind it in the same kernel, which reads no codes. */
const ACTIVATIONS: ReadonlySet<string> = new Set(['Relu', 'LeakyRelu', 'Sigmoid', 'Tanh', 'Erf', 'Clip']);

/** Scales and zero points are read up to this size. */
const LARGEST_SCALES = 16 << 20;
const FP16_LARGEST = 65_504;
/** Half of the smallest subnormal number rounds to zero. */
const FP16_SMALLEST = 2 ** -25;

/** Findings about quantized parts of a model, by what TensorRT-RTX accepted and by what its plans ran. */
export function lintQuantization(model: OnnxModel, quantized: QuantizedGraph, findings: Findings): void {
  const pairs = quantized.views.flatMap((view) =>
    view.nodes.filter(isPairPart).map((node) => ({ node, view })),
  );
  lintIntegerOperators(quantized, findings);
  lintCastCodes(quantized, findings);
  if (pairs.length === 0) return;
  const attentions = lintAttention(quantized, findings);
  const seen = new Set<string>();
  for (const { node, view } of pairs) {
    const add = (code: FindingCode, message: string) =>
      findings.add(code, `${view.path}/${nodeLabel(node)}`, message);
    lintCodes(node, view, quantized, seen, add);
    lintParameters(model, node, view, quantized, seen, add);
    if (isQuantize(node) && !isResult(node, view, quantized, attentions)) lintUse(node, view, quantized, add);
  }
  for (const operation of quantized.operations()) {
    const problem = attentions.has(operation.node) ? undefined : operationProblem(operation);
    if (problem !== undefined)
      findings.add(problem.code, `${operation.view.path}/${nodeLabel(operation.node)}`, problem.message);
  }
}

function lintIntegerOperators({ views }: QuantizedGraph, findings: Findings): void {
  for (const view of views)
    for (const node of view.nodes)
      if (isIntegerOperator(node))
        findings.add(
          'quantized-operator',
          `${view.path}/${nodeLabel(node)}`,
          `TensorRT's parser rejects ${node.opType}. Quantize with QuantizeLinear and DequantizeLinear around float operators (ONNX Runtime: quantize_static with QuantFormat.QDQ).`,
        );
}

/** Weights that were quantized without a DequantizeLinear. */
function lintCastCodes({ views }: QuantizedGraph, findings: Findings): void {
  for (const { graph, path } of views) {
    if (graph === undefined) continue;
    for (const { codes, name, cast } of castCodes(graph, new GraphUses(graph)))
      findings.add(
        'quantized-cast',
        `${path}/${nodeLabel(cast)}`,
        codes.dataType === dtypes.int8.onnx
          ? `It turns the stored INT8 codes "${name}" into floating point, and TensorRT-RTX rejects stored codes that anything but DequantizeLinear reads. Convert the model, which makes that of it: --precision fp16.`
          : `It turns the stored UINT8 codes "${name}" into floating point: TensorRT stores them as INT32, four times as large. With a zero point of 128 --precision fp16 makes INT8 behind a DequantizeLinear of them; with another one quantize to INT8, symmetrically.`,
      );
  }
}

type Add = (code: FindingCode, message: string) => void;

/** The types of codes. */
function lintCodes(
  node: NodeProto,
  view: GraphView,
  quantized: QuantizedGraph,
  seen: Set<string>,
  add: Add,
): void {
  const codes = (isQuantize(node) ? node.output[0] : node.input[0]) ?? '';
  const dtype = quantized.dtype(codes, view);
  if (dtype === undefined || seen.has(`codes ${codes}`)) return;
  seen.add(`codes ${codes}`);
  if (dtype === 'int32')
    add(
      'quantized-bias',
      'Its codes are INT32, which TensorRT rejects. Keep biases in floating point (ONNX Runtime: the extra option QuantizeBias=False).',
    );
  else if (dtype === 'uint8')
    add(
      'quantized-uint8',
      'Its codes are UINT8, and TensorRT takes them as INT8: values above 127 saturate. Quantize to INT8, symmetrically.',
    );
  else if (!Object.hasOwn(CODES, dtype))
    add('quantized-type', `Its codes are ${dtype}; TensorRT takes INT8, FP8 (E4M3), INT4 and FP4 (E2M1).`);
  if (isDequantize(node) && quantized.constant(codes, view)?.dims.length === 0)
    add(
      'quantized-scalar',
      'Its codes are a constant without dimensions, which TensorRT-RTX rejects. Keep the constant in floating point, or store it with the shape [1].',
    );
  const between = isDequantize(node) ? operatorOnStored(codes, view, quantized) : undefined;
  if (between !== undefined)
    add(
      'quantized-constant',
      `Its codes are stored, and ${between.opType} reads them first: TensorRT-RTX rejects stored codes that anything but DequantizeLinear reads. Store what ${between.opType} computes, or the floating-point weight in front of a QuantizeLinear.`,
    );
  const needs = CODES[dtype] ?? null;
  if (needs === null || seen.has(dtype)) return;
  seen.add(dtype);
  add(
    'quantized-target',
    `${labelOf(dtype)} needs compute capability ${needs} or higher; a build for others fails.`,
  );
}

/** The operator that reads stored codes in front of a DequantizeLinear, of which `codes` is the input. */
function operatorOnStored(codes: string, view: GraphView, quantized: QuantizedGraph): NodeProto | undefined {
  let [name, first]: [string, NodeProto | undefined] = [codes, undefined];
  while (quantized.constant(name, view) === undefined) {
    const node = quantized.producer(name, view);
    if (node === undefined || isQuantize(node) || !quantized.isStored(name, view)) return undefined;
    [name, first] = [node.input[0] ?? '', node];
  }
  return Object.hasOwn(CODES, quantized.dtype(name, view) ?? '') ? first : undefined;
}

/** Scales and zero points. */
function lintParameters(
  model: OnnxModel,
  node: NodeProto,
  view: GraphView,
  quantized: QuantizedGraph,
  seen: Set<string>,
  add: Add,
): void {
  const [, scale = '', zeroPoint = ''] = node.input;
  if (zeroPoint !== '' && !seen.has(zeroPoint)) {
    seen.add(zeroPoint);
    const found = numbers(model, quantized, zeroPoint, view).find((value) => value !== 0);
    if (found !== undefined)
      add(
        'quantized-zero-point',
        `Its zero point is ${found}; TensorRT rejects any but 0 outside of DLA. Quantize symmetrically (ONNX Runtime: ActivationSymmetric, WeightSymmetric).`,
      );
  }
  if (seen.has(scale)) return;
  seen.add(scale);
  const scales = numbers(model, quantized, scale, view);
  const wrong = scales.find((value) => !(value > 0) || value === Number.POSITIVE_INFINITY);
  if (wrong !== undefined) {
    add(
      'quantized-scale',
      wrong === Number.POSITIVE_INFINITY
        ? 'Its scale is infinite, which TensorRT accepts: everything it quantizes becomes 0 or NaN.'
        : `Its scale is ${wrong}; TensorRT rejects scales that are not positive. Calibrate with data in which the value is not constantly 0.`,
    );
    return;
  }
  const lost = scales.find((value) => value > FP16_LARGEST || value <= FP16_SMALLEST);
  if (lost !== undefined)
    add(
      'quantized-scale-fp16',
      `Its scale is ${lost.toPrecision(3)}, which is ${lost > 1 ? 'infinite' : '0'} in FP16. Keep the pair in FP32 or BF16, or leave the value out.`,
    );
}

/** Whether a pair is on what one of these products computes, perhaps moved: INT8 attention is fused only with it. */
function isResult(
  node: NodeProto,
  view: GraphView,
  quantized: QuantizedGraph,
  products: ReadonlySet<NodeProto>,
): boolean {
  let producer = quantized.producer(node.input[0] ?? '', view);
  for (let step = 0; step < 8 && producer !== undefined && isMove(producer); step++)
    producer = quantized.producer(producer.input[0] ?? '', view);
  return producer !== undefined && products.has(producer);
}

/** A pair that nothing gains by. */
function lintUse(node: NodeProto, view: GraphView, quantized: QuantizedGraph, add: Add): void {
  // Bodies may read any value.
  if (quantized.views.length > 1) return;
  const outputs = new Set(view.graph?.output.map(({ name }) => name));
  const readers: NodeProto[] = [];
  const seen = new Set<string>();
  const queue = [...node.output];
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (seen.has(name)) continue;
    seen.add(name);
    const isCodes = Object.hasOwn(CODES, quantized.dtype(name, view) ?? '');
    if (outputs.has(name) && isCodes) return;
    for (const reader of quantized.readers(name, view)) {
      const isPassed =
        isDequantize(reader) ||
        isMove(reader) ||
        (isCodes && reader.opType === 'Clip') ||
        quantized.isPaddingOfConvolutions(reader, view);
      if (isPassed) queue.push(...reader.output);
      else readers.push(reader);
    }
  }
  const feedsQuantize = (name: string) => quantized.readers(name, view).some(isQuantize);
  const dequantized = new Set(
    quantized
      .readers(node.output[0] ?? '', view)
      .flatMap((reader) => (isDequantize(reader) ? reader.output : [])),
  );
  const roundsAgain = ({ opType, input }: NodeProto) =>
    ACTIVATIONS.has(opType) && dequantized.has(input[0] ?? '');
  const gains = (reader: NodeProto) =>
    isQuantize(reader) ||
    GAINS.has(reader.opType) ||
    !isOnnxDomain(reader.domain) ||
    (reader.output.some(feedsQuantize) && !roundsAgain(reader));
  if (readers.some(gains)) return;
  const operators = [...new Set(readers.map(({ opType }) => opType))].join(', ');
  add(
    'quantized-unused',
    `Nothing that computes in its type reads it (${operators || 'only an output of the model'}): the pair rounds and gains nothing. Leave it out.`,
  );
}

/** The problem that keeps a quantized operation from computing in the type of its codes; undefined where none does, and in floating point. */
export function operationProblem({
  node,
  operands,
  weight,
}: QuantizedOperation): QuantizationProblem | undefined {
  const [first, second] = operands;
  if (first === undefined && second === undefined) return undefined;
  const type = labelOf((first ?? second)?.dtype);
  if (node.opType === 'ConvTranspose')
    return {
      code: 'quantized-conv-transpose',
      message: `TensorRT-RTX computes ConvTranspose in floating point whatever its operands, and dequantizes in front. Keep it out of the quantization.`,
    };
  if (weight === undefined) {
    if (first !== undefined && second !== undefined) return undefined;
    return {
      code: 'quantized-one-operand',
      message: `Only its ${first === undefined ? 'second' : 'first'} operand is quantized, so it computes in floating point. Quantize both, or none.`,
    };
  }
  const weights = operands[weight.index];
  const activations = operands[1 - weight.index];
  if (weights === undefined)
    return {
      code: 'quantized-one-operand',
      message: `Its weights are not quantized, so it computes in floating point, and its ${type} activations are dequantized in front. Quantize the weights, or remove the pair.`,
    };
  if (weights.scales === 'channel' && isPacked(weights.dtype))
    return {
      code: 'quantized-int4-scales',
      message: `Its ${labelOf(weights.dtype)} weights have a scale per channel: TensorRT-RTX writes the whole matrix in 16 bits in every run. Quantize them in blocks (block_size 16 to 128).`,
    };
  if (activations === undefined) {
    if (node.opType !== 'Conv') return undefined;
    return {
      code: 'quantized-one-operand',
      message:
        'Only its weights are quantized (a pair that something computes behind does not reach it): TensorRT-RTX dequantizes them in every run and convolves in floating point. Quantize its activations too, or neither.',
    };
  }
  return bothProblem(node, activations, weights, weight.rank);
}

const isPacked = (dtype: string | undefined): boolean =>
  dtype !== undefined && Object.hasOwn(dtypes, dtype) && dtypes[dtype as Dtype].bits < 8;

function bothProblem(
  node: NodeProto,
  activations: QuantizedOperand,
  weights: QuantizedOperand,
  rank: number | undefined,
): QuantizationProblem | undefined {
  if (weights.scales === 'blocks' && !isPacked(activations.dtype))
    return {
      code: 'quantized-blocks',
      message: `Its activations are ${labelOf(activations.dtype)} and its weights have a scale per block: ${seenOn('block-scales-late', 'tensorrt-rtx')} ${behaviour['block-scales-late'].holds}. Quantize the weights alone, or per channel.`,
    };
  if (activations.scales === 'computed' || weights.scales === 'computed')
    return {
      code: 'quantized-scale-computed',
      message:
        'A scale of its operands is computed in the graph, so it computes in floating point. Calibrate, and store the scale.',
    };
  if (activations.scales === 'channel')
    return {
      code: 'quantized-activation-channels',
      message:
        'Its activations have a scale per channel, so it computes in floating point. Quantize activations with one scale.',
    };
  const wanted = outputAxis(node, rank);
  if (
    weights.scales === 'channel' &&
    wanted !== undefined &&
    weights.axis !== undefined &&
    weights.axis !== wanted
  )
    return {
      code: 'quantized-weight-axis',
      message: `The scales of its weights are along axis ${weights.axis}, so it computes in floating point. Quantize them along axis ${wanted}, the output channels.`,
    };
  return undefined;
}

/** The axis of output channels in stored weights: the second operand's for Gemm and MatMul. */
function outputAxis(node: NodeProto, rank: number | undefined): number | undefined {
  if (node.opType === 'Conv') return 0;
  if (node.opType === 'Gemm') return Number(attributeOf(node, 'transB')?.i ?? 0) === 0 ? 1 : 0;
  return rank === undefined || rank < 2 ? undefined : rank - 1;
}

/** Returns the products of attentions that have quantized operands. */
function lintAttention(quantized: QuantizedGraph, findings: Findings): ReadonlySet<NodeProto> {
  const products = new Set<NodeProto>();
  for (const { block, view } of quantized.attentions()) {
    products.add(block.scores.node).add(block.mixed.node);
    const { code, message } = attentionProblem(block);
    findings.add(code, `${view.path}/${nodeLabel(block.softmax)}`, message);
  }
  return products;
}

/** The loss by quantized operands in an attention on TensorRT: its fusion, or exactness. */
export function attentionProblem({ scores, mixed, hasPairOnScores }: AttentionProducts): QuantizationProblem {
  const [queries, keys] = scores.operands;
  const [probabilities, values] = mixed.operands;
  const problem = (message: string) =>
    ({ code: 'quantized-attention', message: `${message} Keep both products in 16 bits.` }) as const;
  const slower = 'TensorRT does not fuse it, which is slower than FP16.';
  if (probabilities === undefined)
    return problem(`Operands of the attention are quantized and the result of Softmax is not: ${slower}`);
  if (queries === undefined || keys === undefined || values === undefined)
    return problem(
      `Only a part of the queries, keys, values and the result of Softmax is quantized: ${slower}`,
    );
  if (hasPairOnScores)
    return problem(`A pair stands between the scores of the attention and Softmax: ${slower}`);
  const measured = seenOn('quantized-attention', 'tensorrt');
  return problem(
    queries.dtype === 'int8'
      ? `The attention is INT8: where ${measured} fuses it, it is 6 to 11 dB less exact than its codes in the time of FP16, and slower where it does not.`
      : `The attention is FP8: ${measured} computes it in parts, in 1.24 times the time, and TensorRT-RTX fuses it only where all shapes are fixed.`,
  );
}

/** The values of a small constant; none where they cannot be read, which is a finding of its own. */
function numbers(
  model: OnnxModel,
  quantized: QuantizedGraph,
  name: string,
  view: GraphView,
): readonly number[] {
  const tensor = quantized.constant(name, view);
  if (tensor === undefined) return [];
  try {
    const weight = model.weight(tensor);
    if (weight.byteLength > LARGEST_SCALES) return [];
    return [...numbersOf({ dtype: weight.dtype, shape: weight.dims, bytes: bytesOf(weight) })];
  } catch (error) {
    if (error instanceof TrtforgeError) return [];
    throw error;
  }
}
