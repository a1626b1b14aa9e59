import { beforeAll, describe, expect, it } from 'vitest';
import { RandomStream } from '../../../../examples/models/random.js';
import { buildAddon } from '../../../../scripts/build-native.mjs';
import { optionalExport } from '../../../../src/addon/addon.js';
import { formats } from '../../../../src/formats/precision/formats/index.js';
import {
  gridOf,
  type MeasureRounding,
  measureRounding,
} from '../../../../src/formats/precision/quantize/rounding-errors.js';

let addon: MeasureRounding | undefined;
beforeAll(() => {
  buildAddon({ say: () => {} });
  addon = optionalExport<MeasureRounding>('measureRounding');
});

const quantized = formats.flatMap((format) => ('grid' in format ? [format] : []));
/** Bits of floats, every NaN the same. */
const bitsOf = (values: Float32Array) =>
  Array.from(new Uint32Array(values.buffer), (bits, at) => (Number.isNaN(values[at]) ? 'NaN' : bits));

const odd = [Number.NaN, Infinity, -Infinity, -0, 1e-45, -1.17e-38, 3.4e38, 0.25, 2.5, -3.5, 5, 6.5, 1e9];

describe.each(quantized)('$id: errors of rounding', (format) => {
  it.each([
    // Lanes in a row, as columns of a matrix, and apart, as runs; not a multiple of what becomes a vector.
    ['columns', { lanes: 16, rows: 128, laneStride: 1, rowStride: 16 }],
    ['ragged columns', { lanes: 37, rows: 19, laneStride: 1, rowStride: 41 }],
    ['runs', { lanes: 24, rows: 32, laneStride: 96, rowStride: 1 }],
    ['ragged runs', { lanes: 5, rows: 7, laneStride: 7, rowStride: 1 }],
    ['one value', { lanes: 1, rows: 1, laneStride: 1, rowStride: 1 }],
  ])('are the same bits in the addon, in %s', (_, shape) => {
    const stream = new RandomStream(shape.lanes, format.id);
    const draw = () => stream.below(1 << 20) / (1 << 20);
    const first = 3;
    const length = first + (shape.lanes - 1) * shape.laneStride + (shape.rows - 1) * shape.rowStride + 1;
    for (const share of [0, 0.005, 0.05, 1]) {
      const values = Float32Array.from({ length }, () =>
        draw() < share ? odd[Math.floor(draw() * odd.length)]! : (draw() - 0.5) * 2 ** (8 * draw()),
      );
      const moments = Array.from({ length: 2 }, () => Float32Array.from({ length: shape.rows + 2 }, draw));
      const reciprocals = Float32Array.from({ length: 3 * shape.lanes }, () => 0.1 + 4 * draw());
      const results = [measureRounding, addon!].map((measure) => {
        const [squares, sums] = [new Float32Array(reciprocals.length), new Float32Array(reciprocals.length)];
        const tiles = { ...shape, first, place: 2, scale: 0, scaleStride: 1 };
        measure(values, tiles, reciprocals, gridOf(format), moments[0]!, moments[1]!, squares, sums);
        return [bitsOf(squares), bitsOf(sums)];
      });
      expect(results[1]).toEqual(results[0]);
      if (share === 0 && shape.lanes > 1) expect(new Set(results[0]![0]).size).toBeGreaterThan(1);
    }
  });
});

it('arrays that do not belong together are an error, not memory of others', () => {
  const four = new Float32Array(4);
  const tiles = {
    first: 0,
    laneStride: 1,
    rowStride: 4,
    lanes: 4,
    rows: 1,
    place: 0,
    scale: 0,
    scaleStride: 1,
  };
  const call =
    (more: Partial<typeof tiles>, sums = four) =>
    () =>
      addon!(four, { ...tiles, ...more }, four, four, four, four, four, sums);
  expect(call({})).not.toThrow();
  for (const more of [
    { first: 1 },
    { rows: 2 },
    { place: 4 },
    { lanes: 0 },
    { first: -1 },
    { rowStride: -4, rows: 2 },
  ])
    expect(call(more)).toThrow();
  expect(call({}, new Float32Array(3))).toThrow();
});
