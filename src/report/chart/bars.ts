import { join, type Markup, markup } from '../markup.js';
import { across, type Chart, type Tone } from './frame.js';
import { linearScale } from './scale.js';

export interface BarPart {
  readonly amount: number;
  readonly tone: Tone;
  /** What the part stands for, shown when pointed at. */
  readonly name: string;
}

export interface BarRow {
  readonly label: string;
  /** The row's amount in words, at the right end. */
  readonly text: string;
  /** Drawn one after the other; their sum is the length of the bar. */
  readonly parts: readonly BarPart[];
}

const ROW = 44;
const BAR_TOP = 22;
const BAR_HEIGHT = 12;

/** Horizontal bars on one linear scale that starts at zero; the longest fills the width. Labels stand above their bars. */
export function barChart(title: string, rows: readonly BarRow[]): Chart {
  const length = (row: BarRow) => row.parts.reduce((sum, part) => sum + part.amount, 0);
  const scale = linearScale(0, Math.max(0, ...rows.map(length)), 1, String);
  return {
    title,
    description: `${rows.map(({ label, text }) => `${label}: ${text}`).join('; ')}.`,
    height: Math.max(1, rows.length * ROW - 6),
    marks: rows.map((row, index) => barRow(row, index * ROW, scale.at)),
  };
}

function barRow(row: BarRow, top: number, at: (amount: number) => number): Markup {
  let start = 0;
  const parts = row.parts.map((part) => {
    const from = at(start);
    start += part.amount;
    return markup`<rect class="mark ${part.tone}" x="${across(from)}" y="${top + BAR_TOP}" width="${across(at(start) - from)}" height="${BAR_HEIGHT}"><title>${row.label}: ${part.name}</title></rect>`;
  });
  return markup`<text class="label" x="0" y="${top + 14}">${row.label}</text><text class="figure" x="100%" y="${top + 14}" text-anchor="end">${row.text}</text><rect class="track" x="0" y="${top + BAR_TOP}" width="100%" height="${BAR_HEIGHT}"/>${join(parts)}`;
}
