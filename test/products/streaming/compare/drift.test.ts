import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { randomStream } from '../../../../src/formats/tensor/random.js';
import {
  type Drift,
  type DriftPolicy,
  defaultPolicy,
  driftOf,
  judgeDrift,
  policyFor,
} from '../../../../src/products/streaming/compare/drift.js';
import { explain } from '../../../../src/products/streaming/verify/causes.js';
import type { ParityMode } from '../../../../src/products/streaming/verify/options.js';
import { evidenceOf, outcomeOf, parityOf } from '../evidence.js';

/** Errors as a healthy engine has them: about 1e-4, spread over a factor of three. */
const steady = (chunks: number, seed = 1): number[] => {
  const stream = randomStream(seed);
  return Array.from({ length: chunks }, () => 1e-4 * 1.7 ** stream.normal());
};
const growing = (chunks: number, perChunk: number) =>
  steady(chunks).map((error, at) => error + perChunk * at);

/** All chunks are within the tolerance, and nothing was timed. */
const rest = { passRate: 1, latencyP95Ms: null };

/** What is found in a drift, with the errors' sizes relative to the reference's chunk by chunk. */
const why = (drift: Drift, relative: readonly number[] = [], mode: ParityMode = 'closed-loop') =>
  explain(
    evidenceOf({
      mode,
      drifts: [drift],
      chunks: relative.map((relativeRms, chunk) =>
        outcomeOf({ chunk, tensors: [parityOf({ relativeRms })] }),
      ),
    }),
  );

describe('the shape of a stream', () => {
  it.each([
    ['steady', steady(300)],
    ['steady', steady(50, 9)],
    ['growing', growing(300, 1e-6)],
    ['growing', growing(50, 1e-5)],
    ['outliers', steady(50).with(40, 0.01)],
    ['outliers', steady(50).with(1, 0.01)],
    ['steady', steady(300).map((error, at) => error + 1e-6 * (300 - at))],
    ['steady', Array(20).fill(0)],
    ['too-short', [1e-4, 2e-4, 3e-4]],
    ['too-short', []],
  ] as const)('%s', (shape, errors) => {
    expect(driftOf('y', errors).shape).toBe(shape);
  });

  it('a single 0.01 spike in 50 chunks tilts a line by 8e-6 and is named as the outlier that it is', () => {
    const flat = Array(50).fill(1e-4).with(45, 0.01);
    const drift = driftOf('y', flat);
    expect(drift.slope.leastSquares.perChunk).toBeGreaterThan(1e-5);
    const mild = driftOf('y', Array(50).fill(1e-4).with(33, 0.01));
    expect(mild.slope.leastSquares.perChunk).toBeCloseTo(8e-6, 6);
    for (const { slope, outliers, shape } of [drift, mild]) {
      expect(slope.robust.perChunk).toBe(0);
      expect(outliers).toHaveLength(1);
      expect(shape).toBe('outliers');
    }
    // Of zeros but for rounding, and of a reference that is itself large.
    expect(why(mild, [0, 6e-8])).toEqual([]);
    const [explained] = why(mild);
    expect(explained?.sentence).toMatch(/stands out in chunk 33 and does not grow.*least-squares slope of/);
  });

  it('reports first and last thirds, the bound and where it is', () => {
    const drift = driftOf('y', [1, 1, 1, 2, 2, 2, 3, 3, 9], [10, 11, 12, 13, 14, 15, 16, 17, 18]);
    expect(drift.thirds).toEqual({ first: 1, last: 5, ratio: 5 });
    expect(drift).toMatchObject({ max: 9, worstChunk: 18, p50: 2, chunks: 9 });
  });

  it('that falls is reported as falling', () => {
    const falling = driftOf(
      'y',
      Array.from({ length: 20 }, (_, at) => 1e-4 - 1e-6 * at),
    );
    const slope = judgeDrift(falling, defaultPolicy, rest).find(({ name }) => name === 'slope');
    expect(slope?.outcome).toBe('pass');
    expect(slope?.sentence).toMatch(/^the error falls by 0\.000001 a chunk; a growth of/);
  });

  it('has no bound where the error of a chunk is no number, and names that chunk', () => {
    expect(driftOf('y', [1, 2, Number.NaN, 3, Number.POSITIVE_INFINITY])).toMatchObject({
      chunks: 3,
      unmeasured: 2,
      max: Number.NaN,
      worstChunk: 2,
    });
    expect(driftOf('y', [1, 3, 2])).toMatchObject({ chunks: 3, unmeasured: 0, max: 3, worstChunk: 1 });
  });

  it('an error that grows as the output does is no accumulation', () => {
    const drift = driftOf('y', growing(60, 1e-5));
    const withOutput = why(drift, Array(60).fill(1e-5));
    expect(withOutput.map(({ id }) => id)).toEqual(['error-grows-with-output']);
    const relative = Array.from({ length: 60 }, (_, at) => 1e-6 * (1 + at));
    expect(why(drift, relative)[0]?.id).toBe('error-accumulates');
    expect(why(drift, relative, 'functional')[0]?.id).toBe('error-grows-with-data');
  });

  it('never fails on anything drawn', () => {
    fc.assert(
      fc.property(fc.array(fc.double(), { maxLength: 40 }), (errors) => {
        const drift = driftOf('y', errors);
        expect(drift.chunks).toBeLessThanOrEqual(errors.length);
        judgeDrift(drift, defaultPolicy, rest);
      }),
    );
  });
});

describe('the criteria', () => {
  const outcomes = (
    errors: readonly number[],
    latencyP95Ms: number | null = null,
    policy: DriftPolicy = defaultPolicy,
    passRate = 1,
  ) =>
    Object.fromEntries(
      judgeDrift(driftOf('y', errors), policy, { passRate, latencyP95Ms }).map(({ name, outcome }) => [
        name,
        outcome,
      ]),
    );

  it.each([
    ['a healthy stream', steady(300), { 'pass-rate': 'pass', max: 'pass', mean: 'pass', slope: 'pass' }],
    [
      'one chunk above 1e-3',
      steady(300).with(7, 3.4e-3),
      { 'pass-rate': 'pass', max: 'fail', mean: 'pass', slope: 'pass' },
    ],
    ['all of them twice too large', steady(300).map((e) => 3 * e), { mean: 'fail', slope: 'pass' }],
    ['growth by 1e-5 a chunk', growing(300, 1e-5), { max: 'fail', slope: 'fail' }],
    ['too few chunks to tell growth from chance', [1e-4, 5e-4, 2e-4, 4e-4], { slope: 'inconclusive' }],
  ] as const)('%s', (_case, errors, expected) => {
    expect(outcomes(errors)).toMatchObject(expected);
  });

  it.each([
    [0.8, 'pass'],
    [0.79, 'fail'],
    [Number.NaN, 'inconclusive'],
  ])('%s of the chunks within the tolerance: %s', (passRate, outcome) => {
    expect(outcomes(steady(20), null, defaultPolicy, passRate)['pass-rate']).toBe(outcome);
    expect(outcomes(steady(20), null, { ...defaultPolicy, passRate: null })).not.toHaveProperty('pass-rate');
  });

  it('p95 decides where a limit is passed', () => {
    const errors = Array(20).fill(1e-4).fill(6e-4, 15);
    expect(outcomes(errors)).not.toHaveProperty('p95');
    expect(outcomes(errors, null, { ...defaultPolicy, p95: 5e-4 }).p95).toBe('fail');
  });

  it('the latency target is compared with the 95th percentile, where there is one', () => {
    expect(outcomes(steady(20), 22, { ...defaultPolicy, latencyMs: 21 }).latency).toBe('fail');
    expect(outcomes(steady(20), 20, { ...defaultPolicy, latencyMs: 21 }).latency).toBe('pass');
    expect(outcomes(steady(20), null, { ...defaultPolicy, latencyMs: 21 })).not.toHaveProperty('latency');
  });

  it('state what was measured and what is allowed', () => {
    const [check] = judgeDrift(driftOf('y', Array(20).fill(2e-3)), defaultPolicy, rest);
    expect(check).toMatchObject({ name: 'max', measured: 2e-3, limit: 1e-3, outcome: 'fail' });
    expect(check?.sentence).toContain('0.002');
  });

  it.each([
    ['many noisy chunks', Array.from({ length: 20 }, (_, at) => 1e-3 * ((at * 7) % 5) + 1e-5 * at), 'pass'],
    ['too few chunks', [1e-4, 5e-4, 2e-4, 4e-4], 'inconclusive'],
  ])('a slope above its limit that does not fail states why: %s', (_, errors, outcome) => {
    const slope = judgeDrift(driftOf('y', errors), defaultPolicy, rest).find(({ name }) => name === 'slope');
    expect(slope?.measured).toBeGreaterThan(1e-6);
    expect(slope).toMatchObject({
      outcome,
      sentence: expect.stringMatching(/0\.000001 is allowed: above the limit, not certain \(99\.95 %\)\.$/),
    });
  });

  it('a slope is certain where its own lower bound is above the limit', () => {
    const errors = growing(40, 1e-5);
    const drift = driftOf('y', errors);
    const { low, perChunk } = drift.slope.robust;
    expect(low).toBeGreaterThan(0);
    const outcomeAt = (slope: number) =>
      judgeDrift(drift, { ...defaultPolicy, slope }, rest).find(({ name }) => name === 'slope')?.outcome;
    expect(outcomeAt(low * 0.99)).toBe('fail');
    expect(outcomeAt((low + perChunk) / 2)).toBe('pass');
  });

  it('are as many times wider as the tolerance of the main output, and never narrower', () => {
    expect(policyFor(1e-2)).toMatchObject({ passRate: 0.8, max: 2e-2, mean: 4e-3, latencyMs: null });
    expect(policyFor(1e-6)).toEqual(defaultPolicy);
  });
});
