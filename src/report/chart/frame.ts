import { powerOfTen } from '../../base/text/quantity.js';
import { type Content, join, type Markup, markup, ownSource } from '../markup/markup.js';
import { chartStyle } from '../markup/style.js';

/** A map from a quantity to a place on an axis, 0 (start) to 1 (end), with the ticks to print along it. */
export interface Scale {
  /** Clamped to the axis: a value beyond an end sits at that end. */
  at(quantity: number): number;
  readonly ticks: readonly Tick[];
}

export interface Tick {
  readonly quantity: number;
  readonly label: string;
}

const clamp = (place: number): number => Math.min(1, Math.max(0, place));

/** Linear over exactly `min` to `max`, with at most `count` + 1 ticks in steps of 1, 2 or 5 times a power of ten. */
export function linearScale(
  min: number,
  max: number,
  count: number,
  label: (quantity: number) => string,
): Scale {
  const start = Number.isFinite(min) ? min : 0;
  const end = Number.isFinite(max) && max > start ? max : start + 1;
  const step = niceStep((end - start) / Math.max(1, count));
  const first = Math.ceil(start / step - 1e-9);
  return {
    at: (quantity) => clamp((quantity - start) / (end - start)),
    ticks: Array.from({ length: Math.floor(end / step + 1e-9) - first + 1 }, (_, index) => {
      const quantity = Number(((first + index) * step).toPrecision(12));
      return { quantity, label: label(quantity) };
    }),
  };
}

/** Logarithmic over the whole decades that hold `min` to `max` (both above 0), with at most `count` labelled decades. */
export function logScale(min: number, max: number, count = 9): Scale {
  const low = Math.floor(decade(min) + 1e-9);
  const high = Math.max(low + 1, Math.ceil(decade(max) - 1e-9));
  const every = Math.ceil((high - low) / Math.max(1, count));
  const ticks: Tick[] = [];
  for (let exponent = low; exponent <= high; exponent += every)
    ticks.push({ quantity: 10 ** exponent, label: powerOfTen(exponent) });
  return {
    at: (quantity) => (quantity > 0 ? clamp((Math.log10(quantity) - low) / (high - low)) : 0),
    ticks,
  };
}

const decade = (quantity: number): number =>
  quantity > 0 && Number.isFinite(quantity) ? Math.log10(quantity) : 0;

/** The smallest of 1, 2, 5, 10 times a power of ten that is at least `step`. */
function niceStep(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= step * (1 - 1e-9)) ?? 10;
  return factor * power;
}

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
const textShare = (text: string, size = 12.5): number => textWidth(text, size) / PHONE;

/** A text that takes at most this share of a phone's chart, cut in its middle where it is longer. */
function fitted(text: string, share: number, size?: number): string {
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

/** A share of the width, 0 to 1, as an SVG length. */
export const across = (share: number): string => `${Number((share * 100).toFixed(3))}%`;

export interface Bar {
  readonly label: string;
  /** Where it starts; 0 by default. */
  readonly from?: number;
  /** Where it ends. */
  readonly amount: number;
  /** The amount as text, at the right end. */
  readonly text: string;
  readonly tone: Tone;
  /** Shown when pointed at, instead of the amount. */
  readonly name?: string;
  /** What the amount is made of, from the left; without it the bar has one colour. */
  readonly parts?: readonly Pick<Bar, 'amount' | 'tone' | 'name'>[];
  /** A part of the bar above it, drawn thinner. */
  readonly isPart?: boolean;
}

type Extent = { readonly limit?: number; readonly tick?: (amount: number) => string };

const ROW = 44;
const PART_ROW = 34;

/** Horizontal bars below their labels on one linear scale from zero; the one that ends last, or the limit where it is more, fills the width. `tick` prints an axis. */
export function barChart(title: string, bars: readonly Bar[], { limit = 0, tick }: Extent = {}): Chart {
  const scale = linearScale(0, Math.max(limit, ...bars.map(({ amount }) => amount)), 5, tick ?? String);
  let top = 0;
  const rows = bars.map((bar) => {
    const row = barMarks(bar, top, scale, tick === undefined);
    top += bar.isPart ? PART_ROW : ROW;
    return row;
  });
  return {
    title,
    description: `${bars.map(({ label, text }) => `${label}: ${text}`).join('; ')}.`,
    height: Math.max(1, tick === undefined ? top - 6 : top + 22),
    marks: [tick && axisTicks(scale.ticks, scale.at, top, 0), rows],
  };
}

function barMarks(bar: Bar, top: number, { at }: Scale, hasTrack: boolean): Markup {
  const { label, from = 0, text, isPart, parts = [bar] } = bar;
  const [y, height] = [top + 22, isPart ? 6 : 12];
  let end = from;
  const marks = parts.map(({ amount, tone, name = text }) => {
    const start = end;
    end = parts.length === 1 ? amount : start + amount;
    // On an axis what took a millisecond of minutes still gets a visible sliver.
    const width = Math.max(hasTrack ? 0 : 0.004, at(end) - at(start));
    return markup`<rect class="mark ${tone}" x="${across(Math.min(at(start), 1 - width))}" y="${y}" width="${across(width)}" height="${height}"><title>${label}: ${name}</title></rect>`;
  });
  return markup`<text class="${isPart ? 'tick' : 'label'}" x="0" y="${top + 14}">${fitted(label, 0.97 - textShare(text, 13.5), 13.5)}</text><text class="figure" x="100%" y="${top + 14}" text-anchor="end">${text}</text>${hasTrack && markup`<rect class="track" x="0" y="${y}" width="100%" height="${height}"/>`}${marks}`;
}
