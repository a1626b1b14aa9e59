import { behaviour, seenOn } from '../../../behaviour/facts.js';
import { attributeOf } from '../../onnx/attributes.js';
import { nodeName } from '../../onnx/graph.js';
import { isConstant, isFloat32, type Operation, operatorName, original, type Value } from '../flow.js';
import type { QuantizedFormat } from '../formats/format.js';
import type { ResolvedConversion } from '../options.js';
import { requestedRules } from '../rules.js';
import { isTransposed, weightOperand } from './weight-operand.js';

/** The facts that a rule may use besides the node itself. */
export interface PlacementFacts {
  readonly options: ResolvedConversion;
  readonly format: QuantizedFormat;
}

/** Decides whether one kind of reason keeps a weighted operation out of the quantization. */
interface PlacementRule {
  /** Stable; reports and scripts refer to it. */
  readonly id: string;
  readonly title: string;
  /** Why the rule is there, for the documentation. */
  readonly reason: string;
  /** The reason that holds for this node, or undefined when the rule does not apply. */
  readonly decide: (operation: Operation, facts: PlacementFacts) => string | undefined;
}

/** Operators that the rules are asked about. */
export const weighted: ReadonlySet<string> = new Set(['Conv', 'ConvTranspose', 'Gemm', 'MatMul']);

/** Between a last layer and an output of the model: nothing that gives the rounding of its result another scale. */
const afterLastLayer: ReadonlySet<string> = new Set(
  'Reshape Flatten Transpose Squeeze Unsqueeze Identity Cast Softmax LogSoftmax Sigmoid Concat Slice Split Gather GatherElements GatherND ArgMax ReduceMax TopK Clip Dropout'.split(
    ' ',
  ),
);
const arithmetic: ReadonlySet<string> = new Set(['Add', 'Sub', 'Mul', 'Div', 'Pow', 'Exp', 'ReduceSum']);
/** Operators that take an answer apart: arithmetic with its parts behind them decodes it (edges of a box from distances), and is not a residual. */
const takesApart: ReadonlySet<string> = new Set(['Slice', 'Split', 'Softmax']);

/** In this order; the first rule that keeps a node out is the one recorded. */
export const placementRules: readonly PlacementRule[] = [
  ...requestedRules,
  {
    id: 'high-precision-node',
    title: 'Named by --high-precision-nodes',
    reason:
      'Requested, by a regular expression that the node name matches; the node becomes what --high-precision states.',
    decide: ({ node }, { options }) => {
      const pattern = options.unquantizedNodes.find((regex) => regex.test(nodeName(node)));
      return pattern && `its name matches ${pattern}`;
    },
  },
  {
    id: 'no-kernel',
    title: 'TensorRT computes the operator in 16 bits whatever its operands',
    reason: `Tried on ${seenOn('kernels-16-bits', 'tensorrt-rtx')}, by the types in its plans: ${behaviour['kernels-16-bits'].holds}.`,
    decide: ({ node }, { format }) =>
      format.operators.has(node.opType)
        ? undefined
        : `TensorRT-RTX runs ${node.opType} with ${format.label} operands in 16 bits`,
  },
  {
    id: 'body',
    title: 'In a body of If, Loop or Scan',
    reason: "Calibration observes values of the model's own graph, so values of bodies have no range.",
    decide: ({ scope }, { format }) =>
      format.activations && scope.owner !== undefined
        ? `it is in a body of ${operatorName(scope.owner)}, whose values have no range`
        : undefined,
  },
  {
    id: 'activations',
    title: 'A product of two activations: an attention',
    reason: `Seen on ${seenOn('quantized-attention', 'tensorrt')} (H100): ${behaviour['quantized-attention'].holds}.`,
    decide: (operation) =>
      isStoredOperand(operation)
        ? undefined
        : 'it multiplies two activations, which TensorRT does best in 16 bits, as a part of a fused attention',
  },
  {
    id: 'weight',
    title: 'Its weight is not a constant second operand',
    reason:
      'A weight is quantized where the model stores it: a constant second operand of two dimensions (of three or more for Conv), directly or through a Transpose or Identity.',
    decide: (operation) =>
      weightOperand(operation) !== undefined
        ? undefined
        : 'its second operand is not a stored weight of a rank that takes scales per channel',
  },
  {
    id: 'gemm-form',
    title: 'A Gemm that transposes its activations or scales its product',
    reason: 'TensorRT fuses the pairs of plain products only.',
    decide: (operation) => {
      if (operation.node.opType !== 'Gemm') return undefined;
      if (isTransposed(operation, 'transA')) return 'it transposes its first operand';
      const alpha = attributeOf(operation.node, 'alpha')?.f ?? 1;
      return alpha === 1 ? undefined : `it multiplies the product by ${alpha}`;
    },
  },
  {
    id: 'groups',
    title: 'A convolution in small groups, in FP8 in any',
    reason:
      'TensorRT-RTX runs depthwise convolutions, and groups of few channels, in 8 bits as dense ones filled up with zeros; TensorRT has no optimized FP8 kernel for groups (its release notes).',
    decide: (operation, { format }) => {
      const { node } = operation;
      const group = Number(attributeOf(node, 'group')?.i ?? 1);
      const dims = weightOperand(operation)?.dims;
      if (node.opType !== 'Conv' || group === 1 || dims === undefined) return undefined;
      const perGroupOut = (dims[0] ?? 0) / group;
      const perGroupIn = dims[1] ?? 0;
      return Math.min(perGroupOut, perGroupIn) < format.fewestInGroup
        ? `its ${group} groups have ${perGroupIn} input and ${perGroupOut} output channels each`
        : undefined;
    },
  },
  {
    id: 'large-kernel',
    title: 'A convolution with a large kernel, in FP8',
    reason:
      'FP8 kernels of TensorRT take up to 32 positions; above, a slow FP16 or FP32 kernel stands in (its release notes).',
    decide: (operation, { format }) => {
      const kernel = weightOperand(operation)?.dims.slice(2) ?? [];
      const positions = kernel.reduce((product, size) => product * size, 1);
      return operation.node.opType === 'Conv' && positions > format.largestKernel
        ? `its kernel has ${positions} positions`
        : undefined;
    },
  },
  {
    id: 'few-channels',
    title: 'Few channels',
    reason:
      'Below 16 input or output channels (the first layer of most networks; for FP8 up to 16, as in ModelOpt) kernels compute zeros, and the rounding is spread over few terms.',
    decide: (operation, { format }) => {
      const weight = weightOperand(operation);
      if (weight === undefined) return undefined;
      const outputs = weight.dims[weight.channelAxis] ?? 0;
      const inputs = weight.dims[weight.sumAxis ?? 1] ?? 0;
      const group = Number(attributeOf(operation.node, 'group')?.i ?? 1);
      return Math.min(outputs, inputs * group) < format.fewestChannels
        ? `it has ${inputs * group} input and ${outputs} output channels`
        : undefined;
    },
  },
  {
    id: 'last-layer',
    title: 'The last layer',
    reason:
      "What it computes is the model's answer, or a detector's before it is decoded: its rounding is not averaged by anything after it, and it takes a small part of the time.",
    decide: (operation) =>
      reachesOutput(operation.outputs[0])
        ? 'nothing but its bias, a choice and decoding follow it'
        : undefined,
  },
  {
    id: 'blocks',
    title: 'Its weight does not divide into blocks',
    reason: `A scale is for a whole block along the axis that is summed over, and ${seenOn('int4-blocks', 'tensorrt-rtx')} ${behaviour['int4-blocks'].holds}; one is a scale per channel.`,
    decide: (operation, { format }) => {
      const weight = weightOperand(operation);
      if (format.blocks.length === 0 || weight?.sumAxis === undefined) return undefined;
      const terms = weight.dims[weight.sumAxis] ?? 0;
      return blockOf(terms, format) === undefined
        ? `it adds up ${terms} terms, which no block of ${format.blocks.join(', ')} divides into two or more`
        : undefined;
    },
  },
];

/** The size of the blocks of a weight with so many terms: the largest that divides them into two or more. */
export const blockOf = (terms: number, { blocks }: QuantizedFormat): number | undefined =>
  blocks.find((block) => terms % block === 0 && terms > block);

/** True for products with a stored operand, and for everything that is no MatMul. */
function isStoredOperand({ node, inputs }: Operation): boolean {
  if (node.opType !== 'MatMul') return true;
  return inputs.some(
    (value) => value !== undefined && (isConstant(value) || comesFromWeights(original(value))),
  );
}

const comesFromWeights = ({ producer }: Value): boolean =>
  producer !== undefined &&
  producer.inputs.length > 0 &&
  producer.inputs.every((value) => value === undefined || isConstant(value));

/** Whether all that reads a value ends at outputs of the model without giving its rounding another scale. */
function reachesOutput(from: Value | undefined): boolean {
  const known = { apart: new Map<Value, boolean>(), whole: new Map<Value, boolean>() };
  const reaches = (value: Value | undefined, isApart: boolean): boolean => {
    // Indices of what is chosen have no rounding.
    if (value === undefined || !isFloat32(value)) return true;
    const found = isApart ? known.apart : known.whole;
    const before = found.get(value);
    if (before !== undefined) return before;
    const all = value.uses.every((use) => {
      if (use.kind === 'output') return use.scope.owner === undefined;
      const { node, inputs, outputs } = use.operation;
      const passes =
        afterLastLayer.has(node.opType) ||
        isWeightedMean(use.operation) ||
        (arithmetic.has(node.opType) &&
          (isApart ||
            inputs.every((other) => other === value || (other !== undefined && isConstant(other)))));
      return passes && outputs.every((output) => reaches(output, isApart || takesApart.has(node.opType)));
    });
    found.set(value, all);
    return all;
  };
  return reaches(from, false);
}

/** A convolution to one channel, by which detectors take the mean of a distribution of distances. */
const isWeightedMean = (operation: Operation): boolean =>
  operation.node.opType === 'Conv' && weightOperand(operation)?.dims[0] === 1;
