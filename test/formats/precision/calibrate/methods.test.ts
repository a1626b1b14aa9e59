import { describe, expect, test } from 'vitest';
import type { Histogram } from '../../../../src/formats/precision/calibrate/histogram.js';
import {
  entropyAmax,
  methodText,
  mseAmax,
  parseMethod,
  percentileAmax,
  quantizationMse,
} from '../../../../src/formats/precision/calibrate/methods.js';

const histogram = (bins: number, count: (bin: number) => number): Histogram => ({
  width: 1,
  counts: Float64Array.from({ length: bins }, (_, bin) => Math.round(count(bin))),
});
const bell = (bin: number, center: number, deviation: number) =>
  Math.exp(-(((bin - center) / deviation) ** 2) / 2);

const histograms = {
  normal: histogram(2048, (bin) => 1e6 * bell(bin, 0, 400)),
  laplace: histogram(2048, (bin) => 1e7 * Math.exp(-bin / 60)),
  uniform: histogram(2048, () => 1000),
  outliers: histogram(2048, (bin) => (bin >= 2040 ? 3 : 1e5 * bell(bin, 0, 150))),
  relu: histogram(2048, (bin) => (bin === 0 ? 5e6 : 1e4 * bell(bin, 700, 90))),
  sparse: histogram(2048, (bin) => (bin % 7 === 0 ? 1e5 / (1 + bin) : 0)),
  widened: histogram(3000, (bin) => (bin === 2999 ? 1 : 1e6 * Math.exp(-bin / 200))),
};

/**
 * Ranges and mean squared errors, in widths of a bin, by numpy: pytorch-quantization's loops over bins written out (`_compute_amax_entropy` with
 * scipy's entropy, `_compute_amax_percentile`, `_compute_amax_mse` with torch's rounding of INT8 and a table of E4M3's values).
 */
const expected = {
  normal: {
    entropy: 1921,
    p9999: 1556,
    p999: 1316,
    mse: [1567.5, 14.039926408767709],
    fp8: [1850.5, 111.90388],
  },
  laplace: {
    entropy: 640,
    p9999: 552,
    p999: 414,
    mse: [592.5, 2.1663077782103723],
    fp8: [1792.5, 5.0084425],
  },
  uniform: {
    entropy: 2048,
    p9999: 2047,
    p999: 2045,
    mse: [2039.5, 21.501515884867707],
    fp8: [1996.5, 865.13812],
  },
  outliers: {
    entropy: 707,
    p9999: 584,
    p999: 493,
    mse: [609.5, 4.625213148666568],
    fp8: [2025.5, 15.879854],
  },
  relu: { entropy: 301, p9999: 1007, p999: 945, mse: [1014.5, 1.8668157142600634], fp8: [1502.5, 81.672509] },
  sparse: { entropy: 2045, p9999: 2044, p999: 2023, mse: [2032.5, 11.72095], fp8: [1993.5, 104.1193] },
  widened: {
    entropy: 2240,
    p9999: 1841,
    p999: 1381,
    mse: [1968.5, 23.718244732214053],
    fp8: [2688.5, 56.130105],
  },
} as const;

describe.each(Object.keys(histograms) as (keyof typeof histograms)[])('of %s values', (name) => {
  const values = histograms[name];
  const { entropy, p9999, p999, mse, fp8 } = expected[name];

  test('the percentile', () => {
    expect(percentileAmax(values)).toBe(p9999);
    expect(percentileAmax(values, 99.9)).toBe(p999);
  });

  test('the least divergence', () => {
    expect(entropyAmax(values)).toBe(entropy);
  });

  test.each([
    ['int8', mse],
    ['float8_e4m3fn', fp8],
  ] as const)('the least error as %s', (dtype, [amax, error]) => {
    expect(mseAmax(values, dtype)).toBe(amax);
    // Ties of rounding: numpy's are to even codes.
    expect(quantizationMse(values, amax, dtype) / error).toBeCloseTo(1, 4);
    expect(quantizationMse(values, 0.6 * amax, dtype)).toBeGreaterThan(error);
  });
});

test('a width scales ranges, its square errors', () => {
  const { counts } = histograms.normal;
  const scaled = { width: 0.25, counts };
  expect(entropyAmax(scaled)).toBe(1921 / 4);
  expect(percentileAmax(scaled)).toBe(1556 / 4);
  expect(mseAmax(scaled)).toBe(1567.5 / 4);
  expect(quantizationMse(scaled, 1567.5 / 4)).toBeCloseTo(14.039926408767709 / 16, 10);
});

test('a tensor of zeros has the range 0', () => {
  const zeros = { width: 0, counts: Float64Array.from({ length: 2048 }, (_, bin) => (bin === 0 ? 64 : 0)) };
  expect([percentileAmax(zeros), entropyAmax(zeros), mseAmax(zeros), quantizationMse(zeros, 0)]).toEqual([
    0, 0, 0, 0,
  ]);
});

test('where nearly all values are in the first bin no range is 0', () => {
  const spike = histogram(2048, (bin) => (bin === 0 ? 1e9 : bin === 2047 ? 1 : 0));
  expect(percentileAmax(spike)).toBe(1);
  expect(entropyAmax(spike)).toBeGreaterThan(0);
  expect(mseAmax(spike)).toBeGreaterThan(0);
});

describe('the name of a method', () => {
  test.each([
    ['max', 'max'],
    ['percentile', 'percentile:99.99'],
    ['percentile:99.9', 'percentile:99.9'],
    ['entropy', 'entropy'],
    ['mse', 'mse'],
  ])('%s is %s', (given, full) => {
    expect(methodText(parseMethod(given))).toBe(full);
    expect(parseMethod(full)).toEqual(parseMethod(given));
  });

  test.each([
    '',
    'Max',
    'minmax',
    'max:1',
    'percentile:',
    'percentile:0',
    'percentile:101',
    'percentile:x',
    'percentile:99:9',
    'toString',
  ])('"%s" is rejected', (text) => {
    expect(() => parseMethod(text)).toThrow(expect.objectContaining({ code: 'TF_USAGE' }));
  });
});
