import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NumberLists } from '../../../src/formats/reference/number-lists.js';
import { elementsOf } from '../../../src/formats/tensor/tensor.js';

const read = (text: string, lists = new NumberLists()) =>
  lists.tensor(
    JSON.parse(text),
    'inputs',
    'x',
    `{"text": "\\"[1.0]", "inputs": {"x": ${text}, "other": [NaN, 1.0]}}`,
  );
const values = (text: string) => {
  const tensor = read(text);
  if (tensor.dtype !== 'float32' && tensor.dtype !== 'int64') throw new Error(tensor.dtype);
  return { dtype: tensor.dtype, values: Array.from(elementsOf({ ...tensor, dtype: tensor.dtype }), Number) };
};

test.each([
  ['[0.5, -1.25 ,3.0]', [0.5, -1.25, 3]],
  ['[0.0, -0.0]', [0, -0]],
  ['[1.0]', [1]],
  ['[1, 2.00, 3]', [1, 2, 3]],
  ['[1e3, 2E+2, -5.0e-0]', [1000, 200, -5]],
  ['[1.5e1]', [15]],
  ['[1e20]', [1e20].map(Math.fround)],
  ['[9007199254740993.0]', [2 ** 53]],
])('%s is float32', (text, expected) => {
  expect(values(text)).toEqual({ dtype: 'float32', values: expected });
});

test.each([
  ['[1, -2,9007199254740991, 0]', [1, -2, 9007199254740991, 0]],
  ['[[10],[20]]', [10, 20]],
  ['[]', []],
  ['7', [7]],
])('%s is int64', (text, expected) => {
  expect(values(text)).toEqual({ dtype: 'int64', values: expected });
});

test('rounds any numbers as Python and numpy do: to the nearest double, then to the nearest float32', () => {
  const number = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.float({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc
      .tuple(fc.integer({ min: 0, max: 9 }), fc.stringMatching(/^\d{1,22}$/))
      .map(([whole, part]) => `${whole}.${part}`),
  );
  fc.assert(
    fc.property(fc.array(number, { minLength: 1, maxLength: 20 }), (numbers) => {
      const all = ['0.5', ...numbers];
      const { bytes } = read(`[${all.join(',')}]`);
      expect(Buffer.from(bytes)).toEqual(Buffer.from(Float32Array.from(all.map(Number)).buffer));
    }),
    { numRuns: 500 },
  );
});

test('reads nested lists of any depth', () => {
  const nested = fc.record({
    shape: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 }),
    whole: fc.boolean(),
  });
  fc.assert(
    fc.property(nested, ({ shape, whole }) => {
      let next = 0;
      const make = (axis: number): unknown =>
        axis < shape.length
          ? Array.from({ length: shape[axis]! }, () => make(axis + 1))
          : whole
            ? next++ * 1001
            : Math.sin(++next);
      const value = make(0);
      const flat = [value].flat(Number.POSITIVE_INFINITY) as number[];
      const text = JSON.stringify(value);
      expect(read(text).shape).toEqual(shape);
      expect(values(text)).toEqual(
        whole ? { dtype: 'int64', values: flat } : { dtype: 'float32', values: flat.map(Math.fround) },
      );
    }),
  );
});

test('a tensor keeps the dtype of its first line where its values are whole', () => {
  const lists = new NumberLists();
  expect(['[0.0]', '[1]', '[2.5]', '[3.0]'].map((text) => read(text, lists).dtype)).toEqual(
    Array(4).fill('float32'),
  );
  const others = new NumberLists();
  expect(['[0]', '[1.5]', '[2.0]'].map((text) => read(text, others).dtype)).toEqual([
    'int64',
    'float32',
    'float32',
  ]);
});

test.each([
  ['[[1,2],[3]]', /ragged: 2 elements, then 1/],
  ['[[],[1]]', /ragged/],
  ['[[1],[[2]]]', /lists and numbers/],
  ['[[1],2]', /lists and numbers/],
  ['[1,[2]]', /lists and numbers/],
  [`${'['.repeat(40)}${']'.repeat(40)}`, /deeper/],
  ['[1, null]', /other than numbers/],
  ['[true]', /other than numbers/],
  ['["1.5"]', /other than numbers/],
  ['[{}]', /other than numbers/],
  ['[9007199254740993]', /beyond 2\^53/],
])('rejects %s', (text, why) => {
  expect(() => read(text)).toThrow(why);
});

test('empty lists have a shape', () => {
  expect(read('[ ]').shape).toEqual([0]);
  expect(read('[[],[]]').shape).toEqual([2, 0]);
});
