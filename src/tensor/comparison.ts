import { gatherInChunks } from './chunked-comparison.js';
import { type Comparison, comparisonOf } from './comparison-statistics.js';
import type { Tolerance } from './pair-sums.js';
import { gatherAtOnce } from './plain-comparison.js';

export type {
  Comparison,
  ErrorStatistics,
  NonFiniteCounts,
  SideStatistics,
} from './comparison-statistics.js';

/** From here on the vector kernel is faster than plain code. */
const LARGE = 4096;

/** Compares element by element. Throws RangeError when lengths differ. */
export function compareFloats(
  candidate: Float32Array,
  reference: Float32Array,
  tolerance: Tolerance,
): Comparison {
  if (candidate.length !== reference.length) {
    throw new RangeError(`${candidate.length} elements cannot be compared with ${reference.length}.`);
  }
  const gather = candidate.length < LARGE ? gatherAtOnce : gatherInChunks;
  return comparisonOf(gather(candidate, reference, tolerance), tolerance);
}
