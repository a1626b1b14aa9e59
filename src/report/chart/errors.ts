import { formatStatistic, plural, powerOfTen } from '../../base/text/quantity.js';
import type { ErrorMap } from '../../quality/verify/result.js';
import { join, type Markup, markup } from '../markup/markup.js';
import { across, axisTicks, type Chart, labelAt, type Tone } from './frame.js';
import { logScale, type Scale } from './scale.js';

/** Number of elements that fell in [from, to). */
interface Bin {
  readonly from: number;
  readonly to: number;
  readonly count: number;
}

/** A place on the axis. A limit colours the bars beyond it; a note only points. */
export type HistogramMark =
  | { readonly kind: 'limit'; readonly quantity: number; readonly label: string; readonly beyond: Tone }
  | { readonly kind: 'note'; readonly quantity: number; readonly label: string };

export interface Histogram {
  readonly title: string;
  readonly description: string;
  /** Bins of quantities above zero. */
  readonly bins: readonly Bin[];
  /** Elements whose quantity is exactly zero: they have no place on a logarithmic axis and get a bar of their own. */
  readonly zeros: number;
  readonly marks: readonly HistogramMark[];
  /** The name of the quantity, printed under the axis. */
  readonly axis: string;
}

const PLOT_TOP = 62;
const PLOT_HEIGHT = 150;
const BASE = PLOT_TOP + PLOT_HEIGHT;
const HEIGHT = BASE + 44;
/** Shares of the width: the bar of exact zeros, where the logarithmic axis starts, and where it ends to leave room for the counts. */
const ZERO_BAR = 0.09;
const AXIS_START = 0.15;
const AXIS_END = 0.91;

/** A histogram with both axes logarithmic, so that a single element near a limit is seen beside millions that are far from it. */
export function histogramChart(facts: Histogram): Chart {
  const filled = facts.bins.filter((bin) => bin.count > 0);
  const placeable = facts.marks.filter(({ quantity }) => quantity >= 0 && Number.isFinite(quantity));
  const places = [
    ...filled.flatMap(({ from, to }) => [from, to]),
    ...placeable.map(({ quantity }) => quantity),
  ];
  const above = places.filter((quantity) => quantity > 0 && Number.isFinite(quantity));
  const scale = logScale(Math.min(...above), Math.max(...above));
  const x = (quantity: number) => AXIS_START + (AXIS_END - AXIS_START) * scale.at(quantity);
  const most = Math.max(1, facts.zeros, ...filled.map((bin) => bin.count));
  const y = heightOf(most);
  const toneOf = binTones(facts.marks);
  const { title, description } = facts;
  const more = Math.max(0, ROW * (placeable.length + 0.5) - PLOT_TOP);
  const drawn = [
    countGrid(most, y),
    facts.zeros > 0 &&
      markup`<rect class="mark good" x="0" y="${y(facts.zeros)}" width="${across(ZERO_BAR)}" height="${BASE - y(facts.zeros)}"><title>exactly equal: ${plural(facts.zeros, 'element')}</title></rect><text class="tick" x="0" y="${BASE + 16}">equal</text>`,
    filled.map((bin) => binBar(bin, x, y, toneOf(bin))),
    valueAxis(scale, x, facts.axis),
    marks(placeable, x),
  ];
  return {
    title,
    description,
    height: HEIGHT + more,
    marks: markup`<g transform="translate(0 ${more})">${drawn}</g>`,
  };
}

/** The colour of a bin: that of the last limit it lies beyond; a bin that a limit cuts is a warning. */
function binTones(all: readonly HistogramMark[]): (bin: Bin) => Tone {
  const limits = all
    .flatMap((mark) => (mark.kind === 'limit' ? [mark] : []))
    .sort((a, b) => a.quantity - b.quantity);
  return (bin) => {
    const passed = limits.findLast((limit) => bin.from >= limit.quantity);
    const cut = limits.some((limit) => bin.from < limit.quantity && bin.to > limit.quantity);
    return passed?.beyond ?? (cut ? 'warn' : 'accent');
  };
}

/** Counts on a logarithmic axis whose foot is half an element, so that one element still has a height. */
function heightOf(most: number): (count: number) => number {
  const low = Math.log10(0.5);
  const span = Math.log10(most * 1.15) - low;
  return (count) =>
    Number((BASE - (PLOT_HEIGHT * (Math.log10(Math.max(0.5, count)) - low)) / span).toFixed(2));
}

function countGrid(most: number, y: (count: number) => number): Markup {
  const decades = Math.floor(Math.log10(most));
  const every = Math.max(1, Math.ceil((decades + 1) / 4));
  const lines: Markup[] = [];
  for (let exponent = 0; exponent <= decades; exponent += every) {
    const height = y(10 ** exponent);
    lines.push(
      markup`<line class="grid" x1="0" x2="100%" y1="${height}" y2="${height}"/><text class="tick" x="100%" y="${height - 4}" text-anchor="end">${exponent < 3 ? 10 ** exponent : powerOfTen(exponent)}</text>`,
    );
  }
  return join(lines);
}

function binBar(bin: Bin, x: (quantity: number) => number, y: (count: number) => number, tone: Tone): Markup {
  const from = x(bin.from);
  // A hair of space between neighbours, never so much that a narrow bin vanishes.
  const width = Math.max(0.002, (x(bin.to) - from) * 0.9);
  return markup`<rect class="mark ${tone}" x="${across(from)}" y="${y(bin.count)}" width="${across(width)}" height="${Number((BASE - y(bin.count)).toFixed(2))}"><title>${formatStatistic(bin.from)} to ${formatStatistic(bin.to)}: ${plural(bin.count, 'element')}</title></rect>`;
}

const valueAxis = (scale: Scale, x: (quantity: number) => number, title: string): Markup =>
  markup`<line class="axis" x1="${across(AXIS_START)}" x2="${across(AXIS_END)}" y1="${BASE}" y2="${BASE}"/><line class="axis" x1="0" x2="${across(ZERO_BAR)}" y1="${BASE}" y2="${BASE}"/>${axisTicks(scale.ticks, x, BASE)}<text class="tick" x="100%" y="${BASE + 36}" text-anchor="end">${title}</text><text class="tick" x="0" y="${BASE + 36}">elements, log scale</text>`;

/** A row for each label, above the plot. */
const ROW = 16;

/** A limit of 0 is where the axis starts. Labels come after all lines, so that a line of one mark never strikes through the label of another. */
function marks(placeable: readonly HistogramMark[], x: (quantity: number) => number): Markup {
  const placed = placeable.map((mark, index) => ({
    ...mark,
    place: x(mark.quantity),
    y: PLOT_TOP - ROW * (placeable.length - index),
  }));
  const lines = placed.map(
    ({ kind, place, y }) =>
      markup`<line class="${kind}" x1="${across(place)}" x2="${across(place)}" y1="${y + 4}" y2="${BASE}"/>`,
  );
  const labels = placed.map(({ kind, label, place, y }) => {
    const { text, anchor, at } = labelAt(label, place);
    return markup`<text class="mark-label ${kind}" x="${across(at)}" y="${y}" text-anchor="${anchor}">${text}</text>`;
  });
  return join([...lines, ...labels]);
}

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
