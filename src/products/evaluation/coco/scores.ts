import type { DetectionTruth } from './annotations.js';
import { type AreaCurves, accumulate, mean } from './average-precision.js';
import type { Detections } from './detections.js';
import { countedAnnotations, matchDetections, NOT_SCORED } from './match.js';
import { ordersOf } from './order.js';
import { AREA_RANGES, RECALLS, THRESHOLDS } from './parameters.js';
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
      all.columns.size === 0
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
  { all, small, medium, large }: Readonly<Record<'all' | 'small' | 'medium' | 'large', AreaCurves>>,
): CategoryScore[] {
  const annotations = countedAnnotations(truth, 0);
  const counts = new Uint32Array(truth.categories.length);
  for (const category of detections.category) counts[category]!++;
  return truth.categories.map(({ id, name }, category) => {
    const figure = (curves: AreaCurves, from = 0, to = THRESHOLDS.length) =>
      meanOf(columnOf(curves.precision, curves, category, from * RECALLS.length, to * RECALLS.length));
    const precision = columnOf(all.precision, all, category, 0, RECALLS.length);
    return {
      id,
      name,
      annotations: annotations[category]!,
      detections: counts[category]!,
      AP_50_95: figure(all),
      AP_50: meanOf(precision),
      AP_75: figure(all, AT_75, AT_75 + 1),
      AP_small: figure(small),
      AP_medium: figure(medium),
      AP_large: figure(large),
      AR_100: meanOf(columnOf(all.recall.at(-1)!, all, category, 0, THRESHOLDS.length)),
      precision: precision && rounded(precision),
    };
  });
}

const meanOf = (values: Float64Array | null): number | null => (values === null ? null : mean(values));

/** Rows `from` to `to` of a category's column in `cells`; null where it has none. */
function columnOf(
  cells: Float64Array,
  { columns }: AreaCurves,
  category: number,
  from: number,
  to: number,
): Float64Array | null {
  const column = columns.get(category);
  return column === undefined
    ? null
    : new Float64Array(to - from).map((_, row) => cells[(from + row) * columns.size + column]!);
}

/** The cells of one threshold, by recall and category. */
function thresholdOf({ precision, columns }: AreaCurves, threshold: number): Float64Array {
  const size = RECALLS.length * columns.size;
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
