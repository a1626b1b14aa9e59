import { describe, expect, it } from 'vitest';
import type { WeightStream } from '../../../../src/formats/onnx/weight.js';
import { type FormatId, quantizedFormats } from '../../../../src/formats/precision/formats/index.js';
import { roundingErrors } from '../../../../src/formats/precision/quantize/rounding-errors.js';
import { storedScales } from '../../../../src/formats/precision/quantize/stored-scale.js';
import { weightCodes } from '../../../../src/formats/precision/quantize/weight-codes.js';
import { type WeightScales, weightScales } from '../../../../src/formats/precision/quantize/weight-scales.js';
import { dtypes } from '../../../../src/formats/tensor/dtype.js';
import { type SmallFloat, smallFloatTable } from '../../../../src/formats/tensor/low-precision.js';

const format = (id: FormatId) => quantizedFormats.find((one) => one.id === id)!;

/** Every finite value of a small float type, from which the nearest is found by looking at all. */
function nearestOf(values: readonly number[], wanted: number): readonly number[] {
  const least = Math.min(...values.map((value) => Math.abs(value - wanted)));
  return values.filter((value) => Math.abs(value - wanted) === least);
}

describe.each([
  ['fp8', 'float8_e4m3fn', 448],
  ['nvfp4', 'float4_e2m1fn', 6],
] as const)('%s', (id, dtype, largest) => {
  const { encode } = format(id);
  const table = smallFloatTable(dtype);
  const all = [...table].filter(Number.isFinite);

  it('rounds every value to the nearest, ties to even, and clamps', () => {
    const wanted = Float32Array.from({ length: 4096 }, (_, i) => ((i - 2048) / 2048) ** 3 * largest * 1.2);
    const ties = all
      .flatMap((value) => all.map((other) => (value + other) / 2))
      .filter((_, i) => i % 7 === 0);
    for (const value of [...wanted, ...ties]) {
      const pair = new Uint8Array(1);
      encode(Float32Array.of(value), pair);
      const code = id === 'fp8' ? pair[0]! : pair[0]! & 15;
      const exact = Math.fround(value);
      const nearby = nearestOf(all, Math.max(-largest, Math.min(largest, exact)));
      expect(nearby).toContain(table[code]! + 0);
      if (new Set(nearby.map(Math.abs)).size > 1) expect(code % 2).toBe(0);
    }
  });
});

it.each(quantizedFormats)(
  '$id: errors are summed up of values that are rounded as codes are made',
  (format) => {
    const values = Float32Array.from(
      { length: 4 * 1024 },
      (_, i) => ((i - 2048) / 2048) ** 3 * format.largest * 1.2,
    );
    const ties = Float32Array.from({ length: 64 }, (_, i) => (i - 32) / 4);
    values.set(ties);
    const ones = new Float32Array(1).fill(1);
    const { bits } = dtypes[format.storedDtype];
    const decode = (code: number): number =>
      dtypes[format.storedDtype].kind === 'int'
        ? (code << (32 - bits)) >> (32 - bits)
        : smallFloatTable(format.storedDtype as SmallFloat)[code]!;
    for (let at = 0; at < values.length; at += 4) {
      const four = values.slice(at, at + 4);
      const codes = new Uint8Array(bits / 2);
      format.encode(four, codes);
      const tiles = { values: four, first: 0, laneStride: 1, rowStride: 4, lanes: 4, rows: 1 };
      const place = { place: 0, scale: 0, scaleStride: 1 };
      const scales = new Float64Array(4).fill(1);
      const measure = roundingErrors(format, { mean: ones, variance: ones });
      const { squares, sums } = measure({ ...tiles, ...place }, scales);
      for (const [lane, value] of four.entries()) {
        const code = bits === 8 ? codes[lane]! : (codes[lane >> 1]! >> (4 * (lane & 1))) & 15;
        const error = Math.fround(decode(code) - value);
        expect([sums[lane], squares[lane]]).toEqual([error + 0, Math.fround(error * error)]);
      }
    }
  },
);

it('fp8 keeps NaN a NaN', () => {
  const target = new Uint8Array(1);
  format('fp8').encode(Float32Array.of(Number.NaN), target);
  expect(smallFloatTable('float8_e4m3fn')[target[0]!]).toBeNaN();
});

it('int4 packs two values a byte, the first in the low bits', () => {
  const target = new Uint8Array(3);
  format('int4').encode(Float32Array.of(1, -1, 7.4, -9, 2.5), target);
  expect([...target]).toEqual([0xf1, 0x87, 0x02]);
});

function stream(values: Float32Array, perChunk: number): WeightStream {
  return {
    dtype: 'float32',
    byteLength: values.byteLength,
    *chunks(bytes = 4 * perChunk) {
      const step = bytes >> 2;
      for (let at = 0; at < values.length; at += step)
        yield new Uint8Array(values.slice(at, at + step).buffer);
    },
  };
}

/** A chunk is valid only until the next one. */
function bytesOf(chunks: Iterable<Uint8Array>): Uint8Array {
  const bytes: number[] = [];
  for (const chunk of chunks) bytes.push(...chunk);
  return Uint8Array.from(bytes);
}

const operand = (dims: readonly number[], channelAxis: number, sumAxis: number | undefined) =>
  ({ dims, channelAxis, sumAxis }) as unknown as Parameters<typeof weightScales>[1];
const found = (scales: WeightScales | string): WeightScales => {
  if (typeof scales === 'string') throw new Error(scales);
  return scales;
};
const noise = (count: number) =>
  Float32Array.from({ length: count }, (_, i) => Math.sin(i * 12.9898) * ((i % 13) + 1));

describe('weights', () => {
  it.each([
    ['int8', [6, 5, 3, 3], 0, undefined],
    ['int8', [24, 7], 1, 0],
    ['int8', [24, 7], 0, 1],
    ['fp8', [24, 7], 1, 0],
    ['int4', [256, 24], 1, 0],
    ['int4', [24, 256], 0, 1],
    ['nvfp4', [64, 24], 1, 0],
    ['nvfp4', [24, 64], 0, 1],
  ] as const)(
    '%s of [%s] along %s: every value is within half a step of its code',
    (id, dims, channelAxis, sumAxis) => {
      const values = noise(dims.reduce((product, dim) => product * dim, 1));
      const source = stream(values, 16);
      const scales = found(
        weightScales(source, operand(dims, channelAxis, sumAxis), format(id), storedScales('fp32')),
      );
      const bytes = bytesOf(weightCodes(source, format(id), scales).chunks(16));
      const fourBits = id === 'int4' || id === 'nvfp4';
      expect(bytes.length).toBe(fourBits ? values.length / 2 : values.length);
      const steps = { int8: 0.5, fp8: 16, int4: 2.5, nvfp4: 3 }[id];
      for (const [i, value] of values.entries()) {
        const code = fourBits ? (bytes[i >> 1]! >> (4 * (i & 1))) & 15 : bytes[i]!;
        const [row, column] =
          dims.length === 4 ? [Math.floor(i / 45), 0] : [Math.floor(i / dims[1]!), i % dims[1]!];
        const along = scales.axis === 0 ? row : column;
        const across = scales.axis === 0 ? column : row;
        const blocks = scales.block === undefined ? along : Math.floor(along / scales.block);
        const index =
          scales.block === undefined
            ? along
            : scales.axis === 0
              ? blocks * dims[1]! + across
              : row * (dims[1]! / scales.block) + blocks;
        const decoded =
          id === 'int8'
            ? (code << 24) >> 24
            : id === 'int4'
              ? (code << 28) >> 28
              : smallFloatTable(id === 'fp8' ? 'float8_e4m3fn' : 'float4_e2m1fn')[code]!;
        expect(Math.abs(decoded * scales.at(index) - value)).toBeLessThanOrEqual(
          steps * scales.at(index) * 1.001,
        );
      }
    },
  );

  it('a channel of zeros has the scale 1, equal values the largest code', () => {
    const values = Float32Array.of(0, 0, 0, 0, 3, 3, 3, 3);
    const scales = found(
      weightScales(stream(values, 4), operand([2, 4], 0, 1), format('int8'), storedScales('fp16')),
    );
    expect(scales.at(0)).toBe(1);
    const [codes] = [...weightCodes(stream(values, 8), format('int8'), scales).chunks()];
    expect([...codes!]).toEqual([0, 0, 0, 0, 127, 127, 127, 127]);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY])('a weight with %s has no scales', (value) => {
    const values = Float32Array.of(1, 2, value, 4);
    expect(
      weightScales(stream(values, 4), operand([2, 2], 0, 1), format('int8'), storedScales('fp16')),
    ).toEqual(expect.any(String));
  });
});

describe('scales as FP16 stores them', () => {
  const scale = storedScales('fp16');
  it.each([
    ['a usual one is rounded', 1, 127, 0.007873535],
    ['one of zeros is 1', 0, 127, 1],
    ['a small one is not zero', 1e-8, 127, 2 ** -24],
    ['one beyond the type is none', 1e8, 127, undefined],
    ['an infinite one is none', Number.POSITIVE_INFINITY, 127, undefined],
  ])('%s', (_, magnitude, largest, expected) => {
    const stored = scale(magnitude, largest);
    if (expected === undefined) expect(stored).toBeUndefined();
    else expect(stored).toBeCloseTo(expected, 8);
  });

  it('one below the normal values is rounded up, so that nothing is clipped', () => {
    for (let magnitude = 1e-6; magnitude < 1e-3; magnitude *= 1.7)
      expect(scale(magnitude, 127)! * 127).toBeGreaterThanOrEqual(magnitude);
  });
});
