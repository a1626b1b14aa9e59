import { type AreaCurves, accumulate, countedAnnotations, mean, RECALLS } from './accumulate.js';
import type { Detections } from './detections.js';
import type { DetectionTruth } from './instances.js';
import { AREA_RANGES, matchDetections, NOT_SCORED, THRESHOLDS } from './match.js';
import { ordersOf } from './order.js';
import type { CategoryScore, DetectionScores, PrecisionCurve } from './result.js';

/** Index of the overlap 0.75. */
const AT_75 = THRESHOLDS.indexOf(0.75);

/** Scores detections by the rules of COCO: `stats` are those of pycocotools 2.0.11 to the last bit. */
export function scoreDetections(truth: DetectionTruth, detections: Detections): DetectionScores {
  const orders = ordersOf(truth, detections);
  const matches = matchDetections(truth, detections, orders);
  const [all, small, medium, large] = AREA_RANGES.map((_, range) =>
    accumulate(truth, detections, orders, matches, range),
  ) as [AreaCurves, AreaCurves, AreaCurves, AreaCurves];
  const means = [
    mean(all.precision),
    mean(thresholdOf(all, 0)),
    mean(thresholdOf(all, AT_75)),
    ...[small, medium, large].map(({ precision }) => mean(precision)),
    ...all.recall.map(mean),
    ...[small, medium, large].map(({ recall }) => mean(recall.at(-1)!)),
  ];
  const areas = { all, small, medium, large };
  return {
    // numpy has no mean of nothing either: pycocotools returns -1.
    stats: means.map((value) => (Number.isNaN(value) ? -1 : value)),
    perClass: categoryScores(truth, detections, areas),
    precision:
      all.categories.length === 0
        ? null
        : {
            at50: meanCurve([thresholdOf(all, 0)]),
            at75: meanCurve([thresholdOf(all, AT_75)]),
            at50to95: meanCurve(THRESHOLDS.map((_, threshold) => thresholdOf(all, threshold))),
          },
    beyondLimit: matches.rank.reduce((count, rank) => count + Number(rank === NOT_SCORED), 0),
  };
}

function categoryScores(
  truth: DetectionTruth,
  detections: Detections,
  areas: Readonly<Record<'all' | 'small' | 'medium' | 'large', AreaCurves>>,
): CategoryScore[] {
  const annotations = countedAnnotations(truth, 0);
  const counts = new Uint32Array(truth.categories.length);
  for (const category of detections.category) counts[category]!++;
  const columns = Object.fromEntries(
    Object.entries(areas).map(([area, { categories }]) => [
      area,
      new Map(categories.map((category, column) => [category, column])),
    ]),
  );
  return truth.categories.map(({ id, name }, category) => {
    /** The column of its values at some thresholds; null where the area has none. */
    const columnOf = (area: keyof typeof areas, from = 0, to = THRESHOLDS.length): Float64Array | null => {
      const column = columns[area]?.get(category);
      const { precision, categories } = areas[area];
      const [start, end] = [from * RECALLS.length, to * RECALLS.length];
      return column === undefined
        ? null
        : Float64Array.from(
            { length: end - start },
            (_, i) => precision[(start + i) * categories.length + column]!,
          );
    };
    const meanOf = (values: Float64Array | null) => (values === null ? null : mean(values));
    const at50 = columnOf('all', 0, 1);
    const column = columns.all?.get(category);
    const { recall, categories } = areas.all;
    return {
      id,
      name,
      annotations: annotations[category]!,
      detections: counts[category]!,
      AP_50_95: meanOf(columnOf('all')),
      AP_50: meanOf(at50),
      AP_75: meanOf(columnOf('all', AT_75, AT_75 + 1)),
      AP_small: meanOf(columnOf('small')),
      AP_medium: meanOf(columnOf('medium')),
      AP_large: meanOf(columnOf('large')),
      AR_100:
        column === undefined
          ? null
          : mean(recall.at(-1)!.filter((_, at) => at % categories.length === column)),
      precision: at50 && rounded(at50),
    };
  });
}

/** The cells of one threshold, by recall and category. */
function thresholdOf({ precision, categories }: AreaCurves, threshold: number): Float64Array {
  const size = RECALLS.length * categories.length;
  return precision.subarray(threshold * size, (threshold + 1) * size);
}

/** The mean over thresholds and categories at each recall. */
const meanCurve = (thresholds: readonly Float64Array[]): PrecisionCurve =>
  rounded(
    RECALLS.map((_, at) => {
      const size = thresholds[0]!.length / RECALLS.length;
      return (
        thresholds.reduce((sum, cells) => sum + mean(cells.subarray(at * size, (at + 1) * size)), 0) /
        thresholds.length
      );
    }),
  );

/** Curves are drawn: five decimals are more than a page shows. */
const rounded = (values: ArrayLike<number>): PrecisionCurve =>
  Array.from(values, (value) => Number(value.toFixed(5)));
