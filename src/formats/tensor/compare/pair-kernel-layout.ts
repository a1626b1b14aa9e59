import { type FloatFormat, KEYS } from '../float-format.js';

/** Pairs that the kernel holds at a time: four arrays of this many float32 stay in the processor's second-level cache. */
export const CHUNK_PAIRS = 32_768;
/** Pairs between two flushes of the block's accumulators into float64. */
export const BLOCK_PAIRS = 2048;
/** From this many numbers on the vector kernel is faster than plain code. */
export const LARGE = 2048;

/** Sums kept as two float64 each. */
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
/** Extremes kept as one vector each. */
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

/** Where things are in the memory of the kernel for a format, in bytes. */
export type KernelLayout = ReturnType<typeof kernelLayout>;

export function kernelLayout({ bytes }: Pick<FloatFormat, 'bytes'>) {
  const chunk = bytes * CHUNK_PAIRS;
  const place = {
    candidate: 0,
    reference: chunk,
    absolute: 2 * chunk,
    relative: 3 * chunk,
    /** What `classify` collects, as many as there are at most. */
    collected: 4 * chunk,
    slots: 5 * chunk + 64,
    thresholds: 5 * chunk + 1024,
    counts: 5 * chunk + 2048,
    /** One bit for each value that is in a bracket. */
    masks: 5 * chunk + 3072,
  } as const;
  const slot = (index: number) => place.slots + 16 * index;
  const keyCounts = Math.ceil((place.masks + CHUNK_PAIRS / 8) / 65536) * 65536;
  return {
    place,
    keyCounts,
    pages: (keyCounts + 4 * KEYS) / 65536,
    sum: (name: SumSlot) => slot(sumSlots.indexOf(name)),
    extreme: (name: ExtremeSlot) => slot(sumSlots.length + extremeSlots.indexOf(name)),
    outside: slot(sumSlots.length + extremeSlots.length),
    beyondBoth: slot(sumSlots.length + extremeSlots.length + 1),
  } as const;
}

/** Brackets of keys that `classify` knows at once. */
export const BRACKETS = 4;

/** Pairs that one turn of a loop handles, written out in a row: a loop's own bookkeeping costs as much as a vector step. Counts are multiples of it. */
export const STEP_PAIRS = 16;
