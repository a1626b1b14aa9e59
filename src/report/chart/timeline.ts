import { formatMs, formatMsTick } from '../../base/text/quantity.js';
import { type Markup, markup } from '../markup/markup.js';
import { across, anchorAt, type Chart, type Tone } from './frame.js';
import { linearScale } from './scale.js';

/** One bar of a time line; `startMs` and `endMs` count from the start of the run. */
export interface Span {
  readonly label: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly tone: Tone;
  /** Set in under the one above, drawn thinner: a part of a phase. */
  readonly inner: boolean;
}

const ROW = 40;
const INNER_ROW = 32;

/** Spans on one linear axis of time, one row each, in the order of the list. */
export function timelineChart(title: string, spans: readonly Span[]): Chart {
  const scale = linearScale(0, Math.max(1, ...spans.map((span) => span.endMs)), 5, formatMsTick);
  let top = 4;
  const rows = spans.map((span) => {
    const row = spanRow(span, top, scale.at);
    top += span.inner ? INNER_ROW : ROW;
    return row;
  });
  const ticks = scale.ticks.map((tick) => {
    const place = across(scale.at(tick.quantity));
    return markup`<line class="grid" x1="${place}" x2="${place}" y1="0" y2="${top}"/><text class="tick" x="${place}" y="${top + 16}" text-anchor="${anchorAt(scale.at(tick.quantity))}">${tick.label}</text>`;
  });
  const description = `${spans.map((span) => `${span.label}: ${duration(span)}`).join('; ')}.`;
  return { title, description, height: top + 22, marks: [ticks, rows] };
}

const duration = ({ startMs, endMs }: Span): string => formatMs(endMs - startMs);

function spanRow(span: Span, top: number, at: (ms: number) => number): Markup {
  const from = at(span.startMs);
  // A phase of a millisecond in a run of minutes still gets a visible sliver.
  const width = Math.max(0.004, at(span.endMs) - from);
  const labelY = top + 13;
  return markup`<text class="${span.inner ? 'tick' : 'label'}" x="0" y="${labelY}">${span.label}</text><text class="figure" x="100%" y="${labelY}" text-anchor="end">${duration(span)}</text><rect class="mark ${span.tone}" x="${across(Math.min(from, 1 - width))}" y="${top + 19}" width="${across(width)}" height="${span.inner ? 6 : 10}"><title>${span.label}: from ${formatMs(span.startMs)} to ${formatMs(span.endMs)}</title></rect>`;
}
