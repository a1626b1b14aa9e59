/**
 * Matching of detections with annotations as `COCOeval.evaluateImg` of pycocotools 2.0.11 does it, to the last bit; the rules are read from its source
 * (cocoeval.py, maskApi.c) and compared with its results by test/products/evaluation/coco/pycocotools.full.test.ts.
 */

/** numpy's linspace: `i * step + start`, the last one exact. */
const linspace = (start: number, stop: number, count: number): readonly number[] =>
  Array.from({ length: count }, (_, i) =>
    i === count - 1 ? stop : i * ((stop - start) / (count - 1)) + start,
  );

/** Overlaps (intersection over union) from which a detection counts as found. */
export const THRESHOLDS = linspace(0.5, 0.95, 10);

/** Areas in pixels, both ends included: all, small, medium, large. */
export const AREA_RANGES = [
  [0, 1e10],
  [0, 32 ** 2],
  [32 ** 2, 96 ** 2],
  [96 ** 2, 1e10],
] as const;

/** Detections of one image and category that are scored: those with the highest scores. */
export const MOST_DETECTIONS = 100;

/** Recalls at which precision is read. */
export const RECALLS = linspace(0, 1, 101);

/** Numbers of detections per image and category that recall is given for. */
export const DETECTION_LIMITS = [1, 10, 100] as const;
