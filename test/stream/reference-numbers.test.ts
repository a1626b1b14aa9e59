import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type NumberList, NumberListBuilder } from '../../src/stream/reference-numbers.js';

function read(text: string): NumberList {
  const builder = new NumberListBuilder();
  builder.begin();
  builder.close(0, builder.add(Buffer.from(text)));
  return builder.end();
}
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
  '',
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
])('refuses «%s»', (text) => {
  expect(() => read(text)).toThrow(/other than numbers|beyond 2\^53/);
});
