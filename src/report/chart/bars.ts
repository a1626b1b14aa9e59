import { type Markup, markup } from '../markup/markup.js';
import { across, type Chart, type Tone } from './frame.js';
import { linearScale } from './scale.js';

export interface Bar {
  readonly label: string;
  /** Its length. */
  readonly amount: number;
  /** The amount as text, at the right end. */
  readonly text: string;
  readonly tone: Tone;
  /** Shown when pointed at. */
  readonly name: string;
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
    marks: bars.map((bar, index) => barMarks(bar, index * ROW, scale.at(bar.amount))),
  };
}

const barMarks = ({ label, text, tone, name }: Bar, top: number, share: number): Markup =>
  markup`<text class="label" x="0" y="${top + 14}">${label}</text><text class="figure" x="100%" y="${top + 14}" text-anchor="end">${text}</text><rect class="track" x="0" y="${top + BAR_TOP}" width="100%" height="${BAR_HEIGHT}"/><rect class="mark ${tone}" x="0%" y="${top + BAR_TOP}" width="${across(share)}" height="${BAR_HEIGHT}"><title>${label}: ${name}</title></rect>`;
