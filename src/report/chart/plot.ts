import { markup } from '../markup.js';
import { across, axisTicks, type Chart, type Tone } from './frame.js';
import type { Scale } from './scale.js';

interface PlotPoint {
  readonly x: number;
  readonly y: number;
  readonly tone: Tone;
  /** What the point stands for, shown when pointed at. */
  readonly name: string;
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
  readonly points: readonly PlotPoint[];
  readonly limits: readonly PlotLimit[];
}

const TOP = 26;
const PLOT_HEIGHT = 220;
const BASE = TOP + PLOT_HEIGHT;
const LEFT = 0.07;
const RIGHT = 0.99;

/** More marks than this are one blur: of each column of points the highest and the lowest stay. */
const MOST_MARKS = 1200;

/** Points over two axes, linear or logarithmic by their scales. A point beyond an end of an axis sits at that end; one that is not finite is not drawn. */
export function plotChart({ title, description, x, y, points, limits }: Plot): Chart {
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
  const lines = limits.map(
    (limit) =>
      markup`<line class="limit" x1="${across(LEFT)}" x2="100%" y1="${placeY(limit.y)}" y2="${placeY(limit.y)}"/><text class="mark-label limit" x="100%" y="${placeY(limit.y) - 5}" text-anchor="end">${limit.label}</text>`,
  );
  const axis = markup`<line class="axis" x1="${across(LEFT)}" x2="100%" y1="${BASE}" y2="${BASE}"/>${axisTicks(x.scale.ticks, placeX, BASE)}<text class="tick" x="100%" y="${BASE + 36}" text-anchor="end">${x.title}</text><text class="tick" x="0" y="${BASE + 36}">${y.title}</text>`;
  return { title, description, height: BASE + 44, marks: [grid, marks, lines, axis] };
}

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
