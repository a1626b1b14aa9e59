import { type Content, join, type Markup, markup, ownSource } from '../markup/markup.js';
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
  return markup`<svg class="chart" xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><style>${ownSource(chartStyle)}</style><rect width="100%" height="100%" fill="#ffffff"/><text class="mark-label" x="${MARGIN}" y="${MARGIN + 12}">${chart.title}</text><svg x="${MARGIN}" y="${MARGIN + TITLE_HEIGHT}" width="${FILE_WIDTH}" height="${chart.height}" overflow="visible">${drawChart(chart, 'chart')}</svg></svg>
`.toString();
}

/** The width of a chart on a phone, in pixels: what has room there has room everywhere. */
const PHONE = 326;

/** Shares of a font's size: of common letters in a face for screens, and of the widest. */
const [COMMON, WIDEST] = [0.61, 0.95];

/** About the pixels that a text takes in a face for screens; `size` is that of the font in pixels. */
export const textWidth = (text: string, size: number): number =>
  [...text].reduce((sum, letter) => {
    if (letter >= '\u2e80') return sum + 1;
    return sum + (/[MWmw]/.test(letter) ? WIDEST : COMMON);
  }, 0) * size;

/** The share of a phone's chart that a text takes. */
export const textShare = (text: string, size = 12.5): number => textWidth(text, size) / PHONE;

/** A text that takes at most this share of a phone's chart, cut in its middle where it is longer. */
export function fitted(text: string, share: number, size?: number): string {
  const letters = [...text];
  const kept = Math.floor((letters.length * share) / textShare(text, size)) - 1;
  if (textShare(text, size) <= share) return text;
  return `${letters.slice(0, Math.ceil(kept / 2)).join('')}…${letters.slice(letters.length - Math.floor(kept / 2)).join('')}`;
}

/** A label in the middle of `place` where a phone has room for it, else on its inner side; `from` and `to` are what it takes there. */
export function labelAt(label: string, place: number, size?: number) {
  const text = fitted(label, 1, size);
  const width = textShare(text, size);
  const from = Math.min(Math.max(0, place - width / 2), 1 - width);
  const shift = from - (place - width / 2);
  const [anchor, at] = shift === 0 ? ['middle', place] : shift > 0 ? ['start', from] : ['end', from + width];
  return { text, anchor, at, from, to: from + width } as const;
}

/** A share of the width, 0 to 1, as an SVG length. */
export const across = (share: number): string => `${Number((share * 100).toFixed(3))}%`;

/** The ticks of a horizontal axis at `base` pixels, with lines down from `top`; `x` is the share of the width where a quantity stands. A label that would lie on the one before is left out. */
export function axisTicks(
  ticks: readonly Tick[],
  x: (quantity: number) => number,
  base: number,
  top = base,
): Markup {
  let end = -1;
  const marks = ticks.map(({ quantity, label }) => {
    const { text, anchor, at, from, to } = labelAt(label, x(quantity), 12);
    const place = across(x(quantity));
    const isFree = from > end;
    if (isFree) end = to + 0.01;
    return markup`<line class="${top === base ? 'axis' : 'grid'}" x1="${place}" x2="${place}" y1="${top}" y2="${base + 4}"/>${isFree && markup`<text class="tick" x="${across(at)}" y="${base + 16}" text-anchor="${anchor}">${text}</text>`}`;
  });
  return join(marks);
}
