import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type NumberList, NumberListReader } from '../../../../src/products/streaming/reference/numbers.js';

/** Reads a list from a window that it fills up in pieces of `piece` bytes, as a scanner does. */
function readList(text: string, piece = text.length + 1): NumberList {
  const reader = new NumberListReader();
  reader.begin();
  for (let at = 0, length = piece; ; length += piece) {
    const isEnd = length >= text.length;
    const bytes = Buffer.alloc(Math.min(length, text.length) + 16);
    bytes.write(text.slice(0, length));
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    at = reader.read({ bytes, view }, at, Math.min(length, text.length), isEnd);
    if (reader.isDone) return reader.end();
    if (isEnd) throw new Error(`stopped at ${at}`);
  }
}
const read = (text: string): NumberList => readList(`[${text}]`);

/** As Python and numpy read it: to the nearest double, then to the nearest float32. */
const expected = (text: string) => Float32Array.from(text.split(',').map(Number));

test.each([
  '0.5, -1.25 ,3.0',
  '0.1, 0.30000001192092896, -0.0, 0.000012345678901234567',
  '1e-40, 1.5E+10, -2e3, 3.4028234663852886e+38',
  '16777217.0, 16777219.0, 0.12345678901234567890123',
  '1.00000005960464477539, 1.00000005960464477540, 1.000000059604644775390625, 1.0000000596046448',
  'NaN, Infinity, -Infinity',
])('reads %s as Python does', (text) => {
  const { values, integers } = read(text);
  expect(integers).toBe(false);
  expect(Array.from(values)).toEqual(Array.from(expected(text)));
});

test('reads any numbers as Python does, to the bit', () => {
  const number = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.float({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc
      .tuple(fc.integer({ min: 0, max: 9 }), fc.stringMatching(/^\d{1,22}$/))
      .map(([whole, part]) => `${whole}.${part}`),
  );
  fc.assert(
    fc.property(fc.array(number, { minLength: 1, maxLength: 20 }), (numbers) => {
      const text = ['0.5', ...numbers].join(',');
      expect(Buffer.from(read(text).values.buffer)).toEqual(Buffer.from(expected(text).buffer));
    }),
    { numRuns: 2000 },
  );
});

test('keeps whole numbers exact', () => {
  const { values, integers } = read('1, -2,9007199254740991, 0');
  expect(integers).toBe(true);
  expect(Array.from(values)).toEqual([1, -2, 9007199254740991, 0]);
});

test.each([
  '1,',
  ',1',
  '01',
  '1.',
  '.5',
  '1 2',
  '--1',
  '0x10',
  '1e',
  'null',
  '9007199254740993',
  '1,,2',
  '+1',
  '1e+',
  '1.e5',
  '-',
  '1-',
  '12345678a',
  '0.1234567/',
  '0.12345678:1',
])('refuses «%s»', (text) => {
  expect(() => read(text)).toThrow(/other than numbers|beyond 2\^53|stopped at/);
});

test('reads nested lists of any depth, in one piece or in many', () => {
  const nested = fc
    .record({
      shape: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 }),
      whole: fc.boolean(),
    })
    .map(({ shape, whole }) => {
      let next = 0;
      const make = (axis: number): unknown =>
        axis === shape.length
          ? whole
            ? next++ * 1001
            : Math.fround(Math.sin(++next)) * 10 ** ((next % 9) - 6)
          : Array.from({ length: shape[axis]! }, () => make(axis + 1));
      return { shape, whole, value: make(0) };
    });
  fc.assert(
    fc.property(
      nested,
      fc.constantFrom(0, 1, 2),
      fc.integer({ min: 1030, max: 1500 }),
      (given, indent, piece) => {
        const text = JSON.stringify(given.value, null, indent).replaceAll('\n', ' ').padEnd(3000);
        const { shape, values, integers } = readList(text, piece);
        expect(shape).toEqual(given.shape);
        expect(integers).toBe(given.whole);
        const flat = (given.value as number[]).flat(Number.POSITIVE_INFINITY);
        expect(Array.from(values)).toEqual(given.whole ? flat : Array.from(Float32Array.from(flat)));
      },
    ),
  );
});

test.each([
  ['[[1,2],[3]]', /ragged: 2 elements, then 1/],
  ['[[1],[[2]]]', /not all are equally deep/],
  ['[[1],2]', /both lists and numbers/],
  ['[1,[2]]', /both lists and numbers/],
  ['[[1],]', /both lists and numbers/],
  ['['.repeat(40), /deeper than any/],
  ['[1,\n2]', /stopped at 3/],
  ['[1, 2', /stopped at/],
  ['[1 : 2]', /other than numbers/],
])('tells what is wrong with %s', (text, why) => {
  expect(() => readList(text)).toThrow(why);
});

test('empty lists have a shape', () => {
  expect(readList('[ ]')).toMatchObject({ shape: [0], integers: true });
  expect(readList('[[],[]]').shape).toEqual([2, 0]);
});
