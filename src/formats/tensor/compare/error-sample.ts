import { infiniteKey, KEYS, wordsOf } from '../float-format.js';
import type { FloatPairs } from '../float-reader.js';
import type { KernelArray, PairKernel } from './pair-kernel.js';
import { BLOCK_PAIRS, CHUNK_PAIRS } from './pair-kernel-layout.js';

/** Neighbours sampled at a place: they come with it from memory at little cost. */
const NEIGHBOURS = 16;
/** One stretch of this many elements has one place, as far as the kernel holds them at once. A place costs a microsecond: it is in no cache yet. */
const STRETCH = 2048;
const FEWEST_PLACES = 128;
const MOST_PLACES = CHUNK_PAIRS / NEIGHBOURS;

/** How many sampled errors have which key. */
export interface KeyCounts {
  readonly counts: Uint32Array;
  readonly total: number;
  /** No key above this one was seen. */
  readonly top: number;
}

/**
 * Looks at elements spread over the tensors, a few at a random place of each equal stretch, so that neither order nor period of the elements can mislead
 * it. The places are the same for every pair of tensors of a length. Leaves their errors in the kernel and returns how many there are.
 */
export function sampleErrors(kernel: PairKernel, { candidate, reference }: FloatPairs): number {
  const places = Math.min(MOST_PLACES, Math.max(FEWEST_PLACES, Math.floor(candidate.length / STRETCH)));
  const stretch = (candidate.length - NEIGHBOURS) / places;
  let random = 0x9e3779b9;
  let taken = 0;
  for (let place = 0; place < places; place++) {
    random = (Math.imul(random, 1664525) + 1013904223) | 0;
    const at = Math.floor((place + (random >>> 8) / 2 ** 24) * stretch);
    candidate.read(at, kernel.candidate.subarray(taken, taken + NEIGHBOURS));
    reference.read(at, kernel.reference.subarray(taken, taken + NEIGHBOURS));
    taken += NEIGHBOURS;
  }
  kernel.reset();
  for (let start = 0; start < taken; start += BLOCK_PAIRS) {
    kernel.measure(start, Math.min(BLOCK_PAIRS, taken - start), 0, 0, true);
  }
  return taken;
}

/** The keys of the sampled errors; those that are not finite are left out. The counts are overwritten when the kernel counts again. */
export function sampledKeys(kernel: PairKernel, which: KernelArray, taken: number): KeyCounts {
  const counts = kernel.countKeys(kernel[which].subarray(0, taken));
  const beyond = infiniteKey(kernel.format);
  let total = taken;
  for (let key = beyond; key < KEYS; key++) {
    total -= counts[key]!;
    counts[key] = 0;
  }
  const max = kernel.maximum(`${which}Max`);
  return { counts, total, top: Number.isFinite(max) ? keyOf(kernel, max) : beyond - 1 };
}

function keyOf({ format }: PairKernel, error: number): number {
  const one = format.make(1);
  one[0] = error;
  return new Uint16Array(one.buffer)[wordsOf(format) - 1]!;
}
