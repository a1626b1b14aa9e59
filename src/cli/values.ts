import * as is from '../base/options/kinds.js';
import { parseSize } from '../base/text/quantity.js';
import { isVersion } from '../behaviour/versions.js';
import { TrtforgeError } from '../errors.js';

export { parseSize };

/** A reader of whole numbers within bounds, both included. */
export const integer = (from: number, to?: number) => is.whole(from, to).parse;

/** A reader of decimal numbers within bounds, both included. */
export const number = (from?: number, to?: number) => is.decimal(from, to).parse;

/** Reads a version of TensorRT as far as it is known. */
export function parseVersion(text: string): string {
  if (isVersion(text)) return text;
  throw new TrtforgeError('TF_USAGE', `"${text}" is not a version.`, { remedy: 'Write 10.13 or 10.13.3.9.' });
}
