import * as is from '../base/options/kinds.js';
import { parseSize } from '../base/text/quantity.js';

export { parseSize };

/** A reader of whole numbers within bounds, both included. */
export const integer = (from: number, to?: number) => is.whole(from, to).parse;

/** A reader of decimal numbers within bounds, both included. */
export const number = (from?: number, to?: number) => is.decimal(from, to).parse;
