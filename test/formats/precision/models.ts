import { attribute as a, GraphBuilder, type ModelSpec } from '../../../src/formats/onnx/builder.js';
import { type Feeds, floats, integers, noise } from './judge.js';

/** A small model with something in it that converters stumbled over. */
export interface Trap {
  readonly name: string;
  readonly graph: () => GraphBuilder;
  readonly feeds: Feeds;
  readonly spec?: ModelSpec;
  /** TensorRT-RTX cannot build the FP32 original either. */
  readonly notForTensorrt?: true;
}

const float32 = 'float32' as const;

/** The usual way in and out: x [2, 8] through a product with w [8, 8]. */
function productOf(g: GraphBuilder, input: string, output: string, seed = 1): string {
  g.initializer(`${output}.w`, noise([8, 8], 0.4, seed));
  return g.node('MatMul', { name: `${output}.matmul`, inputs: [input, `${output}.w`], outputs: [output] });
}

const x: Feeds = { x: noise([2, 8], 1, 7) };

function withInput(name: string, build: (g: GraphBuilder) => void): () => GraphBuilder {
  return () => {
    const g = new GraphBuilder(name);
    g.input('x', float32, [2, 8]);
    build(g);
    return g;
  };
}

export const traps: readonly Trap[] = [
  {
    name: 'shape arithmetic in floats',
    feeds: { x: noise([1, 3, 8, 8], 1, 3) },
    graph: () => {
      const g = new GraphBuilder('upsample');
      g.input('x', float32, [1, 3, null, null]);
      g.initializer('w', noise([4, 3, 3, 3], 0.3));
      g.node('Conv', {
        name: 'conv',
        inputs: ['x', 'w'],
        outputs: ['features'],
        attributes: { pads: a.ints([1, 1, 1, 1]) },
      });
      g.node('Shape', { name: 'shape', inputs: ['features'], outputs: ['dims'] });
      g.initializer('two', integers([2], [2, 3]));
      g.node('Gather', { name: 'pick', inputs: ['dims', 'two'], outputs: ['hw'] });
      g.node('Cast', {
        name: 'to_float',
        inputs: ['hw'],
        outputs: ['hw_float'],
        attributes: { to: a.int(1) },
      });
      g.initializer('factor', floats([], [2]));
      g.node('Mul', { name: 'scale', inputs: ['hw_float', 'factor'], outputs: ['scaled'] });
      g.node('Floor', { name: 'floor', inputs: ['scaled'], outputs: ['floored'] });
      g.node('Cast', {
        name: 'to_int',
        inputs: ['floored'],
        outputs: ['size'],
        attributes: { to: a.int(7) },
      });
      g.initializer('head', integers([2], [1, 4]));
      g.node('Concat', {
        name: 'sizes',
        inputs: ['head', 'size'],
        outputs: ['target'],
        attributes: { axis: a.int(0) },
      });
      g.node('Resize', {
        name: 'resize',
        inputs: ['features', '', '', 'target'],
        outputs: ['y'],
        attributes: { mode: a.string('nearest') },
      });
      g.output('y', float32, [1, 4, null, null]);
      return g;
    },
  },
  {
    name: 'Resize with scales and an empty roi',
    feeds: { x: noise([1, 3, 4, 4], 1, 3) },
    graph: () => {
      const g = new GraphBuilder('resize');
      g.input('x', float32, [1, 3, 4, 4]);
      g.initializer('scales', floats([4], [1, 1, 2, 2]));
      g.node('Relu', { inputs: ['x'], outputs: ['positive'] });
      g.initializer('w', noise([4, 3, 1, 1], 0.3));
      g.node('Conv', { name: 'conv', inputs: ['positive', 'w'], outputs: ['features'] });
      g.node('Resize', {
        name: 'resize',
        inputs: ['features', '', 'scales'],
        outputs: ['y'],
        attributes: { mode: a.string('linear') },
      });
      g.output('y', float32, [1, 4, 8, 8]);
      return g;
    },
  },
  {
    name: 'Clip with only an upper bound, Pad with a value',
    feeds: x,
    graph: withInput('clip', (g) => {
      productOf(g, 'x', 'h');
      g.initializer('high', floats([], [0.5]));
      g.node('Clip', { name: 'clip', inputs: ['h', '', 'high'], outputs: ['clipped'] });
      g.initializer('pads', integers([4], [0, 1, 0, 1]));
      g.initializer('fill', floats([], [-1.5]));
      g.node('Pad', { name: 'pad', inputs: ['clipped', 'pads', 'fill'], outputs: ['y'] });
      g.output('y', float32, [2, 10]);
    }),
  },
  {
    name: 'one weight read in both precisions',
    feeds: x,
    graph: withInput('shared', (g) => {
      g.initializer('w', noise([8, 8], 0.4));
      g.node('MatMul', { name: 'low', inputs: ['x', 'w'], outputs: ['h'] });
      g.node('MatMul', { name: 'keep_this', inputs: ['h', 'w'], outputs: ['i'] });
      g.node('MatMul', { name: 'low_too', inputs: ['i', 'w'], outputs: ['y'] });
      g.output('y', float32, [2, 8]);
    }),
  },
  {
    name: 'a value that is an output and is read inside',
    feeds: x,
    graph: withInput('both', (g) => {
      productOf(g, 'x', 'h');
      productOf(g, 'h', 'y', 2);
      g.output('h', float32, [2, 8]);
      g.output('y', float32, [2, 8]);
    }),
  },
  {
    name: 'an input and a weight that are outputs',
    feeds: x,
    graph: withInput('through', (g) => {
      g.initializer('w', noise([8, 8], 0.4));
      g.node('MatMul', { name: 'product', inputs: ['x', 'w'], outputs: ['y'] });
      g.node('Identity', { name: 'same', inputs: ['x'], outputs: ['z'] });
      g.output('y', float32, [2, 8]);
      g.output('z', float32, [2, 8]);
    }),
  },
  {
    name: 'an If whose branches capture values and end in different precisions',
    feeds: { ...x, flag: { dtype: 'bool', shape: [], bytes: Uint8Array.of(1) } },
    graph: withInput('branches', (g) => {
      g.input('flag', 'bool', []);
      productOf(g, 'x', 'h');
      const yes = new GraphBuilder('yes');
      yes.node('Relu', { name: 'yes.relu', inputs: ['h'], outputs: ['yes.out'] });
      yes.output('yes.out', float32, [2, 8]);
      const no = new GraphBuilder('no');
      no.initializer('two', floats([], [2]));
      no.node('Pow', { name: 'no.pow', inputs: ['h', 'two'], outputs: ['no.out'] });
      no.output('no.out', float32, [2, 8]);
      g.node('If', {
        name: 'if',
        inputs: ['flag'],
        outputs: ['chosen'],
        attributes: { then_branch: a.body(yes), else_branch: a.body(no) },
      });
      productOf(g, 'chosen', 'y', 3);
      g.output('y', float32, [2, 8]);
    }),
  },
  {
    name: 'a Loop that carries a state',
    feeds: x,
    graph: withInput('loop', (g) => {
      productOf(g, 'x', 'h');
      g.initializer('trips', integers([], [3]));
      g.initializer('go_on', { dtype: 'bool', shape: [], bytes: Uint8Array.of(1) });
      g.initializer('w', noise([8, 8], 0.3, 5));
      const body = new GraphBuilder('body');
      body.input('i', 'int64', []);
      body.input('go', 'bool', []);
      body.input('state', float32, [2, 8]);
      body.node('Identity', { inputs: ['go'], outputs: ['again'] });
      body.node('MatMul', { name: 'body.matmul', inputs: ['state', 'w'], outputs: ['moved'] });
      body.node('Add', { name: 'body.add', inputs: ['moved', 'h'], outputs: ['next'] });
      body.node('Tanh', { name: 'body.tanh', inputs: ['next'], outputs: ['seen'] });
      body.output('again', 'bool', []);
      body.output('next', float32, [2, 8]);
      body.output('seen', float32, [2, 8]);
      g.node('Loop', {
        name: 'loop',
        inputs: ['trips', 'go_on', 'h'],
        outputs: ['last', 'all'],
        attributes: { body: a.body(body) },
      });
      g.output('last', float32, [2, 8]);
      g.output('all', float32, [null, 2, 8]);
    }),
  },
  {
    name: 'a Scan over a sequence',
    feeds: { x: noise([5, 8], 1, 4) },
    graph: () => {
      const g = new GraphBuilder('scan');
      g.input('x', float32, [5, 8]);
      g.initializer('start', floats([8], new Array(8).fill(0)));
      g.initializer('w', noise([8, 8], 0.3, 6));
      g.node('MatMul', { name: 'in', inputs: ['x', 'w'], outputs: ['h'] });
      const body = new GraphBuilder('body');
      body.input('state', float32, [8]);
      body.input('item', float32, [8]);
      body.node('Add', { name: 'body.add', inputs: ['state', 'item'], outputs: ['next'] });
      body.node('Sigmoid', { name: 'body.gate', inputs: ['item'], outputs: ['gate'] });
      body.output('next', float32, [8]);
      body.output('gate', float32, [8]);
      g.node('Scan', {
        name: 'scan',
        inputs: ['start', 'h'],
        outputs: ['sum', 'gates'],
        attributes: { body: a.body(body), num_scan_inputs: a.int(1) },
      });
      g.output('sum', float32, [8]);
      g.output('gates', float32, [5, 8]);
      return g;
    },
  },
  {
    name: 'layer normalisation in single steps with a tiny epsilon',
    feeds: { x: floats([2, 8], [...new Array(8).fill(3), ...Array.from({ length: 8 }, (_, i) => 300 * i)]) },
    graph: withInput('norm', (g) => {
      g.initializer('axes', integers([1], [-1]));
      const last = { axes: a.ints([-1]), keepdims: a.int(1) };
      g.node('ReduceMean', { name: 'mean', inputs: ['x'], outputs: ['mean'], attributes: last });
      g.node('Sub', { name: 'centre', inputs: ['x', 'mean'], outputs: ['centred'] });
      g.initializer('two', floats([], [2]));
      g.node('Pow', { name: 'square', inputs: ['centred', 'two'], outputs: ['squares'] });
      g.node('ReduceMean', {
        name: 'variance',
        inputs: ['squares'],
        outputs: ['variance'],
        attributes: last,
      });
      g.initializer('epsilon', floats([], [1e-12]));
      g.node('Add', { name: 'add_epsilon', inputs: ['variance', 'epsilon'], outputs: ['safe'] });
      g.node('Sqrt', { name: 'root', inputs: ['safe'], outputs: ['deviation'] });
      g.node('Div', { name: 'normalise', inputs: ['centred', 'deviation'], outputs: ['normal'] });
      productOf(g, 'normal', 'y');
      g.output('y', float32, [2, 8]);
    }),
  },
  {
    name: 'layer normalisation as JAX writes it, of large values',
    feeds: { x: floats([2, 8], [...new Array(8).fill(3), ...Array.from({ length: 8 }, (_, i) => 300 * i)]) },
    graph: withInput('jax', (g) => {
      g.initializer('axes', integers([1], [1]));
      g.initializer('eighth', floats([], [0.125]));
      g.initializer('zero', floats([], [0]));
      g.initializer('epsilon', floats([], [1e-6]));
      g.initializer('column', integers([2], [2, 1]));
      g.initializer('whole', integers([2], [2, 8]));
      const steps: readonly (readonly [string, string, readonly string[]])[] = [
        ['ReduceSum', 'sum', ['x', 'axes']],
        ['Mul', 'mean', ['sum', 'eighth']],
        ['Mul', 'mean_square', ['mean', 'mean']],
        ['Mul', 'squares', ['x', 'x']],
        ['ReduceSum', 'sum_of_squares', ['squares', 'axes']],
        ['Mul', 'mean_of_squares', ['sum_of_squares', 'eighth']],
        ['Sub', 'difference', ['mean_of_squares', 'mean_square']],
        ['Max', 'variance', ['zero', 'difference']],
        ['Reshape', 'variances', ['variance', 'column']],
        ['Expand', 'broadcast', ['variances', 'whole']],
        ['Add', 'safe', ['broadcast', 'epsilon']],
        ['Sqrt', 'deviation', ['safe']],
        ['Reciprocal', 'scale', ['deviation']],
        ['Sub', 'centred', ['x', 'mean']],
        ['Mul', 'normal', ['centred', 'scale']],
      ];
      for (const [op, name, inputs] of steps) {
        const attributes = { keepdims: a.int(1) };
        g.node(op, { name, inputs, outputs: [name], ...(op === 'ReduceSum' ? { attributes } : {}) });
      }
      productOf(g, 'normal', 'y');
      g.output('y', float32, [2, 8]);
    }),
  },
  {
    name: 'values beyond FP16 on their way to what makes them small',
    feeds: {
      x: floats([2, 8], [20, -20, 30, 5, 12, -3, 0, 40, ...Array.from({ length: 8 }, (_, i) => 5 * i)]),
    },
    graph: withInput('large', (g) => {
      g.initializer('axes', integers([1], [1]));
      g.initializer('thousand', floats([], [1000]));
      g.initializer('count', floats([], [8000]));
      g.initializer('one', floats([], [1]));
      g.initializer('whole', integers([2], [2, 8]));
      g.node('Mul', { name: 'grow', inputs: ['x', 'thousand'], outputs: ['grown'] });
      g.node('ReduceSum', { name: 'sum', inputs: ['grown', 'axes'], outputs: ['sum'] });
      g.node('Expand', { name: 'expand', inputs: ['sum', 'whole'], outputs: ['sums'] });
      g.node('Div', { name: 'divide', inputs: ['sums', 'count'], outputs: ['means'] });
      g.node('Exp', { name: 'exp', inputs: ['x'], outputs: ['exponential'] });
      g.node('Add', { name: 'add', inputs: ['exponential', 'one'], outputs: ['more'] });
      g.node('Log', { name: 'log', inputs: ['more'], outputs: ['softplus'] });
      g.node('Add', { name: 'both', inputs: ['means', 'softplus'], outputs: ['z'] });
      productOf(g, 'z', 'y');
      g.output('y', float32, [2, 8]);
    }),
  },
  {
    name: 'rotary angles from positions',
    feeds: { x: noise([2, 8], 1, 7), positions: integers([2, 1], [3000, 4001]) },
    graph: withInput('rotary', (g) => {
      g.input('positions', 'int64', [2, 1]);
      g.node('Cast', {
        name: 'float_positions',
        inputs: ['positions'],
        outputs: ['p'],
        attributes: { to: a.int(1) },
      });
      g.initializer(
        'frequencies',
        floats(
          [1, 8],
          Array.from({ length: 8 }, (_, i) => 0.7 ** i),
        ),
      );
      g.node('MatMul', { name: 'angles', inputs: ['p', 'frequencies'], outputs: ['angle'] });
      g.node('Cos', { name: 'cos', inputs: ['angle'], outputs: ['cosine'] });
      productOf(g, 'x', 'h');
      g.node('Mul', { name: 'rotate', inputs: ['h', 'cosine'], outputs: ['y'] });
      g.output('y', float32, [2, 8]);
    }),
  },
  {
    name: 'a mask of minus the largest float',
    feeds: {
      ...x,
      mask: {
        dtype: 'bool',
        shape: [2, 8],
        bytes: Uint8Array.from([1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 1, 1]),
      },
    },
    graph: withInput('mask', (g) => {
      g.input('mask', 'bool', [2, 8]);
      productOf(g, 'x', 'h');
      g.initializer('never', floats([], [-3.4028234663852886e38]));
      g.node('Where', { name: 'where', inputs: ['mask', 'h', 'never'], outputs: ['scores'] });
      g.node('Softmax', {
        name: 'softmax',
        inputs: ['scores'],
        outputs: ['y'],
        attributes: { axis: a.int(-1) },
      });
      g.output('y', float32, [2, 8]);
    }),
  },
  {
    name: 'a function of the model, with an attribute and a call inside a call',
    feeds: x,
    spec: {
      opset: 17,
      opsets: { 'ai.test': 1 },
      functions: [
        {
          domain: 'ai.test',
          name: 'Scaled',
          inputs: ['value'],
          outputs: ['out'],
          attributes: ['by'],
          opsets: { '': 17, 'ai.test': 1 },
          nodes: (() => {
            const f = new GraphBuilder('Scaled');
            f.node('Constant', {
              outputs: ['factor'],
              attributes: { value_float: () => ({ type: 1, refAttrName: 'by' }) },
            });
            f.node('Mul', { inputs: ['value', 'factor'], outputs: ['out'] });
            return f;
          })(),
        },
        {
          domain: 'ai.test',
          name: 'Swish',
          inputs: ['value'],
          outputs: ['out'],
          opsets: { '': 17, 'ai.test': 1 },
          nodes: (() => {
            const f = new GraphBuilder('Swish');
            f.node('Sigmoid', { inputs: ['value'], outputs: ['gate'] });
            f.node('Mul', { inputs: ['value', 'gate'], outputs: ['gated'] });
            f.node('Scaled', {
              domain: 'ai.test',
              inputs: ['gated'],
              outputs: ['out'],
              attributes: { by: a.float(1.5) },
            });
            return f;
          })(),
        },
      ],
    },
    graph: withInput('functions', (g) => {
      productOf(g, 'x', 'h');
      g.node('Swish', { name: 'swish', domain: 'ai.test', inputs: ['h'], outputs: ['i'] });
      g.node('Swish', { name: 'swish_again', domain: 'ai.test', inputs: ['i'], outputs: ['y'] });
      g.output('y', float32, [2, 8]);
    }),
  },
  {
    name: 'casts that were there before',
    feeds: x,
    graph: withInput('casts', (g) => {
      productOf(g, 'x', 'h');
      g.node('Cast', { name: 'down', inputs: ['h'], outputs: ['h16'], attributes: { to: a.int(10) } });
      g.node('Cast', { name: 'up', inputs: ['h16'], outputs: ['h32'], attributes: { to: a.int(1) } });
      productOf(g, 'h32', 'i', 2);
      g.node('Cast', { name: 'same', inputs: ['i'], outputs: ['j'], attributes: { to: a.int(1) } });
      productOf(g, 'j', 'y', 3);
      g.output('y', float32, [2, 8]);
    }),
  },
  {
    name: 'a quantised product',
    feeds: x,
    spec: { opset: 13 },
    graph: withInput('quantised', (g) => {
      productOf(g, 'x', 'h');
      g.initializer('scale', floats([], [0.02]));
      g.initializer('zero', { dtype: 'int8', shape: [], bytes: Uint8Array.of(0) });
      g.node('QuantizeLinear', { name: 'q', inputs: ['h', 'scale', 'zero'], outputs: ['q'] });
      g.node('DequantizeLinear', { name: 'dq', inputs: ['q', 'scale', 'zero'], outputs: ['d'] });
      g.initializer('weight', {
        dtype: 'int8',
        shape: [8, 8],
        bytes: Uint8Array.from({ length: 64 }, (_, i) => (i * 7) % 50),
      });
      g.initializer('weight_scale', floats([], [0.01]));
      g.node('DequantizeLinear', { name: 'dqw', inputs: ['weight', 'weight_scale', 'zero'], outputs: ['w'] });
      g.node('MatMul', { name: 'product', inputs: ['d', 'w'], outputs: ['y'] });
      g.output('y', float32, [2, 8]);
    }),
  },
  {
    name: 'constants as nodes, in every spelling',
    feeds: x,
    graph: withInput('constants', (g) => {
      productOf(g, 'x', 'h');
      g.node('Constant', { name: 'c1', outputs: ['one'], attributes: { value_float: a.float(1) } });
      g.node('Constant', {
        name: 'c2',
        outputs: ['two'],
        attributes: { value: a.tensor(floats([8], [1, 2, 3, 4, 5, 6, 7, 8])) },
      });
      g.node('Constant', { name: 'c3', outputs: ['shape'], attributes: { value_ints: a.ints([2, 8]) } });
      g.node('ConstantOfShape', {
        name: 'filled',
        inputs: ['shape'],
        outputs: ['fill'],
        attributes: { value: a.tensor(floats([1], [0.25])) },
      });
      g.node('Add', { name: 'add1', inputs: ['h', 'one'], outputs: ['i'] });
      g.node('Mul', { name: 'mul2', inputs: ['i', 'two'], outputs: ['j'] });
      g.node('Add', { name: 'add3', inputs: ['j', 'fill'], outputs: ['y'] });
      g.output('y', float32, [2, 8]);
    }),
  },
  {
    name: 'CastLike, EyeLike and Range',
    feeds: x,
    graph: withInput('likes', (g) => {
      productOf(g, 'x', 'h');
      g.initializer('start', floats([], [0]));
      g.initializer('end', floats([], [8]));
      g.initializer('step', floats([], [1]));
      g.node('Range', { name: 'range', inputs: ['start', 'end', 'step'], outputs: ['r'] });
      g.node('Add', { name: 'add', inputs: ['h', 'r'], outputs: ['i'] });
      g.initializer('ints', integers([2, 8], new Array(16).fill(2)));
      g.node('CastLike', { name: 'like', inputs: ['ints', 'x'], outputs: ['f'] });
      g.node('Mul', { name: 'mul', inputs: ['i', 'f'], outputs: ['j'] });
      g.initializer('square', integers([8, 8], new Array(64).fill(0)));
      g.node('EyeLike', {
        name: 'eye',
        inputs: ['square'],
        outputs: ['unit'],
        attributes: { dtype: a.int(1) },
      });
      g.node('MatMul', { name: 'product', inputs: ['j', 'unit'], outputs: ['y'] });
      g.output('y', float32, [2, 8]);
    }),
  },
  {
    name: 'an old model with a softmax over the last axis and attributes that became inputs',
    feeds: x,
    spec: { opset: 11, irVersion: 6 },
    graph: withInput('old', (g) => {
      productOf(g, 'x', 'h');
      g.node('Unsqueeze', {
        name: 'unsqueeze',
        inputs: ['h'],
        outputs: ['u'],
        attributes: { axes: a.ints([0]) },
      });
      g.node('ReduceMax', {
        name: 'max',
        inputs: ['u'],
        outputs: ['m'],
        attributes: { axes: a.ints([-1]), keepdims: a.int(1) },
      });
      g.node('Sub', { name: 'sub', inputs: ['u', 'm'], outputs: ['s'] });
      g.node('Squeeze', {
        name: 'squeeze',
        inputs: ['s'],
        outputs: ['q'],
        attributes: { axes: a.ints([0]) },
      });
      g.node('Dropout', {
        name: 'dropout',
        inputs: ['q'],
        outputs: ['d'],
        attributes: { ratio: a.float(0.1) },
      });
      g.node('Split', {
        name: 'split',
        inputs: ['d'],
        outputs: ['left', 'right'],
        attributes: { axis: a.int(1) },
      });
      g.node('Concat', {
        name: 'concat',
        inputs: ['right', 'left'],
        outputs: ['c'],
        attributes: { axis: a.int(1) },
      });
      g.value('c', float32, [2, 8]);
      g.node('Softmax', { name: 'softmax', inputs: ['c'], outputs: ['p'], attributes: { axis: a.int(1) } });
      g.node('Elu', { name: 'elu', inputs: ['p'], outputs: ['y'] });
      g.output('y', float32, [2, 8]);
    }),
  },
  {
    name: 'doubles and integers beside floats',
    feeds: {
      ...x,
      d: {
        dtype: 'float64',
        shape: [2, 8],
        bytes: new Uint8Array(Float64Array.from({ length: 16 }, (_, i) => i / 7).buffer),
      },
    },
    notForTensorrt: true,
    graph: withInput('doubles', (g) => {
      g.input('d', 'float64', [2, 8]);
      productOf(g, 'x', 'h');
      g.node('Mul', { name: 'in_double', inputs: ['d', 'd'], outputs: ['d2'] });
      g.node('Cast', { name: 'to_float', inputs: ['d2'], outputs: ['f'], attributes: { to: a.int(1) } });
      g.node('Add', { name: 'add', inputs: ['h', 'f'], outputs: ['y'] });
      g.node('Cast', { name: 'to_double', inputs: ['y'], outputs: ['z'], attributes: { to: a.int(11) } });
      g.output('y', float32, [2, 8]);
      g.output('z', 'float64', [2, 8]);
    }),
  },
  {
    name: 'sequences of tensors',
    feeds: x,
    notForTensorrt: true,
    graph: withInput('sequences', (g) => {
      productOf(g, 'x', 'h');
      g.node('SequenceConstruct', { name: 'make', inputs: ['h', 'x'], outputs: ['s'] });
      g.initializer('first', integers([], [0]));
      g.node('SequenceAt', { name: 'at', inputs: ['s', 'first'], outputs: ['e'] });
      productOf(g, 'e', 'y', 2);
      g.output('y', float32, [2, 8]);
    }),
  },
  {
    name: 'random noise and its shape',
    feeds: x,
    notForTensorrt: true,
    graph: withInput('random', (g) => {
      productOf(g, 'x', 'h');
      g.node('RandomNormalLike', {
        name: 'noise',
        inputs: ['h'],
        outputs: ['n'],
        attributes: { seed: a.float(1), scale: a.float(0.001) },
      });
      g.node('Add', { name: 'add', inputs: ['h', 'n'], outputs: ['y'] });
      g.output('y', float32, [2, 8]);
    }),
  },
  {
    name: 'an LSTM with a missing input and state',
    feeds: { x: noise([4, 1, 8], 1, 9), h0: noise([1, 1, 4], 0.5, 2), c0: noise([1, 1, 4], 0.5, 3) },
    graph: () => {
      const g = new GraphBuilder('lstm');
      g.input('x', float32, [4, 1, 8]);
      g.input('h0', float32, [1, 1, 4]);
      g.input('c0', float32, [1, 1, 4]);
      g.initializer('w', noise([1, 16, 8], 0.4, 1));
      g.initializer('r', noise([1, 16, 4], 0.4, 2));
      g.initializer('b', noise([1, 32], 0.4, 3));
      g.node('LSTM', {
        name: 'lstm',
        inputs: ['x', 'w', 'r', 'b', '', 'h0', 'c0'],
        outputs: ['y', 'h', 'c'],
        attributes: { hidden_size: a.int(4) },
      });
      g.output('y', float32, [4, 1, 1, 4]);
      g.output('h', float32, [1, 1, 4]);
      g.output('c', float32, [1, 1, 4]);
      return g;
    },
  },
  {
    name: 'an LSTM with lengths',
    feeds: { x: noise([4, 2, 8], 1, 9) },
    graph: () => {
      const g = new GraphBuilder('lstm');
      g.input('x', float32, [4, 2, 8]);
      g.initializer('w', noise([1, 16, 8], 0.4, 1));
      g.initializer('r', noise([1, 16, 4], 0.4, 2));
      g.initializer('lengths', {
        dtype: 'int32',
        shape: [2],
        bytes: new Uint8Array(Int32Array.of(4, 2).buffer),
      });
      g.node('LSTM', {
        name: 'lstm',
        inputs: ['x', 'w', 'r', '', 'lengths'],
        outputs: ['all', 'h'],
        attributes: { hidden_size: a.int(4) },
      });
      g.initializer('out', noise([4, 8], 0.4, 5));
      g.node('MatMul', { name: 'product', inputs: ['h', 'out'], outputs: ['y'] });
      g.output('all', float32, [4, 1, 2, 4]);
      g.output('y', float32, [1, 2, 8]);
      return g;
    },
  },
  {
    name: 'TopK, ArgMax and comparisons after FP32',
    feeds: x,
    graph: withInput('choosing', (g) => {
      productOf(g, 'x', 'h');
      g.node('Exp', { name: 'exp', inputs: ['h'], outputs: ['e'] });
      g.initializer('k', integers([1], [3]));
      g.node('TopK', { name: 'topk', inputs: ['e', 'k'], outputs: ['values', 'indices'] });
      g.node('ArgMax', { name: 'argmax', inputs: ['e'], outputs: ['best'], attributes: { axis: a.int(1) } });
      g.output('values', float32, [2, 3]);
      g.output('indices', 'int64', [2, 3]);
      g.output('best', 'int64', [2, 1]);
    }),
  },
];
