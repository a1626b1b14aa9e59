import { describe, expect, it } from 'vitest';
import { attribute as a, GraphBuilder, type ModelSpec } from '../../../src/formats/onnx/builder.js';
import type { ConvertOptions } from '../../../src/formats/precision/convert.js';
import { resolveConversion } from '../../../src/formats/precision/options.js';
import { rules } from '../../../src/formats/precision/rules.js';
import { converted, floats, integers, noise, observedBy, written } from './judge.js';

async function keptIn(
  build: (g: GraphBuilder) => void,
  options: Partial<ConvertOptions> = {},
  spec: ModelSpec = {},
): Promise<Record<string, string>> {
  const g = new GraphBuilder('g');
  g.input('x', 'float32', [4, 8]);
  g.initializer('w', noise([8, 8], 0.4));
  build(g);
  g.output('y', 'float32', null);
  const { result } = await converted(await written(g, spec), options);
  return Object.fromEntries(result.kept.map(({ node, rule }) => [node, rule]));
}

const reasonsIn = async (
  build: (g: GraphBuilder) => void,
  options: Partial<ConvertOptions> = {},
  spec: ModelSpec = {},
) => {
  const g = new GraphBuilder('g');
  g.input('x', 'float32', [4, 8]);
  build(g);
  g.output('y', 'float32', null);
  const { result } = await converted(await written(g, spec), options);
  return result.kept.map(({ node, reason }) => `${node}: ${reason}`);
};

const product = (g: GraphBuilder, weight = 'w') =>
  g.node('MatMul', { name: 'product', inputs: ['x', weight], outputs: ['y'] });

it('rules have names of their own, a title and a reason in a sentence', () => {
  expect(new Set(rules.map(({ id }) => id)).size).toBe(rules.length);
  for (const { id, title, reason } of rules) {
    expect(id).toMatch(/^[a-z]+(-[a-z]+)*$/);
    expect(title).toMatch(/^[A-Z]/);
    expect(reason).toMatch(/\.$/);
  }
});

describe('what the user passes comes first', () => {
  it('by name', async () => {
    expect(await keptIn((g) => product(g), { keepNodes: [/^prod/u] })).toEqual({ product: 'keep-node' });
  });

  it('by operator', async () => {
    expect(await keptIn((g) => product(g), { keepOps: new Set(['MatMul']) })).toEqual({ product: 'keep-op' });
  });

  it('before a default of the same value', async () => {
    const exponent = (g: GraphBuilder) => g.node('Exp', { name: 'exp', inputs: ['x'], outputs: ['y'] });
    expect(await keptIn(exponent)).toEqual({ exp: 'op-default' });
    expect(await keptIn(exponent, { keepNodes: [/exp/u] })).toEqual({ exp: 'keep-node' });
  });

  it('and --convert-ops overrides a default', async () => {
    const exponent = (g: GraphBuilder) => g.node('Exp', { name: 'exp', inputs: ['x'], outputs: ['y'] });
    expect(await keptIn(exponent, { convertOps: new Set(['Exp']) })).toEqual({});
  });
});

describe('weights', () => {
  const withWeight =
    (values: number[], shape = [8, 8]) =>
    (g: GraphBuilder) => {
      g.initializer('v', floats(shape, values));
      product(g, 'v');
    };
  const filled = (value: number) => new Array(64).fill(value);

  it.each([
    ['the largest value of FP16', [...filled(0.1).slice(1), 65504], undefined],
    ['a value that rounds to it', [...filled(0.1).slice(1), 65519], 'weight-range'],
    ['a value beyond', [...filled(0.1).slice(1), -70000], 'weight-range'],
    ['an infinity', [...filled(0.1).slice(1), Number.NEGATIVE_INFINITY], undefined],
    ['mostly tiny values', [...filled(1e-6).slice(20), ...filled(0.1).slice(44)], 'weight-range'],
    ['a few tiny values', [...filled(0.1).slice(20), ...filled(1e-6).slice(44)], undefined],
    ['zeros', filled(0), undefined],
  ])('with %s', async (_, values, rule) => {
    expect((await keptIn(withWeight(values))).product).toBe(rule);
  });

  it('are checked against --init-max', async () => {
    expect(await keptIn(withWeight(filled(3)), { initMax: 2 })).toEqual({ product: 'weight-range' });
    expect(await keptIn(withWeight(filled(3)), { initMax: 2, precision: 'bf16' })).toEqual({
      product: 'weight-range',
    });
    expect(await keptIn(withWeight(filled(70000)), { precision: 'bf16' })).toEqual({});
  });

  it('count where an operator hands them on', async () => {
    const transposed = (g: GraphBuilder) => {
      g.initializer('v', floats([8, 8], filled(1e5)));
      g.node('Transpose', { name: 'turn', inputs: ['v'], outputs: ['t'] });
      product(g, 't');
    };
    expect(await keptIn(transposed)).toEqual({ turn: 'weight-range', product: 'weight-range' });
  });

  it('are named with what is wrong', async () => {
    expect(await reasonsIn(withWeight(filled(1e5)))).toEqual([
      'product: weight "v" reaches 100000, beyond ±65504',
    ]);
    const epsilon = (op: string) => (g: GraphBuilder) => {
      g.initializer('eps', floats([], [1e-12]));
      g.node(op, { name: 'step', inputs: ['x', 'eps'], outputs: ['y'] });
    };
    expect(await reasonsIn(epsilon('Mul'))).toEqual([
      'step: "eps" is 1e-12, which FP16 represents with fewer than 11 bits or not at all',
    ]);
    // Nothing depends on so small an addend.
    expect(await reasonsIn(epsilon('Add'))).toEqual([]);
  });
});

describe('products of computed values', () => {
  type Step = readonly [name: string, op: string, inputs: readonly string[]];
  const steps = (list: readonly Step[]) => (g: GraphBuilder) => {
    g.initializer('axis', integers([1], [-1]));
    g.initializer('mask', floats([4, 8], Array(32).fill(-1e5)));
    g.input('seen', 'int64', [4, 1]);
    for (const [name, op, inputs] of [['h', 'MatMul', ['x', 'w']] as Step, ...list])
      g.node(op, { name, inputs, outputs: [name], ...(op === 'Cast' && { attributes: { to: a.int(1) } }) });
  };

  it.each<[string, readonly Step[], Record<string, string>]>([
    [
      'are converted in gates, whose products go through a layer',
      [
        ['gate', 'Sigmoid', ['h']],
        ['gated', 'Mul', ['h', 'gate']],
        ['layer', 'MatMul', ['gated', 'w']],
        ['sum', 'Add', ['layer', 'x']],
        ['y', 'Sqrt', ['sum']],
      ],
      {},
    ],
    [
      'are converted as squares that go through two layers',
      [
        ['square', 'Mul', ['h', 'h']],
        ['first', 'MatMul', ['square', 'w']],
        ['second', 'MatMul', ['first', 'w']],
        ['y', 'Sqrt', ['second']],
      ],
      {},
    ],
    [
      'are converted where they are features',
      [
        ['square', 'Mul', ['h', 'h']],
        ['cube', 'Mul', ['square', 'h']],
        ['y', 'Sigmoid', ['cube']],
      ],
      {},
    ],
    [
      'are converted where integers mask them',
      [
        ['kept', 'Cast', ['seen']],
        ['y', 'Mul', ['h', 'kept']],
      ],
      {},
    ],
    [
      'stay up to a root',
      [
        ['square', 'Mul', ['h', 'h']],
        ['layer', 'MatMul', ['square', 'w']],
        ['root', 'Sqrt', ['layer']],
        ['y', 'MatMul', ['root', 'w']],
      ],
      { square: 'range', layer: 'range', root: 'range' },
    ],
    [
      'stay in a softmax by hand, but not what adds its mask',
      [
        ['masked', 'Add', ['h', 'mask']],
        ['largest', 'ReduceMax', ['masked']],
        ['less', 'Sub', ['masked', 'largest']],
        ['power', 'Exp', ['less']],
        ['total', 'ReduceSum', ['power', 'axis']],
        ['y', 'Div', ['power', 'total']],
      ],
      { power: 'op-default', total: 'op-default', y: 'range' },
    ],
  ])('%s', async (_, list, kept) => {
    expect(await keptIn(steps(list))).toEqual(kept);
  });
});

describe('activations', () => {
  const ranges = (max: number) => new Map([['h', { min: -1, max }]]);
  const two = (g: GraphBuilder) => {
    g.node('MatMul', { name: 'first', inputs: ['x', 'w'], outputs: ['h'] });
    g.node('MatMul', { name: 'second', inputs: ['h', 'w'], outputs: ['i'] });
    g.node('MatMul', { name: 'third', inputs: ['i', 'w'], outputs: ['y'] });
  };

  it.each([
    [1024, {}],
    [1025, { first: 'data-range', second: 'data-range' }],
    [Number.POSITIVE_INFINITY, { first: 'data-range', second: 'data-range' }],
    [Number.NaN, { first: 'data-range', second: 'data-range' }],
  ])('that reached %s', async (max, kept) => {
    const calibration = observedBy(async () => ranges(max));
    expect(await keptIn(two, { calibration })).toEqual(kept);
  });
});

describe('depth of reduction', () => {
  it('is the number of terms of one output element', async () => {
    const g = (builder: GraphBuilder) => {
      product(builder);
      builder.initializer('kernel', noise([2, 4, 3, 3], 0.2));
      builder.input('image', 'float32', [1, 4, 8, 8]);
      builder.node('Conv', { name: 'conv', inputs: ['image', 'kernel'], outputs: ['c'] });
      builder.node('ReduceMean', {
        name: 'mean',
        inputs: ['image'],
        outputs: ['m'],
        attributes: { axes: a.ints([2, 3]) },
      });
      builder.output('c', 'float32', null);
      builder.output('m', 'float32', null);
    };
    expect(await keptIn(g, { maxReductionDepth: 64 })).toEqual({});
    expect(await keptIn(g, { maxReductionDepth: 40 })).toEqual({ mean: 'reduction-depth' });
    expect(await keptIn(g, { maxReductionDepth: 35 })).toEqual({
      mean: 'reduction-depth',
      conv: 'reduction-depth',
    });
    expect(Object.keys(await keptIn(g, { maxReductionDepth: 7 }))).toEqual(['product', 'conv', 'mean']);
  });

  it('is that of an inferred shape, in a body too', async () => {
    const g = (builder: GraphBuilder) => {
      const branch = (name: string) => {
        const body = new GraphBuilder(name);
        body.node('ReduceMean', { name, inputs: ['t'], outputs: [`${name}_mean`] });
        body.output(`${name}_mean`, 'float32', null);
        return a.body(body);
      };
      builder.input('which', 'bool', []);
      builder.node('Transpose', { inputs: ['w'], outputs: ['t'] });
      builder.node('ReduceMean', { name: 'mean', inputs: ['t'], outputs: ['m'] });
      builder.node('If', {
        inputs: ['which'],
        outputs: ['n'],
        attributes: { then_branch: branch('one'), else_branch: branch('two') },
      });
      builder.output('m', 'float32', null);
      builder.output('n', 'float32', null);
    };
    const all = { mean: 'reduction-depth', one: 'reduction-depth', two: 'reduction-depth' };
    expect(await keptIn(g, { maxReductionDepth: 63 })).toEqual(all);
    expect(await keptIn(g, { maxReductionDepth: 64 })).toEqual({});
  });

  it('is not known where a dimension is open, which some exporters write as -1', async () => {
    const g = (builder: GraphBuilder) => {
      builder.input('image', 'float32', [-1, 40, 50, -1]);
      builder.node('ReduceMean', { name: 'mean', inputs: ['image'], outputs: ['m'] });
      builder.output('m', 'float32', null);
    };
    expect(await keptIn(g, { maxReductionDepth: 40 })).toEqual({});
  });
});

describe('types that an operator does not have', () => {
  it('BF16 before its opset, where the opset cannot be raised', async () => {
    const g = new GraphBuilder('g');
    g.input('x', 'float32', [1, 4, 8, 8]);
    g.initializer('k', noise([4, 4, 3, 3], 0.2));
    g.initializer('s', floats([2], [1, 1]));
    g.initializer('b', floats([2], [0, 0]));
    g.node('Conv', { name: 'conv', inputs: ['x', 'k'], outputs: ['h'] });
    g.node('GroupNormalization', {
      name: 'norm',
      inputs: ['h', 's', 'b'],
      outputs: ['y'],
      attributes: { num_groups: a.int(2) },
    });
    g.output('y', 'float32', null);
    const { result } = await converted(await written(g, { opset: 18 }), { precision: 'bf16' });
    expect(result.opset).toEqual({ before: 18, after: 18, reason: null });
    expect(result.kept.map(({ node, reason }) => [node, reason])).toEqual([
      ['conv', 'Conv takes BF16 from opset 22 on, and the model is opset 18'],
      ['norm', 'ONNX does not define GroupNormalization at opset 18'],
    ]);
    expect(result.warnings).toEqual([
      'Conv takes BF16 from opset 22 on, but the opset cannot be raised: GroupNormalization "norm": its scale and bias are per group, and per channel from opset 21 on.',
      'No node was converted: the reasons are listed.',
    ]);
  });

  it('what TensorRT does not build', async () => {
    const up = (g: GraphBuilder) => {
      g.input('image', 'float32', [1, 4, 8, 8]);
      g.initializer('k', noise([4, 4, 2, 2], 0.2));
      g.node('ConvTranspose', { name: 'up', inputs: ['image', 'k'], outputs: ['y'] });
    };
    expect(await keptIn(up)).toEqual({});
    expect(await keptIn(up, { precision: 'bf16' })).toEqual({ up: 'not-built' });
  });

  it('plug-ins, and what reads values of a type that they do not state', async () => {
    const plugin = (g: GraphBuilder) => {
      g.node('Mystery', { name: 'plugin', domain: 'acme', inputs: ['x'], outputs: ['p'] });
      g.node('Relu', { name: 'relu', inputs: ['p'], outputs: ['r'] });
      g.node('MatMul', { name: 'mixed', inputs: ['r', 'w'], outputs: ['y'] });
    };
    expect(await keptIn(plugin, {}, { opsets: { acme: 1 } })).toEqual({
      plugin: 'unknown-operator',
      mixed: 'unknown-type',
    });
  });
});

it('a model that is typed already stays as it is', async () => {
  const typed = (g: GraphBuilder) => {
    g.initializer('h', { dtype: 'float16', shape: [8, 8], bytes: new Uint8Array(128) });
    g.node('Cast', { name: 'down', inputs: ['x'], outputs: ['x16'], attributes: { to: a.int(10) } });
    g.node('MatMul', { name: 'low', inputs: ['x16', 'h'], outputs: ['m'] });
    g.node('Cast', { name: 'up', inputs: ['m'], outputs: ['m32'], attributes: { to: a.int(1) } });
    g.node('Softmax', { name: 'softmax', inputs: ['m32'], outputs: ['y'] });
  };
  expect(await keptIn(typed)).toEqual({ up: 'already-typed', softmax: 'already-typed' });
});

it('integers are left alone', async () => {
  const counts = (g: GraphBuilder) => {
    g.initializer('n', integers([1], [3]));
    g.node('Add', { name: 'integers', inputs: ['n', 'n'], outputs: ['m'] });
    g.output('m', 'int64', null);
    product(g);
  };
  expect(await keptIn(counts)).toEqual({});
});

it('a precision that is not a format is rejected', () => {
  const precision = JSON.parse('"int2"') as 'fp16';
  expect(() => resolveConversion(precision, {})).toThrow(
    expect.objectContaining({ code: 'TF_USAGE', message: expect.stringContaining('int2') }),
  );
});
