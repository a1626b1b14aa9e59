import * as is from '../base/options/kinds.js';
import { splitAtCommas, unquote } from '../base/options/readers.js';
import { numberRanges, type RangedName } from '../base/text/number-range.js';
import { parseSize } from '../base/text/quantity.js';
import { isVersion } from '../behaviour/versions.js';
import { parseDims } from '../engines/profiles/profile.js';
import { TrtforgeError } from '../errors.js';

export { parseSize };

export interface NamedShape {
  readonly name: string;
  /** Empty for a scalar. */
  readonly dims: readonly number[];
}

/**
 * Reads `x:1x3x224x224`, `x:[1,3,224,224]` and `x:scalar`, several separated by commas.
 * The last `:` separates name and dimensions, so names may have colons; names with commas stand in single quotes.
 */
export function parseShapes(text: string): readonly NamedShape[] {
  return splitAtCommas(text).map((part) => {
    const colon = part.lastIndexOf(':');
    const name = unquote(part.slice(0, colon).trim());
    const dims = colon > 0 ? parseDims(part.slice(colon + 1).trim()) : undefined;
    if (dims === undefined || name === '') {
      throw new TrtforgeError('TF_SHAPE_INVALID', `"${part}" is not a shape.`);
    }
    return { name, dims };
  });
}

/** A reader of whole numbers within bounds, both included. */
export const integer = (from: number, to?: number) => is.whole(from, to).parse;

/** A reader of decimal numbers within bounds, both included. */
export const number = (from?: number, to?: number) => is.decimal(from, to).parse;

/** A reader of the numbers that the library accepts under this name. */
export const numberNamed = (name: RangedName) => {
  const { whole, from, to } = numberRanges[name];
  return (whole ? is.whole : is.decimal)(from, to).parse;
};

/** Reads a version of TensorRT as far as it is known. */
export function parseVersion(text: string): string {
  if (isVersion(text)) return text;
  throw new TrtforgeError('TF_USAGE', `"${text}" is not a version.`, { remedy: 'Write 10.13 or 10.13.3.9.' });
}

/** A reader of regular expressions. */
export function pattern(text: string): RegExp {
  try {
    return new RegExp(text, 'u');
  } catch (cause) {
    throw new TrtforgeError('TF_USAGE', `"${text}" is not a regular expression.`, { cause });
  }
}
