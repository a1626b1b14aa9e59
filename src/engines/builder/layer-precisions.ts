import { inferDtypes } from '../../formats/onnx/dtype-inference.js';
import { visitGraphs } from '../../formats/onnx/graph.js';
import {
  attentionProblem,
  operationProblem,
  type QuantizationProblem,
} from '../../formats/onnx/lint/quantization.js';
import type { ModelProto, NodeProto } from '../../formats/onnx/onnx_pb.js';
import {
  type AttentionProducts,
  isPairPart,
  QuantizedGraph,
  type QuantizedOperation,
} from '../../formats/onnx/quantized-operations.js';
import type { ConversionResult } from '../../formats/precision/result.js';
import type { LayerPrecisions } from '../identity/passport.js';
import { multiplications, type PlanProgram, type ProgramKernel } from '../plan/program.js';

/** Why a conversion left a node in floating point. */
type Decisions = NonNullable<ConversionResult['quantization']>['nodes'];

/** As many nodes as a passport lists. */
const LISTED = 100;

/** Types that convolutions and products compute in without codes. */
const FLOATS: ReadonlySet<string> = new Set(['float32', 'float16', 'bfloat16']);

/**
 * The types that a plan's program computes the quantized model in that it was built from; null for models without a quantized part. `decisions` are those of the
 * conversion, where it is known.
 */
export function layerPrecisions(
  program: PlanProgram,
  model: ModelProto,
  decisions: Decisions = [],
): LayerPrecisions | null {
  const views = [...visitGraphs(model)];
  if (!views.some(({ nodes }) => nodes.some(isPairPart))) return null;
  const quantized = new QuantizedGraph(views, inferDtypes(model).graph);
  const kernels = program.graphs.flatMap((graph) => graph.kernels);
  const byNode = kernelsByNode(kernels);
  const whyNot = new Map(decisions.map(({ node, reason }) => [node, reason]));
  const operators = new Map<string, Map<string, number>>();
  const floating: LayerPrecisions['floating'] = [];
  const blocks = quantized.attentions();
  const problems = problemsOfProducts(blocks);
  for (const operation of quantized.operations()) {
    const { node } = operation;
    const computes = typesOf(byNode.get(programName(node)) ?? [], programName(node));
    const types = operators.get(node.opType) ?? new Map<string, number>();
    operators.set(node.opType, types.set(computes, (types.get(computes) ?? 0) + 1));
    if (!FLOATS.has(computes)) continue;
    const problem = problems.get(node) ?? operationProblem(operation);
    floating.push({
      node: programName(node),
      op: node.opType,
      requested: requestedType(operation),
      computes,
      reason: problem?.message ?? whyNot.get(node.name) ?? reasonOf(operation, program),
      finding: problem?.code ?? null,
    });
  }
  const fused = blocks.filter(({ block }) => isOneKernel(block, byNode));
  const reasons = new Set(
    blocks.flatMap((each) =>
      fused.includes(each) ? [] : (problems.get(each.block.mixed.node)?.message ?? []),
    ),
  );
  const rank = ({ requested, finding }: (typeof floating)[number]) =>
    requested !== null ? 0 : finding !== null ? 1 : 2;
  return {
    operators: [...operators].map(([op, types]) => ({
      op,
      nodes: [...types.values()].reduce((sum, count) => sum + count, 0),
      types: Object.fromEntries([...types].toSorted(([, many], [, few]) => few - many)),
    })),
    floating: floating.toSorted((one, other) => rank(one) - rank(other)).slice(0, LISTED),
    attentions: { quantized: blocks.length, fused: fused.length, reasons: [...reasons] },
    conversions: conversionCounts(
      kernels,
      views.flatMap(({ nodes }) => [...nodes]),
    ),
  };
}

/** The name of a node in TensorRT's parser. */
const programName = ({ name, output }: NodeProto): string => name || `node_of_${output[0] ?? ''}`;

function kernelsByNode(kernels: readonly ProgramKernel[]): ReadonlyMap<string, readonly ProgramKernel[]> {
  const byNode = new Map<string, ProgramKernel[]>();
  for (const kernel of kernels)
    for (const name of kernel.nodes) {
      const known = byNode.get(name);
      if (known === undefined) byNode.set(name, [kernel]);
      else known.push(kernel);
    }
  return byNode;
}

/** The types that the kernels of a node multiply: `int8`, or several where variants for other shapes or profiles differ. */
function typesOf(kernels: readonly ProgramKernel[], node: string): string {
  const types = kernels
    .flatMap(multiplications)
    .filter(({ kernel }) => kernel.nodes.includes(node))
    .map(({ type }) => type);
  // A product with a vector becomes a generated kernel, which computes in the type of what it writes.
  const written = kernels.map(({ outputs }) => outputs[0]?.dtype ?? 'unknown');
  const distinct = new Set(types.length > 0 ? types : written);
  return distinct.size === 0 ? 'unknown' : [...distinct].toSorted().join(' / ');
}

function requestedType({ operands: [first, second] }: QuantizedOperation): string | null {
  if (first === undefined || second === undefined) return null;
  return first.dtype ?? null;
}

function reasonOf({ operands: [first, second] }: QuantizedOperation, { graphs }: PlanProgram): string {
  if (first === undefined && second === undefined) return 'The model does not quantize it.';
  if (first === undefined || second === undefined) return 'Only its weights are quantized.';
  return graphs.some(({ architectures }) => architectures.includes('sm_75'))
    ? 'TensorRT-RTX runs INT8 convolutions in floating point on compute capability 7.5.'
    : 'TensorRT did not fuse its pairs; no reason is known.';
}

const isOneKernel = (
  { scores, mixed }: AttentionProducts,
  byNode: ReadonlyMap<string, readonly ProgramKernel[]>,
): boolean =>
  byNode
    .get(programName(scores.node))
    ?.some(
      (kernel) =>
        kernel.nodes.includes(programName(mixed.node)) &&
        multiplications(kernel).some(({ operator }) => operator === 'attention'),
    ) === true;

/** Problems that quantized operands cause attentions, by product. */
function problemsOfProducts(blocks: ReturnType<QuantizedGraph['attentions']>) {
  const problems = new Map<NodeProto, QuantizationProblem>();
  for (const { block } of blocks) {
    const problem = attentionProblem(block);
    problems.set(block.scores.node, problem).set(block.mixed.node, problem);
  }
  return problems;
}

/** Operators that only give values another type, shape or layout. */
const CONVERTS: ReadonlySet<string> = new Set(
  'QuantizeLinear DequantizeLinear Cast Identity Reshape Flatten Squeeze Unsqueeze Transpose Expand'.split(
    ' ',
  ),
);
/** The same in the names of generated kernels: `__myl_CastReplConc` pads channels. */
const MOVING_NAME = /^__myl_(?:Move|Tran|Resh|Repl|Conc|Slic|Cast|Copy)+(?:_|$)/;

function conversionCounts(
  kernels: readonly ProgramKernel[],
  nodes: readonly NodeProto[],
): LayerPrecisions['conversions'] {
  const converting = new Set(nodes.filter(({ opType }) => CONVERTS.has(opType)).map(programName));
  const counts = { quantize: 0, dequantize: 0, move: 0 };
  const hasCodes = (tensors: ProgramKernel['inputs']) =>
    tensors.some(({ dtype }) => dtype !== null && /^(u?int[48]|float[48]_)/.test(dtype));
  for (const { kind, name, nodes: names, inputs, outputs } of kernels) {
    if (kind !== 'function' && kind !== 'copy' && kind !== 'cast') continue;
    if (!names.every((node) => converting.has(node)) && !MOVING_NAME.test(name)) continue;
    const isRoundTrip = !hasCodes(outputs) && /Roun/.test(name);
    if (hasCodes(outputs) && !hasCodes(inputs)) counts.quantize++;
    else if (isRoundTrip || (hasCodes(inputs) && !hasCodes(outputs))) counts.dequantize++;
    else counts.move++;
  }
  return counts;
}
