import { eachPieceOf, type FloatReader } from '../float-reader.js';

/** The magnitudes of numbers; those that are not finite are left out. */
export interface Magnitudes {
  /** Root mean square; 0 of nothing. */
  readonly rms: number;
  /** The largest size. */
  readonly peak: number;
  /** The smallest number. */
  readonly least: number;
}

/** Numbers times this have squares that a double holds. */
const SHRUNK = 2 ** -600;

/** Looks at every number once, in constant memory. */
export function magnitudesOf(numbers: FloatReader): Magnitudes {
  let [squares, shrunkSquares, peak, count, least] = [0, 0, 0, 0, Number.POSITIVE_INFINITY];
  eachPieceOf(numbers, (values) => {
    // By index: an iterator over a typed array takes five times as long.
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      if (value - value !== 0) continue;
      const size = Math.abs(value);
      squares += value * value;
      shrunkSquares += (value * SHRUNK) ** 2;
      if (size > peak) peak = size;
      if (value < least) least = value;
      count++;
    }
  });
  const rms =
    squares === Number.POSITIVE_INFINITY
      ? Math.sqrt(shrunkSquares / count) / SHRUNK
      : Math.sqrt(squares / Math.max(1, count));
  return { rms, peak, least };
}
