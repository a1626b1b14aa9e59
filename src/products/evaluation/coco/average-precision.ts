import type { DetectionTruth } from './annotations.js';
import type { Detections } from './detections.js';
import { countedAnnotations, type Matches, NOT_SCORED } from './match.js';
import type { Orders } from './order.js';
import { AREA_RANGES, DETECTION_LIMITS, RECALLS, THRESHOLDS } from './parameters.js';

/** `np.spacing(1)`. */
const EPSILON = Number.EPSILON;

/** Precision and recall of one area range, of the categories that have annotations in it. */
export interface AreaCurves {
  /** By index of such a category, ascending: its place in the arrays. */
  readonly columns: ReadonlyMap<number, number>;
  /** By threshold, recall, category: the order in which numpy sums it. */
  readonly precision: Float64Array;
  /** One for each of DETECTION_LIMITS, by threshold and category. */
  readonly recall: readonly Float64Array[];
}

/** As `COCOeval.accumulate`. `range` is an index into AREA_RANGES. Cells that pycocotools marks with -1 (no annotation counts) are left out. */
export function accumulate(
  truth: DetectionTruth,
  detections: Detections,
  { ranked }: Orders,
  matches: Matches,
  range: number,
): AreaCurves {
  const counted = countedAnnotations(truth, range);
  const columns = new Map<number, number>();
  for (const [category, annotations] of counted.entries())
    if (annotations > 0) columns.set(category, columns.size);
  const count = columns.size;
  const precision = new Float64Array(THRESHOLDS.length * RECALLS.length * count);
  const recall = DETECTION_LIMITS.map(() => new Float64Array(THRESHOLDS.length * count));
  let next = 0;
  columns.forEach((column, category) => {
    while (next < ranked.length && detections.category[ranked[next]!]! < category) next++;
    const start = next;
    while (next < ranked.length && detections.category[ranked[next]!] === category) next++;
    const annotations = counted[category]!;
    const found = truePositives(ranked.subarray(start, next), matches, range);
    found.forEach(({ precisions, within }, threshold) => {
      DETECTION_LIMITS.forEach((_, limit) => {
        recall[limit]![threshold * count + column] = within[limit]! / annotations;
      });
      // The precision at a recall is the best at that recall or a higher one.
      for (let i = precisions.length - 1; i > 0; i--)
        precisions[i - 1] = Math.max(precisions[i - 1]!, precisions[i]!);
      let positives = 0;
      RECALLS.forEach((wanted, at) => {
        while (positives < precisions.length && (positives + 1) / annotations < wanted) positives++;
        precision[(threshold * RECALLS.length + at) * count + column] = precisions[positives] ?? 0;
      });
    });
  });
  return { columns, precision, recall };
}

interface TruePositives {
  /** The precision at each true positive, by falling score: between two of them it only falls. */
  readonly precisions: number[];
  /** Number of true positives within each of DETECTION_LIMITS. */
  readonly within: number[];
}

/** By threshold. `numbers` are the detections of one category by falling score. */
function truePositives(
  numbers: Uint32Array,
  { positive, ignored, rank }: Matches,
  range: number,
): readonly TruePositives[] {
  const found = THRESHOLDS.map(() => ({ precisions: [] as number[], within: DETECTION_LIMITS.map(() => 0) }));
  /** False positives: at every threshold, and besides at each. */
  let always = 0;
  const besides = THRESHOLDS.map(() => 0);
  for (const number of numbers) {
    const place = rank[number]!;
    if (place === NOT_SCORED) continue;
    const cell = AREA_RANGES.length * number + range;
    const [hit, skipped] = [positive[cell]!, ignored[cell]!];
    if (hit === 0 && skipped === 0) always++;
    else
      for (let threshold = 0; threshold < THRESHOLDS.length; threshold++) {
        const mask = 1 << threshold;
        if ((hit & mask) !== 0) {
          const { precisions, within } = found[threshold]!;
          const count = precisions.length + 1;
          precisions.push(count / (always + besides[threshold]! + count + EPSILON));
          for (let at = 0; at < DETECTION_LIMITS.length; at++)
            if (place < DETECTION_LIMITS[at]!) within[at]!++;
        } else if ((skipped & mask) === 0) besides[threshold]!++;
      }
  }
  return found;
}

/** numpy's mean of a contiguous float64 array, to the last bit: pairwise summation in blocks of 128. NaN for an empty one. */
export const mean = (values: Float64Array): number => pairwiseSum(values) / values.length;

function pairwiseSum(values: Float64Array): number {
  const count = values.length;
  if (count > 128) {
    const half = (count >> 1) - ((count >> 1) % 8);
    return pairwiseSum(values.subarray(0, half)) + pairwiseSum(values.subarray(half));
  }
  const whole = count - (count % 8);
  let sum = 0;
  if (whole > 0) {
    const [a, b, c, d, e, f, g, h] = Array.from({ length: 8 }, (_, lane) => {
      let partial = values[lane]!;
      for (let i = lane + 8; i < whole; i += 8) partial += values[i]!;
      return partial;
    }) as [number, number, number, number, number, number, number, number];
    sum = a + b + (c + d) + (e + f + (g + h));
  }
  for (let i = whole; i < count; i++) sum += values[i]!;
  return sum;
}
