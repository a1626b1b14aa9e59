import { behaviour, seenOn } from '../../../behaviour/facts.js';
import { operatorRanges } from '../../../behaviour/operators.js';
import { rangeText } from '../../../behaviour/versions.js';
import { attributeOf, textAttribute } from '../attributes.js';
import { isOnnxDomain, nodeLabel } from '../graph.js';
import type { NodeProto } from '../onnx_pb.js';
import type { QuantizedGraph } from '../quantized-operations.js';
import type { ModelShapes } from '../shapes/infer.js';
import { equals, isNumber, multiply, type Shape, sizeText, symbolsOf } from '../shapes/size.js';
import { smallIntegers } from '../shapes/stored-value.js';
import {
  attribute,
  axes,
  checkedNode,
  foreignType,
  hasAttribute,
  isFed,
  MOST_AXES,
  outputs,
  type ParserCheck,
  type,
} from './checked-node.js';
import type { Findings } from './findings.js';

const ALL = `TensorRT (${rangeText(behaviour['parser-checks'].tensorrt)})`;
const RTX = seenOn('parser-checks', 'tensorrt-rtx');
const MOST_OF_TOP_K = behaviour['top-k-limit'].value;

const always = (what: string) => (): string => what;

const INTEGERS = ['int32', 'int64'] as const;
const CAST = 'Cast to a floating-point type in front, and back behind.';
const MODES = 'Export with half_pixel, pytorch_half_pixel, asymmetric or align_corners.';

/** Attributes, types and ranks that TensorRT rejects although it imports the operator (`parser-checks`). */
const parserChecks: readonly ParserCheck[] = [
  {
    operators: 'BatchNormalization',
    by: ALL,
    find: attribute('training_mode', 0),
    cure: 'Export the model in evaluation mode.',
  },
  {
    operators: 'BatchNormalization LayerNormalization MaxPool Attention',
    by: ALL,
    find: outputs(1),
    cure: 'Export for inference, with that output alone.',
  },
  {
    operators: 'Dropout',
    by: ALL,
    find: ({ constant }) =>
      constant(2)?.rawData[0] === 1 || constant(2)?.int32Data[0] === 1 ? 'training_mode is true' : undefined,
    cure: 'Export the model in evaluation mode.',
  },
  {
    operators: 'MaxPool AveragePool LpPool',
    by: ALL,
    find: attribute('dilations', 1),
    cure: 'Pool without dilation, or write it as slices and Max.',
  },
  {
    operators: 'MaxPool AveragePool LpPool',
    by: ALL,
    find: axes(3, 5),
    cure: 'Reshape to at most three spatial axes.',
  },
  {
    operators: 'Conv ConvTranspose',
    by: ALL,
    find: axes(3, 5),
    cure: 'Reshape to at most three spatial axes.',
  },
  {
    operators: 'ConvTranspose',
    by: ALL,
    find: ({ node }) =>
      attributeOf(node, 'pads')?.ints.some((pad) => pad < 0n) ? 'pads has negative numbers' : undefined,
    cure: 'Pad or slice beside it.',
  },
  {
    operators: 'LpPool LpNormalization',
    by: ALL,
    find: attribute('p', 1, 2),
    cure: 'Write it with Pow and a reduction.',
  },
  { operators: 'InstanceNormalization', by: ALL, find: axes(3, 5), cure: 'Reshape to three axes in front.' },
  {
    operators: 'Resize',
    by: ALL,
    find: attribute(
      'coordinate_transformation_mode',
      ...['half_pixel', 'pytorch_half_pixel', 'tf_half_pixel_for_nn', 'asymmetric', 'align_corners'],
    ),
    cure: MODES,
  },
  {
    operators: 'Resize',
    by: ALL,
    find: ({ node, ...rest }) =>
      textAttribute(node, 'coordinate_transformation_mode', '') === 'tf_half_pixel_for_nn'
        ? attribute('nearest_mode', 'round_prefer_floor')({ node, ...rest })
        : undefined,
    cure: MODES,
  },
  {
    operators: 'Resize',
    by: ALL,
    find: attribute('antialias', 0),
    cure: 'Export without antialiasing (interpolate with antialias=False).',
  },
  {
    operators: 'Resize',
    by: ALL,
    find: attribute('keep_aspect_ratio_policy', 'stretch'),
    cure: 'Pass the sizes that it computes.',
  },
  { operators: 'Resize', by: ALL, find: type('bool', 'int32', 'int64'), cure: CAST },
  {
    operators: 'Resize',
    by: ALL,
    find: ({ node, shape, inferred }) => {
      const most = { linear: 3, cubic: 2 }[textAttribute(node, 'mode', 'nearest')];
      const [from, to] = [shape(0), inferred.nodes.get(node)?.shapes[0]];
      if (most === undefined || from === undefined || to === undefined) return undefined;
      const resized = from.filter((size, axis) => !equals(size, to[axis])).length;
      return resized > most
        ? `it resizes ${resized} axes, and at most ${most} are taken in its mode`
        : undefined;
    },
    cure: 'Resize in two steps.',
  },
  {
    operators: 'MeanVarianceNormalization',
    by: RTX,
    find: type('float16', 'bfloat16'),
    cure: 'Keep it in FP32.',
  },
  {
    operators: 'ScatterND',
    by: `${ALL}, as far as it is known`,
    find: attribute('reduction', 'none'),
    cure: 'Write it as a product with a one-hot matrix, or export it otherwise.',
  },
  {
    operators: 'ScatterElements',
    by: RTX,
    find: attribute('reduction', 'none'),
    cure: 'TensorRT brings a plug-in for it.',
  },
  {
    operators: 'NonZero',
    by: RTX,
    find: always('that library does not have it'),
    cure: 'Use TensorRT, or masks of fixed size (Where, TopK).',
  },
  {
    operators: 'NonMaxSuppression',
    by: RTX,
    find: always('that library has no kernel for it'),
    cure: 'Use TensorRT, or export without it and select boxes behind the engine.',
  },
  {
    operators: 'DeformConv',
    by: RTX,
    find: always('that library lacks its plug-in'),
    cure: `Use TensorRT (${operatorRanges.get('DeformConv')?.since} or later).`,
  },
  {
    operators: 'DFT',
    by: RTX,
    find: always('that library lacks its plug-in'),
    cure: `Use TensorRT (${operatorRanges.get('DFT')?.since} or later), or write it as a matrix product.`,
  },
  {
    operators: 'RoiAlign',
    by: `${RTX} without a GPU`,
    find: always('its plug-in needs the driver when it builds'),
    cure: 'Build where a GPU is, or use GridSample.',
  },
  {
    operators: 'RoiAlign',
    by: ALL,
    find: attribute('mode', 'avg', 'max'),
    cure: 'Export with mode avg or max.',
  },
  {
    operators: 'TopK',
    by: `TensorRT before 11 and ${RTX}`,
    find: ({ node, constant }) => {
      const k = smallIntegers(constant(1))?.[0] ?? Number(attributeOf(node, 'k')?.i ?? 0);
      return k > MOST_OF_TOP_K ? `K is ${k}, and at most ${MOST_OF_TOP_K} is taken` : undefined;
    },
    cure: `Take at most ${MOST_OF_TOP_K}, split the axis, or leave the selection to what runs behind the engine.`,
  },
  {
    operators: 'Einsum',
    by: ALL,
    find: ({ node }) =>
      /[^a-z\->., ]/.test(textAttribute(node, 'equation', ''))
        ? 'its equation has other characters than a to z'
        : undefined,
    cure: 'Write the equation in lower-case letters.',
  },
  { operators: 'LSTM', by: ALL, find: attribute('input_forget', 0), cure: 'Export without coupled gates.' },
  {
    operators: 'LSTM GRU RNN',
    by: ALL,
    find: ({ node }) => {
      const names = (attributeOf(node, 'activations')?.strings ?? []).map((each) =>
        Buffer.from(each).toString(),
      );
      const half = names.length / 2;
      return textAttribute(node, 'direction', '') === 'bidirectional' &&
        names.slice(0, half).join() !== names.slice(half).join()
        ? 'its two directions have different activations'
        : undefined;
    },
    cure: 'Split it into one node for each direction.',
  },
  {
    operators: 'LSTM GRU RNN',
    by: ALL,
    find: ({ node }) =>
      attributeOf(node, 'activations')?.strings.some((each) => Buffer.from(each).toString() === 'Affine')
        ? 'its activation is Affine'
        : undefined,
    cure: 'Use another activation.',
  },
  {
    operators: 'STFT',
    by: ALL,
    find: ({ shape }) => (shape(0)?.[2] === 2 ? 'its signal is complex' : undefined),
    cure: 'Transform real signals.',
  },
  {
    operators: 'Attention',
    by: ALL,
    find: hasAttribute('softcap', 'softmax_precision'),
    cure: 'Export the attention as MatMul and Softmax (an opset before 23).',
  },
  {
    operators: 'Attention',
    by: RTX,
    find: type('float32'),
    cure: 'Build with --precision fp16 or bf16: only those have kernels.',
  },
  {
    operators: 'Constant',
    by: ALL,
    find: hasAttribute('sparse_value', 'value_string', 'value_strings'),
    cure: 'Store a dense tensor of numbers.',
  },
  {
    operators: 'EyeLike',
    by: ALL,
    find: ({ shape }) => (shape(0)?.every(isNumber) === false ? 'its input has open dimensions' : undefined),
    cure: 'Store the matrix, or compare two Range.',
  },
  {
    operators: 'Mod',
    by: ALL,
    find: (checked) =>
      Number(attributeOf(checked.node, 'fmod')?.i ?? 0) === 0
        ? type('float32', 'float16', 'bfloat16', 'float64', 'int8')(checked)
        : undefined,
    cure: 'Set fmod to 1 for floating point, cast other types to INT32.',
  },
  {
    operators: 'MatMul Gemm Einsum PRelu ReduceL2 ReduceLogSum ReduceLogSumExp Relu LeakyRelu',
    by: ALL,
    find: type(...INTEGERS),
    cure: CAST,
  },
  { operators: 'DepthToSpace SpaceToDepth', by: ALL, find: type('bool'), cure: CAST },
  {
    operators: 'RandomUniform RandomUniformLike RandomNormal RandomNormalLike',
    by: ALL,
    find: attribute('dtype', 1, 10),
    cure: 'Draw in FP32 or FP16, and cast.',
  },
  {
    operators:
      'ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 Unsqueeze Squeeze CumSum',
    by: ALL,
    find: ({ node, view, types }) => {
      const axes = node.input[1] ?? '';
      return isFed(axes, view, types) ? `its axes "${axes}" are an input of the model` : undefined;
    },
    cure: 'Store the axes.',
  },
  {
    operators: 'Loop',
    by: ALL,
    find: ({ node }) => {
      const inside = attributeOf(node, 'body')?.g;
      const reads = (index: number) => {
        const name = inside?.input[index]?.name;
        return (
          inside?.node.some(({ input }) => name !== undefined && input.includes(name)) === true ||
          inside?.output.some((output) => output.name === name) === true
        );
      };
      const absent = [0, 1].find((index) => (node.input[index] ?? '') === '' && reads(index));
      return absent === undefined
        ? undefined
        : `its ${absent === 0 ? 'trip count' : 'condition'} is left out, and its body reads ${absent === 0 ? 'the turn' : 'it'}`;
    },
    cure: 'Pass a trip count, and a constant true as the condition.',
  },
  {
    operators: 'If',
    by: ALL,
    find: ({ node, inferred }) => {
      const [then, otherwise] = branchShapes(node, inferred);
      const index = then?.findIndex((shape, at) => {
        const other = otherwise?.[at];
        return shape !== undefined && other !== undefined && shape.length !== other.length;
      });
      return index === undefined || index < 0
        ? undefined
        : `its branches differ in the number of axes of output ${index} (${then?.[index]?.length} and ${otherwise?.[index]?.length})`;
    },
    cure: 'Let both branches return the same number of axes, or fix the dimensions that the condition depends on (build for one size) so that it folds away.',
  },
  {
    operators: 'If',
    by: RTX,
    find: ({ node, inferred }) => {
      const [then, otherwise] = branchShapes(node, inferred);
      const isOpen = [...(then ?? []), ...(otherwise ?? [])].some((shape) =>
        shape?.some((size) => !isNumber(size)),
      );
      const differs = then?.some((shape, at) => {
        const other = otherwise?.[at];
        return (
          shape?.length === other?.length &&
          shape?.some((size, axis) => isNumber(size) && isNumber(other?.[axis]) && size !== other[axis])
        );
      });
      return isOpen && differs ? 'its branches differ in a fixed size beside open dimensions' : undefined;
    },
    cure: 'Pad the smaller one, or build for one size.',
  },
  {
    operators: 'Reshape',
    by: ALL,
    find: ({ node, shape, constant, inferred }) => {
      const [from, target] = [shape(0), smallIntegers(constant(1))];
      const to = inferred.nodes.get(node)?.shapes[0];
      if (from === undefined || to === undefined || target === undefined || target.includes(-1))
        return undefined;
      const [before, after] = [multiply(...from), multiply(...to)];
      if (before === undefined || !isNumber(after) || before === after) return undefined;
      const open = symbolsOf(before);
      return isNumber(before)
        ? `it makes ${after} elements of ${before}`
        : `its shape [${target.join(', ')}] is fixed, and its input has ${sizeText(before)} elements: the size of ${open.join(', ')} at the export was baked in`;
    },
    cure: 'Export again with that axis dynamic (-1 in the shape), or build for the size of the export alone.',
    isOfSizes: true,
  },
];

/** Shapes of the outputs of both branches of an If. */
const branchShapes = (node: NodeProto, { nodes }: ModelShapes) =>
  ['then_branch', 'else_branch'].map((name): readonly (Shape | undefined)[] | undefined => {
    const graph = attributeOf(node, name)?.g;
    return graph?.output.map((output) => {
      const producer = graph.node.find((each) => each.output.includes(output.name));
      return producer === undefined
        ? undefined
        : nodes.get(producer)?.shapes[producer.output.indexOf(output.name)];
    });
  });

/** Findings about nodes that a version of TensorRT imports in general and rejects as they are. */
export function lintParserChecks(
  types: QuantizedGraph,
  inferred: ModelShapes,
  settling: string | undefined,
  findings: Findings,
): void {
  const byOperator = new Map<string, ParserCheck[]>();
  for (const check of parserChecks)
    for (const operator of check.operators.split(' '))
      byOperator.set(operator, [...(byOperator.get(operator) ?? []), check]);
  for (const view of types.views) {
    const results = new Set(view.kind === 'graph' ? view.graph?.output.map(({ name }) => name) : []);
    for (const node of view.nodes) {
      const add = (message: string, remedy?: string) =>
        findings.add('op-rejected', `${view.path}/${nodeLabel(node)}`, message, remedy);
      const checked = checkedNode(node, view, types, inferred);
      for (const { by, find, cure, isOfSizes } of isOnnxDomain(node.domain)
        ? (byOperator.get(node.opType) ?? [])
        : []) {
        const what = find(checked);
        if (what !== undefined) add(`Rejected by ${by}: ${what}. ${cure}`, isOfSizes ? settling : undefined);
      }
      const type = foreignType(checked, results);
      if (type !== undefined) add(`Rejected by ${ALL}: ${type}`);
      const rank = inferred.nodes.get(node)?.shapes.find((shape) => (shape?.length ?? 0) > MOST_AXES)?.length;
      if (rank !== undefined)
        add(
          `Rejected by ${ALL}: its output has ${rank} axes, and at most ${MOST_AXES} are taken. Merge axes with Reshape.`,
        );
    }
  }
}
