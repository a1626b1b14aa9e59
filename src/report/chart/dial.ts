import { type Markup, markup } from '../markup.js';
import type { ChartText, Tone } from './frame.js';

const RADIUS = 42;
const AROUND = 2 * Math.PI * RADIUS;

/** A ring filled to `share` (0 to 1) with the figure in the middle. */
export function dial(text: ChartText, share: number, figure: string, tone: Tone): Markup {
  const filled = AROUND * Math.min(1, Math.max(0, share));
  return markup`<svg class="dial" role="img" aria-labelledby="${text.id}-title ${text.id}-text" viewBox="0 0 100 100" width="104" height="104" xmlns="http://www.w3.org/2000/svg"><title id="${text.id}-title">${text.title}</title><desc id="${text.id}-text">${text.description}</desc><circle class="dial-track" cx="50" cy="50" r="${RADIUS}"/><circle class="dial-fill ${tone}" cx="50" cy="50" r="${RADIUS}" stroke-dasharray="${filled.toFixed(2)} ${AROUND.toFixed(2)}" transform="rotate(-90 50 50)"/><text class="dial-figure" x="50" y="51" text-anchor="middle" dominant-baseline="middle">${figure}</text></svg>`;
}
