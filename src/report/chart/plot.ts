import { type Markup, markup } from '../markup/markup.js';
import { across, axisTicks, type Chart, type Tone, textWidth } from './frame.js';
import type { Scale } from './scale.js';

interface PlotPoint {
  readonly x: number;
  readonly y: number;
  readonly tone: Tone;
  /** The thing that the point stands for, shown when pointed at. */
  readonly name: string;
  /** Written beside the mark where there is room. Labelled marks are larger than others. */
  readonly label?: string;
  /** A ring in place of a disc. */
  readonly hollow?: boolean;
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

const TITLE = 10;
const TOP = 26;
const PLOT_HEIGHT = 220;
const BASE = TOP + PLOT_HEIGHT;
const LEFT = 0.07;
const RIGHT = 0.99;
const LEGEND_ROW = 20;
/** Of `mark-label` in the style sheet. */
const LABEL_SIZE = 12.5;

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
  const isQuiet = ({ tone }: PlotPoint) => Number(tone === 'quiet');
  const marks = shown
    .toSorted((a, b) => isQuiet(b) - isQuiet(a))
    .map(
      (point) =>
        markup`<circle class="mark ${point.tone}${point.hollow ? ' other' : ''}" cx="${across(placeX(point.x))}" cy="${placeY(point.y)}" r="${radiusOf(point, shown.length)}"><title>${point.name}</title></circle>`,
    );
  const places = shown.map((point) => ({ ...point, at: placeX(point.x), height: placeY(point.y) }));
  const labels = placedLabels(places, [
    ...y.scale.ticks.map(({ quantity, label }) => textBox(label, 0, 'start', placeY(quantity) + 4)),
    textBox(y.title, 0, 'start', TITLE),
    ...limits.map(({ y: limit, label }) => textBox(label, 1, 'end', placeY(limit) - 5)),
  ]);
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
  const axis = markup`<line class="axis" x1="${across(LEFT)}" x2="100%" y1="${BASE}" y2="${BASE}"/>${axisTicks(x.scale.ticks, placeX, BASE)}<text class="tick" x="100%" y="${BASE + 36}" text-anchor="end">${x.title}</text><text class="tick" x="0" y="${TITLE}">${y.title}</text>`;
  return {
    title,
    description,
    height: BASE + 44 + LEGEND_ROW * series.length,
    marks: [grid, drawn, marks, lines, labels, axis, legend],
  };
}

const radiusOf = ({ label }: PlotPoint, count: number): number =>
  label !== undefined ? 5 : count > 400 ? 1.6 : 2.6;

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

/** What a text or a mark covers: pixels from a share of the width, and from the top. */
interface Box {
  readonly at: number;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Widths of a chart in pixels, on a phone and on the widest page. */
const WIDTHS = [280, 920] as const;

/** Places move with the width and texts keep their size, so what is apart in one order at both ends is apart between them. */
const areApart = (a: Box, b: Box): boolean =>
  a.bottom <= b.top || b.bottom <= a.top || isLeftOf(a, b) || isLeftOf(b, a);
const isLeftOf = (a: Box, b: Box): boolean =>
  WIDTHS.every((width) => a.at * width + a.right <= b.at * width + b.left);

function textBox(text: string, at: number, anchor: 'start' | 'end', baseline: number, gap = 0): Box {
  const width = textWidth(text, LABEL_SIZE);
  const [left, right] = anchor === 'start' ? [gap, gap + width] : [-gap - width, -gap];
  return { at, left, right, top: baseline - 13, bottom: baseline + 4 };
}

/** A longer label would leave no room for others. */
const LONGEST_LABEL = 20;
const ROWS = Math.floor(PLOT_HEIGHT / 18);
/** Beside the mark, then higher and lower. */
const OFFSETS = Array.from({ length: 2 * ROWS + 1 }, (_, at) => 18 * Math.ceil(at / 2) * (at % 2 ? -1 : 1));

type PlacedPoint = PlotPoint & { readonly at: number; readonly height: number };

/** Labels that cover no other text and no mark, at any width; one far from its mark has a line to it. One without room is left out: marks have it as their title. */
function placedLabels(points: readonly PlacedPoint[], texts: readonly Box[]): readonly Markup[] {
  const labelled = points.filter(({ label }) => label !== undefined);
  const marks = labelled.map(({ at, height }) => ({
    ...{ at, left: -7, right: 7, top: height - 7, bottom: height + 7 },
  }));
  const taken = [...texts, ...marks];
  return labelled.flatMap(({ at, height, label = '' }) => {
    const letters = [...label];
    const text = letters.length > LONGEST_LABEL ? `${letters.slice(0, LONGEST_LABEL - 1).join('')}…` : label;
    // Where the whole has no room, its first word may.
    const tries = [...new Set([text, text.split(' ')[0]!])].flatMap((word) =>
      OFFSETS.flatMap((offset) => (['start', 'end'] as const).map((anchor) => ({ word, offset, anchor }))),
    );
    for (const { word, offset, anchor } of tries) {
      const baseline = height + 4 + offset;
      const box = textBox(word, at, anchor, baseline, 10);
      const isInside =
        box.top >= 0 &&
        box.bottom <= BASE &&
        WIDTHS.every((width) => at * width + box.left >= 0 && at * width + box.right <= width);
      if (!isInside || !taken.every((other) => areApart(box, other))) continue;
      taken.push(box);
      const line = markup`<line class="note" x1="${across(at)}" x2="${across(at)}" y1="${height}" y2="${baseline - 4}"/>`;
      return [
        markup`${offset === 0 ? '' : line}<text class="tick" x="${across(at)}" dx="${anchor === 'start' ? 10 : -10}" y="${baseline}" text-anchor="${anchor}">${word}</text>`,
      ];
    }
    return [];
  });
}
