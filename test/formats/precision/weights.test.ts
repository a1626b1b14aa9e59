import { describe, expect, it } from 'vitest';
import { type WeightStream, weightFacts } from '../../../src/formats/onnx/weight.js';
import { floatFormats } from '../../../src/formats/precision/formats/index.js';
import { bfloat16ToFloat32, float16ToFloat32 } from '../../../src/formats/tensor/low-precision.js';

/** Values handed out in chunks of a few, as a file would. */
function stream(values: readonly number[], perChunk = 4): WeightStream {
  const bytes = new Uint8Array(Float32Array.from(values).buffer);
  return {
    dtype: 'float32',
    byteLength: bytes.length,
    *chunks() {
      for (let at = 0; at < bytes.length; at += 4 * perChunk) yield bytes.slice(at, at + 4 * perChunk);
    },
  };
}

function convert(values: readonly number[], to: 'float16' | 'bfloat16') {
  const converted = floatFormats.find(({ dtype }) => dtype === to)!.convertWeight(stream(values));
  const bits: number[] = [];
  for (const chunk of converted.chunks()) bits.push(...new Uint16Array(chunk.slice().buffer));
  const floats = new Float32Array(bits.length);
  (to === 'float16' ? float16ToFloat32 : bfloat16ToFloat32)(Uint16Array.from(bits), floats);
  return { values: [...floats], losses: converted.losses };
}

describe('FP32 to FP16', () => {
  it.each<[string, number, number, string | undefined]>([
    ['keeps what fits', 1.5, 1.5, undefined],
    ['rounds to even', 1 + 2 ** -11, 1, undefined],
    ['keeps the largest value', 65504, 65504, undefined],
    ['rounds down to the largest value', 65519.99, 65504, undefined],
    ['clamps what would be infinite', 65520, 65504, 'saturated'],
    ['clamps the largest float', -3.4028234663852886e38, -65504, 'saturated'],
    ['keeps infinity', Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY, undefined],
    ['keeps NaN', Number.NaN, Number.NaN, undefined],
    ['makes small values subnormal', 2 ** -20, 2 ** -20, 'subnormal'],
    ['loses what is smaller than half the smallest', 2 ** -25, 0, 'toZero'],
    ['keeps zero', 0, 0, undefined],
  ])('%s: %s', (_, value, expected, loss) => {
    const { values, losses } = convert([value], 'float16');
    expect(values).toEqual([expected]);
    expect(losses).toEqual({
      saturated: 0,
      toZero: 0,
      subnormal: 0,
      ...(loss === undefined ? {} : { [loss]: 1 }),
    });
  });

  it('counts over all chunks', () => {
    const { values, losses } = convert([1, 1e5, -1e6, 1e-9, 2, 1e-6, 1e-6, 1e7, 3], 'float16');
    expect(values.map((value) => Math.round(value))).toEqual([1, 65504, -65504, 0, 2, 0, 0, 65504, 3]);
    expect(losses).toEqual({ saturated: 3, toZero: 1, subnormal: 2 });
  });
});

describe('FP32 to BF16', () => {
  it.each([
    ['rounds to 8 bits', 1.00390625, 1],
    ['keeps large values', 1e30, 1e30],
    ['clamps the largest float, which would round to infinity', 3.4028234663852886e38, 3.3895313892515355e38],
    ['keeps infinity', Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  ])('%s: %s', (_, value, expected) => {
    const [result = Number.NaN] = convert([value], 'bfloat16').values;
    expect(Object.is(result, expected) || Math.abs(result / expected - 1) < 2 ** -8).toBe(true);
  });
});

describe('what is found in a weight', () => {
  it('counts each kind once', () => {
    const values = [0, -0, 1, -3, 65520, 1e-5, 2 ** -25, Number.NaN, Number.POSITIVE_INFINITY, -7e4];
    expect(weightFacts(stream(values))).toEqual({
      elements: 10,
      maxAbs: 70000,
      tooLarge: 2,
      toZero: 1,
      subnormal: 2,
      zero: 2,
      notFinite: 2,
    });
  });

  it.each([
    [[1e-7, -3e-7], 3e-7],
    [[0, 0], 0],
    [[], 0],
    [[5, 4, 3], 5],
  ])('finds the largest of %j', (values, largest) => {
    expect(weightFacts(stream(values)).maxAbs).toBeCloseTo(largest, 10);
  });

  it('is the same whatever the order and the chunks', () => {
    const values = Array.from({ length: 1000 }, (_, index) =>
      index % 7 === 0 ? 0 : Math.sin(index) * 10 ** ((index % 13) - 8),
    );
    const facts = weightFacts(stream(values));
    expect(weightFacts(stream(values.toReversed(), 64))).toEqual(facts);
    expect(facts.maxAbs).toBe(Math.max(...Float32Array.from(values).map(Math.abs)));
  });
});
