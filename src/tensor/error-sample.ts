import { absoluteError, relativeError } from './pair-sums.js';

/** Keys are the upper 16 bits of a float32 that is not negative: ordered as the values, 128 to the octave. */
export const KEYS = 1 << 15;

/** How many sampled errors have which key. */
export interface KeyCounts {
  readonly counts: Uint32Array;
  readonly total: number;
}

const SMALLEST_SAMPLE = 1024;
const LARGEST_SAMPLE = 32_768;
/** One element of this many is sampled, within those bounds. */
const SAMPLED_FROM = 64;

/**
 * Looks at elements spread over the tensors, one at a random place of each equal stretch, so that neither order nor period of the elements can mislead it.
 * The places are the same for every pair of tensors of a length.
 */
export function sampleErrors(
  candidate: Float32Array,
  reference: Float32Array,
): { readonly absolute: KeyCounts; readonly relative: KeyCounts } {
  const length = candidate.length;
  const places = Math.min(
    LARGEST_SAMPLE,
    Math.max(SMALLEST_SAMPLE, Math.floor(length / SAMPLED_FROM)),
    length,
  );
  const stretch = length / places;
  const absolute = new Float32Array(places);
  const relative = new Float32Array(places);
  let taken = 0;
  let random = 0x9e3779b9;
  for (let i = 0; i < places; i++) {
    random = (Math.imul(random, 1664525) + 1013904223) | 0;
    const at = Math.floor((i + (random >>> 8) / 2 ** 24) * stretch);
    const c = candidate[at]!;
    const r = reference[at]!;
    if (c - c !== 0 || r - r !== 0) continue;
    absolute[taken] = absoluteError(c, r);
    relative[taken++] = relativeError(c, r);
  }
  return { absolute: countKeys(absolute, taken), relative: countKeys(relative, taken) };
}

/** Adds the keys of the first `length` values to the counts. */
export function countKeys(values: Float32Array, length: number): KeyCounts {
  const counts = new Uint32Array(KEYS);
  const halves = new Uint16Array(values.buffer, values.byteOffset, 2 * length);
  for (let i = 1; i < halves.length; i += 2) counts[halves[i]!]!++;
  return { counts, total: length };
}
