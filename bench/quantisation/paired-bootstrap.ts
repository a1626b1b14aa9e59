import { randomNumbers } from '../coco-data.js';

/** What a share is made of, sample by sample: errors among so many. */
export interface Counts {
  readonly errors: readonly number[];
  readonly among: readonly number[];
}

const DRAWS = 10_000;

/**
 * The interval that holds the difference of two shares over the same samples, `a` less `b`, with 95 % confidence: samples are drawn with replacement, the
 * same for both (M. Bisani, H. Ney: Bootstrap estimates for confidence intervals in ASR performance evaluation, ICASSP 2004).
 */
export function differenceInterval(a: Counts, b: Counts): readonly [low: number, high: number] {
  const count = a.among.length;
  const random = randomNumbers(1);
  const differences = Float64Array.from({ length: DRAWS }, () => {
    let [errors, among] = [0, 0];
    for (let drawn = 0; drawn < count; drawn++) {
      const at = Math.floor(count * random());
      errors += a.errors[at]! - b.errors[at]!;
      among += a.among[at]!;
    }
    return errors / among;
  }).sort();
  return [differences[0.025 * DRAWS]!, differences[0.975 * DRAWS - 1]!];
}
