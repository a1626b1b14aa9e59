import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { randomStream } from '../../../../src/formats/tensor/random.js';
import { tensorFrom } from '../../../../src/formats/tensor/tensor.js';
import {
  placeInTensor,
  regionFloats,
  validRegion,
} from '../../../../src/products/streaming/compare/region.js';
import { compareTensor, python } from '../../../../src/products/streaming/compare/tensor-parity.js';
import { floats, ids } from '../../../engines/runtime/onnxruntime/models.js';

type TensorRequest = NonNullable<Parameters<typeof compareTensor>[0]>;

const request = (
  candidate: readonly number[],
  reference: readonly number[],
  more: Partial<TensorRequest> = {},
): TensorRequest => ({
  tensor: 'y',
  candidate: floats('float32', [candidate.length], candidate),
  reference: floats('float32', [reference.length], reference),
  region: null,
  limits: { absolute: 1e-3, relative: 1e-3, why: '' },
  rule: 'tensor',
  ...more,
});

/** The rule as the seed's harness computes it, in float64. */
function seedRule(candidate: readonly number[], reference: readonly number[], atol: number, rtol: number) {
  const errors = candidate.map((value, at) => Math.abs(value - reference[at]!));
  const ratios = errors.map((error, at) => error / Math.max(Math.abs(reference[at]!), 1e-12));
  return Math.max(...errors) <= atol || Math.max(...ratios) <= rtol;
}

describe('one output of one chunk', () => {
  it.each([
    ['within the absolute tolerance', [1.0005, -2], [1, -2], true, true],
    ['within the relative tolerance only', [1000.5, -2000], [1000, -2000], true, true],
    ['each element within one of the two', [1000.5, 0.0005], [1000, 0], false, true],
    ['beyond both', [1.1, 2], [1, 2], false, false],
  ])('%s', (_case, candidate, reference, tensorRule, allclose) => {
    expect(compareTensor(request(candidate, reference))).toMatchObject({
      tensorRule,
      allclose,
      pass: tensorRule,
    });
    expect(compareTensor(request(candidate, reference, { rule: 'allclose' })).pass).toBe(allclose);
  });

  it("decides as the seed's harness does, and as numpy.allclose, on anything drawn", () => {
    const value = fc.float({ min: -10, max: 10, noNaN: true });
    const pair = fc.tuple(
      value,
      fc.oneof(fc.constant(0), fc.float({ min: -0.0078125, max: 0.0078125, noNaN: true })),
    );
    fc.assert(
      fc.property(
        fc.array(pair, { minLength: 1, maxLength: 30 }),
        fc.constantFrom(1e-4, 1e-2, 1, 10),
        (pairs, rtol) => {
          const reference = pairs.map(([r]) => r);
          const candidate = pairs.map(([r, d]) => Math.fround(r + d));
          const atol = 2e-3;
          const found = compareTensor(
            request(candidate, reference, { limits: { absolute: atol, relative: rtol, why: '' } }),
          );
          expect(found.tensorRule).toBe(seedRule(candidate, reference, atol, rtol));
          // Right at the bound float32 and float64 may differ.
          const slack = candidate.map(
            (c, at) => Math.abs(c - reference[at]!) - atol - rtol * Math.abs(reference[at]!),
          );
          if (slack.every((each) => Math.abs(each) > 1e-6))
            expect(found.allclose).toBe(slack.every((each) => each <= 0));
        },
      ),
    );
  });

  it('an output of zeros has a largest relative error of exactly 1, so a relative tolerance of 1 cannot fail', () => {
    const reference = [3, -0.2, 1e-20, 7];
    const zeros = compareTensor(
      request([0, 0, 0, 0], reference, { limits: { absolute: 1e-3, relative: 1, why: '' } }),
    );
    expect(zeros).toMatchObject({ maxRel: 1, pass: true, zerosPass: true });
    expect(compareTensor(request([0, 0, 0, 0], reference)).pass).toBe(false);
    expect(compareTensor(request(reference, reference)).zerosPass).toBe(false);
  });

  it('a relative error over a reference of zero counts as over 1e-12', () => {
    expect(compareTensor(request([1e-9, 1], [0, 1])).maxRel).toBeCloseTo(1000, 3);
    expect(compareTensor(request([0, 1.5], [0, 1])).maxRel).toBeCloseTo(0.5, 6);
  });

  it.each([
    ['NaN in the candidate', [Number.NaN, 1], [1, 1], false],
    ['NaN on both sides is not equal, as in numpy', [Number.NaN, 1], [Number.NaN, 1], false],
    ['another infinity', [Number.POSITIVE_INFINITY, 1], [Number.NEGATIVE_INFINITY, 1], false],
    [
      'the same infinity is close, as in numpy, but has no error to judge',
      [Number.POSITIVE_INFINITY, 1],
      [Number.POSITIVE_INFINITY, 1],
      true,
    ],
  ])('%s', (_case, candidate, reference, allclose) => {
    const found = compareTensor(request(candidate, reference));
    expect(found).toMatchObject({ pass: false, failure: 'non-finite', allclose });
  });

  it('integers are exact to their last bit', () => {
    const big = 2 ** 53;
    const one = { ...ids([1], [0]), bytes: new Uint8Array(BigInt64Array.from([BigInt(big) + 1n]).buffer) };
    const found = compareTensor({ ...request([1], [1]), candidate: one, reference: ids([1], [big]) });
    expect(found).toMatchObject({ kind: 'exact', pass: false, failure: 'differs', maxAbs: 1 });
    expect(
      compareTensor({ ...request([1], [1]), candidate: ids([2], [3, 4]), reference: ids([2], [3, 4]) }).pass,
    ).toBe(true);
  });

  it.each([
    ['missing', { candidate: undefined }, 'missing', /missing/],
    [
      'a float where there was an integer',
      { reference: ids([2], [1, 2]) },
      'dtype',
      /float32 where the reference has int64/,
    ],
    [
      'another shape',
      { reference: floats('float32', [2, 1], [1, 2]) },
      'shape',
      /\[2\] where the reference has \[2, 1\]/,
    ],
  ] as const)('%s fails with its own word', (_case, more, failure, reason) => {
    const found = compareTensor({ ...request([1, 2], [1, 2]), ...more });
    expect(found).toMatchObject({ pass: false, failure });
    expect(found.reason).toMatch(reason);
  });

  it.each([null, { axis: 1, from: 1, to: 3 }])('float64 is compared in float64, region %o', (region) => {
    const float64 = (...values: number[]) => tensorFrom('float64', [2, 4], Float64Array.from(values));
    const found = compareTensor({
      tensor: 'y',
      candidate: float64(1, 2, 3 + 1e-12, 4, 5, 1e-14, 7, 8),
      reference: float64(1, 2, 3, 4, 5, 0, 7, 8),
      region,
      limits: { absolute: 1e-13, relative: 0.001, why: '' },
      rule: 'tensor',
    });
    expect(found.maxAbs).toBeCloseTo(1e-12, 15);
    // Over a reference of zero the floor of 1e-12 counts.
    expect(found).toMatchObject({ pass: false, outside: 0, worstAt: [0, 2], maxRel: 0.01 });
    expect(found.compared).toBe(region === null ? 8 : 4);
  });

  it('knows a layer-first state from a batch-first one', () => {
    const zeros = (shape: readonly number[]) =>
      floats('float32', shape, new Array<number>(shape.reduce((a, b) => a * b)).fill(0));
    const reasonOf = (shape: readonly number[]) =>
      compareTensor({
        tensor: 'cache',
        candidate: zeros(shape),
        reference: zeros([1, 3, 4, 2]),
        region: null,
        limits: { absolute: 0, relative: 0, why: '' },
        rule: 'tensor',
      });
    expect(reasonOf([3, 1, 4, 2])).toMatchObject({
      failure: 'shape',
      reason: expect.stringContaining('layer-first'),
    });
    expect(reasonOf([3, 2, 4, 2])).toMatchObject({
      failure: 'shape',
      reason: expect.not.stringContaining('layer-first'),
    });
  });

  it('prints numbers as Python does', () => {
    expect([6e-4, 2, 0, 1.2344e-12, -1e100, Number.NaN, Number.POSITIVE_INFINITY].map(python)).toEqual([
      '6.000e-04',
      '2.000e+00',
      '0.000e+00',
      '1.234e-12',
      '-1.000e+100',
      'nan',
      'inf',
    ]);
  });
});

describe('the valid part of a state', () => {
  const channel = { axis: 2, padSide: 'right', validLength: 'len' } as const;
  const time = { axis: 3, padSide: 'right', validLength: null } as const;
  const cache = floats(
    'float32',
    [1, 2, 4, 3],
    Array.from({ length: 24 }, (_, at) => at + 1),
  );

  it.each([
    [[2], { axis: 2, from: 0, to: 2 }],
    [[3, 1], { axis: 2, from: 0, to: 1 }],
    [[0], { axis: 2, from: 0, to: 0 }],
    [[-67], { axis: 2, from: 0, to: 0 }],
    [[4], null],
    [[300], null],
  ])('by lengths of %j', (lengths, region) => {
    expect(validRegion(channel, cache, new Map([['len', ids([lengths.length], lengths)]]))).toEqual(region);
  });

  it('from the other end where filling up is on the left', () => {
    const left = { ...channel, padSide: 'left' } as const;
    expect(validRegion(left, cache, new Map([['len', ids([1], [1])]]))).toEqual({ axis: 2, from: 3, to: 4 });
  });

  it('by the last position in use where nothing states how many there are', () => {
    const inUse = (values: readonly number[]) =>
      validRegion(time, floats('float32', [1, 1, 2, 4], values), new Map());
    expect(inUse([0, 1, 0, 0, 0, 0, 0, 0])).toEqual({ axis: 3, from: 0, to: 2 });
    expect(inUse([0, 0, 0, 0, 0, 0, 1e-5, 0])).toEqual({ axis: 3, from: 0, to: 3 });
    expect(inUse([1, 1, 1, 1, 0, 0, 0, 1e-9])).toBeNull();
    expect(inUse(Array(8).fill(1e-7))).toEqual({ axis: 3, from: 0, to: 0 });
    expect(inUse([0, 0, Number.NaN, 0, 0, 0, 0, 0])).toEqual({ axis: 3, from: 0, to: 3 });
  });

  it('is read in order, from any place, whatever the axis', () => {
    const shape = [2, 3, 5, 700];
    const stream = randomStream(1);
    const values = Array.from({ length: 2 * 3 * 5 * 700 }, () => stream.uniform());
    const tensor = floats('float32', shape, values);
    for (const region of [
      { axis: 1, from: 1, to: 3 },
      { axis: 2, from: 0, to: 2 },
      { axis: 3, from: 5, to: 9 },
      { axis: 0, from: 1, to: 2 },
    ]) {
      const expected = values.filter((_, index) => {
        const at = placeInTensor(shape, null, index)[region.axis]!;
        return at >= region.from && at < region.to;
      });
      const reader = regionFloats(tensor, region);
      const whole = reader.format.make(reader.length);
      reader.read(0, whole);
      expect([...whole]).toEqual(expected.map(Math.fround));
      const piece = new Float32Array(100);
      reader.read(reader.length - 100, piece);
      expect([...piece]).toEqual(expected.slice(-100).map(Math.fround));
      expect(values[0]).toBeDefined();
      const place = placeInTensor(shape, region, 1);
      expect(place[region.axis]! >= region.from && place[region.axis]! < region.to).toBe(true);
    }
  });

  it('is all that counts: what lies beyond it is not compared, and an empty one passes', () => {
    const reference = floats('float32', [1, 1, 4, 1], [1, 2, 0, 0]);
    const candidate = floats('float32', [1, 1, 4, 1], [1, 2, 99, Number.NaN]);
    const common = { ...request([1], [1]), candidate, reference };
    expect(compareTensor({ ...common, region: { axis: 2, from: 0, to: 2 } })).toMatchObject({
      pass: true,
      compared: 2,
    });
    expect(compareTensor({ ...common, region: { axis: 2, from: 0, to: 0 } })).toMatchObject({
      pass: true,
      compared: 0,
    });
    expect(compareTensor(common).pass).toBe(false);
    const off = compareTensor({
      ...common,
      candidate: floats('float32', [1, 1, 4, 1], [1, 9, 0, 0]),
      region: { axis: 2, from: 1, to: 2 },
    });
    expect(off.worstAt).toEqual([0, 0, 1, 0]);
  });
});
