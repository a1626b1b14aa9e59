import type { FloatArray } from '../float-format.js';
import { allFloats, type FloatReader, SHRUNK, scaledFloats } from '../float-reader.js';
import { pairKernel } from './pair-kernel.js';
import { BLOCK_PAIRS, CHUNK_PAIRS, LARGE } from './pair-kernel-layout.js';

/** How large numbers are; those that are not finite are left out. */
export interface Magnitudes {
  /** Root mean square; 0 of nothing. */
  readonly rms: number;
  /** The largest size. */
  readonly peak: number;
}

/**
 * Looks at every number once, in constant memory: through both sides of the pair kernel, whose sums of float32 are float32 within a block (relative error
 * some 1e-7). A second time where squares are beyond what a double holds.
 */
export function magnitudesOf(numbers: FloatReader): Magnitudes {
  const found = { squares: 0, peak: 0, count: 0 };
  if (numbers.length < LARGE) addPlain(allFloats(numbers), found);
  else for (let start = 0; start < numbers.length; start += 2 * CHUNK_PAIRS) addPieces(numbers, start, found);
  if (found.squares === Number.POSITIVE_INFINITY)
    return { rms: magnitudesOf(scaledFloats(numbers, SHRUNK)).rms / SHRUNK, peak: found.peak };
  return { rms: Math.sqrt(found.squares / Math.max(1, found.count)), peak: found.peak };
}

interface Found {
  squares: number;
  peak: number;
  count: number;
}

/** Two pieces of the numbers, one where candidates are in the kernel and one where references are. */
function addPieces(numbers: FloatReader, start: number, found: Found): void {
  const kernel = pairKernel(numbers.format);
  const pieces = [kernel.candidate, kernel.reference].map((room, side) => {
    const from = start + side * CHUNK_PAIRS;
    const piece = room.subarray(0, Math.max(0, Math.min(CHUNK_PAIRS, numbers.length - from)));
    if (piece.length > 0) numbers.read(from, piece);
    // Zeros add nothing to either.
    room.fill(0, piece.length);
    return piece;
  });
  kernel.reset();
  for (let block = 0; block < CHUNK_PAIRS; block += BLOCK_PAIRS) kernel.measureSides(block, BLOCK_PAIRS);
  const squares = kernel.sum('candidateSquares') + kernel.sum('referenceSquares');
  if (!Number.isFinite(squares)) {
    for (const piece of pieces) addPlain(piece, found);
    return;
  }
  found.squares += squares;
  found.peak = Math.max(
    found.peak,
    -kernel.minimum('candidateMin'),
    kernel.maximum('candidateMax'),
    -kernel.minimum('referenceMin'),
    kernel.maximum('referenceMax'),
  );
  found.count += pieces.reduce((sum, { length }) => sum + length, 0);
}

function addPlain(values: FloatArray, found: Found): void {
  // By index: an iterator over a typed array takes five times as long.
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (value - value !== 0) continue;
    found.squares += value * value;
    found.peak = Math.max(found.peak, Math.abs(value));
    found.count++;
  }
}
