import { describe, expect, it } from 'vitest';
import {
  type AttributeValue,
  attribute,
  buildModel,
  type Dimension,
  GraphBuilder,
  type ModelSpec,
} from '../../../../src/formats/onnx/index.js';
import { costFacts } from '../../../../src/formats/onnx/inspect.js';
import { inferShapes } from '../../../../src/formats/onnx/shapes/infer.js';
import { sizeText } from '../../../../src/formats/onnx/shapes/size.js';
import { float32, int64 } from '../support/models.js';

type Shape = readonly Dimension[] | null;
const { int, ints, string, body } = attribute;

/** The graph's inferences: shapes by value, as text, and the cost. */
function inferred(describe: (graph: GraphBuilder) => void, spec: ModelSpec = {}, sizes = {}) {
  const graph = new GraphBuilder('test');
  describe(graph);
  const model = buildModel(graph, spec);
  const found = inferShapes(model, new Map(), new Map(Object.entries(sizes)));
  const shapes = new Map<string, string | undefined>();
  for (const [node, figures] of found.nodes)
    for (const [index, name] of node.output.entries())
      shapes.set(name, figures.shapes[index]?.map((size) => sizeText(size ?? 0)).join(' '));
  const of = (...names: readonly string[]) => names.map((name) => shapes.get(name));
  return { shapes: Object.fromEntries(shapes), of, cost: costFacts(found) };
}

/** The shapes of one node's outputs. Operands with numbers are weights; others are inputs of that shape. */
function shapesOfNode(
  op: string,
  operands: readonly (Shape | { readonly weight: readonly number[] } | '')[],
  attributes: Readonly<Record<string, AttributeValue>> = {},
  outputs = 1,
  opset = 20,
) {
  const names = Array.from({ length: outputs }, (_, index) => `y${index}`);
  const { of } = inferred(
    (graph) => {
      const inputs = operands.map((operand, index) => {
        if (operand === '') return '';
        if (operand === null || Array.isArray(operand))
          return graph.input(`x${index}`, 'float32', operand as Shape);
        const { weight } = operand as { weight: readonly number[] };
        return graph.initializer(`w${index}`, int64([weight.length], weight));
      });
      graph.node(op, { inputs, outputs: names, attributes });
    },
    { opset },
  );
  return of(...names);
}

const list = (...weight: readonly number[]) => ({ weight });

describe('the shapes of one node', () => {
  it.each<
    [
      string,
      readonly (Shape | { weight: readonly number[] } | '')[],
      Record<string, AttributeValue>,
      string | undefined,
    ]
  >([
    ['Relu', [['n', 3]], {}, 'n 3'],
    [
      'Add',
      [
        ['n', 1, 5],
        [4, 1],
      ],
      {},
      'n 4 5',
    ],
    ['Add', [['n'], ['m']], {}, 'max(n, m)'],
    ['Add', [[2], [3]], {}, undefined],
    [
      'MatMul',
      [
        ['n', 8, 't', 16],
        [16, 4],
      ],
      {},
      'n 8 t 4',
    ],
    ['MatMul', [[3], [3]], {}, ''],
    [
      'MatMul',
      [
        [2, 3],
        [4, 5],
      ],
      {},
      undefined,
    ],
    [
      'Gemm',
      [
        [8, 'n'],
        [4, 8],
      ],
      { transA: int(1), transB: int(1) },
      'n 4',
    ],
    [
      'Einsum',
      [
        ['b', 'i', 'd'],
        ['b', 'j', 'd'],
      ],
      { equation: string('bid,bjd->bij') },
      'b i j',
    ],
    [
      'Conv',
      [
        ['n', 3, 'h', 224],
        [64, 3, 7, 7],
      ],
      { strides: ints([2, 2]), pads: ints([3, 3, 3, 3]) },
      'n 64 ((h + 1)//2) 112',
    ],
    [
      'Conv',
      [
        [1, 3, 10],
        [4, 3, 3],
      ],
      { auto_pad: string('SAME_UPPER'), strides: ints([2]) },
      '1 4 5',
    ],
    [
      'Conv',
      [
        [1, 3, 2],
        [4, 3, 3],
      ],
      {},
      undefined,
    ],
    [
      'ConvTranspose',
      [
        ['n', 8, 'h'],
        [8, 4, 4],
      ],
      { strides: ints([2]), pads: ints([1, 1]) },
      'n 4 2*h',
    ],
    ['MaxPool', [[1, 2, 5]], { kernel_shape: ints([2]), strides: ints([2]), ceil_mode: int(1) }, '1 2 3'],
    ['GlobalAveragePool', [['n', 8, 7, 7]], {}, 'n 8 1 1'],
    ['ReduceMean', [['n', 4, 5], list(-1)], { keepdims: int(0) }, 'n 4'],
    ['ReduceSum', [['n', 4]], {}, '1 1'],
    ['ArgMax', [['n', 4]], { axis: int(1) }, 'n 1'],
    ['Reshape', [['n', 't', 64], list(0, -1, 8, 8)], {}, 'n t 8 8'],
    ['Reshape', [['n', 6], list(-1, 4)], {}, '(n//2) + n 4'],
    ['Reshape', [[3, 5], list(-1, 4)], {}, undefined],
    ['Flatten', [['n', 3, 4]], {}, 'n 12'],
    ['Squeeze', [['n', 1, 4], list(1)], {}, 'n 4'],
    ['Unsqueeze', [['n'], list(0, 2)], {}, '1 n 1'],
    ['Transpose', [['n', 3, 4]], { perm: ints([2, 0, 1]) }, '4 n 3'],
    [
      'Concat',
      [
        ['n', 3],
        ['n', 't'],
      ],
      { axis: int(1) },
      'n t + 3',
    ],
    ['Slice', [['n', 't'], list(1), list(2 ** 40), list(1)], {}, 'n t - 1'],
    ['Slice', [['n', 't'], list(-1), list(2 ** 40), list(1)], {}, 'n 1'],
    ['Slice', [['n', 9], list(7), list(0), list(1), list(-2)], {}, 'n 4'],
    [
      'Gather',
      [
        ['n', 8],
        [2, 'k'],
      ],
      { axis: int(1) },
      'n 2 k',
    ],
    [
      'GatherND',
      [
        ['n', 8, 4],
        ['k', 2],
      ],
      {},
      'k 4',
    ],
    ['Expand', [['n', 1], list(1, 5)], {}, 'n 5'],
    ['Tile', [['n', 2], list(1, 3)], {}, 'n 6'],
    ['Pad', [['n', 2], list(0, 1, 0, 2)], {}, 'n 5'],
    ['TopK', [['n', 1000], list(300)], {}, 'n 300'],
    ['NonZero', [['n', 2]], {}, '2 y0[1]'],
    [
      'NonMaxSuppression',
      [
        [1, 9, 4],
        [1, 2, 9],
      ],
      {},
      'y0[0] 3',
    ],
    ['DepthToSpace', [['n', 16, 'h', 4]], { blocksize: int(2) }, 'n 4 2*h 8'],
    ['Resize', [['n', 8, 'h', 7], '', '', list(1, 8, 20, 14)], {}, '1 8 20 14'],
    ['STFT', [['n', 't', 1], list(160), '', list(400)], {}, 'n ((t + 80)//160) - 2 201 2'],
    ['Softmax', [null], {}, undefined],
  ])('%s of %j', (op, operands, attributes, expected) => {
    expect(shapesOfNode(op, operands, attributes)).toEqual([expected]);
  });

  it('of each output', () => {
    expect(shapesOfNode('Split', [['n', 10]], { axis: int(1), num_outputs: int(3) }, 3)).toEqual([
      'n 4',
      'n 4',
      'n 2',
    ]);
    const lstm = { hidden_size: int(5), direction: string('bidirectional') };
    expect(
      shapesOfNode(
        'LSTM',
        [
          ['t', 'n', 3],
          [2, 20, 3],
          [2, 20, 5],
        ],
        lstm,
        3,
      ),
    ).toEqual(['t 2 n 5', '2 n 5', '2 n 5']);
    expect(shapesOfNode('LayerNormalization', [['n', 't', 8], [8]], {}, 3)).toEqual([
      'n t 8',
      'n t 1',
      'n t 1',
    ]);
  });

  it('as older opsets define it', () => {
    expect(
      shapesOfNode('Slice', [['n', 9]], { starts: ints([1]), ends: ints([5]), axes: ints([1]) }, 1, 9),
    ).toEqual(['n 4']);
    expect(shapesOfNode('Squeeze', [['n', 1]], { axes: ints([1]) }, 1, 11)).toEqual(['n']);
    expect(
      shapesOfNode('Upsample', [['n', 3, 'h', 4]], { scales: attribute.floats([1, 1, 2, 2]) }, 1, 7),
    ).toEqual(['n 3 2*h 8']);
  });
});

/** What PyTorch writes for `x.view(x.shape[0], -1, 4)` and `F.interpolate(x, scale_factor=2)`. */
function viewOfShape(graph: GraphBuilder): void {
  graph.input('x', 'float32', ['batch', 'time', 8]);
  graph.initializer('zero', int64([], [0]));
  graph.initializer('axis', int64([1], [0]));
  graph.initializer('rest', int64([2], [-1, 4]));
  graph.node('Shape', { inputs: ['x'], outputs: ['shape'] });
  graph.node('Gather', { inputs: ['shape', 'zero'], outputs: ['size'] });
  graph.node('Unsqueeze', { inputs: ['size', 'axis'], outputs: ['sizes'] });
  graph.node('Concat', { inputs: ['sizes', 'rest'], outputs: ['target'], attributes: { axis: int(0) } });
  graph.node('Reshape', { inputs: ['x', 'target'], outputs: ['y'] });
}

describe('shapes through a graph', () => {
  it('follow sizes that the graph computes', () => {
    expect(inferred(viewOfShape).shapes).toMatchObject({ y: 'batch 2*time 4' });
    expect(inferred(viewOfShape, {}, { batch: 2, time: 6 }).shapes).toMatchObject({ y: '2 12 4' });
  });

  it('follow sizes that are computed in floats', () => {
    const { of } = inferred((graph) => {
      graph.input('x', 'float32', ['n', 3, 'h']);
      graph.initializer('two', float32([1], [2]));
      graph.initializer('from', int64([1], [2]));
      graph.initializer('to', int64([1], [3]));
      graph.node('Shape', { inputs: ['x'], outputs: ['shape'] });
      graph.node('Slice', { inputs: ['shape', 'from', 'to'], outputs: ['h'] });
      graph.node('Cast', { inputs: ['h'], outputs: ['float'], attributes: { to: int(1) } });
      graph.node('Mul', { inputs: ['float', 'two'], outputs: ['double'] });
      graph.node('Floor', { inputs: ['double'], outputs: ['floor'] });
      graph.node('Cast', { inputs: ['floor'], outputs: ['whole'], attributes: { to: int(7) } });
      graph.node('ConstantOfShape', { inputs: ['whole'], outputs: ['y'] });
    });
    expect(of('y')).toEqual(['2*h']);
  });

  it('name the sizes that data decide, and use what the model declares of them', () => {
    const nonZero = (declared: Shape) =>
      inferred((graph) => {
        graph.input('x', 'float32', ['n']);
        graph.node('NonZero', { inputs: ['x'], outputs: ['found'] });
        graph.node('Transpose', { inputs: ['found'], outputs: ['rows'] });
        graph.value('found', 'int64', declared);
      }).shapes;
    expect(nonZero(null)).toEqual({ found: '1 found[1]', rows: 'found[1] 1' });
    expect(nonZero([1, 'count'])).toEqual({ found: '1 count', rows: 'count 1' });
  });

  it('name dimensions without a symbol by their place', () => {
    const { of, cost } = inferred((graph) => {
      graph.input('x', 'float32', [null, '?', 3]);
      graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
    });
    expect([...of('y'), cost.openSizes]).toEqual(['x[0] x[1] 3', ['x[0]', 'x[1]']]);
  });

  it('end at operators without a rule, which are counted and named', () => {
    const { shapes, cost } = inferred((graph) => {
      graph.input('x', 'float32', ['n', 4]);
      graph.input('rankless', 'float32', null);
      for (const name of ['a', 'b'])
        graph.node('Plugin', { name, domain: 'acme', inputs: ['x'], outputs: [name] });
      graph.node('Sigmoid', { inputs: ['a'], outputs: ['c'] });
      graph.node('Plugin', { name: 'known', domain: 'acme', inputs: ['x'], outputs: ['d'] });
      graph.value('d', 'float32', ['n', 2]);
      graph.node('Sigmoid', { inputs: ['d'], outputs: ['e'] });
    });
    expect(shapes).toEqual({ a: undefined, b: undefined, c: undefined, d: 'n 2', e: 'n 2' });
    expect(cost).toMatchObject({ flops: '2*n', uncountedNodes: 4, unmeasuredTensors: 3 });
    expect(cost.gaps).toEqual([
      { reason: 'no-rank', op: 'input', nodes: 1, first: 'rankless' },
      { reason: 'no-rule', op: 'acme::Plugin', nodes: 3, first: 'Plugin "a"' },
    ]);
  });

  it("pass through the model's own functions, with the attributes of each call", () => {
    const inside = new GraphBuilder('inside');
    inside.node('Concat', {
      inputs: ['a', 'a'],
      outputs: ['both'],
      attributes: { axis: () => ({ refAttrName: 'where', type: 2 }) },
    });
    const { shapes } = inferred(
      (graph) => {
        graph.input('x', 'float32', ['n', 4]);
        for (const where of [0, 1])
          graph.node('Twice', {
            domain: 'acme',
            inputs: ['x'],
            outputs: [`y${where}`],
            attributes: { where: int(where) },
          });
      },
      {
        opsets: { acme: 1 },
        functions: [
          {
            domain: 'acme',
            name: 'Twice',
            inputs: ['a'],
            outputs: ['both'],
            attributes: ['where'],
            nodes: inside,
            opsets: { '': 20 },
          },
        ],
      },
    );
    expect(shapes).toMatchObject({ y0: '2*n 4', y1: 'n 8' });
  });

  it('do not end where functions call themselves', () => {
    const inside = new GraphBuilder('inside');
    for (const output of ['b', 'c'])
      inside.node('Self', { domain: 'acme', inputs: ['a'], outputs: [output] });
    const { cost } = inferred(
      (graph) => {
        graph.input('x', 'float32', ['n']);
        graph.node('Self', { domain: 'acme', inputs: ['x'], outputs: ['y'] });
      },
      {
        functions: [
          { domain: 'acme', name: 'Self', inputs: ['a'], outputs: ['c'], nodes: inside, opsets: { '': 20 } },
        ],
      },
    );
    expect(cost.gaps).toMatchObject([{ reason: 'undetermined', op: 'acme::Self' }]);
  });
});

/** Files of a few hundred bytes whose values would take more memory than there is. */
describe('sizes beyond any memory end', () => {
  const most = 2 ** 31 - 1;
  const weight = (graph: GraphBuilder, name: string, dims: readonly number[], values: readonly number[]) =>
    graph.initializer(name, int64(dims, values));

  it.each<[string, (graph: GraphBuilder) => void, string | undefined, number?]>([
    [
      'beside an axis of size 0',
      (graph) => {
        weight(graph, 'empty', [most, 0], []);
        weight(graph, 'first', [1], [0]);
        graph.node('Gather', { inputs: ['empty', 'first'], outputs: ['y'] });
      },
      '1 0',
    ],
    [
      'as the product of axes before one of size 0',
      (graph) => {
        weight(graph, 'empty', [1, 200, 200, 200, 200, 0], []);
        graph.node('Transpose', {
          inputs: ['empty'],
          outputs: ['y'],
          attributes: { perm: ints([0, 1, 2, 3, 4, 5]) },
        });
      },
      '1 200 200 200 200 0',
    ],
    [
      'in the second part of a Split',
      (graph) => {
        weight(graph, 'data', [4], [1, 2, 3, 4]);
        weight(graph, 'sizes', [2], [1, most]);
        graph.node('Split', { inputs: ['data', 'sizes'], outputs: ['x', 'y'] });
      },
      String(most),
    ],
    [
      'in operands that opset 6 does not stretch the result to',
      (graph) => {
        weight(graph, 'one', [1], [1]);
        const inputs = [0, 1, 2, 3].map((axis) => {
          weight(graph, `along${axis}`, [256, ...new Array(axis).fill(1)], new Array(256).fill(1));
          return `along${axis}`;
        });
        graph.node('Max', { inputs: ['one', ...inputs], outputs: ['y'] });
      },
      '1',
      6,
    ],
    [
      'where every node doubles the number of axes',
      (graph) => {
        weight(graph, 'x0', [1, 1], [0]);
        for (let at = 0; at < 40; at++)
          graph.node('Gather', { inputs: [`x${at}`, `x${at}`], outputs: [`x${at + 1}`] });
        graph.node('Relu', { inputs: ['x40'], outputs: ['y'] });
      },
      undefined,
    ],
    [
      'where every node squares a size',
      (graph) => {
        graph.input('x', 'float32', ['n']);
        graph.node('Shape', { inputs: ['x'], outputs: ['x0'] });
        for (let at = 0; at < 40; at++)
          graph.node('Mul', { inputs: [`x${at}`, `x${at}`], outputs: [`x${at + 1}`] });
        graph.node('ConstantOfShape', { inputs: ['x40'], outputs: ['y'] });
      },
      'y[0]',
    ],
  ])('%s', (_, describe, expected, opset = 20) => {
    expect(inferred(describe, { opset }).of('y')).toEqual([expected]);
  });
});

describe('control flow', () => {
  const branch = (name: string, op: string, operands: readonly string[]) => {
    const graph = new GraphBuilder(name);
    graph.node(op, {
      inputs: operands,
      outputs: [name],
      attributes: op === 'Concat' ? { axis: int(0) } : {},
    });
    graph.output(name, 'float32', null);
    return graph;
  };

  it('If has what its branches have in common, and the cost of the costlier', () => {
    const { of, cost } = inferred((graph) => {
      graph.input('x', 'float32', ['n', 4]);
      graph.input('flag', 'bool', []);
      const attributes = {
        then_branch: body(branch('then', 'Sigmoid', ['x'])),
        else_branch: body(branch('else', 'Concat', ['x', 'x'])),
      };
      graph.node('If', { inputs: ['flag'], outputs: ['y'], attributes });
    });
    expect([...of('y'), cost.flops]).toEqual(['y[0] 4', '4*n']);
  });

  it('If is the branch that a constant chooses, with what it costs', () => {
    const { of, cost } = inferred((graph) => {
      graph.input('x', 'float32', ['n', 4]);
      graph.initializer('flag', { dtype: 'bool', shape: [], bytes: Uint8Array.of(0) });
      const attributes = {
        then_branch: body(branch('then', 'Sigmoid', ['x'])),
        else_branch: body(branch('else', 'Concat', ['x', 'x'])),
      };
      graph.node('If', { inputs: ['flag'], outputs: ['y'], attributes });
      graph.node('Exp', { inputs: ['y'], outputs: ['z'] });
    });
    expect([...of('y', 'z'), cost.flops]).toEqual(['2*n 4', '2*n 4', '8*n']);
  });

  it('Loop keeps the sizes that a turn keeps, and counts its turns where it can', () => {
    const turns = new GraphBuilder('turns');
    turns.input('i', 'int64', []);
    turns.input('go', 'bool', []);
    turns.input('grown', 'float32', null);
    turns.input('kept', 'float32', null);
    turns.node('Identity', { inputs: ['go'], outputs: ['goes'] });
    turns.node('Concat', { inputs: ['grown', 'kept'], outputs: ['more'], attributes: { axis: int(0) } });
    turns.node('Exp', { inputs: ['kept'], outputs: ['same'] });
    for (const name of ['goes', 'more', 'same', 'same']) turns.output(name, 'float32', null);
    const { of, cost } = inferred((graph) => {
      graph.input('x', 'float32', ['n', 4]);
      graph.initializer('count', int64([], [6]));
      graph.initializer('true', { dtype: 'bool', shape: [], bytes: Uint8Array.of(1) });
      graph.node('Loop', {
        inputs: ['count', 'true', 'x', 'x'],
        outputs: ['a', 'b', 'c'],
        attributes: { body: body(turns) },
      });
    });
    expect(of('a', 'b', 'c')).toEqual(['a[0] 4', 'n 4', '6 n 4']);
    expect(cost.flops).toBe('24*n');
  });

  it('Scan runs once for each element of the scanned axis', () => {
    const step = new GraphBuilder('step');
    step.input('state', 'float32', null);
    step.input('element', 'float32', null);
    step.node('Add', { inputs: ['state', 'element'], outputs: ['next'] });
    for (const name of ['next', 'next']) step.output(name, 'float32', null);
    const { of, cost } = inferred((graph) => {
      graph.input('start', 'float32', [2]);
      graph.input('x', 'float32', ['t', 2]);
      const attributes = { body: body(step), num_scan_inputs: int(1) };
      graph.node('Scan', { inputs: ['start', 'x'], outputs: ['end', 'all'], attributes });
    });
    expect([...of('end', 'all'), cost.flops]).toEqual(['2', 't 2', '2*t']);
  });
});

describe('the cost of a run', () => {
  it('counts a multiply-add as two, by operator, and nothing that weights alone decide', () => {
    const { cost } = inferred((graph) => {
      graph.input('x', 'float32', ['n', 3, 8, 8]);
      graph.initializer('w', float32([4, 3, 1, 1], new Array(12).fill(1)));
      graph.node('Neg', { inputs: ['w'], outputs: ['v'] });
      graph.node('Conv', { inputs: ['x', 'v'], outputs: ['c'] });
      graph.node('Relu', { inputs: ['c'], outputs: ['r'] });
      graph.node('Transpose', { inputs: ['r'], outputs: ['t'] });
      graph.output('t', 'float32', null);
    });
    expect(cost).toMatchObject({
      flops: '1792*n',
      flopsByOp: { Conv: '1536*n', Relu: '256*n' },
      openSizes: ['n'],
      uncountedNodes: 0,
    });
  });

  it.each<[string, readonly (readonly number[])[], Record<string, AttributeValue>, number]>([
    [
      'MatMul',
      [
        [2, 3, 4],
        [4, 5],
      ],
      {},
      240,
    ],
    ['Gemm', [[3, 4], [4, 5], [5]], {}, 135],
    ['Conv', [[1, 4, 6], [8, 2, 3], [8]], { group: int(2) }, 4 * 8 * 13],
    [
      'ConvTranspose',
      [
        [1, 4, 6],
        [4, 2, 3],
      ],
      {},
      2 * 24 * 6,
    ],
    [
      'LSTM',
      [
        [7, 2, 3],
        [1, 20, 3],
        [1, 20, 5],
      ],
      { hidden_size: int(5) },
      7 * 2 * 4 * 5 * 8 * 2,
    ],
    [
      'Einsum',
      [
        [2, 3, 4],
        [2, 5, 4],
      ],
      { equation: string('bid,bjd->bij') },
      240,
    ],
    ['Softmax', [[2, 3]], {}, 30],
    ['LayerNormalization', [[2, 3], [3]], {}, 48],
    ['MaxPool', [[1, 2, 6]], { kernel_shape: ints([3]) }, 24],
    ['ReduceMean', [[2, 3]], {}, 6],
    ['Max', [[2, 3], [3], [3]], {}, 12],
    ['Where', [[2], [2], [2]], {}, 0],
  ])('%s of %j', (op, shapes, attributes, flops) => {
    const { cost } = inferred(
      (graph) => {
        const inputs = shapes.map((shape, index) => graph.input(`x${index}`, 'float32', shape));
        graph.node(op, { inputs, outputs: ['y'], attributes });
      },
      { opset: 20 },
    );
    expect(cost).toMatchObject({ flops, uncountedNodes: 0 });
  });

  /** x → a → b → (a + b) → c → y; all of [n, 8] but c, which is wider. */
  const residual = (type: 'float32' | 'float16') => (graph: GraphBuilder) => {
    graph.input('x', type, ['n', 8]);
    graph.node('Exp', { name: 'first', inputs: ['x'], outputs: ['a'] });
    graph.node('Exp', { name: 'second', inputs: ['a'], outputs: ['b'] });
    graph.node('Add', { name: 'sum', inputs: ['a', 'b'], outputs: ['s'] });
    graph.node('Exp', { name: 'last', inputs: ['s'], outputs: ['y'] });
    graph.output('y', type, ['n', 8]);
  };

  it('has the peak of inner tensors that are alive at once, without inputs and outputs', () => {
    expect(inferred(residual('float32')).cost).toMatchObject({
      peakActivationBytes: '96*n',
      peakNode: 'Add "sum"',
    });
    expect(inferred(residual('float16'), {}, { n: 10 }).cost).toMatchObject({ peakActivationBytes: 480 });
  });

  it('has no peak where the open sizes decide which moment is the highest', () => {
    const wide = (graph: GraphBuilder) => {
      graph.input('x', 'float32', ['n']);
      graph.input('z', 'float32', ['m']);
      graph.node('Exp', { inputs: ['x'], outputs: ['a'] });
      graph.node('ReduceMax', { inputs: ['a'], outputs: ['b'] });
      graph.node('Exp', { inputs: ['z'], outputs: ['c'] });
      graph.node('ReduceMax', { inputs: ['c'], outputs: ['d'] });
      graph.output('b', 'float32', [1]);
      graph.output('d', 'float32', [1]);
    };
    expect(inferred(wide).cost).toMatchObject({ peakActivationBytes: null, peakNode: null });
    expect(inferred(wide, {}, { n: 3, m: 5 }).cost).toMatchObject({ peakActivationBytes: 20 });
  });
});
