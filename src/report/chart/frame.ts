import { type Content, join, type Markup, markup } from '../markup.js';
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
