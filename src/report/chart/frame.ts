import { type Content, type Markup, markup } from '../markup.js';

/** The colour of a mark; the style sheet gives each a light and a dark value. */
export type Tone = 'accent' | 'quiet' | 'good' | 'bad' | 'warn';

/** What a reader who cannot see a chart is notified of it. */
export interface ChartText {
  /** Unique on the page. */
  readonly id: string;
  readonly title: string;
  readonly description: string;
}

/**
 * The frame of every chart: an inline SVG as wide as its column. Marks stand at percentages of the width and text keeps its size in pixels,
 * so a chart stays readable from a phone to a printed page without a script.
 */
export function frame(text: ChartText, height: number, marks: Content): Markup {
  return markup`<svg class="chart" role="img" aria-labelledby="${text.id}-title ${text.id}-text" width="100%" height="${height}" xmlns="http://www.w3.org/2000/svg"><title id="${text.id}-title">${text.title}</title><desc id="${text.id}-text">${text.description}</desc>${marks}</svg>`;
}

/** A share of the width, 0 to 1, as an SVG length. */
export const across = (share: number): string => `${Number((share * 100).toFixed(3))}%`;

/** Keeps a label at `share` of the width inside the frame. */
export const anchorAt = (share: number): 'start' | 'middle' | 'end' =>
  share < 0.06 ? 'start' : share > 0.94 ? 'end' : 'middle';
