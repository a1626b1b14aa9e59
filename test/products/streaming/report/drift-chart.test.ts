import { describe, expect, test } from 'vitest';
import { type DriftFacts, driftChart } from '../../../../src/products/streaming/report/drift-chart.js';

const text = { id: 'drift', title: 'Error by chunk', description: 'From 1e-5 to 2e-3' };
const limits = [
  { error: 1e-3, label: 'max 1e-3', beyond: 'bad' },
  { error: 5e-4, label: 'p95 5e-4', beyond: 'warn' },
] as const;

function circles(facts: Partial<DriftFacts>) {
  const svg = driftChart(text, { points: [], limits, ...facts }).toString();
  return [...svg.matchAll(/<circle class="mark (\w+)" cx="([\d.]+)%" cy="([\d.]+)"/g)].map(
    ([, tone, x, y]) => ({
      tone,
      x: Number(x),
      y: Number(y),
    }),
  );
}
const points = (errors: readonly number[]) => errors.map((error, chunk) => ({ chunk, error }));

describe('the drift chart', () => {
  test('has a mark for every chunk, in order, coloured by the limits it is above', () => {
    const marks = circles({ points: points([1e-5, 6e-4, 2e-3, 0]) });
    expect(marks.map(({ tone }) => tone)).toEqual(['accent', 'warn', 'bad', 'good']);
    expect(marks.map(({ x }) => x)).toEqual(marks.map(({ x }) => x).toSorted((a, b) => a - b));
    expect(marks[2]!.y).toBeLessThan(marks[1]!.y);
    expect(marks[1]!.y).toBeLessThan(marks[0]!.y);
  });

  test('is logarithmic: equal ratios are equal distances', () => {
    const [a, b, c] = circles({ points: points([1e-6, 1e-5, 1e-4]) });
    expect(a!.y - b!.y).toBeCloseTo(b!.y - c!.y, 1);
  });

  test('draws a line with its name for every limit', () => {
    const svg = driftChart(text, { points: points([1e-5]), limits }).toString();
    expect(svg.match(/<line class="limit"/g)).toHaveLength(2);
    expect(svg).toMatch(/max 1e-3/);
  });

  test('keeps the worst chunk of a stream too long to draw', () => {
    const errors = Array.from({ length: 30_000 }, (_, at) => (at === 12_345 ? 0.5 : 1e-5));
    const marks = circles({ points: points(errors) });
    expect(marks.length).toBeLessThanOrEqual(1300);
    expect(marks.filter(({ tone }) => tone === 'bad')).toHaveLength(1);
  });

  test.each([
    ['nothing', []],
    ['one chunk', [1e-4]],
    ['zeros', [0, 0, 0]],
    ['no numbers', [Number.NaN, Number.POSITIVE_INFINITY]],
  ])('draws %s without a place that is no number', (_case, errors) => {
    expect(driftChart(text, { points: points(errors), limits: [] }).toString()).not.toMatch(/NaN|Infinity%/);
  });
});
