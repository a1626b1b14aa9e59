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

const boxes = floats(
  [1, 6, 4],
  [
    10, 10, 50, 60, 12, 11, 52, 61, 300, 200, 360, 280, 301, 202, 362, 281, 10, 10, 50, 60, 500, 400, 560,
    470,
  ],
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
