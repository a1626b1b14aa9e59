import { type AttributeValue, attribute as a, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import type { Tensor } from '../../../src/formats/tensor/tensor.js';
import { type Feeds, floats, integers, noise } from './judge.js';

/** A small graph whose values leave FP16 or are compared with 0 or 1, with inputs at the edges. */
export interface RangeGraph {
  readonly name: string;
  readonly graph: () => GraphBuilder;
  readonly feeds: readonly Feeds[];
  /** Of the error, where FP32 itself distinguishes what 16 bits cannot: scores below a mask of -1e5, say. */
  readonly bound?: number;
  /** Where the operators need a newer one than TensorRT 10.6 knows. */
  readonly opset?: number;
}

type Step = readonly [
  op: string,
  inputs: readonly (string | number | Tensor)[],
  attributes?: Readonly<Record<string, AttributeValue>>,
];

/** Steps, each of which makes the value named by its place: `1`, `2`, …; numbers are FP32 scalars, tensors are weights. The last is the output. */
function chain(
  inputs: Readonly<Record<string, readonly [string, readonly number[]]>>,
  steps: readonly Step[],
): () => GraphBuilder {
  return () => {
    const g = new GraphBuilder('ranges');
    for (const [name, [dtype, shape]] of Object.entries(inputs)) g.input(name, dtype as 'float32', shape);
    let stored = 0;
    const named = (input: string | number | Tensor) => {
      if (typeof input === 'string') return input;
      const value = typeof input === 'number' ? floats([], [input]) : input;
      return g.initializer(`c${++stored}`, value);
    };
    for (const [index, [op, read, attributes]] of steps.entries()) {
      const outputs = [index === steps.length - 1 ? 'y' : `s${index + 1}`];
      g.node(op, {
        name: `n${index + 1}`,
        inputs: read.map(named),
        outputs,
        ...(attributes && { attributes }),
      });
    }
    g.output('y', 'float32', null);
    return g;
  };
}

const ROWS = 8;
const WIDTH = 64;
const square: readonly [string, readonly number[]] = ['float32', [ROWS, WIDTH]];
const w = (seed: number, scale = 0.1) => noise([WIDTH, WIDTH], scale, seed);
const positive = (seed: number) => {
  const { shape, bytes } = w(seed);
  return floats(shape, new Float32Array(bytes.slice().buffer).map(Math.abs));
};
/** Values of which rows are zero, tiny, large and at rest. */
function edges(scale = 1, seed = 5): Tensor {
  const values = new Float32Array(noise([ROWS, WIDTH], scale, seed).bytes.buffer);
  values.fill(0, 0, WIDTH);
  for (let i = WIDTH; i < 2 * WIDTH; i++) values[i]! *= 1e-6;
  for (let i = 2 * WIDTH; i < 3 * WIDTH; i++) values[i]! *= 16;
  values.fill(1, 3 * WIDTH, 4 * WIDTH);
  return floats([ROWS, WIDTH], values);
}
const magnitudes = (tensor: Tensor) =>
  floats(tensor.shape, new Float32Array(tensor.bytes.slice().buffer).map(Math.abs));
const mel = [{ x: magnitudes(edges()) }];
const signed = [{ x: edges() }, { x: noise([ROWS, WIDTH], 2, 9) }];
/** Whose squares are beyond FP16 on either side; a row is 0. */
const wide = [1e-4, 1, 300].map((scale) => {
  const values = new Float32Array(noise([ROWS, WIDTH], scale, 9).bytes.buffer);
  return { x: floats([ROWS, WIDTH], values.fill(0, 0, WIDTH)) };
});
const keep = { keepdims: a.int(1) };
const lastAxis = { axes: a.ints([-1]), ...keep };
const lastSum = [integers([1], [-1])];
const FMIN = -3.4028234663852886e38;

const guard = (name: string, steps: readonly Step[], feeds: readonly Feeds[] = signed): RangeGraph => ({
  name,
  graph: chain({ x: square }, steps),
  feeds,
});

const HEADS = 2;
const TOKENS = 8;
const scores: Readonly<Record<string, readonly [string, readonly number[]]>> = {
  q: ['float32', [HEADS, TOKENS, 16]],
  k: ['float32', [HEADS, 16, TOKENS]],
  v: ['float32', [HEADS, TOKENS, 16]],
};
const attention = {
  q: noise([HEADS, TOKENS, 16], 1, 11),
  k: noise([HEADS, 16, TOKENS], 1, 12),
  v: noise([HEADS, TOKENS, 16], 1, 13),
};
/** Row 0 sees nothing, row 1 itself, the others what is before them. */
const seen = Array.from({ length: TOKENS * TOKENS }, (_, i) => {
  const [row, column] = [Math.floor(i / TOKENS), i % TOKENS];
  return row > 0 && (row === 1 ? column === 1 : column <= row) ? 1 : 0;
});
const maskFeeds = (mask: Tensor): readonly Feeds[] => [{ ...attention, mask }];
const asFloat = floats([TOKENS, TOKENS], seen);
const additive = (lowest: number) =>
  floats(
    [TOKENS, TOKENS],
    seen.map((one) => (one === 1 ? 0 : lowest)),
  );
const asBool: Tensor = { dtype: 'bool', shape: [TOKENS, TOKENS], bytes: Uint8Array.from(seen) };
const masked = (
  name: string,
  dtype: string,
  feed: Tensor,
  steps: (scored: string) => readonly Step[],
): RangeGraph => ({
  name: `mask: ${name}`,
  graph: chain({ ...scores, mask: [dtype, [TOKENS, TOKENS]] }, [['MatMul', ['q', 'k']], ...steps('s1')]),
  feeds: maskFeeds(feed),
});
/** The mask is what step 3 makes; step 4 adds it. */
const multiplied = (lowest: number, cast: readonly Step[] = []): readonly Step[] => [
  ...cast,
  ['Sub', [1, cast.length > 0 ? 's2' : 'mask']],
  ['Mul', [`s${2 + cast.length}`, lowest]],
  ['Add', ['s1', `s${3 + cast.length}`]],
  ['Softmax', [`s${4 + cast.length}`]],
  ['MatMul', [`s${5 + cast.length}`, 'v']],
];

/** A softmax by hand of what a step made; the first of its own steps is the given one. */
const byHand = (scored: string, first: number): readonly Step[] => [
  ['ReduceMax', [scored], lastAxis],
  ['Sub', [scored, `s${first}`]],
  ['Exp', [`s${first + 1}`]],
  ['ReduceSum', [`s${first + 2}`, ...lastSum], keep],
  ['Div', [`s${first + 2}`, `s${first + 3}`]],
  ['MatMul', [`s${first + 4}`, 'v']],
];

/** Steps that make the squares of two products, `s3` and `s4`. */
const twoSquares: readonly Step[] = [
  ['MatMul', ['x', w(7)]],
  ['MatMul', ['x', w(8)]],
  ['Mul', ['s1', 's1']],
  ['Mul', ['s2', 's2']],
];
/** What noise schedules of diffusion multiply up: 0.9992 and less. */
const schedule = (first: number) => {
  let product = first;
  const values = Array.from({ length: 1000 }, (_, i) => {
    product *= 1 - 8.5e-4 - i * 1e-5;
    return i === 0 && first === 1 ? 1 : product;
  });
  return floats([1000], values);
};
const scheduled = (name: string, steps: readonly Step[]): RangeGraph => ({
  name: `schedule: ${name}`,
  graph: chain({ x: square, t: ['int64', [ROWS, 1]] }, steps),
  feeds: [1, 100].map((step) => ({
    x: noise([ROWS, WIDTH], 1, 9),
    t: integers(
      [ROWS, 1],
      Array.from({ length: ROWS }, (_, i) => (i + 1) * step),
    ),
  })),
});

const boxes = floats(
  [1, 6, 4],
  [
    10, 10, 50, 60, 12, 11, 52, 61, 300, 200, 360, 280, 301, 202, 362, 281, 10, 10, 50, 60, 500, 400, 560,
    470,
  ],
);
/** Times 80 classes beyond FP16. */
const largeBoxes = floats(
  [1, 6, 4],
  Array.from({ length: 24 }, (_, i) => 100 * (i % 4) + 40 * i),
);
const boxScores = floats([1, 1, 6], [0.9, 0.8, 0.95, 0.7, 0.85, 0.6]);

export const rangeGraphs: readonly RangeGraph[] = [
  guard(
    'log of a sum with 1e-10',
    [
      ['MatMul', ['x', positive(1)]],
      ['Add', ['s1', 1e-10]],
      ['Log', ['s2']],
      ['MatMul', ['s3', w(2)]],
    ],
    mel,
  ),
  guard(
    'log of a clip at 1e-10',
    [
      ['MatMul', ['x', positive(1)]],
      ['Clip', ['s1', 1e-10]],
      ['Log', ['s2']],
      ['MatMul', ['s3', w(2)]],
    ],
    mel,
  ),
  guard(
    'log of a maximum with 1e-8, moved in between',
    [
      ['MatMul', ['x', positive(1)]],
      ['Max', ['s1', 1e-8]],
      ['Transpose', ['s2']],
      ['Log', ['s3']],
      ['Transpose', ['s4']],
      ['MatMul', ['s5', w(2)]],
    ],
    mel,
  ),
  guard(
    'log of a choice of 1e-7',
    [
      ['MatMul', ['x', positive(1)]],
      ['Greater', ['s1', 1e-7]],
      ['Where', ['s2', 's1', 1e-7]],
      ['Log', ['s3']],
      ['MatMul', ['s4', w(2)]],
    ],
    mel,
  ),
  guard('division by the largest and 1e-8', [
    ['Abs', ['x']],
    ['ReduceMax', ['s1'], lastAxis],
    ['Add', ['s2', 1e-8]],
    ['Div', ['x', 's3']],
    ['MatMul', ['s4', w(3)]],
  ]),
  guard('division by a sum and 1e-12', [
    ['Abs', ['x']],
    ['ReduceSum', ['s1', ...lastSum], keep],
    ['Add', ['s2', 1e-12]],
    ['Div', ['s1', 's3']],
    ['MatMul', ['s4', w(3)]],
  ]),
  guard('division by a norm of at least 1e-12', [
    ['ReduceL2', ['x'], lastAxis],
    ['Max', ['s1', 1e-12]],
    ['Div', ['x', 's2']],
    ['MatMul', ['s3', w(3)]],
  ]),
  guard('reciprocal of a maximum and 1e-8', [
    ['Abs', ['x']],
    ['ReduceMax', ['s1'], lastAxis],
    ['Add', ['s2', 1e-8]],
    ['Reciprocal', ['s3']],
    ['Mul', ['x', 's4']],
    ['MatMul', ['s5', w(3)]],
  ]),
  guard('reciprocal root of a mean square and 1e-12', [
    ['Mul', ['x', 'x']],
    ['ReduceMean', ['s1'], lastAxis],
    ['Add', ['s2', 1e-12]],
    ['Sqrt', ['s3']],
    ['Reciprocal', ['s4']],
    ['Mul', ['x', 's5']],
    ['MatMul', ['s6', w(3)]],
  ]),
  guard('1 divided by a root', [
    ['Abs', ['x']],
    ['ReduceMean', ['s1'], lastAxis],
    ['Add', ['s2', 1e-12]],
    ['Sqrt', ['s3']],
    ['Div', [1, 's4']],
    ['Mul', ['x', 's5']],
    ['MatMul', ['s6', w(3)]],
  ]),
  guard('power of -0.5', [
    ['Abs', ['x']],
    ['ReduceMean', ['s1'], lastAxis],
    ['Add', ['s2', 1e-8]],
    ['Pow', ['s3', -0.5]],
    ['Mul', ['x', 's4']],
    ['MatMul', ['s5', w(3)]],
  ]),
  guard('logit of a clipped probability', [
    ['MatMul', ['x', w(4, 1)]],
    ['Sigmoid', ['s1']],
    ['Clip', ['s2', 1e-6, 1 - 1e-6]],
    ['Sub', [1, 's3']],
    ['Div', ['s3', 's4']],
    ['Log', ['s5']],
    ['MatMul', ['s6', w(5)]],
  ]),
  guard('logit of two logarithms', [
    ['MatMul', ['x', w(4, 0.3)]],
    ['Sigmoid', ['s1']],
    ['Sub', [1, 's2']],
    ['Add', ['s2', 1e-5]],
    ['Log', ['s4']],
    ['Add', ['s3', 1e-5]],
    ['Log', ['s6']],
    ['Sub', ['s5', 's7']],
    ['MatMul', ['s8', w(5)]],
  ]),
  guard('log of a softmax', [
    ['MatMul', ['x', w(4, 1)]],
    ['Softmax', ['s1']],
    ['Log', ['s2']],
    ['MatMul', ['s3', w(5, 0.02)]],
  ]),
  guard('log of a sigmoid', [
    ['MatMul', ['x', w(4, 1)]],
    ['Sigmoid', ['s1']],
    ['Log', ['s2']],
    ['MatMul', ['s3', w(5, 0.02)]],
  ]),
  guard('log of 1 minus a squared tanh', [
    ['MatMul', ['x', w(4)]],
    ['Tanh', ['s1']],
    ['Mul', ['s2', 's2']],
    ['Sub', [1, 's3']],
    ['Add', ['s4', 1e-6]],
    ['Log', ['s5']],
    ['MatMul', ['s6', w(5)]],
  ]),
  guard('atanh of a clip', [
    ['Clip', ['x', -1 + 1e-6, 1 - 1e-6]],
    ['Atanh', ['s1']],
    ['MatMul', ['s2', w(5)]],
  ]),
  guard('a comparison with 1e-9 added', [
    ['Abs', ['x']],
    ['Add', ['s1', 1e-9]],
    ['Greater', ['s2', 0]],
    ['Where', ['s3', 's1', 1]],
    ['MatMul', ['s4', w(5)]],
  ]),
  guard('a weight of 1e6 before a logarithm', [
    ['Abs', ['x']],
    ['Mul', ['s1', 1e6]],
    ['Add', ['s2', 1]],
    ['Log', ['s3']],
    ['MatMul', ['s4', w(6)]],
  ]),
  guard('a weight of 1e6 and its inverse', [
    ['Mul', ['x', 1e6]],
    ['Add', ['s1', 3]],
    ['Mul', ['s2', 1e-6]],
    ['MatMul', ['s3', w(6)]],
  ]),
  guard('a weight of 2e5 before a product', [
    ['Mul', ['x', 2e5]],
    ['MatMul', ['s1', w(6, 1e-5)]],
  ]),
  guard('1e-8 and its inverse', [
    ['Mul', ['x', 1e-8]],
    ['Mul', ['s1', 1e8]],
    ['MatMul', ['s2', w(6)]],
  ]),
  guard('a sum of 1e6', [
    ['Add', ['x', 1e6]],
    ['Div', ['s1', 1e6]],
    ['MatMul', ['s2', w(6)]],
  ]),
  guard('a softplus by hand', [
    ['MatMul', ['x', w(4, 1)]],
    ['Exp', ['s1']],
    ['Add', ['s2', 1]],
    ['Log', ['s3']],
    ['MatMul', ['s4', w(6)]],
  ]),
  guard('a division by 1e-6', [
    ['Div', ['x', 1e-6]],
    ['Tanh', ['s1']],
    ['MatMul', ['s2', w(6)]],
  ]),
  guard(
    'log of squares through a filter bank',
    [
      ['MatMul', ['x', w(7)]],
      ['Mul', ['s1', 's1']],
      ['MatMul', ['s2', positive(8)]],
      ['Max', ['s3', 1e-10]],
      ['Log', ['s4']],
      ['MatMul', ['s5', w(2)]],
    ],
    wide,
  ),
  guard(
    'log of a mean square',
    [
      ['MatMul', ['x', w(7)]],
      ['Mul', ['s1', 's1']],
      ['ReduceMean', ['s2'], lastAxis],
      ['Add', ['s3', 1e-10]],
      ['Log', ['s4']],
    ],
    wide,
  ),
  guard(
    'magnitude of two parts',
    [...twoSquares, ['Add', ['s3', 's4']], ['Sqrt', ['s5']], ['MatMul', ['s6', w(2)]]],
    wide,
  ),
  guard(
    'log of two parts',
    [...twoSquares, ['Add', ['s3', 's4']], ['Add', ['s5', 1e-12]], ['Log', ['s6']], ['MatMul', ['s7', w(2)]]],
    wide,
  ),
  guard(
    'cosine of two products',
    [
      ['MatMul', ['x', w(7)]],
      ['MatMul', ['x', w(8)]],
      ['Mul', ['s1', 's2']],
      ['ReduceSum', ['s3', ...lastSum], keep],
      ['ReduceL2', ['s1'], lastAxis],
      ['ReduceL2', ['s2'], lastAxis],
      ['Mul', ['s5', 's6']],
      ['Max', ['s7', 1e-8]],
      ['Div', ['s4', 's8']],
    ],
    wide,
  ),
  guard(
    'correlation, divided by the root of a product',
    [
      ...twoSquares,
      ['Mul', ['s1', 's2']],
      ['ReduceMean', ['s3'], lastAxis],
      ['ReduceMean', ['s4'], lastAxis],
      ['ReduceMean', ['s5'], lastAxis],
      ['Mul', ['s6', 's7']],
      ['Add', ['s9', 1e-30]],
      ['Sqrt', ['s10']],
      ['Div', ['s8', 's11']],
    ],
    wide,
  ),
  guard(
    'power of -0.5 of a mean square',
    [
      ['MatMul', ['x', w(7)]],
      ['Mul', ['s1', 's1']],
      ['ReduceMean', ['s2'], lastAxis],
      ['Add', ['s3', 1e-10]],
      ['Pow', ['s4', -0.5]],
      ['Mul', ['s1', 's5']],
      ['MatMul', ['s6', w(3)]],
    ],
    wide,
  ),
  guard(
    'reciprocal of a power of 0.5',
    [
      ['MatMul', ['x', w(7)]],
      ['ReduceSumSquare', ['s1'], lastAxis],
      ['Add', ['s2', 1e-12]],
      ['Pow', ['s3', 0.5]],
      ['Reciprocal', ['s4']],
      ['Mul', ['s1', 's5']],
      ['MatMul', ['s6', w(3)]],
    ],
    wide,
  ),
  guard(
    'covariance through a filter, divided by the root of variances',
    [
      ...twoSquares,
      ['Mul', ['s1', 's2']],
      ['MatMul', ['s5', positive(3)]],
      ['MatMul', ['s3', positive(3)]],
      ['MatMul', ['s4', positive(3)]],
      ['Mul', ['s7', 's8']],
      ['Add', ['s9', 1e-30]],
      ['Sqrt', ['s10']],
      ['Div', ['s6', 's11']],
    ],
    wide,
  ),
  guard(
    'norm by Einsum',
    [
      ['MatMul', ['x', w(7)]],
      ['Einsum', ['s1', 's1'], { equation: a.string('bd,bd->b') }],
      ['Unsqueeze', ['s2', ...lastSum]],
      ['Add', ['s3', 1e-12]],
      ['Sqrt', ['s4']],
      ['Div', ['s1', 's5']],
      ['MatMul', ['s6', w(3)]],
    ],
    wide,
  ),
  guard(
    'attention without a softmax',
    [
      ['MatMul', ['x', w(7)]],
      ['Relu', ['s1']],
      ['MatMul', ['x', w(8)]],
      ['Relu', ['s3']],
      ['Transpose', ['s4']],
      ['MatMul', ['s5', 'x']],
      ['MatMul', ['s2', 's6']],
      ['ReduceSum', ['s5', ...lastSum], keep],
      ['MatMul', ['s2', 's8']],
      ['Add', ['s9', 1e-10]],
      ['Div', ['s7', 's10']],
    ],
    wide,
  ),
  guard(
    'means weighted by inverse squares',
    [
      ['Abs', ['x']],
      ['MatMul', ['s1', positive(7)]],
      ['Mul', ['s2', 's2']],
      ['Add', ['s3', 1e-12]],
      ['Reciprocal', ['s4']],
      ['Mul', ['s5', 'x']],
      ['ReduceSum', ['s6', ...lastSum], keep],
      ['ReduceSum', ['s5', ...lastSum], keep],
      ['Div', ['s7', 's8']],
    ],
    wide,
  ),
  guard(
    'covariance divided by variance, both through a filter',
    [
      ...twoSquares,
      ['Mul', ['s1', 's2']],
      ['MatMul', ['s5', positive(3)]],
      ['MatMul', ['s3', positive(3)]],
      ['Add', ['s7', 1e-10]],
      ['Div', ['s6', 's8']],
      ['MatMul', ['s9', w(2)]],
    ],
    wide,
  ),
  {
    name: 'overlaps of boxes',
    graph: chain({ from: ['float32', [8, 2]], size: ['float32', [8, 2]] }, [
      ['Add', ['from', 'size']],
      ['Unsqueeze', ['from', integers([1], [1])]],
      ['Unsqueeze', ['s1', integers([1], [1])]],
      ['Max', ['from', 's2']],
      ['Min', ['s1', 's3']],
      ['Sub', ['s5', 's4']],
      ['Clip', ['s6', 0]],
      ['Gather', ['s7', integers([], [0])], { axis: a.int(2) }],
      ['Gather', ['s7', integers([], [1])], { axis: a.int(2) }],
      ['Mul', ['s8', 's9']],
      ['Gather', ['size', integers([], [0])], { axis: a.int(1) }],
      ['Gather', ['size', integers([], [1])], { axis: a.int(1) }],
      ['Mul', ['s11', 's12']],
      ['Unsqueeze', ['s13', integers([1], [1])]],
      ['Add', ['s13', 's14']],
      ['Sub', ['s15', 's10']],
      ['Add', ['s16', 1e-7]],
      ['Div', ['s10', 's17']],
    ]),
    feeds: [1, 1e-3].map((scale) => ({
      from: floats(
        [8, 2],
        Array.from({ length: 16 }, (_, i) => scale * 16 * (i % 5)),
      ),
      size: floats(
        [8, 2],
        Array.from({ length: 16 }, (_, i) => scale * (800 + 32 * i)),
      ),
    })),
  },
  scheduled('division by the root of 1 minus its products', [
    ['Gather', [schedule(0.9992), 't']],
    ['Sub', [1, 's1']],
    ['Sqrt', ['s2']],
    ['Div', ['x', 's3']],
    ['MatMul', ['s4', w(3)]],
  ]),
  scheduled('product with the root of 1 minus its products, from 1 on', [
    ['Gather', [schedule(1), 't']],
    ['Sub', [1, 's1']],
    ['Sqrt', ['s2']],
    ['Mul', ['x', 's3']],
    ['MatMul', ['s4', w(3)]],
  ]),
  scheduled('1 minus the quotient of two of its products', [
    ['Gather', [schedule(0.9992), 't']],
    ['Sub', ['t', integers([], [1])]],
    ['Gather', [schedule(0.9992), 's2']],
    ['Div', ['s1', 's3']],
    ['Neg', ['s4']],
    ['Add', ['s5', 1]],
    ['Log', ['s6']],
    ['Mul', ['x', 's7']],
  ]),
  masked('times the lowest float', 'float32', asFloat, () => multiplied(FMIN)),
  masked('times -1e9', 'float32', asFloat, () => multiplied(-1e9)),
  { ...masked('times -1e5', 'float32', asFloat, () => multiplied(-1e5)), bound: 1 },
  masked('integers times -1e9', 'int64', integers([TOKENS, TOKENS], seen), () =>
    multiplied(-1e9, [['Cast', ['mask'], { to: a.int(1) }]]),
  ),
  masked('chosen as the lowest float', 'bool', asBool, (scored) => [
    ['Where', ['mask', scored, FMIN]],
    ['Softmax', ['s2']],
    ['MatMul', ['s3', 'v']],
  ]),
  masked('two, of -1e9 each', 'float32', asFloat, (scored) => [
    ['Sub', [1, 'mask']],
    ['Mul', ['s2', -1e9]],
    ['Add', [scored, 's3']],
    ['Add', ['s4', 's3']],
    ['Softmax', ['s5']],
    ['MatMul', ['s6', 'v']],
  ]),
  masked('given as the lowest float', 'float32', additive(FMIN), (scored) => [
    ['Add', [scored, 'mask']],
    ['Softmax', ['s2']],
    ['MatMul', ['s3', 'v']],
  ]),
  masked('given as -1e9, beside one that is stored', 'float32', additive(-1e9), (scored) => [
    ['Add', [scored, additive(-1e9)]],
    ['Add', ['s2', 'mask']],
    ['Softmax', ['s3']],
    ['MatMul', ['s4', 'v']],
  ]),
  masked('given as -1e9 to a softmax by hand', 'float32', additive(-1e9), (scored) => [
    ['Add', [scored, 'mask']],
    ...byHand('s2', 3),
  ]),
  masked('chosen as the lowest float for a softmax by hand', 'bool', asBool, (scored) => [
    ['Where', ['mask', scored, FMIN]],
    ...byHand('s2', 3),
  ]),
  {
    name: 'mask: given as -1e9 to Attention',
    graph: chain({ x: ['float32', [1, HEADS, TOKENS, 16]], mask: ['float32', [TOKENS, TOKENS]] }, [
      ['MatMul', ['x', noise([16, 16], 0.3, 3)]],
      ['Attention', ['s1', 'x', 'x', 'mask']],
    ]),
    feeds: [{ x: noise([1, HEADS, TOKENS, 16], 0.2, 11), mask: additive(-1e9) }],
    opset: 23,
  },
  {
    name: 'boxes moved by the classes that are chosen, times a step that is computed',
    graph: chain({ boxes: ['float32', [1, 6, 4]], scores: ['float32', [1, 6, 80]] }, [
      ['ArgMax', ['scores'], { axis: a.int(2) }],
      ['Cast', ['s1'], { to: a.int(1) }],
      ['ReduceMax', ['boxes'], { keepdims: a.int(0) }],
      ['Add', ['s3', 1]],
      ['Mul', ['s2', 's4']],
      ['Add', ['boxes', 's5']],
    ]),
    feeds: [
      {
        boxes: largeBoxes,
        scores: floats(
          [1, 6, 80],
          Array.from({ length: 480 }, (_, i) => ((i * 37) % 480) / 480),
        ),
      },
    ],
  },
  {
    name: 'boxes moved by classes that are given, times a step that is computed',
    graph: chain({ boxes: ['float32', [1, 6, 4]], classes: ['int64', [1, 6, 1]] }, [
      ['Cast', ['classes'], { to: a.int(1) }],
      ['ReduceMax', ['boxes'], { keepdims: a.int(0) }],
      ['Add', ['s2', 1]],
      ['Mul', ['s3', 's1']],
      ['Add', ['boxes', 's4']],
    ]),
    feeds: [{ boxes: largeBoxes, classes: integers([1, 6, 1], [79, 79, 60, 60, 3, 79]) }],
  },
  {
    name: 'boxes moved by their classes',
    graph: chain(
      { boxes: ['float32', [1, 6, 4]], scores: ['float32', [1, 1, 6]], classes: ['int64', [1, 6, 1]] },
      [
        ['Cast', ['classes'], { to: a.int(1) }],
        ['Mul', ['s1', 7680]],
        ['Add', ['boxes', 's2']],
        ['NonMaxSuppression', ['s3', 'scores', integers([1], [10]), floats([1], [0.5]), floats([1], [0.1])]],
        ['Cast', ['s4'], { to: a.int(1) }],
      ],
    ),
    feeds: [{ boxes, scores: boxScores, classes: integers([1, 6, 1], [79, 79, 60, 60, 3, 79]) }],
  },
  {
    name: 'sums of products of integers',
    graph: chain({ x: ['float32', [4, 768]] }, [
      ['QuantizeLinear', ['x', 0.01, { dtype: 'uint8', shape: [], bytes: Uint8Array.of(128) }]],
      [
        'MatMulInteger',
        [
          's1',
          { dtype: 'int8', shape: [768, 32], bytes: new Uint8Array(768 * 32).fill(100) },
          { dtype: 'uint8', shape: [], bytes: Uint8Array.of(128) },
        ],
      ],
      ['Cast', ['s2'], { to: a.int(1) }],
      ['Mul', ['s3', 1e-4]],
      ['Add', ['s4', noise([32], 0.1, 3)]],
    ]),
    feeds: [
      {
        x: floats(
          [4, 768],
          Array.from({ length: 4 * 768 }, () => 0.5),
        ),
      },
    ],
  },
  {
    name: 'integers of 32 bits scaled to 1',
    graph: chain({ x: ['int32', [ROWS, WIDTH]] }, [
      ['Cast', ['x'], { to: a.int(1) }],
      ['Div', ['s1', 2 ** 31]],
      ['MatMul', ['s2', w(6)]],
    ]),
    feeds: [
      {
        x: {
          dtype: 'int32',
          shape: [ROWS, WIDTH],
          bytes: new Uint8Array(
            Int32Array.from({ length: ROWS * WIDTH }, (_, i) => (i * 2654435761) | 0).buffer,
          ),
        },
      },
    ],
  },
];
