import type { Annotation, DetectionTruth } from './annotations.js';
import type { Detections } from './detections.js';
import type { Orders } from './order.js';
import { AREA_RANGES, MOST_DETECTIONS, THRESHOLDS } from './parameters.js';

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
  const { image, category, box } = detections;
  const count = image.length;
  const matches: Matches = {
    positive: new Uint16Array(AREA_RANGES.length * count),
    ignored: new Uint16Array(AREA_RANGES.length * count),
    rank: new Uint8Array(count),
  };
  // Without a match a detection is ignored where its own area is outside of the range.
  for (let number = 0; number < count; number++) {
    const area = box[4 * number + 2]! * box[4 * number + 3]!;
    for (let range = 0; range < AREA_RANGES.length; range++) {
      const [low, high] = AREA_RANGES[range]!;
      if (area < low || area > high) matches.ignored[AREA_RANGES.length * number + range] = ALL_THRESHOLDS;
    }
  }
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
    if (next > firstOfCell) {
      const scored = orders.cells.subarray(start, Math.min(end, start + MOST_DETECTIONS));
      matchCell(detections, scored, annotations.slice(firstOfCell, next), matches);
    }
    start = end;
  }
  return matches;
}

/** An annotation that a detection of its cell may match. */
interface Candidate {
  /** Its index in the cell. */
  readonly at: number;
  readonly overlap: number;
  /** A bit for each threshold that the overlap reaches. */
  readonly reached: number;
}

/** `numbers` are the detections of the cell by falling score: each takes, at every threshold, the best annotation that is left. */
function matchCell(
  { box }: Detections,
  numbers: Uint32Array,
  annotations: readonly Annotation[],
  { positive, ignored }: Matches,
): void {
  const candidates = Array.from(numbers, (number) => candidatesOf(box, 4 * number, annotations));
  /** By annotation: a bit for each threshold at which it is matched. */
  const taken = new Uint16Array(annotations.length);
  for (let range = 0; range < AREA_RANGES.length; range++) {
    const [low, high] = AREA_RANGES[range]!;
    const isIgnored = annotations.map(({ isCrowd, area }) => isCrowd || area < low || area > high);
    taken.fill(0);
    for (let n = 0; n < numbers.length; n++) {
      if (candidates[n]!.length === 0) continue;
      const place = AREA_RANGES.length * numbers[n]! + range;
      let unmatched = ALL_THRESHOLDS;
      // An ignored annotation is matched only where no other is.
      for (const ignoredOnes of [false, true])
        for (const { at, reached } of candidates[n]!) {
          const matched = reached & unmatched & ~taken[at]!;
          if (isIgnored[at] !== ignoredOnes || matched === 0) continue;
          unmatched &= ~matched;
          const { isCrowd, hasIdZero } = annotations[at]!;
          // A crowd matches any number of detections.
          if (!isCrowd) taken[at]! |= matched;
          if (ignoredOnes) ignored[place]! |= matched;
          else if (!hasIdZero) {
            ignored[place]! &= ~matched;
            positive[place]! |= matched;
          }
        }
    }
  }
}

/** The annotations that overlap a box enough for the lowest threshold, best first; of equal ones the last. */
function candidatesOf(
  box: readonly number[],
  from: number,
  annotations: readonly Annotation[],
): readonly Candidate[] {
  const candidates: Candidate[] = [];
  for (let at = 0; at < annotations.length; at++) {
    const overlap = overlapOf(box, from, annotations[at]!);
    let thresholds = 0;
    while (thresholds < THRESHOLDS.length && overlap >= THRESHOLDS[thresholds]!) thresholds++;
    if (thresholds > 0) candidates.push({ at, overlap, reached: (1 << thresholds) - 1 });
  }
  return candidates.length < 2
    ? candidates
    : candidates.sort((one, other) => other.overlap - one.overlap || other.at - one.at);
}

/** Intersection over union of a detection's box and an annotation's; with a crowd over the detection's area (`bbIou` of maskApi.c). */
export function overlapOf(
  box: readonly number[],
  from: number,
  { box: theirs, isCrowd }: Annotation,
): number {
  const [left, top, width, height] = [box[from]!, box[from + 1]!, box[from + 2]!, box[from + 3]!];
  const across = Math.min(width + left, theirs[2] + theirs[0]) - Math.max(left, theirs[0]);
  if (across <= 0) return 0;
  const down = Math.min(height + top, theirs[3] + theirs[1]) - Math.max(top, theirs[1]);
  if (down <= 0) return 0;
  const common = across * down;
  return common / (isCrowd ? width * height : width * height + theirs[2] * theirs[3] - common);
}

/** By category, how many annotations a detection can find. */
export function countedAnnotations({ categories, annotations }: DetectionTruth, range: number): Uint32Array {
  const [low, high] = AREA_RANGES[range]!;
  const counted = new Uint32Array(categories.length);
  for (const { category, isCrowd, area } of annotations)
    if (!isCrowd && area >= low && area <= high) counted[category]!++;
  return counted;
}
