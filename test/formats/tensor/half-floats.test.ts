import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bfloat16ToFloat32,
  float16ToFloat32,
  float32ToBfloat16,
  float32ToFloat16,
} from '../../../src/formats/tensor/low-precision.js';

/** The value of a half by the standard's own words: independent of the bit tricks under test. */
function halfByDefinition(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const mantissa = bits & 1023;
  if (exponent === 31) return mantissa === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (exponent === 0 ? mantissa * 2 ** -24 : (1 + mantissa / 1024) * 2 ** (exponent - 15));
}

const positiveHalves = Array.from({ length: 0x7c00 }, (_, bits) => halfByDefinition(bits));

/** Nearest half by search among all of them, ties to the even one. */
function nearestHalf(value: number): number {
  const magnitude = Math.abs(value);
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  if (Number.isNaN(value)) return 0x7e00;
  if (magnitude >= 65520) return sign | 0x7c00;
  let low = 0;
  let high = 0x7bff;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (positiveHalves[middle]! <= magnitude) low = middle;
    else high = middle;
  }
  const below = magnitude - positiveHalves[low]!;
  const above = positiveHalves[high]! - magnitude;
  const bits = below < above || (below === above && low % 2 === 0) ? low : high;
  return sign | (magnitude === positiveHalves[low] ? low : bits);
}

describe('float16', () => {
  it('reads each of the 65,536 halves as the standard defines it', () => {
    const decoded = new Float32Array(1 << 16);
    float16ToFloat32(
      Uint16Array.from({ length: 1 << 16 }, (_, bits) => bits),
      decoded,
    );
    decoded.forEach((value, bits) => {
      if (!Object.is(value, halfByDefinition(bits)))
        expect([bits, value]).toEqual([bits, halfByDefinition(bits)]);
    });
    expect(decoded[0x3c01]).toBe(1 + 2 ** -10);
  });

  it('gives every half back unchanged, NaN payloads apart', () => {
    const all = Uint16Array.from({ length: 1 << 16 }, (_, bits) => bits);
    const floats = new Float32Array(1 << 16);
    const back = new Uint16Array(1 << 16);
    float16ToFloat32(all, floats);
    float32ToFloat16(floats, back);
    const changed = all.filter((bits, i) => back[i] !== bits && !Number.isNaN(floats[i]));
    expect(changed).toHaveLength(0);
    expect([...back].filter((bits, i) => Number.isNaN(floats[i]) && (bits & 0x7fff) <= 0x7c00)).toHaveLength(
      0,
    );
  });

  it('rounds to the nearest half at every midpoint and one step beside it', () => {
    const values: number[] = [];
    const step = new Float32Array(1);
    const stepBits = new Uint32Array(step.buffer);
    for (let bits = 0; bits < 0x7bff; bits++) {
      const middle = (positiveHalves[bits]! + positiveHalves[bits + 1]!) / 2;
      step[0] = middle;
      const around = [stepBits[0]! - 1, stepBits[0]!, stepBits[0]! + 1];
      for (const b of around) {
        stepBits[0] = b;
        values.push(step[0], -step[0]);
      }
    }
    const source = Float32Array.from(values);
    const encoded = new Uint16Array(source.length);
    float32ToFloat16(source, encoded);
    const wrong = values.filter((value, i) => encoded[i] !== nearestHalf(value));
    expect(wrong).toEqual([]);
  });

  it('agrees with the search for any float32, at any alignment', () => {
    fc.assert(
      fc.property(fc.float32Array({ maxLength: 9 }), fc.nat(1), (source, offset) => {
        const target = new Uint16Array(source.length + 1).subarray(offset, offset + source.length);
        float32ToFloat16(source, target);
        source.forEach((value, i) => {
          if (Number.isNaN(value)) expect(halfByDefinition(target[i]!)).toBeNaN();
          else expect(target[i]).toBe(nearestHalf(value));
        });
      }),
    );
  });

  it.each([
    ['65519.99 stays finite', 65519.996, { toInfinity: 0, toZero: 0, toSubnormal: 0 }, 0x7bff],
    ['65520 becomes infinity', 65520, { toInfinity: 1, toZero: 0, toSubnormal: 0 }, 0x7c00],
    ['infinity is no loss', Number.POSITIVE_INFINITY, { toInfinity: 0, toZero: 0, toSubnormal: 0 }, 0x7c00],
    ['2^-25 becomes zero', 2 ** -25, { toInfinity: 0, toZero: 1, toSubnormal: 0 }, 0],
    ['float32 subnormals become zero', 1e-45, { toInfinity: 0, toZero: 1, toSubnormal: 0 }, 0],
    [
      'just above 2^-25 becomes the smallest',
      2 ** -25 * 1.001,
      { toInfinity: 0, toZero: 0, toSubnormal: 1 },
      1,
    ],
    ['zero is no loss', 0, { toInfinity: 0, toZero: 0, toSubnormal: 0 }, 0],
  ])('counts what is lost: %s', (_name, value, losses, bits) => {
    for (const values of [[1, value, 1], [value]]) {
      const target = new Uint16Array(values.length);
      expect(float32ToFloat16(Float32Array.from(values), target)).toEqual(losses);
      expect(target[values.indexOf(value)]).toBe(bits);
    }
  });

  it('rejects places of another length', () => {
    expect(() => float32ToFloat16(new Float32Array(3), new Uint16Array(4))).toThrow(RangeError);
  });
});

describe('bfloat16', () => {
  it.each([
    [1, 0x3f80],
    [-2, 0xc000],
    [1 + 2 ** -8, 0x3f80],
    [1 + 3 * 2 ** -8, 0x3f82],
    [1 + 2 ** -8 + 2 ** -20, 0x3f81],
    [3.4028234663852886e38, 0x7f80],
    [Number.NEGATIVE_INFINITY, 0xff80],
  ])('rounds %d to bits %i, ties to even', (value, bits) => {
    const target = new Uint16Array(1);
    float32ToBfloat16(Float32Array.of(value), target);
    expect(target[0]).toBe(bits);
  });

  it('keeps NaN a NaN even where rounding would carry into infinity', () => {
    const source = new Float32Array(1);
    new Uint32Array(source.buffer)[0] = 0x7f80_0001;
    const target = new Uint16Array(1);
    float32ToBfloat16(source, target);
    bfloat16ToFloat32(target, source);
    expect(source[0]).toBeNaN();
  });

  it('reads every bit pattern as the upper half of a float32 and gives it back', () => {
    const all = Uint16Array.from({ length: 1 << 16 }, (_, bits) => bits);
    const floats = new Float32Array(1 << 16);
    bfloat16ToFloat32(all, floats);
    expect(new Uint32Array(floats.buffer).every((bits, i) => bits === i * 65536)).toBe(true);
    const back = new Uint16Array(1 << 16);
    float32ToBfloat16(floats, back);
    expect(all.filter((bits, i) => back[i] !== bits && !Number.isNaN(floats[i]))).toHaveLength(0);
  });
});
