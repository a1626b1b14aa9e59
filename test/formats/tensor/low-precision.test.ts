import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  isByteFloat,
  isPackedInteger,
  smallFloats,
  smallFloatTable,
  unpackIntegers,
} from '../../../src/formats/tensor/low-precision.js';
import { randomStream } from '../../../src/formats/tensor/random.js';
import { float32Values, floatTensor } from '../../../src/formats/tensor/tensor.js';
import { fixture } from './fixtures.js';

const expected = JSON.parse(readFileSync(fixture('small-floats.json'), 'utf8')) as Record<
  string,
  (number | string)[]
>;

const asText = (value: number): number | string => {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  return Object.is(value, -0) ? '-0' : value;
};

describe('small floats', () => {
  it.each(smallFloats)('%s: every bit pattern has the value that ml_dtypes gives it', (dtype) => {
    expect([...smallFloatTable(dtype)].map(asText)).toEqual(expected[dtype]);
  });

  it('float4 is read two to a byte, low half first, an odd count too', () => {
    const tensor = { dtype: 'float4_e2m1fn', shape: [3], bytes: Uint8Array.of(0x72, 0x09) } as const;
    expect([...float32Values(tensor)]).toEqual([1, 6, -0.5]);
  });
});

describe('float32 to small floats', () => {
  const byteFloats = smallFloats.filter(isByteFloat);

  it.each(byteFloats)('%s: every finite value becomes itself', (dtype) => {
    const values = smallFloatTable(dtype).filter((value) => Number.isFinite(value));
    expect([...float32Values(floatTensor(dtype, [values.length], values))]).toEqual(
      [...values].map((value) => (value === 0 ? 0 : value)),
    );
  });

  it.each(byteFloats)('%s: no value is nearer than the one taken', (dtype) => {
    const finite = [...smallFloatTable(dtype)].filter((value) => Number.isFinite(value));
    const stream = randomStream(5, dtype);
    const values = Float32Array.from({ length: 2000 }, () => stream.normal() * 2 ** stream.integer(-12, 10));
    const taken = float32Values(floatTensor(dtype, [values.length], values));
    for (const [at, value] of values.entries()) {
      const least = Math.min(...finite.map((each) => Math.abs(each - value)));
      expect([value, Math.abs(taken[at]! - value)]).toEqual([value, least]);
    }
  });

  it('float8_e4m3fn: ties go to the even bits, what is too large to the largest, NaN stays', () => {
    const values = Float32Array.of(17, 19, -17, 1e9, Number.NEGATIVE_INFINITY, Number.NaN);
    expect([...float32Values(floatTensor('float8_e4m3fn', [6], values))]).toEqual([
      16,
      20,
      -16,
      448,
      -448,
      Number.NaN,
    ]);
  });
});

describe('packed integers', () => {
  it.each([
    ['int4', [0x8f, 0x07], [-1, -8, 7]],
    ['uint4', [0x8f, 0x07], [15, 8, 7]],
    ['int2', [0b11_10_01_00, 0b10], [0, 1, -2, -1, -2]],
    ['uint2', [0b11_10_01_00, 0b10], [0, 1, 2, 3, 2]],
  ] as const)('%s are read from the lowest bits up', (dtype, bytes, values) => {
    const target = new Int8Array(values.length);
    unpackIntegers(dtype, Uint8Array.from(bytes), target);
    expect([...target]).toEqual(values);
    expect(isPackedInteger(dtype)).toBe(true);
  });
});
