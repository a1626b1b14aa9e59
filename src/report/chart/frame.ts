import { type Content, join, type Markup, markup, styleSheet } from '../markup/markup.js';
import { chartStyle } from '../markup/style.js';
import type { Tick } from './scale.js';

/** The colour of a mark; the style sheet gives each a light and a dark value. */
export type Tone = 'accent' | 'quiet' | 'good' | 'bad' | 'warn';

/** A chart as a block of a section takes it: drawn marks, and their title and description for readers who cannot see them. */
export interface Chart {
  readonly title: string;
  readonly description: string;
  /** Pixels. */
  readonly height: number;
  /** SVG. Marks stand at percentages of the width and text keeps its size in pixels, so a chart stays readable from a phone to a printed page without a script. */
  readonly marks: Content;
}

/** A chart as an inline SVG as wide as its column; `id` is unique on the page. */
export const drawChart = ({ title, description, height, marks }: Chart, id: string): Markup =>
  markup`<svg class="chart" role="img" aria-labelledby="${id}-title ${id}-text" width="100%" height="${height}" xmlns="http://www.w3.org/2000/svg"><title id="${id}-title">${title}</title><desc id="${id}-text">${description}</desc>${marks}</svg>`;

const FILE_WIDTH = 900;
const MARGIN = 16;
const TITLE_HEIGHT = 28;

/** A chart as an SVG file: its title and its look, in light colours, are inside. */
export function chartFile(chart: Chart): string {
  const [width, height] = [FILE_WIDTH + 2 * MARGIN, chart.height + TITLE_HEIGHT + 2 * MARGIN];
  return markup`<svg class="chart" xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><style>${styleSheet(chartStyle)}</style><rect width="100%" height="100%" fill="#ffffff"/><text class="mark-label" x="${MARGIN}" y="${MARGIN + 12}">${chart.title}</text><svg x="${MARGIN}" y="${MARGIN + TITLE_HEIGHT}" width="${FILE_WIDTH}" height="${chart.height}" overflow="visible">${drawChart(chart, 'chart')}</svg></svg>
`.toString();
}

/** The ticks of a horizontal axis at `base` pixels; `x` is the share of the width where a quantity stands. */
export const axisTicks = (ticks: readonly Tick[], x: (quantity: number) => number, base: number): Markup =>
  join(
    ticks.map(({ quantity, label }) => {
      const place = across(x(quantity));
      return markup`<line class="axis" x1="${place}" x2="${place}" y1="${base}" y2="${base + 4}"/><text class="tick" x="${place}" y="${base + 16}" text-anchor="${anchorAt(x(quantity))}">${label}</text>`;
    }),
  );

/** A share of the width, 0 to 1, as an SVG length. */
export const across = (share: number): string => `${Number((share * 100).toFixed(3))}%`;

/** Keeps a label at `share` of the width inside the frame. */
export const anchorAt = (share: number): 'start' | 'middle' | 'end' =>
  share < 0.06 ? 'start' : share > 0.94 ? 'end' : 'middle';
