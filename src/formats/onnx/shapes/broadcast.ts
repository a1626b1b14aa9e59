import { unknown } from './rule-input.js';
import { equals, isNumber, type MaybeSize, maximum, type Shape, sizeText } from './size.js';

/** The larger of two sizes that are the same or 1. */
function broadcastSize(a: MaybeSize, b: MaybeSize): MaybeSize {
  if (a === 1 || equals(a, b)) return b;
  if (b === 1) return a;
  if (isNumber(a) && isNumber(b)) return unknown();
  return isNumber(a) && a > 1 ? a : isNumber(b) && b > 1 ? b : maximum(a, b);
}

/** The shape that shapes are stretched to, as numpy does it. Throws `UNKNOWN` where they do not fit. */
export function broadcast(...shapes: readonly Shape[]): Shape {
  const rank = Math.max(0, ...shapes.map(({ length }) => length));
  return Array.from({ length: rank }, (_, axis) =>
    shapes.reduce<MaybeSize>((size, shape) => {
      const at = axis - rank + shape.length;
      return at < 0 ? size : broadcastSize(size, shape[at]);
    }, 1),
  );
}

/** The better known of two sizes that have to be the same. */
export function merged(a: MaybeSize, b: MaybeSize): MaybeSize {
  if (a === undefined || b === undefined) return a ?? b;
  if (isNumber(a) && isNumber(b) && a !== b) return unknown();
  if (isNumber(a) || isNumber(b)) return isNumber(a) ? a : b;
  return sizeText(b).length < sizeText(a).length ? b : a;
}
