import { markup } from '../markup/markup.js';
import { across, axisTicks, type Chart, type Scale, type Tone } from './frame.js';

interface PlotPoint {
  readonly x: number;
  readonly y: number;
  readonly tone: Tone;
  /** The thing that the point stands for, shown when pointed at. */
  readonly name: string;
}

/** One of several things that are drawn beside one another, named below the axis. */
export interface PlotSeries {
  readonly name: string;
  /** Rising in x. */
  readonly points: readonly { readonly x: number; readonly y: number }[];
  /** Neighbours are joined by lines, and points have no marks. */
  readonly joined?: boolean;
}

/** A horizontal line. */
interface PlotLimit {
  readonly y: number;
  readonly label: string;
}

interface Plot {
  readonly title: string;
  readonly description: string;
  readonly x: { readonly title: string; readonly scale: Scale };
  readonly y: { readonly title: string; readonly scale: Scale };
  /** Rising in x. */
  readonly points?: readonly PlotPoint[];
  readonly limits?: readonly PlotLimit[];
  /** Each has a colour of its own; those after the fifth are hollow or dashed. */
  readonly series?: readonly PlotSeries[];
}

const TOP = 26;
const PLOT_HEIGHT = 220;
const BASE = TOP + PLOT_HEIGHT;
const LEFT = 0.07;
const RIGHT = 0.99;
const LEGEND_ROW = 20;

/** More marks than this are one blur: of each column of points the highest and the lowest stay. */
const MOST_MARKS = 1200;

/** Points over two axes, linear or logarithmic by their scales. A point beyond an end of an axis sits at that end; one that is not finite is not drawn. */
export function plotChart({ title, description, x, y, points = [], limits = [], series = [] }: Plot): Chart {
  const shown = thinned(points.filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y)));
  const placeX = (amount: number) => LEFT + (RIGHT - LEFT) * x.scale.at(amount);
  const placeY = (amount: number) => Number((BASE - PLOT_HEIGHT * y.scale.at(amount)).toFixed(2));
  const grid = y.scale.ticks.map(
    ({ quantity, label }) =>
      markup`<line class="grid" x1="${across(LEFT)}" x2="100%" y1="${placeY(quantity)}" y2="${placeY(quantity)}"/><text class="tick" x="0" y="${placeY(quantity) + 4}">${label}</text>`,
  );
  const marks = shown.map(
    (point) =>
      markup`<circle class="mark ${point.tone}" cx="${across(placeX(point.x))}" cy="${placeY(point.y)}" r="${shown.length > 400 ? 1.6 : 2.6}"><title>${point.name}</title></circle>`,
  );
  const drawn = series.map(({ name, points: own, joined = false }, index) => {
    const shownPoints = own.filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y));
    const look = lookOf(index);
    if (!joined)
      return shownPoints.map(
        (point) =>
          markup`<circle class="mark ${look}" cx="${across(placeX(point.x))}" cy="${placeY(point.y)}" r="5"><title>${name}</title></circle>`,
      );
    return shownPoints.slice(1).map((point, at) => {
      const from = shownPoints[at]!;
      return markup`<line class="joined ${look}" x1="${across(placeX(from.x))}" x2="${across(placeX(point.x))}" y1="${placeY(from.y)}" y2="${placeY(point.y)}"/>`;
    });
  });
  const legend = series.map(({ name, joined = false }, index) => {
    const at = BASE + 44 + LEGEND_ROW * (index + 0.5);
    const sample = joined
      ? markup`<line class="joined ${lookOf(index)}" x1="0" x2="22" y1="${at}" y2="${at}"/>`
      : markup`<circle class="mark ${lookOf(index)}" cx="11" cy="${at}" r="5"/>`;
    return markup`${sample}<text class="tick" x="30" y="${at + 4}">${name}</text>`;
  });
  const lines = limits.map(
    (limit) =>
      markup`<line class="limit" x1="${across(LEFT)}" x2="100%" y1="${placeY(limit.y)}" y2="${placeY(limit.y)}"/><text class="mark-label limit" x="100%" y="${placeY(limit.y) - 5}" text-anchor="end">${limit.label}</text>`,
  );
  const axis = markup`<line class="axis" x1="${across(LEFT)}" x2="100%" y1="${BASE}" y2="${BASE}"/>${axisTicks(x.scale.ticks, placeX, BASE)}<text class="tick" x="100%" y="${BASE + 36}" text-anchor="end">${x.title}</text><text class="tick" x="0" y="${BASE + 36}">${y.title}</text>`;
  return {
    title,
    description,
    height: BASE + 44 + LEGEND_ROW * series.length,
    marks: [grid, marks, drawn, lines, axis, legend],
  };
}

const tones: readonly Tone[] = ['accent', 'good', 'warn', 'bad', 'quiet'];

const lookOf = (index: number): string =>
  `${tones[index % tones.length]}${index < tones.length ? '' : ' other'}`;

function thinned(points: readonly PlotPoint[]): readonly PlotPoint[] {
  if (points.length <= MOST_MARKS) return points;
  const width = Math.ceil((2 * points.length) / MOST_MARKS);
  const kept: PlotPoint[] = [];
  for (let at = 0; at < points.length; at += width) {
    const column = points.slice(at, at + width);
    const highest = column.reduce((most, point) => (point.y > most.y ? point : most));
    const lowest = column.reduce((least, point) => (point.y < least.y ? point : least));
    kept.push(...(highest === lowest ? [highest] : [highest, lowest].sort((a, b) => a.x - b.x)));
  }
  return kept;
}
