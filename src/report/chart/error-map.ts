import { formatStatistic, plural } from '../../base/text/quantity.js';
import type { ErrorMap } from '../../quality/verify/result.js';
import { markup } from '../markup/markup.js';
import { across, type Chart } from './frame.js';

const TOP = 22;
const MOST_HEIGHT = 288;
const MOST_ROW = 24;

/** Where in a tensor the error is: cells over two axes, the stronger the larger. 0 is the track, the largest is the accent; those without a number have the colour of errors. */
export function errorMapChart({ tensor, rows, columns, cells }: ErrorMap): Chart {
  const [down, right] = [rows, columns].map(({ axis, size }) =>
    axis === null ? 'all' : `axis ${axis} (${size})`,
  );
  const all = cells.flat();
  const largest = all.reduce<number>((most, cell) => Math.max(most, cell ?? 0), 0);
  const height = Math.min(MOST_ROW, MOST_HEIGHT / Math.max(1, cells.length));
  const base = TOP + height * cells.length;
  const drawn = cells.map((row, y) =>
    row.map((cell, x) => {
      const share = cell === null ? 1 : largest === 0 ? 0 : cell / largest;
      return markup`<rect class="mark ${cell === null ? 'bad' : 'accent'}" x="${across(x / row.length)}" y="${(TOP + y * height).toFixed(2)}" width="${across(1 / row.length)}" height="${height.toFixed(2)}" fill-opacity="${share.toFixed(3)}"><title>${cell === null ? 'not finite' : formatStatistic(cell)}</title></rect>`;
    }),
  );
  const frame = markup`<rect class="track" x="0" y="${TOP}" width="100%" height="${(base - TOP).toFixed(2)}"/>`;
  const names = markup`<text class="tick" x="0" y="14">${down}, downwards</text><text class="tick" x="100%" y="14" text-anchor="end">largest: ${formatStatistic(largest)}</text><text class="tick" x="100%" y="${(base + 16).toFixed(2)}" text-anchor="end">${right}</text>`;
  return {
    title: `Error of ${tensor}`,
    description: `${down} by ${right}, ${plural(all.length, 'cell')}, ${all.filter((cell) => cell === null).length} of them with values that are not finite.`,
    height: Math.ceil(base + 22),
    marks: [frame, drawn, names],
  };
}
