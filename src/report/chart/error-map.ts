import { formatStatistic, plural } from '../../base/text/quantity.js';
import type { ErrorMap } from '../../quality/verify/result.js';
import { markup } from '../markup/markup.js';
import { across, type Chart } from './frame.js';

/** Where in a tensor the error is. */
export function errorMapChart({ tensor, rows, columns, cells }: ErrorMap): Chart {
  const axisName = ({ axis, size }: ErrorMap['rows']) => (axis === null ? 'all' : `axis ${axis} (${size})`);
  const bad = cells.flat().filter((cell) => cell === null).length;
  return heatMapChart({
    title: `Error of ${tensor}`,
    description: `${axisName(rows)} by ${axisName(columns)}, ${plural(cells.flat().length, 'cell')}, ${bad} of them with values that are not finite.`,
    rows: axisName(rows),
    columns: axisName(columns),
    cells,
  });
}

interface HeatMap {
  readonly title: string;
  readonly description: string;
  /** Names of the axes. */
  readonly rows: string;
  readonly columns: string;
  /** From 0; null where there is no number. */
  readonly cells: readonly (readonly (number | null)[])[];
}

const TOP = 22;
const MOST_HEIGHT = 288;
const MOST_ROW = 24;

/** Cells over two axes, the darker the larger: 0 is as light as the track, the largest is the accent. Those without a number have the colour of errors. */
export function heatMapChart({ title, description, rows, columns, cells }: HeatMap): Chart {
  const largest = cells.flat().reduce<number>((most, cell) => Math.max(most, cell ?? 0), 0);
  const height = Math.min(MOST_ROW, MOST_HEIGHT / Math.max(1, cells.length));
  const base = TOP + height * cells.length;
  const drawn = cells.map((row, y) =>
    row.map((cell, x) => {
      const tone = cell === null ? 'bad' : 'accent';
      const share = cell === null ? 1 : largest === 0 ? 0 : cell / largest;
      const name = cell === null ? 'not finite' : formatStatistic(cell);
      return markup`<rect class="mark ${tone}" x="${across(x / row.length)}" y="${(TOP + y * height).toFixed(2)}" width="${across(1 / row.length)}" height="${height.toFixed(2)}" fill-opacity="${share.toFixed(3)}"><title>${name}</title></rect>`;
    }),
  );
  const frame = markup`<rect class="track" x="0" y="${TOP}" width="100%" height="${(base - TOP).toFixed(2)}"/>`;
  const names = markup`<text class="tick" x="0" y="14">${rows}, downwards</text><text class="tick" x="100%" y="14" text-anchor="end">largest: ${formatStatistic(largest)}</text><text class="tick" x="100%" y="${(base + 16).toFixed(2)}" text-anchor="end">${columns}</text>`;
  return { title, description, height: Math.ceil(base + 22), marks: [frame, drawn, names] };
}
