import { describe, expect, test } from 'vitest';
import { barChart } from '../../src/report/chart/bars.js';
import { histogramChart } from '../../src/report/chart/histogram.js';
import { linearScale, logScale } from '../../src/report/chart/scale.js';
import type { Markup } from '../../src/report/markup.js';
import { timelineChart } from '../../src/report/section/phases.js';
import { dial } from '../../src/report/section/verdict.js';

const text = { id: 'chart', title: 'Title', description: 'What it shows' };

/** The attributes of every mark (bar, span) of a chart. */
function marks(chart: Markup): readonly Record<string, string>[] {
  return [...chart.toString().matchAll(/<rect class="mark ([^"]*)"([^>]*)>/g)].map(([, tone, rest]) => ({
    tone: tone!,
    ...Object.fromEntries(
      [...rest!.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, amount]) => [name!, amount!]),
    ),
  }));
}

describe('scales', () => {
  test('a linear axis ends exactly at its largest quantity, with round ticks inside', () => {
    const scale = linearScale(6284, 5, String);
    expect(scale.ticks.map((tick) => tick.quantity)).toEqual([0, 2000, 4000, 6000]);
    expect([scale.at(0), scale.at(3142), scale.at(6284), scale.at(9999)]).toEqual([0, 0.5, 1, 1]);
  });

  test('a logarithmic axis covers whole decades and thins its labels when there are many', () => {
    const scale = logScale(3e-5, 0.02);
    expect(scale.ticks.map((tick) => tick.label)).toEqual(['10⁻⁵', '10⁻⁴', '10⁻³', '10⁻²', '10⁻¹']);
    expect(scale.at(1e-3)).toBeCloseTo(0.5);
    expect(logScale(1e-38, 1e38).ticks.length).toBeLessThanOrEqual(10);
  });

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('an axis up to %d still has places', (max) => {
    const places = [linearScale(max, 5, String).at(1), logScale(max, max).at(1)];
    expect(places.every((place) => place >= 0 && place <= 1)).toBe(true);
  });
});

describe('bars', () => {
  test('lengths are proportional and the parts of a bar follow each other', () => {
    const chart = barChart(text, [
      {
        label: 'a',
        text: '200',
        parts: [
          { amount: 150, tone: 'accent', name: 'x' },
          { amount: 50, tone: 'quiet', name: 'y' },
        ],
      },
      { label: 'b', text: '50', parts: [{ amount: 50, tone: 'good', name: 'z' }] },
    ]);
    expect(marks(chart).map(({ tone, x, width }) => [tone, x, width])).toEqual([
      ['accent', '0%', '75%'],
      ['quiet', '75%', '25%'],
      ['good', '0%', '25%'],
    ]);
  });
});

describe('histogram', () => {
  const bins = [
    { from: 1e-4, to: 1e-3, count: 1000 },
    { from: 1e-3, to: 1e-2, count: 10 },
    { from: 1e-2, to: 1e-1, count: 1 },
  ];
  const chart = histogramChart(text, {
    bins,
    zeros: 5,
    marks: [{ quantity: 5e-3, label: 'limit 5e-3', kind: 'limit', beyond: 'bad' }],
    axis: 'error',
  });

  test('colours a bin by the side of the limit it lies on', () => {
    expect(marks(chart).map(({ tone }) => tone)).toEqual(['good', 'accent', 'warn', 'bad']);
  });

  test('a single element beside a thousand is still seen', () => {
    const heights = marks(chart).map(({ height }) => Number(height));
    expect(heights[3]).toBeGreaterThan(8);
    expect(heights[1]).toBeGreaterThan(heights[2]!);
    expect(heights[2]).toBeGreaterThan(heights[3]!);
  });

  test('draws the limit between the bins it splits', () => {
    const [, at] = /<line class="limit" x1="([\d.]+)%"/.exec(chart.toString())!;
    const [, , split, beyond] = marks(chart);
    expect(Number(at)).toBeGreaterThan(Number.parseFloat(split!.x!));
    expect(Number(at)).toBeLessThan(Number.parseFloat(beyond!.x!));
  });

  test.each([
    ['nothing but equal elements', { bins: [], zeros: 9, marks: [] }],
    ['no elements at all', { bins: [], zeros: 0, marks: [] }],
    [
      'marks that have no place',
      {
        bins,
        zeros: 0,
        marks: [{ quantity: Number.POSITIVE_INFINITY, label: 'max', kind: 'note' as const }],
      },
    ],
  ])('%s draw without a number that is none', (_, facts) => {
    expect(histogramChart(text, { ...facts, axis: 'error' }).toString()).not.toMatch(/NaN|Infinity/);
  });
});

describe('time line', () => {
  test('places spans where they happened, and the shortest is still seen', () => {
    const span = { tone: 'accent', inner: false, text: '' } as const;
    const chart = timelineChart(text, [
      { ...span, label: 'inspect', startMs: 0, endMs: 1 },
      { ...span, label: 'build', startMs: 2500, endMs: 10_000 },
    ]);
    expect(marks(chart).map(({ x, width }) => [x, width])).toEqual([
      ['0%', '0.4%'],
      ['25%', '75%'],
    ]);
  });
});

describe('dial', () => {
  test.each([
    [0, 0],
    [0.5, 0.5],
    [Number.POSITIVE_INFINITY, 1],
  ])('a share of %d fills %d of the ring', (share, filled) => {
    const [, length, around] = /stroke-dasharray="([\d.]+) ([\d.]+)"/.exec(
      dial(text, share, 'x', 'good').toString(),
    )!;
    expect(Number(length) / Number(around)).toBeCloseTo(filled, 3);
  });
});

test('every chart has a title and a description for who cannot see it', () => {
  for (const chart of [barChart(text, []), timelineChart(text, []), dial(text, 0.3, '30%', 'good')])
    expect(chart.toString()).toMatch(
      /role="img" aria-labelledby="chart-title chart-text".*<title id="chart-title">Title<\/title><desc id="chart-text">What it shows<\/desc>/,
    );
});
