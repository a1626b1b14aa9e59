import type { Detections } from './detections.js';
import type { Annotation, DetectionTruth } from './instances.js';
import type { Orders } from './order.js';

/**
 * Matching of detections with annotations as `COCOeval.evaluateImg` of pycocotools 2.0.11 does it, to the last bit; the rules are read from its source
 * (cocoeval.py, maskApi.c) and compared with its results by test/products/evaluation/detection/pycocotools.full.test.ts.
 */

/** numpy's linspace: `i * step + start`, the last one exact. */
export const linspace = (start: number, stop: number, count: number): readonly number[] =>
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
const MOST_DETECTIONS = 100;
/** Rank of a detection beyond those. */
export const NOT_SCORED = 255;

/** A bit for each threshold. */
const ALL_THRESHOLDS = (1 << THRESHOLDS.length) - 1;

export interface Matches {
  /** By detection and area range: a bit is set for each threshold at which it is a true positive. */
  readonly positive: Uint16Array;
  /** Likewise where it counts neither as true nor as false. */
  readonly ignored: Uint16Array;
  /** By detection: its place by score in its image and category, from 0; NOT_SCORED beyond MOST_DETECTIONS. */
  readonly rank: Uint8Array;
}

/** Matches the detections of every cell (category and image) with its annotations, for every threshold and area range. */
export function matchDetections(truth: DetectionTruth, detections: Detections, orders: Orders): Matches {
  const count = detections.score.length;
  const matches: Matches = {
    positive: new Uint16Array(AREA_RANGES.length * count),
    ignored: new Uint16Array(AREA_RANGES.length * count),
    rank: new Uint8Array(count),
  };
  const { image, category } = detections;
  const annotations = Array.from(orders.annotations, (number) => truth.annotations[number]!);
  const cellOf = (imageIndex: number, categoryIndex: number) =>
    categoryIndex * truth.images.length + imageIndex;
  const annotationCells = annotations.map((each) => cellOf(each.image, each.category));
  for (let start = 0, next = 0; start < count; ) {
    const first = orders.cells[start]!;
    const cell = cellOf(image[first]!, category[first]!);
    let end = start;
    for (; end < count; end++) {
      const number = orders.cells[end]!;
      if (cellOf(image[number]!, category[number]!) !== cell) break;
      matches.rank[number] = end - start < MOST_DETECTIONS ? end - start : NOT_SCORED;
    }
    while (next < annotations.length && annotationCells[next]! < cell) next++;
    const firstOfCell = next;
    while (annotationCells[next] === cell) next++;
    const scored = orders.cells.subarray(start, Math.min(end, start + MOST_DETECTIONS));
    matchCell(detections, scored, annotations.slice(firstOfCell, next), matches);
    start = end;
  }
  return matches;
}

/** A detection and the annotations of its cell that it overlaps enough for the lowest threshold. */
interface ClosePairs {
  readonly number: number;
  /** Indices of annotations in the cell, and the overlap with each. */
  readonly at: readonly number[];
  readonly overlap: readonly number[];
  readonly largest: number;
}

/** `numbers` are the detections of the cell by falling score. */
function matchCell(
  { box }: Detections,
  numbers: Uint32Array,
  annotations: readonly Annotation[],
  { positive, ignored }: Matches,
): void {
  for (const number of numbers) {
    const area = box[4 * number + 2]! * box[4 * number + 3]!;
    for (let range = 0; range < AREA_RANGES.length; range++) {
      const [low, high] = AREA_RANGES[range]!;
      ignored[AREA_RANGES.length * number + range] = area < low || area > high ? ALL_THRESHOLDS : 0;
    }
  }
  const close = closePairs(box, numbers, annotations);
  if (close.length === 0) return;
  /** By annotation: a bit for each threshold at which it is matched. A crowd matches any number of detections. */
  const taken = new Uint16Array(annotations.length);
  for (let range = 0; range < AREA_RANGES.length; range++) {
    const [low, high] = AREA_RANGES[range]!;
    const isIgnored = annotations.map(({ isCrowd, area }) => isCrowd || area < low || area > high);
    taken.fill(0);
    for (const pairs of close)
      for (let bit = 0; bit < THRESHOLDS.length && !(pairs.largest < THRESHOLDS[bit]!); bit++) {
        const match = bestMatch(pairs, bit, taken, isIgnored);
        if (match < 0) continue;
        const { isCrowd, hasIdZero } = annotations[match]!;
        const mask = 1 << bit;
        const place = AREA_RANGES.length * pairs.number + range;
        if (!isCrowd) taken[match]! |= mask;
        if (isIgnored[match]) ignored[place]! |= mask;
        else if (!hasIdZero) {
          ignored[place]! &= ~mask;
          positive[place]! |= mask;
        }
      }
  }
}

function closePairs(
  box: readonly number[],
  numbers: Uint32Array,
  annotations: readonly Annotation[],
): readonly ClosePairs[] {
  const close: ClosePairs[] = [];
  if (annotations.length === 0) return close;
  for (const number of numbers) {
    const at: number[] = [];
    const overlap: number[] = [];
    let largest = 0;
    for (let index = 0; index < annotations.length; index++) {
      const value = overlapOf(box, 4 * number, annotations[index]!);
      // An overlap of huge boxes may be NaN, which pycocotools takes for enough.
      if (value < THRESHOLDS[0]!) continue;
      at.push(index);
      overlap.push(value);
      largest = Math.max(largest, value);
    }
    if (at.length > 0) close.push({ number, at, overlap, largest });
  }
  return close;
}

/** Intersection over union of a detection's box and an annotation's; with a crowd over the detection's area (`bbIou` of maskApi.c). */
function overlapOf(box: readonly number[], from: number, { box: theirs, isCrowd }: Annotation): number {
  const [left, top, width, height] = [box[from]!, box[from + 1]!, box[from + 2]!, box[from + 3]!];
  const across = Math.min(width + left, theirs[2] + theirs[0]) - Math.max(left, theirs[0]);
  if (across <= 0) return 0;
  const down = Math.min(height + top, theirs[3] + theirs[1]) - Math.max(top, theirs[1]);
  if (down <= 0) return 0;
  const common = across * down;
  return common / (isCrowd ? width * height : width * height + theirs[2] * theirs[3] - common);
}

/** The annotation not yet taken with the largest overlap, the last of equal ones; an ignored one only where no other is close enough. -1 for none. */
function bestMatch(
  { at, overlap }: ClosePairs,
  bit: number,
  taken: Uint16Array,
  isIgnored: readonly boolean[],
): number {
  let match = -1;
  let best = THRESHOLDS[bit]!;
  for (let n = 0; n < at.length; n++) {
    const index = at[n]!;
    if (isIgnored[index] || overlap[n]! < best || (taken[index]! >> bit) & 1) continue;
    best = overlap[n]!;
    match = index;
  }
  if (match >= 0) return match;
  for (let n = 0; n < at.length; n++) {
    const index = at[n]!;
    if (!isIgnored[index] || overlap[n]! < best || (taken[index]! >> bit) & 1) continue;
    best = overlap[n]!;
    match = index;
  }
  return match;
}
