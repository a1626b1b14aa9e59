import { type Markup, markup } from '../markup/markup.js';
import { across, axisTicks, type Chart, fitted, type Tone, textShare } from './frame.js';
import { linearScale, type Scale } from './scale.js';

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
