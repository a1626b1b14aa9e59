import { expect, it } from 'vitest';
import { driftOf } from '../../../../src/products/streaming/compare/drift.js';
import { driftSection } from '../../../../src/products/streaming/report/drift-section.js';
import type { ParityResult } from '../../../../src/products/streaming/verify/result.js';

/** A stream whose chunks have these errors. */
function streamOf(errors: readonly number[]): Pick<ParityResult, 'drift' | 'series'> {
  const { slope, ...drift } = driftOf('output', errors);
  const named = (value: number) => (Number.isNaN(value) ? 'NaN' : value);
  return JSON.parse(
    JSON.stringify(
      {
        drift: { ...drift, slope, checks: [] },
        series: errors.map((maxAbs, chunk) => ({ chunk, tensors: [{ tensor: 'output', maxAbs }] })),
      },
      (_key, value: unknown) => (typeof value === 'number' ? named(value) : value),
    ),
  );
}

it('tells the bound and the mean of a stream', () => {
  expect(driftSection(streamOf([1e-4, 3e-4, 2e-4]))?.lead).toMatch(
    /^The largest error of output over 3 chunks is 3\.00e-4 \(chunk 1\), the mean 2\.00e-4\./,
  );
});

it('tells of chunks without a number instead of a bound that is none', () => {
  const section = driftSection(streamOf([1e-4, Number.NaN, 2e-4, Number.NaN]));
  expect(section?.lead).toMatch(/^The error of output is no number in 2 of 4 chunks, first in chunk 1\./);
  expect(section?.lead).not.toMatch(/NaN/);
});
