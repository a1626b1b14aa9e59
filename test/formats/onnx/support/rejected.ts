import {
  type AttributeValue,
  attribute,
  buildModel,
  GraphBuilder,
  type ModelLike,
} from '../../../../src/formats/onnx/index.js';
import type { Dtype } from '../../../../src/formats/tensor/dtype.js';
import type { Tensor } from '../../../../src/formats/tensor/tensor.js';
import { float32, int64 } from './models.js';

type Input = readonly [name: string, dtype: Dtype, shape: readonly (number | string)[]];

interface Node {
  readonly inputs?: readonly Input[];
  /** Constants behind the inputs. */
  readonly stored?: readonly Tensor[];
  /** Names of the node's inputs where they are not all in order; the constants are c0, c1, … */
  readonly order?: readonly string[];
  readonly outputs?: readonly string[];
  readonly dtype?: Dtype;
  readonly attributes?: Readonly<Record<string, AttributeValue>>;
  readonly opset?: number;
}

const image: Input = ['x', 'float32', ['B', 3, 8, 8]];
const fixed: Input = ['x', 'float32', [1, 3, 8, 8]];

/** One node, called "n". */
function single(operator: string, node: Node = {}): ModelLike {
  const graph = new GraphBuilder('single');
  const inputs = (node.inputs ?? [image]).map(([name, dtype, shape]) => graph.input(name, dtype, shape));
  const stored = (node.stored ?? []).map((tensor, index) => graph.initializer(`c${index}`, tensor));
  const outputs = node.outputs ?? ['y'];
  graph.node(operator, {
    inputs: node.order ?? [...inputs, ...stored],
    outputs,
    name: 'n',
    attributes: node.attributes,
  });
  graph.output(outputs[0] ?? '', node.dtype ?? 'float32', null);
  return buildModel(graph, { opset: node.opset ?? 19 });
}

const body = (fill: (graph: GraphBuilder) => void): AttributeValue => {
  const graph = new GraphBuilder('body');
  fill(graph);
  return attribute.body(graph);
};

/** If(c) → one of two branches; `axes` are summed away in the first. */
function branches(axes: readonly number[], keep: 0 | 1): ModelLike {
  const summed = body((g) => {
    g.initializer('axes', int64([axes.length], axes));
    const attributes = { keepdims: attribute.int(keep) };
    g.node('ReduceSum', { inputs: ['x', 'axes'], outputs: ['t'], attributes });
    g.output('t', 'float32', null);
  });
  const whole = body((g) => {
    g.node('Relu', { inputs: ['x'], outputs: ['e'] });
    g.output('e', 'float32', null);
  });
  return single('If', {
    inputs: [
      ['x', 'float32', ['B', 4, 8]],
      ['c', 'bool', []],
    ],
    order: ['c'],
    attributes: { then_branch: summed, else_branch: whole },
  });
}

function loop(condition: '' | 'c0'): ModelLike {
  return single('Loop', {
    inputs: [['x', 'float32', ['B', 4]]],
    stored: [{ dtype: 'bool', shape: [], bytes: Uint8Array.of(1) }, int64([], [3])],
    order: ['c1', condition, 'x'],
    attributes: {
      body: body((g) => {
        g.input('turn', 'int64', []);
        g.input('go', 'bool', []);
        g.input('a', 'float32', ['B', 4]);
        g.node('Identity', { inputs: ['go'], outputs: ['on'] });
        g.node('Relu', { inputs: ['a'], outputs: ['b'] });
        g.output('on', 'bool', []);
        g.output('b', 'float32', ['B', 4]);
      }),
    },
  });
}

const resize = (attributes: Node['attributes'], scales = [1, 1, 2, 2]) =>
  single('Resize', {
    inputs: [fixed],
    stored: [float32([4], scales)],
    order: ['x', '', 'c0'],
    attributes,
  });

const topK = (k: number) =>
  single('TopK', { inputs: [['x', 'float32', ['B', 8400]]], stored: [int64([1], [k])], outputs: ['y', 'i'] });

const reshape = (target: readonly number[]) =>
  single('Reshape', {
    inputs: [['x', 'float32', ['B', 4, 8, 8]]],
    stored: [int64([target.length], target)],
  });

/** x (UINT8) → operator → Cast → y. */
function bytes(operator: string): ModelLike {
  const graph = new GraphBuilder('bytes');
  graph.input('x', 'uint8', ['B', 8]);
  graph.node(operator, { inputs: ['x'], outputs: ['t'], name: 'n' });
  graph.node('Cast', { inputs: ['t'], outputs: ['y'], attributes: { to: attribute.int(1) } });
  graph.output('y', 'float32', null);
  return buildModel(graph);
}

const window = { kernel_shape: attribute.ints([2, 2]) };
const ones = (count: number) => float32([count], Array<number>(count).fill(1));
const square: Input = ['x', 'float32', [4, 4]];

/** What the builder of TensorRT-RTX 1.7.1 rejects though its parser knows the operator, and what `inspect` calls it. */
export const rejectedModels: Readonly<Record<string, readonly [model: ModelLike, code: string]>> = {
  'normalization in training': [
    single('BatchNormalization', {
      stored: [ones(3), ones(3), ones(3), ones(3)],
      outputs: ['y', 'mean', 'variance'],
      attributes: { training_mode: attribute.int(1) },
    }),
    'op-rejected',
  ],
  'pooling with dilation': [
    single('MaxPool', { attributes: { ...window, dilations: attribute.ints([2, 2]) } }),
    'op-rejected',
  ],
  'pooling that returns indices': [
    single('MaxPool', { outputs: ['y', 'i'], attributes: window }),
    'op-rejected',
  ],
  'an L3 norm': [single('LpNormalization', { attributes: { p: attribute.int(3) } }), 'op-rejected'],
  'a convolution over four axes': [
    single('Conv', {
      inputs: [['x', 'float32', ['B', 3, 4, 4, 4, 4]]],
      stored: [float32([1, 3, 1, 1, 1, 1], [1, 1, 1])],
    }),
    'op-rejected',
  ],
  antialiasing: [resize({ mode: attribute.string('linear'), antialias: attribute.int(1) }), 'op-rejected'],
  half_pixel_symmetric: [
    resize({ coordinate_transformation_mode: attribute.string('half_pixel_symmetric') }),
    'op-rejected',
  ],
  'four axes resized linearly': [resize({ mode: attribute.string('linear') }, [2, 2, 2, 2]), 'op-rejected'],
  'a reduction while scattering': [
    single('ScatterND', {
      inputs: [square],
      stored: [int64([1, 1], [0]), float32([1, 4], [1, 1, 1, 1])],
      attributes: { reduction: attribute.string('add') },
    }),
    'op-rejected',
  ],
  'NonZero on tensorrt-rtx': [single('NonZero', { dtype: 'int64' }), 'op-rejected'],
  'a TopK of 3841': [topK(3841), 'op-rejected'],
  'an equation in capitals': [
    single('Einsum', { inputs: [square], attributes: { equation: attribute.string('IJ->JI') } }),
    'op-rejected',
  ],
  'branches of two ranks': [branches([0], 0), 'op-rejected'],
  'branches of two fixed sizes': [branches([1], 1), 'op-rejected'],
  'a loop without its condition': [loop(''), 'op-rejected'],
  'a batch that is baked in': [reshape([1, 256]), 'op-rejected'],
  'an integer product': [
    single('MatMul', {
      inputs: [
        ['x', 'int32', ['B', 8]],
        ['w', 'int32', [8, 4]],
      ],
      dtype: 'int32',
    }),
    'op-rejected',
  ],
  'UINT8 that an Identity reads': [bytes('Identity'), 'op-rejected'],
  'a cast to INT16': [
    single('Cast', { attributes: { to: attribute.int(5) }, outputs: ['y'], dtype: 'int16' }),
    'op-rejected',
  ],
  'nine axes': [
    single('Relu', { inputs: [['x', 'float32', [1, 2, 1, 2, 1, 2, 1, 2, 1]]] }),
    'io-rank-unsupported',
  ],
  'a plug-in of TensorRT': [
    single('EfficientNMS_TRT', {
      inputs: [
        ['boxes', 'float32', [1, 100, 4]],
        ['scores', 'float32', [1, 100, 2]],
      ],
      outputs: ['count', 'kept', 'score', 'class'],
    }),
    'op-plugin',
  ],
};

/** Neighbours of those, which build. */
export const acceptedModels: Readonly<Record<string, ModelLike>> = {
  'pooling whose dilation is 1': single('MaxPool', {
    attributes: { ...window, dilations: attribute.ints([1, 1]) },
  }),
  'an L1 norm': single('LpNormalization', { attributes: { p: attribute.int(1) } }),
  align_corners: resize({
    mode: attribute.string('linear'),
    coordinate_transformation_mode: attribute.string('align_corners'),
  }),
  'scattering without a reduction': single('ScatterND', {
    inputs: [square],
    stored: [int64([1, 1], [0]), float32([1, 4], [1, 1, 1, 1])],
  }),
  'a TopK of 3840': topK(3840),
  'a loop with its condition': loop('c0'),
  'a batch that stays open': reshape([-1, 256]),
  'a Cast of UINT8': single('Cast', {
    inputs: [['x', 'uint8', ['B', 8]]],
    attributes: { to: attribute.int(1) },
  }),
};
