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

export interface Bar {
  readonly label: string;
  /** Its length. */
  readonly amount: number;
  /** The amount as text, at the right end. */
  readonly text: string;
  readonly tone: Tone;
  /** Shown when pointed at. */
  readonly name: string;
  /** What the amount is made of, from the left; without it the bar has one colour. */
  readonly parts?: readonly Pick<Bar, 'amount' | 'tone' | 'name'>[];
}

const ROW = 44;
const BAR_TOP = 22;
const BAR_HEIGHT = 12;

/** Horizontal bars on one linear scale that starts at zero; the longest, or `limit` where it is more, fills the width. Labels stand above their bars. */
export function barChart(title: string, bars: readonly Bar[], limit = 0): Chart {
  const scale = linearScale(0, Math.max(limit, ...bars.map(({ amount }) => amount)), 1, String);
  return {
    title,
    description: `${bars.map(({ label, text }) => `${label}: ${text}`).join('; ')}.`,
    height: Math.max(1, bars.length * ROW - 6),
    marks: bars.map((bar, index) => barMarks(bar, index * ROW, scale.at)),
  };
}

function barMarks({ label, text, tone, name, amount, parts }: Bar, top: number, at: Scale['at']): Markup {
  let end = 0;
  const marks = (parts ?? [{ amount, tone, name }]).map((part) => {
    const start = end;
    end += part.amount;
    return markup`<rect class="mark ${part.tone}" x="${across(at(start))}" y="${top + BAR_TOP}" width="${across(at(end) - at(start))}" height="${BAR_HEIGHT}"><title>${label}: ${part.name}</title></rect>`;
  });
  return markup`<text class="label" x="0" y="${top + 14}">${label}</text><text class="figure" x="100%" y="${top + 14}" text-anchor="end">${text}</text><rect class="track" x="0" y="${top + BAR_TOP}" width="100%" height="${BAR_HEIGHT}"/>${marks}`;
}
