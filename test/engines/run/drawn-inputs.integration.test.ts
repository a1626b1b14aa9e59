import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { planInputs } from '../../../src/engines/run/drawn-inputs.js';
import { inDtype } from '../../../src/engines/run/input-dtype.js';
import type { Binding } from '../../../src/engines/runtime/session.js';
import {
  attribute,
  GraphBuilder as Graph,
  type GraphBuilder,
  openModel,
} from '../../../src/formats/onnx/index.js';
import { feedInputs, valueFacts } from '../../../src/formats/onnx/values.js';
import type { Dtype } from '../../../src/formats/tensor/dtype.js';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import {
  elementsOf,
  float32Values,
  type IntegerDtype,
  integerTensor,
  numbersOf,
  tensorFrom,
} from '../../../src/formats/tensor/tensor.js';
import { refusal } from '../../support/refusal.js';
import { castTo, floats, ids, modelFile } from '../runtime/onnxruntime/models.js';

type InputOptions = NonNullable<Parameters<typeof planInputs>[2]>;

async function plan(describe: (graph: GraphBuilder) => void, wishes: InputOptions = {}) {
  const model = openModel(await modelFile(describe));
  const inputs = feedInputs(model.proto.graph!).map((value): Binding => {
    const { name, dtype, shape } = valueFacts(value);
    return { name, dtype: dtype as Dtype, shape };
  });
  const planned = planInputs(model, inputs, wishes);
  model.close();
  return new Map(planned.map((input) => [input.name, input]));
}

const table = (rows: number) =>
  floats(
    'float32',
    [rows, 2],
    Array.from({ length: 2 * rows }, () => 0),
  );
const elements = (
  input: { tensor(seed: number, sample: number): Parameters<typeof numbersOf>[0] } | undefined,
) => Array.from({ length: 20 }, (_, sample) => Array.from(numbersOf(input!.tensor(0, sample)))).flat();

describe('ranges follow from what the graph does with an input', () => {
  it('operators called like methods of every object bound nothing', async () => {
    const inputs = await plan((graph) => {
      graph.input('i', 'int64', [4]);
      graph.input('x', 'float32', [4]);
      for (const name of ['constructor', 'toString', '__proto__'])
        graph.node(name, { inputs: ['i', 'x'], outputs: [`${name}.y`], domain: 'acme' });
      graph.node('constructor', { inputs: ['x', 'i'], outputs: ['y'], domain: 'acme' });
      graph.output('y', 'float32', null);
    });
    expect([inputs.get('i')?.from, inputs.get('x')?.from]).toEqual([
      '0 to 9, nothing in the graph bounds it',
      'normal, mean 0, deviation 1',
    ]);
  });

  it('ids stay within the rows they index, through casts, reshapes and offsets', async () => {
    const inputs = await plan((graph) => {
      graph.input('ids', 'int64', ['n']);
      graph.initializer('table', table(12));
      graph.initializer('two', ids([], [2]));
      graph.initializer('shape', ids([2], [-1, 1]));
      graph.node('Cast', { inputs: ['ids'], outputs: ['narrow'], attributes: castTo('int32') });
      graph.node('Cast', { inputs: ['narrow'], outputs: ['wide'], attributes: castTo('int64') });
      graph.node('Add', { inputs: ['wide', 'two'], outputs: ['shifted'] });
      graph.node('Reshape', { inputs: ['shifted', 'shape'], outputs: ['column'] });
      graph.node('Gather', { inputs: ['table', 'column'], outputs: ['y'], name: 'embed' });
      graph.output('y', 'float32', null);
    });
    expect(inputs.get('ids')?.from).toBe('0 to 9, indices into the 12 rows of Gather "embed"');
    expect(Math.max(...elements(inputs.get('ids')))).toBeLessThanOrEqual(9);
  });

  it('ids that are shifted down begin above zero, and the smallest of several tables counts', async () => {
    const inputs = await plan((graph) => {
      graph.input('ids', 'int32', [8]);
      graph.initializer('large', table(50));
      graph.initializer('small', table(6));
      graph.initializer('one', { dtype: 'int32', shape: [], bytes: Uint8Array.of(1, 0, 0, 0) });
      graph.node('Sub', { inputs: ['ids', 'one'], outputs: ['down'] });
      graph.node('Gather', { inputs: ['large', 'down'], outputs: ['a'] });
      graph.node('Gather', { inputs: ['small', 'ids'], outputs: ['b'] });
      graph.output('a', 'float32', null);
      graph.output('b', 'float32', null);
    });
    const drawn = elements(inputs.get('ids'));
    expect([Math.min(...drawn), Math.max(...drawn)]).toEqual([1, 5]);
  });

  it('indices on another axis, into an input whose size follows from a symbol, and inside a Loop body', async () => {
    const body = new Graph('body');
    body.input('i', 'int64', []);
    body.input('go', 'bool', []);
    body.input('which', 'int64', [2]);
    body.node('Gather', {
      inputs: ['x', 'which'],
      outputs: ['taken'],
      attributes: { axis: attribute.int(1) },
    });
    body.node('Identity', { inputs: ['go'], outputs: ['still'] });
    body.node('Identity', { inputs: ['which'], outputs: ['same'] });
    body.output('still', 'bool', []);
    body.output('same', 'int64', [2]);
    body.output('taken', 'float32', null);
    const inputs = await plan(
      (graph) => {
        graph.input('x', 'float32', [3, 'width']);
        graph.input('index', 'int64', [2]);
        graph.input('times', 'int64', []);
        graph.node('Loop', {
          inputs: ['times', '', 'index'],
          outputs: ['last', 'all'],
          attributes: { body: attribute.body(body) },
        });
        graph.output('all', 'float32', null);
      },
      { shapes: new Map([['x', [3, 5]]]) },
    );
    expect(inputs.get('index')?.from).toMatch(/^0 to 4, indices into the 5 rows/);
    expect(inputs.get('times')?.from).toMatch(/^1 to 4, a count or size for Loop/);
  });

  it.each<[string, string, RegExp, (graph: GraphBuilder) => void]>([
    [
      'OneHot',
      'k',
      /^0 to 6, indices into the 7 rows of OneHot/,
      (graph) => {
        graph.input('k', 'int64', [4]);
        graph.initializer('depth', ids([], [7]));
        graph.initializer('values', floats('float32', [2], [0, 1]));
        graph.node('OneHot', { inputs: ['k', 'depth', 'values'], outputs: ['y'] });
      },
    ],
    [
      'a mask multiplied in',
      'mask',
      /a mask: ones first/,
      (graph) => {
        graph.input('mask', 'int64', [2, 6]);
        graph.initializer('one', ids([], [1]));
        graph.node('Sub', { inputs: ['one', 'mask'], outputs: ['y'] });
      },
    ],
    [
      'a length compared with positions',
      'frames',
      /^64 to 128, a length, compared in Less/,
      (graph) => {
        graph.input('frames', 'int64', ['batch']);
        graph.input('audio', 'float32', ['batch', 80, 'time']);
        graph.initializer('positions', ids([4], [0, 1, 2, 3]));
        graph.node('Less', { inputs: ['positions', 'frames'], outputs: ['y'] });
      },
    ],
    [
      'a size for Range',
      'n',
      /^1 to 4, a count or size for Range/,
      (graph) => {
        graph.input('n', 'int64', []);
        graph.initializer('zero', ids([], [0]));
        graph.initializer('one', ids([], [1]));
        graph.node('Range', { inputs: ['zero', 'n', 'one'], outputs: ['y'] });
      },
    ],
    [
      'an image',
      'picture',
      /^0 to 1, an image of 3 channels/,
      (graph) => {
        graph.input('picture', 'float32', [1, 3, 8, 8]);
        graph.initializer('w', floats('float32', [1, 3, 1, 1], [1, 1, 1]));
        graph.node('Conv', { inputs: ['picture', 'w'], outputs: ['y'] });
      },
    ],
    [
      'an image, channels last',
      'picture',
      /^0 to 1, an image of 3 channels/,
      (graph) => {
        graph.input('picture', 'float32', [1, 8, 8, 3]);
        graph.initializer('w', floats('float32', [1, 3, 1, 1], [1, 1, 1]));
        graph.node('Transpose', {
          inputs: ['picture'],
          outputs: ['planes'],
          attributes: { perm: attribute.ints([0, 3, 1, 2]) },
        });
        graph.node('Conv', { inputs: ['planes', 'w'], outputs: ['y'] });
        graph.output('y', 'float32', null);
      },
    ],
    [
      'the argument of a logarithm',
      'p',
      /^0.1 to 1, where Log/,
      (graph) => {
        graph.input('p', 'float32', [4]);
        graph.node('Log', { inputs: ['p'], outputs: ['y'] });
      },
    ],
    [
      'floats otherwise',
      'x',
      /^normal, mean 0, deviation 1/,
      (graph) => {
        graph.input('x', 'float16', [4]);
        graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
      },
    ],
    [
      'integers that nothing bounds',
      'x',
      /^0 to 9, nothing in the graph bounds it/,
      (graph) => {
        graph.input('x', 'int64', [4]);
        graph.node('Neg', { inputs: ['x'], outputs: ['y'] });
      },
    ],
  ])('%s', async (_case, name, from, describe) => {
    const inputs = await plan((graph) => {
      describe(graph);
      graph.output('y', 'float32', null);
    });
    expect(inputs.get(name)?.from).toMatch(from);
  });

  it('a mask has ones first, at least half, then zeros', async () => {
    const inputs = await plan((graph) => {
      graph.input('attention_mask', 'int64', ['batch', 'seq']);
      graph.node('Cast', { inputs: ['attention_mask'], outputs: ['y'], attributes: castTo('float32') });
      graph.output('y', 'float32', null);
    });
    for (let sample = 0; sample < 10; sample++) {
      const row = Array.from(numbersOf(inputs.get('attention_mask')!.tensor(0, sample))).join('');
      expect(row).toMatch(/^1{8,16}0*$/);
    }
  });
});

describe('what the user specifies comes first', () => {
  const two = (graph: GraphBuilder) => {
    graph.input('x', 'float32', ['n', 'm']);
    graph.input('z', 'float32', ['n']);
    graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
    graph.node('Relu', { inputs: ['z'], outputs: ['w'] });
    graph.output('y', 'float32', null);
    graph.output('w', 'float32', null);
  };

  it('shapes, and the same symbol has the same size elsewhere', async () => {
    const inputs = await plan(two, { shapes: new Map([['x', [7, 3]]]) });
    expect(inputs.get('x')?.shape).toEqual([7, 3]);
    expect(inputs.get('z')?.shape).toEqual([7]);
  });

  it('ranges, for one input or for all', async () => {
    const ranges = [
      { name: null, low: 5, high: 6 },
      { name: 'z', low: -1, high: 0 },
    ];
    const inputs = await plan(two, { ranges });
    expect(Math.min(...elements(inputs.get('x')))).toBeGreaterThanOrEqual(5);
    expect(Math.max(...elements(inputs.get('z')))).toBeLessThanOrEqual(0);
  });

  it('files, in their shape and converted to the type of the input', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'trtforge-inputs-')), 'x.npy');
    writeNpy(path, floats('float16', [2, 2], [1, 2, 3, 4]));
    const inputs = await plan(two, { files: [{ name: 'x', path }] });
    expect(inputs.get('x')).toMatchObject({ from: path, shape: [2, 2] });
    expect(Array.from(numbersOf(inputs.get('x')!.tensor(0, 0)))).toEqual([1, 2, 3, 4]);
    expect(inputs.get('z')?.shape).toEqual([2]);
  });

  it.each<[string, InputOptions, RegExp]>([
    ['a shape for no input', { shapes: new Map([['q', [1]]]) }, /no input "q"/],
    [
      'a shape of another rank',
      { shapes: new Map([['x', [1]]]) },
      /does not fit the input "x": it has 2 dimensions/,
    ],
    [
      'one symbol with two sizes',
      {
        shapes: new Map([
          ['x', [2, 2]],
          ['z', [3]],
        ]),
      },
      /n is 2 elsewhere/,
    ],
    ['a range for no input', { ranges: [{ name: 'q', low: 0, high: 1 }] }, /no input "q"/],
    [
      'a shape that no memory holds',
      { shapes: new Map([['x', [2 ** 40, 2 ** 10]]]) },
      /x of shape \[1099511627776, 1024\] is too large to be drawn/,
    ],
  ])('%s is rejected', async (_case, wishes, message) => {
    const drawn = plan(two, wishes).then((inputs) => inputs.get('x')?.tensor(0, 0));
    await expect(drawn).rejects.toThrow(message);
  });

  it.each<[string, Dtype, number, number, RegExp | null]>([
    ['what the type just holds', 'int8', -128, 127, null],
    ['one more than that', 'int8', -128, 128, /"x" are to be -128 to 128, but its type, int8, cannot hold/],
    ['less than nothing', 'uint8', -1, 3, /uint8, cannot hold/],
    ['the powers of two beyond 64 bits', 'int64', 0, 2 ** 63, /int64, cannot hold/],
    ['no integer at all', 'int32', 0.2, 0.8, /int32, has no number in it/],
  ])('a range for integers is checked against their type: %s', async (_case, dtype, low, high, refusal) => {
    const drawn = plan(
      (graph) => {
        graph.input('x', dtype, ['n', 4]);
        graph.node('Identity', { inputs: ['x'], outputs: ['y'] });
        graph.output('y', dtype, ['n', 4]);
      },
      { ranges: [{ name: null, low, high }], shapes: new Map([['x', [500, 4]]]) },
    ).then((inputs) => numbersOf(inputs.get('x')!.tensor(0, 0)));
    if (refusal !== null) return expect(drawn).rejects.toThrow(refusal);
    const values = Array.from(await drawn);
    expect([Math.min(...values), Math.max(...values)]).toEqual([low, high]);
  });

  it.each<[string, IntegerDtype, readonly number[], Dtype, RegExp | null]>([
    ['as they are', 'int64', [-128, 127], 'int8', null],
    [
      'too large',
      'int64',
      [1, 2 ** 31],
      'int32',
      /x\.npy holds 2147483648 \(element 1\), which the input "x"/,
    ],
    ['below zero', 'int32', [-1, 1], 'uint8', /holds -1 \(element 0\).*of type uint8 cannot/],
    ['unsigned ones of 64 bits', 'uint64', [0, 2 ** 63], 'int64', /element 1/],
  ])('integers of a file never wrap around: %s', async (_case, given, values, dtype, refusal) => {
    const path = join(mkdtempSync(join(tmpdir(), 'trtforge-inputs-')), 'x.npy');
    writeNpy(path, integerTensor(given, [values.length], values));
    const taken = plan(
      (graph) => {
        graph.input('x', dtype, ['n']);
        graph.node('Identity', { inputs: ['x'], outputs: ['y'] });
        graph.output('y', dtype, ['n']);
      },
      { files: [{ name: 'x', path }] },
    ).then((inputs) => inputs.get('x')!.tensor(0, 0));
    if (refusal !== null) return expect(taken).rejects.toThrow(refusal);
    const tensor = await taken;
    expect(tensor.dtype).toBe(dtype);
    expect(Array.from(numbersOf(tensor))).toEqual(values);
  });

  const binding = (dtype: Dtype) => ({ name: 'x', dtype, shape: ['n'] }) as const;

  it.each([
    ['uint64', 'int64'],
    ['int64', 'uint64'],
  ] as const)('%s becomes %s to the last bit, or is rejected', (from, to) => {
    const arrays = { int64: BigInt64Array, uint64: BigUint64Array };
    const given = (value: bigint) => tensorFrom(from, [2], arrays[from].of(1n, value));
    for (const value of [0n, 2n ** 53n + 1n, 2n ** 63n - 1n]) {
      const tensor = inDtype(binding(to), given(value), 'x.npy');
      expect([...elementsOf({ ...tensor, dtype: to })]).toEqual([1n, value]);
    }
    const odd = from === 'uint64' ? 2n ** 63n + 1n : -(2n ** 53n) - 1n;
    expect(refusal(() => inDtype(binding(to), given(odd), 'x.npy'))).toMatchObject({
      code: 'TF_SESSION_INPUT',
      message: `x.npy holds ${odd} (element 1), which the input "x" of type ${to} cannot.`,
    });
  });

  it('float64 is rounded once on its way to 16 bits', () => {
    // Just beside a tie of float16, which float32 takes for the tie itself.
    const [tie, tiny, huge] = [1 + 2 ** -11, 2 ** -45, Number.MAX_VALUE];
    const beside = [
      tie,
      tie + tiny,
      tie - tiny,
      -tie - tiny,
      3 * 2 ** -25 - 2 ** -60,
      huge,
      -huge,
      1e-300,
      0.1,
    ];
    const tensor = tensorFrom('float64', [beside.length], Float64Array.from(beside));
    const { bytes } = inDtype(binding('float16'), tensor, 'x.npy');
    const halves = float32Values({ dtype: 'float16', shape: [beside.length], bytes });
    const up = 1 + 2 ** -10;
    expect([...halves]).toEqual([1, up, 1, -up, 2 ** -24, Infinity, -Infinity, 0, 0.0999755859375]);
    const brain = tensorFrom('float64', [2], Float64Array.of(1 + 2 ** -8 + tiny, 1 + 2 ** -8));
    expect([...float32Values(inDtype(binding('bfloat16'), brain, 'x.npy'))]).toEqual([1 + 2 ** -7, 1]);
  });

  it('an input without a rank needs a shape', async () => {
    const open = (graph: GraphBuilder) => {
      graph.input('x', 'float32', null);
      graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
      graph.output('y', 'float32', null);
    };
    await expect(plan(open)).rejects.toThrow(
      expect.objectContaining({ remedy: expect.stringMatching(/--shapes x:/) }),
    );
    expect((await plan(open, { shapes: new Map([['x', [2, 2]]]) })).get('x')?.shape).toEqual([2, 2]);
  });
});
