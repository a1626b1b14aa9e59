/** Keys are the upper 16 bits of a float32 that is not negative: ordered as the values, 128 to the octave. */
export const KEYS = 1 << 15;

/** Pairs that the kernel holds at a time: four arrays of this many float32 stay in the processor's second-level cache. */
export const CHUNK_PAIRS = 32_768;
/** Pairs between two flushes of the float32 accumulators into float64. */
export const BLOCK_PAIRS = 2048;
/** From this many numbers on the vector kernel is faster than plain code. */
export const LARGE = 2048;

const CHUNK_BYTES = 4 * CHUNK_PAIRS;
/** Where things are in the kernel's memory, in bytes. */
export const place = {
  candidate: 0,
  reference: CHUNK_BYTES,
  absolute: 2 * CHUNK_BYTES,
  relative: 3 * CHUNK_BYTES,
  /** What `classify` collects, as many as there are at most. */
  collected: 4 * CHUNK_BYTES,
  slots: 5 * CHUNK_BYTES + 64,
  thresholds: 5 * CHUNK_BYTES + 1024,
  counts: 5 * CHUNK_BYTES + 2048,
  /** One bit for each value that is in a bracket. */
  masks: 5 * CHUNK_BYTES + 3072,
} as const;
export const KEY_COUNTS = Math.ceil((place.masks + CHUNK_PAIRS / 8) / 65536) * 65536;
export const PAGES = KEY_COUNTS / 65536 + (4 * KEYS) / 65536;

/** Sums kept as two float64 each; the slot number times 16 is the offset. */
export const sumSlots = [
  'candidate',
  'candidateSquares',
  'reference',
  'referenceSquares',
  'absolute',
  'absoluteSquares',
  'relative',
  'relativeSquares',
] as const;
/** Extremes kept as four float32 each. */
export const extremeSlots = [
  'candidateMin',
  'candidateMax',
  'referenceMin',
  'referenceMax',
  'absoluteMax',
  'relativeMax',
  'excessMax',
  'smallestReference',
] as const;
export type SumSlot = (typeof sumSlots)[number];
export type ExtremeSlot = (typeof extremeSlots)[number];

export const sumOffset = (slot: SumSlot): number => place.slots + 16 * sumSlots.indexOf(slot);
export const extremeOffset = (slot: ExtremeSlot): number =>
  place.slots + 16 * (sumSlots.length + extremeSlots.indexOf(slot));
export const outsideOffset = place.slots + 16 * (sumSlots.length + extremeSlots.length);
export const beyondBothOffset = outsideOffset + 16;

/** Brackets of keys that `classify` knows at once. */
export const BRACKETS = 4;

/** Steps written out in a row: a loop's own bookkeeping costs as much as a vector step. */
export const UNROLLED = 4;
/** Pairs that one turn of a loop handles: counts are multiples of it. */
export const STEP_PAIRS = 4 * UNROLLED;
