import { formatStatistic } from '../../../base/text/quantity.js';
import { across, anchorAt, type ChartText, frame, type Tone } from '../../../report/chart/frame.js';
import { logScale } from '../../../report/chart/scale.js';
import { join, type Markup, markup } from '../../../report/markup.js';

/** The error of one chunk. */
export interface DriftPoint {
  readonly chunk: number;
  readonly error: number;
}

/** A horizontal line; points above it take its colour. */
export interface DriftLimit {
  readonly error: number;
  readonly label: string;
  readonly beyond: Tone;
}

export interface DriftFacts {
  readonly points: readonly DriftPoint[];
  readonly limits: readonly DriftLimit[];
}

const TOP = 26;
const PLOT_HEIGHT = 220;
const BASE = TOP + PLOT_HEIGHT;
const HEIGHT = BASE + 44;
const LEFT = 0.07;
const RIGHT = 0.99;

/** More marks than this are one blur: of each column of chunks the worst and the best stay. */
const MOST_MARKS = 1200;

/** The error of every chunk over the stream on a logarithmic axis, with limits as lines. Chunks without any error sit on the axis. */
export function driftChart(text: ChartText, { points, limits }: DriftFacts): Markup {
  const shown = thinned(points.filter(({ error }) => Number.isFinite(error)));
  const errors = [...shown.map(({ error }) => error), ...limits.map(({ error }) => error)].filter(
    (error) => error > 0,
  );
  const scale = logScale(
    errors.length > 0 ? Math.min(...errors) : 1e-8,
    errors.length > 0 ? Math.max(...errors) : 1,
    6,
  );
  const first = shown[0]?.chunk ?? 0;
  const last = shown.at(-1)?.chunk ?? 1;
  const x = (chunk: number) =>
    LEFT + (RIGHT - LEFT) * (last === first ? 0.5 : (chunk - first) / (last - first));
  const y = (error: number) => Number((BASE - PLOT_HEIGHT * scale.at(error)).toFixed(2));
  const rising = limits.toSorted((a, b) => a.error - b.error);
  const toneOf = (error: number): Tone =>
    rising.findLast((limit) => error > limit.error)?.beyond ?? (error === 0 ? 'good' : 'accent');
  return frame(text, HEIGHT, [
    scale.ticks.map(
      ({ quantity, label }) =>
        markup`<line class="grid" x1="${across(LEFT)}" x2="100%" y1="${y(quantity)}" y2="${y(quantity)}"/><text class="tick" x="0" y="${y(quantity) + 4}">${label}</text>`,
    ),
    shown.map(
      ({ chunk, error }) =>
        markup`<circle class="mark ${toneOf(error)}" cx="${across(x(chunk))}" cy="${y(error)}" r="${shown.length > 400 ? 1.6 : 2.6}"><title>chunk ${chunk}: ${formatStatistic(error)}</title></circle>`,
    ),
    rising.map(
      ({ error, label }) =>
        markup`<line class="limit" x1="${across(LEFT)}" x2="100%" y1="${y(error)}" y2="${y(error)}"/><text class="mark-label limit" x="100%" y="${y(error) - 5}" text-anchor="end">${label}</text>`,
    ),
    chunkAxis(first, last, x),
  ]);
}

function chunkAxis(first: number, last: number, x: (chunk: number) => number): Markup {
  const places = [
    ...new Set([0, 0.25, 0.5, 0.75, 1].map((share) => Math.round(first + share * (last - first)))),
  ];
  const ticks = places.map(
    (chunk) =>
      markup`<line class="axis" x1="${across(x(chunk))}" x2="${across(x(chunk))}" y1="${BASE}" y2="${BASE + 4}"/><text class="tick" x="${across(x(chunk))}" y="${BASE + 16}" text-anchor="${anchorAt(x(chunk))}">${chunk}</text>`,
  );
  return markup`<line class="axis" x1="${across(LEFT)}" x2="100%" y1="${BASE}" y2="${BASE}"/>${join(ticks)}<text class="tick" x="100%" y="${BASE + 36}" text-anchor="end">chunk</text><text class="tick" x="0" y="${BASE + 36}">largest absolute error, log scale</text>`;
}

/** Of each of a few hundred columns the worst and the best point; a short stream stays as it is. */
function thinned(points: readonly DriftPoint[]): readonly DriftPoint[] {
  if (points.length <= MOST_MARKS) return points;
  const width = Math.ceil((2 * points.length) / MOST_MARKS);
  const kept: DriftPoint[] = [];
  for (let at = 0; at < points.length; at += width) {
    const column = points.slice(at, at + width);
    const worst = column.reduce((most, point) => (point.error > most.error ? point : most));
    const best = column.reduce((least, point) => (point.error < least.error ? point : least));
    kept.push(...(worst === best ? [worst] : [worst, best].sort((a, b) => a.chunk - b.chunk)));
  }
  return kept;
}
