import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { barChart } from '../../src/report/chart/bars.js';
import { errorMapChart, histogramChart } from '../../src/report/chart/errors.js';
import { type Chart, drawChart } from '../../src/report/chart/frame.js';
import { plotChart } from '../../src/report/chart/plot.js';
import { linearScale, logScale } from '../../src/report/chart/scale.js';
import { renderHtml } from '../../src/report/html.js';

const text = { title: 'Title', description: 'What it shows' };
const svgOf = (chart: Chart) => drawChart(chart, 'chart').toString();

/** The attributes of every mark (bar, span) of a chart. */
function marks(chart: Chart): readonly Record<string, string>[] {
  return [...svgOf(chart).matchAll(/<rect class="mark ([^"]*)"([^>]*)>/g)].map(([, tone, rest]) => ({
    tone: tone!,
    ...Object.fromEntries(
      [...rest!.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, amount]) => [name!, amount!]),
    ),
  }));
}

describe('scales', () => {
  test('a linear axis ends exactly at its largest quantity, with round ticks inside', () => {
    const scale = linearScale(0, 6284, 5, String);
    expect(scale.ticks.map((tick) => tick.quantity)).toEqual([0, 2000, 4000, 6000]);
    expect([scale.at(0), scale.at(3142), scale.at(6284), scale.at(9999)]).toEqual([0, 0.5, 1, 1]);
  });

  test('a linear axis may start anywhere', () => {
    const scale = linearScale(-7, 33, 4, String);
    expect(scale.ticks.map((tick) => tick.quantity)).toEqual([0, 10, 20, 30]);
    expect([scale.at(-7), scale.at(13), scale.at(33), scale.at(-8)]).toEqual([0, 0.5, 1, 0]);
  });

  test('a logarithmic axis covers whole decades and thins its labels when there are many', () => {
    const scale = logScale(3e-5, 0.02);
    expect(scale.ticks.map((tick) => tick.label)).toEqual(['10⁻⁵', '10⁻⁴', '10⁻³', '10⁻²', '10⁻¹']);
    expect(scale.at(1e-3)).toBeCloseTo(0.5);
    expect(logScale(1e-38, 1e38).ticks.length).toBeLessThanOrEqual(10);
  });

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('an axis up to %d still has places', (max) => {
    const places = [linearScale(0, max, 5, String).at(1), logScale(max, max).at(1)];
    expect(places.every((place) => place >= 0 && place <= 1)).toBe(true);
  });
});

describe('series of a plot', () => {
  const [x, y] = [linearScale(0, 10, 5, String), linearScale(0, 1, 5, String)];
  const points = [
    { x: 0, y: 0 },
    { x: 5, y: 1 },
    { x: Number.NaN, y: 1 },
    { x: 10, y: 0.5 },
  ];
  const plot = (series: Parameters<typeof plotChart>[0]['series']) =>
    plotChart({
      ...text,
      x: { title: 'x', scale: x },
      y: { title: 'y', scale: y },
      ...(series === undefined ? {} : { series }),
    });

  test('joined points are lines, others marks; each series is named below', () => {
    const svg = svgOf(
      plot([
        { name: 'curve', points, joined: true },
        { name: 'dots', points },
      ]),
    );
    // Three finite points: two lines and one in the legend, three marks and one in the legend.
    expect(svg.match(/<line class="joined accent"/g)).toHaveLength(3);
    expect(svg.match(/<circle class="mark good"/g)).toHaveLength(4);
    expect(svg).toContain('>curve</text>');
    expect(svg).not.toContain('NaN');
  });

  test('the sixth has the colour of the first and another form', () => {
    const series = Array.from({ length: 6 }, (_, at) => ({ name: `${at}`, points, joined: true }));
    expect(svgOf(plot(series))).toContain('class="joined accent other"');
    expect(plot(series).height).toBeGreaterThan(plot(series.slice(1)).height);
  });
});

describe('bars', () => {
  test('lengths are proportional to the longest', () => {
    const chart = barChart('Title', [
      { label: 'a', amount: 200, text: '200', tone: 'accent' },
      { label: 'b', amount: 50, text: '50', tone: 'good' },
      { label: 'c', amount: 0, text: '0', tone: 'quiet', name: 'y' },
    ]);
    expect(marks(chart).map(({ tone, x, width }) => [tone, x, width])).toEqual([
      ['accent', '0%', '100%'],
      ['good', '0%', '25%'],
      ['quiet', '0%', '0%'],
    ]);
  });

  test('on an axis they are where they happened, and the shortest is still seen', () => {
    const bar = { tone: 'accent', text: '' } as const;
    const bars = [
      { ...bar, label: 'inspect', from: 0, amount: 1 },
      { ...bar, label: 'build', from: 2500, amount: 10_000 },
    ];
    expect(marks(barChart('Title', bars, { tick: String })).map(({ x, width }) => [x, width])).toEqual([
      ['0%', '0.4%'],
      ['25%', '75%'],
    ]);
  });

  test('a label beside a long amount is cut in its middle, and whole where it is pointed at', () => {
    const label = `begin ${'/long/scope'.repeat(9)} end`;
    const svg = svgOf(barChart('Title', [{ label, amount: 1, text: '1.23 MiB · 45 %', tone: 'accent' }]));
    expect(svg).toMatch(/>begin [^<]*…[^<]* end<\/text>/);
    expect(svg).toContain(`<title>${label}: `);
  });

  test('ticks that would lie on one another have one label', () => {
    const bars = [{ label: 'a', amount: 500_000, text: '', tone: 'accent' } as const];
    const labels = (tick: (amount: number) => string) =>
      svgOf(barChart('Title', bars, { tick })).match(/class="tick"/g);
    expect(labels(() => '1 s')).toHaveLength(6);
    expect(labels(() => '1 min 40 s and more')!.length).toBeLessThan(4);
  });
});

describe('histogram', () => {
  const bins = [
    { from: 1e-4, to: 1e-3, count: 1000 },
    { from: 1e-3, to: 1e-2, count: 10 },
    { from: 1e-2, to: 1e-1, count: 1 },
  ];
  const chart = histogramChart({
    ...text,
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
    const [, at] = /<line class="limit" x1="([\d.]+)%"/.exec(svgOf(chart))!;
    const [, , split, beyond] = marks(chart);
    expect(Number(at)).toBeGreaterThan(Number.parseFloat(split!.x!));
    expect(Number(at)).toBeLessThan(Number.parseFloat(beyond!.x!));
  });

  test('a limit of 0 is where the axis starts, and all bins lie beyond it', () => {
    const mark = { quantity: 0, label: 'limit 0', kind: 'limit' as const, beyond: 'bad' as const };
    const drawn = histogramChart({ ...text, bins, zeros: 5, marks: [mark], axis: 'error' });
    expect(svgOf(drawn)).toContain('<line class="limit" x1="15%"');
    expect(marks(drawn).map(({ tone }) => tone)).toEqual(['good', 'bad', 'bad', 'bad']);
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
  ])('%s draw without a value that is not a number', (_, facts) => {
    expect(svgOf(histogramChart({ ...text, ...facts, axis: 'error' }))).not.toMatch(/NaN|Infinity/);
  });
});

describe('plot', () => {
  const scale = logScale(1e-6, 1e-2, 6);
  const plot = (errors: readonly number[], more: Partial<Parameters<typeof plotChart>[0]> = {}) =>
    plotChart({
      ...text,
      x: { title: 'chunk', scale: linearScale(0, errors.length - 1, 6, String) },
      y: { title: 'error', scale },
      points: errors.map((y, x) => ({ x, y, tone: y > 0.1 ? 'bad' : 'accent', name: `chunk ${x}` })),
      limits: [],
      ...more,
    });
  const circles = (chart: Chart) =>
    [...svgOf(chart).matchAll(/<circle class="mark (\w+)" cx="([\d.]+)%" cy="([\d.]+)"/g)].map(
      ([, tone, x, y]) => ({ tone, x: Number(x), y: Number(y) }),
    );

  test('has a mark for every point, in order, higher for more', () => {
    const marks = circles(plot([1e-5, 6e-4, 2e-3, 0]));
    expect(marks).toHaveLength(4);
    expect(marks.map(({ x }) => x)).toEqual(marks.map(({ x }) => x).toSorted((a, b) => a - b));
    const byHeight = marks.toSorted((a, b) => b.y - a.y);
    expect(byHeight).toEqual([marks[3], marks[0], marks[1], marks[2]]);
  });

  test('is logarithmic where its scale is: equal ratios are equal distances', () => {
    const [a, b, c] = circles(plot([1e-6, 1e-5, 1e-4]));
    expect(a!.y - b!.y).toBeCloseTo(b!.y - c!.y, 1);
  });

  test('draws a line with its name for every limit', () => {
    const limits = [
      { y: 5e-4, label: 'p95 5e-4' },
      { y: 1e-3, label: 'max 1e-3' },
    ];
    const svg = svgOf(plot([1e-5], { limits }));
    expect(svg.match(/<line class="limit"/g)).toHaveLength(2);
    expect(svg).toMatch(/max 1e-3/);
  });

  test('keeps the highest of more points than can be drawn', () => {
    const marks = circles(plot(Array.from({ length: 30_000 }, (_, at) => (at === 12_345 ? 0.5 : 1e-5))));
    expect(marks.length).toBeLessThanOrEqual(1300);
    expect(marks.filter(({ tone }) => tone === 'bad')).toHaveLength(1);
  });

  test.each([
    ['nothing', []],
    ['one point', [1e-4]],
    ['zeros', [0, 0, 0]],
    ['no numbers', [Number.NaN, Number.POSITIVE_INFINITY]],
  ])('draws %s without a place that is not a number', (_case, errors) => {
    expect(svgOf(plot(errors))).not.toMatch(/NaN|Infinity/);
  });
});

/** A page that has nothing but one ring. */
const ringPage = (share: number) =>
  renderHtml(
    {
      name: 'model',
      subtitle: '',
      version: '0',
      verdict: { outcome: 'pass', word: 'Pass', headline: '', reasons: [], remedies: [] },
      figures: [{ text: '30%', name: 'of it', ring: { share, tone: 'good', description: 'What it shows' } }],
      sections: [],
    },
    null,
  );

describe('dial', () => {
  test.each([
    [0, 0],
    [0.5, 0.5],
    [Number.POSITIVE_INFINITY, 1],
  ])('a share of %d fills %d of the ring', (share, filled) => {
    const [, length, around] = /stroke-dasharray="([\d.]+) ([\d.]+)"/.exec(ringPage(share))!;
    expect(Number(length) / Number(around)).toBeCloseTo(filled, 3);
  });
});

test('every chart has a title and a description for readers who cannot see it', () => {
  const bars = barChart('Title', [{ label: 'What', amount: 1, text: 'it shows', tone: 'good', name: 'x' }]);
  expect(svgOf(bars)).toMatch(
    /role="img" aria-labelledby="chart-title chart-text".*<title id="chart-title">Title<\/title><desc id="chart-text">What: it shows\.<\/desc>/,
  );
  expect(ringPage(0.3)).toMatch(
    /role="img" aria-labelledby="(figure-1)-title \1-text".*<title id="\1-title">30% of it<\/title><desc id="\1-text">What it shows<\/desc>/,
  );
});

describe('a heat map', () => {
  const map = (cells: (number | null)[][]) =>
    marks(errorMapChart({ tensor: 't', rows: { axis: 0, size: 2 }, columns: { axis: 1, size: 2 }, cells }));

  test('is the stronger the larger, and shows what has no number', () => {
    const cells = map([
      [0, 1],
      [4, null],
    ]);
    expect(cells.map((cell) => [cell.tone, Number(cell.opacity)])).toEqual([
      ['accent', 0],
      ['accent', 0.25],
      ['accent', 1],
      ['bad', 1],
    ]);
    expect(cells.map(({ x }) => x)).toEqual(['0%', '50%', '0%', '50%']);
    expect(cells[2]?.y).not.toBe(cells[0]?.y);
  });

  test('of zeros is light', () => {
    expect(map([[0, 0]]).map(({ opacity }) => Number(opacity))).toEqual([0, 0]);
  });
});

describe('labels of a plot', () => {
  interface Point {
    readonly x: number;
    readonly y: number;
    readonly label: string;
  }
  const plot = (points: readonly Point[]) =>
    plotChart({
      ...text,
      x: { title: 'x', scale: linearScale(0, 10, 5, String) },
      y: { title: 'y', scale: linearScale(0, 2, 4, String) },
      points: points.map((point) => ({ ...point, tone: 'accent', name: point.label })),
      limits: [{ y: 1, label: 'limit' }],
    });
  const TEXT =
    /<text class="([^"]*)" x="([\d.]+)%?"(?: dx="(-?\d+)")? y="([\d.]+)"(?: text-anchor="(\w+)")?>/;
  /** The boxes of the labels of points, limits and the vertical axis, for a width in pixels, by a face that is 7 pixels wide. */
  const boxes = (chart: Chart, width: number) =>
    [...svgOf(chart).matchAll(new RegExp(`${TEXT.source}([^<]*)</text>`, 'g'))]
      .map(([, , at, dx = '0', baseline, anchor = 'start', content]) => {
        const place = (Number(at) / 100) * width + Number(dx);
        const long = 7 * [...content!].length;
        const left = anchor === 'end' ? place - long : place;
        return { content: content!, left, right: left + long, baseline: Number(baseline) };
      })
      .filter(({ baseline }) => baseline <= 246);
  const clashes = (chart: Chart, width: number) => {
    const all = boxes(chart, width);
    return all.flatMap((a, at) =>
      all
        .slice(at + 1)
        .filter(
          (b) =>
            Math.min(a.right, b.right) > Math.max(a.left, b.left) && Math.abs(a.baseline - b.baseline) < 14,
        )
        .map((b) => `${a.content} and ${b.content}`),
    );
  };
  /** What is left of a page of 390 and of 1280 pixels for a chart, and between. */
  const widths = [310, 500, 700, 870];
  const shownLabels = (chart: Chart, points: readonly Point[]) => {
    const shown = new Set(boxes(chart, 310).map(({ content }) => content));
    return points.filter(({ label }) => shown.has(label)).length;
  };

  test.each<readonly [string, readonly Point[]]>([
    ['four in the same place', [1, 2, 3, 4].map((at) => ({ x: 5, y: 1, label: `${at} INT8, failed` }))],
    ['all corners', [0, 10].flatMap((x) => [0, 2].map((y) => ({ x, y, label: `at ${x} ${y}` })))],
    ['neighbours', [4.9, 4.95, 5, 5.05].map((x, at) => ({ x, y: 0.5, label: `${at} BF16` }))],
    ['the end of the axis', [9.8, 9.9, 10].map((x, at) => ({ x, y: 1.02, label: `${at} FP16` }))],
  ])('of %s all have a place that covers no other', (_, points) => {
    const chart = plot(points);
    expect(shownLabels(chart, points)).toBe(points.length);
    for (const width of widths) expect(clashes(chart, width)).toEqual([]);
  });

  test('never cover each other, and stay inside, whatever the points and their names', () => {
    const point = fc.record({
      x: fc.double({ min: 0, max: 10, noNaN: true }),
      y: fc.double({ min: 0, max: 2, noNaN: true }),
      label: fc.stringMatching(/^[A-Za-z0-9 ,._]{1,60}$/),
    });
    fc.assert(
      fc.property(fc.array(point, { maxLength: 14 }), (points) => {
        const chart = plot(points);
        for (const width of widths) {
          expect(clashes(chart, width)).toEqual([]);
          const all = boxes(chart, width);
          expect(all.filter(({ left, right }) => left < 0 || right > width)).toEqual([]);
        }
      }),
    );
  });

  test('of hostile names are text, and short', () => {
    const name = `"><script>alert(1)</script>${'W'.repeat(500)}`;
    const svg = svgOf(plot([{ x: 1, y: 1, label: name }]));
    expect(svg).not.toContain('<script');
    expect(/dx="10"[^>]*>([^<]*)</.exec(svg)?.[1]).toMatch(/…$/);
    const letter = svgOf(plot([{ x: 5, y: 1, label: `A ${'W'.repeat(500)}` }]));
    expect(letter).toContain('>A</text>');
  });
});

test('a stacked bar has its parts one after another', () => {
  const part = (amount: number, tone: 'accent' | 'quiet') => ({ amount, tone, name: tone });
  const parts = [part(25, 'accent'), part(50, 'quiet')];
  const whole = { label: 'all', amount: 100, text: '100', tone: 'good', name: 'x' } as const;
  const drawn = marks(barChart('Title', [{ ...whole, parts }, whole]));
  expect(drawn.map(({ tone, x, width }) => [tone, x, width])).toEqual([
    ['accent', '0%', '25%'],
    ['quiet', '25%', '50%'],
    ['good', '0%', '100%'],
  ]);
});
