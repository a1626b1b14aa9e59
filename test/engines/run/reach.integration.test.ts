import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planInputs, sampleOf } from '../../../src/engines/run/drawn-inputs.js';
import { type EdgeSample, edgeSamples } from '../../../src/engines/run/edge-samples.js';
import { findUnreached } from '../../../src/engines/run/unreached.js';
import type { Binding } from '../../../src/engines/runtime/session.js';
import {
  attribute,
  GraphBuilder as Graph,
  type GraphBuilder,
  openModel,
} from '../../../src/formats/onnx/index.js';
import { feedInputs, valueFacts } from '../../../src/formats/onnx/values.js';
import type { Dtype } from '../../../src/formats/tensor/dtype.js';
import { numbersOf } from '../../../src/formats/tensor/tensor.js';
import { castTo, floats, ids, modelFile } from '../runtime/onnxruntime/models.js';

type InputOptions = NonNullable<Parameters<typeof planInputs>[2]>;

async function open(describe: (graph: GraphBuilder) => void, options: InputOptions = {}) {
  const path = await modelFile(describe);
  const model = openModel(path);
  const inputs = feedInputs(model.proto.graph!).map((value): Binding => {
    const { name, dtype, shape } = valueFacts(value);
    return { name, dtype: dtype as Dtype, shape };
  });
  const plan = planInputs(model, inputs, options);
  model.close();
  const values = (name: string, seed: number, sample: number | EdgeSample) =>
    Array.from(numbersOf(sampleOf(plan, seed, sample).get(name)!));
  const unreached = (samples: number, seed = 0) => {
    const again = openModel(path);
    const drawn = Array.from({ length: samples }, (_, sample) => sampleOf(plan, seed, sample));
    const found = findUnreached(again, drawn);
    again.close();
    return found;
  };
  return { plan, values, unreached };
}

const rows = (count: number) =>
  floats(
    'float32',
    [count, 1],
    Array.from({ length: count }, () => 0),
  );
const seed = fc.integer({ min: 0, max: 2 ** 31 });

/** If(condition) of a named value, whose branches multiply x. */
function branching(graph: GraphBuilder, condition: string) {
  const body = (factor: number) => {
    const inner = new Graph(`times${factor}`);
    inner.initializer(`f${factor}`, floats('float32', [], [factor]));
    inner.node('Mul', { inputs: ['x', `f${factor}`], outputs: [`y${factor}`] });
    inner.output(`y${factor}`, 'float32', [4]);
    return attribute.body(inner);
  };
  graph.input('x', 'float32', [4]);
  graph.node('If', {
    inputs: [condition],
    outputs: ['y'],
    name: 'gate',
    attributes: { then_branch: body(2), else_branch: body(3) },
  });
  graph.output('y', 'float32', [4]);
}

describe('three samples reach both sides of a comparison, whatever the seed', () => {
  it.each<[string, string, (graph: GraphBuilder) => void]>([
    ['Equal', 'sr', (graph) => graph.node('Equal', { inputs: ['sr', 'rate'], outputs: ['c'] })],
    ['Less', 'sr', (graph) => graph.node('Less', { inputs: ['sr', 'rate'], outputs: ['c'] })],
    [
      'Greater from the other side',
      'sr',
      (graph) => graph.node('Greater', { inputs: ['rate', 'sr'], outputs: ['c'] }),
    ],
    ['LessOrEqual', 'sr', (graph) => graph.node('LessOrEqual', { inputs: ['sr', 'rate'], outputs: ['c'] })],
    [
      'GreaterOrEqual',
      'sr',
      (graph) => graph.node('GreaterOrEqual', { inputs: ['sr', 'rate'], outputs: ['c'] }),
    ],
    [
      'behind Mul, Sub, Cast and Unsqueeze',
      'sr',
      (graph) => {
        graph.initializer('two', ids([], [2]));
        graph.initializer('shift', ids([], [64_000]));
        graph.node('Mul', { inputs: ['sr', 'two'], outputs: ['twice'] });
        graph.node('Sub', { inputs: ['shift', 'twice'], outputs: ['turned'] });
        graph.node('Cast', { inputs: ['turned'], outputs: ['narrow'], attributes: castTo('int32') });
        graph.node('Cast', { inputs: ['narrow'], outputs: ['wide'], attributes: castTo('int64') });
        graph.initializer('rate2', ids([], [32_000]));
        graph.node('Equal', { inputs: ['wide', 'rate2'], outputs: ['c'] });
      },
    ],
  ])('%s', async (_case, name, compare) => {
    const { values, unreached } = await open((graph) => {
      graph.input('sr', 'int64', []);
      graph.initializer('rate', ids([], [16_000]));
      compare(graph);
      branching(graph, 'c');
    });
    fc.assert(
      fc.property(seed, (drawn) => {
        const three = [0, 1, 2].flatMap((sample) => values(name, drawn, sample));
        expect(three.sort()).toEqual([15_999, 16_000, 16_001]);
        expect(unreached(3, drawn).branches).toEqual([]);
      }),
      { numRuns: 5 },
    );
    expect(unreached(1).branches).toMatchObject([{ node: 'If "gate"' }]);
  });

  it('a boolean switch is on, then off; two rates are both met first', async () => {
    const { values, unreached } = await open((graph) => {
      graph.input('on', 'bool', [1]);
      graph.input('sr', 'int64', [1]);
      graph.initializer('rates', ids([2], [8000, 16_000]));
      graph.initializer('eight', ids([], [8000]));
      graph.initializer('sixteen', ids([], [16_000]));
      graph.node('Equal', { inputs: ['sr', 'eight'], outputs: ['a'] });
      graph.node('Equal', { inputs: ['sr', 'sixteen'], outputs: ['b'] });
      graph.node('Or', { inputs: ['a', 'b'], outputs: ['either'] });
      graph.node('And', { inputs: ['either', 'on'], outputs: ['c'] });
      branching(graph, 'c');
    });
    expect([0, 1].map((sample) => values('on', 7, sample)[0])).toEqual([1, 0]);
    expect([0, 1, 2].map((sample) => values('sr', 7, sample)[0])).toEqual([8000, 16_000, 8001]);
    expect(unreached(2).branches).toEqual([]);
    expect(unreached(1).branches).toMatchObject([{ node: 'If "gate"', branch: 'else' }]);
  });
});

const kinds: readonly [string, number, (graph: GraphBuilder) => void][] = [
  [
    'a table',
    97,
    (graph) => {
      graph.initializer('table', rows(97));
      graph.node('Gather', { inputs: ['table', 'i'], outputs: ['y'] });
    },
  ],
  [
    'a one-hot row by Equal',
    257,
    (graph) => {
      graph.initializer('numbers', ids([1, 1, 257], [...new Array(257).keys()]));
      graph.initializer('last', ids([1], [-1]));
      graph.node('Unsqueeze', { inputs: ['i', 'last'], outputs: ['column'] });
      graph.node('Equal', { inputs: ['column', 'numbers'], outputs: ['hot'] });
      graph.node('Cast', { inputs: ['hot'], outputs: ['y'], attributes: castTo('float32') });
    },
  ],
  [
    'a table behind a wrap with Mul',
    50,
    (graph) => {
      graph.initializer('table', rows(50));
      graph.initializer('zero', ids([], [0]));
      graph.initializer('count', ids([], [50]));
      graph.node('Less', { inputs: ['i', 'zero'], outputs: ['negative'] });
      graph.node('Cast', { inputs: ['negative'], outputs: ['flag'], attributes: castTo('int64') });
      graph.node('Mul', { inputs: ['flag', 'count'], outputs: ['wrap'] });
      graph.node('Add', { inputs: ['i', 'wrap'], outputs: ['index'] });
      graph.node('Gather', { inputs: ['table', 'index'], outputs: ['y'] });
    },
  ],
  ...(['GreaterOrEqual', 'Not', 'Sub'] as const).map((positive): (typeof kinds)[number] => [
    `a table behind Keras's wrap, by ${positive}`,
    49,
    (graph) => {
      graph.initializer('table', rows(49));
      graph.initializer('zero', ids([], [0]));
      graph.initializer('one', ids([], [1]));
      graph.initializer('count', ids([], [49]));
      graph.node('Less', { inputs: ['i', 'zero'], outputs: ['negative'] });
      graph.node('Cast', { inputs: ['negative'], outputs: ['i2'], attributes: castTo('int64') });
      if (positive === 'Sub') graph.node('Sub', { inputs: ['one', 'i2'], outputs: ['i1'] });
      else {
        const inputs = positive === 'Not' ? ['negative'] : ['i', 'zero'];
        graph.node(positive, { inputs, outputs: ['positive'] });
        graph.node('Cast', { inputs: ['positive'], outputs: ['i1'], attributes: castTo('int64') });
      }
      graph.node('Mul', { inputs: ['i', 'i1'], outputs: ['kept'] });
      graph.node('Add', { inputs: ['i', 'count'], outputs: ['shifted'] });
      graph.node('Mul', { inputs: ['i2', 'shifted'], outputs: ['wrapped'] });
      graph.node('Add', { inputs: ['kept', 'wrapped'], outputs: ['index'] });
      graph.node('Gather', { inputs: ['table', 'index'], outputs: ['y'] });
    },
  ]),
  [
    'a table behind Mod',
    33,
    (graph) => {
      graph.initializer('table', rows(33));
      graph.initializer('count', ids([], [33]));
      graph.node('Mod', { inputs: ['i', 'count'], outputs: ['index'] });
      graph.node('Gather', { inputs: ['table', 'index'], outputs: ['y'] });
    },
  ],
  [
    'a table behind a wrap with Where, shifted',
    40,
    (graph) => {
      graph.initializer('table', rows(42));
      graph.initializer('zero', ids([], [0]));
      graph.initializer('two', ids([], [2]));
      graph.initializer('count', ids([], [42]));
      graph.node('Add', { inputs: ['i', 'two'], outputs: ['shifted'] });
      graph.node('Less', { inputs: ['shifted', 'zero'], outputs: ['negative'] });
      graph.node('Add', { inputs: ['shifted', 'count'], outputs: ['wrapped'] });
      graph.node('Where', { inputs: ['negative', 'wrapped', 'shifted'], outputs: ['index'] });
      graph.node('Gather', { inputs: ['table', 'index'], outputs: ['y'] });
    },
  ],
];

describe('k samples of n elements reach k times n rows, none twice and none outside', () => {
  it.each(kinds)('%s', async (_case, count, describe) => {
    const { values, unreached } = await open((graph) => {
      graph.input('i', 'int64', [1, 16]);
      describe(graph);
      graph.output('y', 'float32', null);
    });
    fc.assert(
      fc.property(seed, fc.integer({ min: 1, max: 20 }), (drawn, samples) => {
        const reached = Array.from({ length: samples }, (_, sample) => values('i', drawn, sample)).flat();
        expect(new Set(reached).size).toBe(Math.min(count, 16 * samples));
        expect(Math.min(...reached)).toBeGreaterThanOrEqual(0);
        expect(Math.max(...reached)).toBeLessThan(count);
      }),
      { numRuns: 20 },
    );
    const edges = ['lowest values', 'highest values'] as const;
    expect(edges.map((edge) => values('i', 0, edge)[5])).toEqual([0, count - 1]);
    expect(unreached(2).tables).toMatchObject([{ reached: 32 }]);
    expect(unreached(20).tables).toMatchObject(_case.includes('shifted') ? [{ rows: 42, reached: 40 }] : []);
  });

  it('an index that is computed of two inputs stays inside, and its table is listed', async () => {
    for (const operator of ['Add', 'Mul'] as const) {
      const { plan, values, unreached } = await open((graph) => {
        graph.input('i', 'int64', [1, 16]);
        graph.input('j', 'int64', [1, 16]);
        graph.initializer('table', rows(50));
        graph.node(operator, { inputs: ['i', 'j'], outputs: ['index'] });
        graph.node('Gather', { inputs: ['table', 'index'], outputs: ['y'] });
        graph.output('y', 'float32', null);
      });
      expect(plan.map(({ from }) => from)).toEqual(Array(2).fill(expect.stringContaining('Gather')));
      const most = Math.max(...values('i', 0, 0));
      expect(most).toBe(7);
      expect(operator === 'Add' ? most + most : most * most).toBeLessThan(50);
      expect(unreached(3).tables).toMatchObject([{ rows: 50, reached: 8 }]);
    }
  });

  it('an index to which the start of each field is added stays in the last field', async () => {
    const { values } = await open((graph) => {
      graph.input('i', 'int64', [2, 3]);
      graph.initializer('table', rows(40));
      graph.initializer('starts', ids([3], [0, 10, 30]));
      graph.node('Add', { inputs: ['i', 'starts'], outputs: ['index'] });
      graph.node('Gather', { inputs: ['table', 'index'], outputs: ['y'] });
      graph.output('y', 'float32', null);
    });
    expect(values('i', 0, 'highest values')[0]).toBe(9);
  });

  it('what masks, and is part of positions, stays a mask', async () => {
    const { plan } = await open((graph) => {
      graph.input('on', 'int64', [1, 16]);
      graph.initializer('table', rows(50));
      graph.initializer('one', ids([], [1]));
      graph.initializer('axis', ids([], [1]));
      graph.node('CumSum', { inputs: ['on', 'axis'], outputs: ['counted'] });
      graph.node('Mul', { inputs: ['counted', 'on'], outputs: ['index'] });
      graph.node('Gather', { inputs: ['table', 'index'], outputs: ['y'] });
      graph.node('Sub', { inputs: ['one', 'on'], outputs: ['off'] });
      graph.output('y', 'float32', null);
      graph.output('off', 'int64', null);
    });
    expect(plan[0]?.range?.spread.kind).toBe('mask');
  });

  it('a marker that is compared comes first', async () => {
    const { values } = await open((graph) => {
      graph.input('i', 'int64', [8]);
      graph.initializer('table', rows(500));
      graph.initializer('end', ids([], [499]));
      graph.node('Equal', { inputs: ['i', 'end'], outputs: ['isEnd'] });
      graph.node('Gather', { inputs: ['table', 'i'], outputs: ['y'] });
      graph.output('y', 'float32', null);
      graph.output('isEnd', 'bool', null);
    });
    expect(values('i', 3, 0).slice(0, 2)).toEqual([499, 498]);
  });
});

describe('edges', () => {
  const mixed = (graph: GraphBuilder) => {
    graph.input('x', 'float32', [1, 80, 12]);
    graph.input('batch', 'float16', [3, 5]);
    graph.input('p', 'float32', [4]);
    graph.input('i', 'int64', [4]);
    graph.input('times', 'int64', []);
    graph.input('pad_mask', 'bool', [1, 6]);
    graph.initializer('table', rows(12));
    graph.initializer('zero', ids([], [0]));
    graph.initializer('one', ids([], [1]));
    graph.node('Log', { inputs: ['p'], outputs: ['a'] });
    graph.node('Gather', { inputs: ['table', 'i'], outputs: ['b'] });
    graph.node('Range', { inputs: ['zero', 'times', 'one'], outputs: ['c'] });
    for (const name of ['x', 'batch', 'pad_mask'])
      graph.node('Identity', { inputs: [name], outputs: [`${name}.y`] });
    graph.output('a', 'float32', null);
  };

  it('stay in every range: zeros, one zero row, highest, lowest; masks are off with zeros', async () => {
    const { plan, values } = await open(mixed);
    const edges = edgeSamples(plan);
    expect(edges).toEqual(['zeros', 'one zero row', 'highest values', 'lowest values']);
    const ends = (name: string) =>
      edges.map((edge) => values(name, 1, edge)).map((all) => [Math.min(...all), Math.max(...all)]);
    const [zeros, row, high, low] = [0, 1, 2, 3];
    expect([zeros, high, low].map((at) => ends('x')[at])).toEqual([
      [0, 0],
      [3, 3],
      [-3, -3],
    ]);
    expect([zeros, high, low].map((at) => ends('p')[at])).toEqual(
      [
        [0.1, 0.1],
        [1, 1],
        [0.1, 0.1],
      ].map((pair) => pair.map(Math.fround)),
    );
    expect([zeros, high, low].map((at) => ends('i')[at])).toEqual([
      [0, 0],
      [11, 11],
      [0, 0],
    ]);
    expect([zeros, high, low].map((at) => ends('times')[at])).toEqual([
      [1, 1],
      [4, 4],
      [1, 1],
    ]);
    expect(ends('pad_mask')).toEqual([
      [0, 0],
      [1, 1],
      [1, 1],
      [1, 1],
    ]);
    expect(ends('p')[row]![0]).toBeGreaterThanOrEqual(Math.fround(0.1));
    const x = values('x', 1, 'one zero row');
    // Frame 6 of all features, feature 40 of all frames.
    expect(x.filter((_, at) => at % 12 === 6)).toEqual(new Array(80).fill(0));
    expect(x.slice(40 * 12, 41 * 12)).toEqual(new Array(12).fill(0));
    expect(x.slice(0, 6)).toEqual(values('x', 1, 0).slice(0, 6));
    const batch = values('batch', 1, 'one zero row');
    expect(batch).toEqual([...values('batch', 1, 0).slice(0, 10), 0, 0, 0, 0, 0]);
  });

  it('none twice, none of files, and ranges of the user hold', async () => {
    const integers = await open((graph) => {
      graph.input('i', 'int64', [4]);
      graph.node('Neg', { inputs: ['i'], outputs: ['y'] });
      graph.output('y', 'int64', null);
    });
    expect(edgeSamples(integers.plan)).toEqual(['zeros', 'highest values']);
    expect(edgeSamples(integers.plan.map((input) => ({ ...input, range: undefined })))).toEqual([]);
    const { plan, values } = await open(mixed, { ranges: [{ name: 'x', low: 2, high: 5 }] });
    const first = edgeSamples(plan).map((edge) => values('x', 0, edge)[480 + 6]);
    expect(first).toEqual([2, 2, 5, 2]);
  });
});
