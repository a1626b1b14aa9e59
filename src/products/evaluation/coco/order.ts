import type { DetectionTruth } from './annotations.js';
import type { Detections } from './detections.js';

/** Detections and annotations sorted as the scorer walks through them; each list holds their numbers. */
export interface Orders {
  /** Detections by category, image, falling score, number: a cell (category and image) is a run. */
  readonly cells: Uint32Array;
  /** Detections by category, falling score, image, number. */
  readonly ranked: Uint32Array;
  /** Annotations by category, image, number. */
  readonly annotations: Uint32Array;
}

/** Counting sorts, each stable, least significant key first: half a million detections take a quarter of the time of a comparison function. */
export function ordersOf(truth: DetectionTruth, detections: Detections): Orders {
  const { image, category, score } = detections;
  const [images, categories] = [truth.images.length, truth.categories.length];
  const asMade = new Uint32Array(score.length).map((_, number) => number);
  const inTruth = new Uint32Array(truth.annotations.length).map((_, number) => number);
  const key = (field: 'image' | 'category') => truth.annotations.map((annotation) => annotation[field]);
  const place = placesByScore(score);
  const byScore = (order: Uint32Array) => sorted(order, place, score.length);
  return {
    cells: sorted(sorted(byScore(asMade), image, images), category, categories),
    ranked: sorted(byScore(sorted(asMade, image, images)), category, categories),
    annotations: sorted(sorted(inTruth, key('image'), images), key('category'), categories),
  };
}

/** `order` sorted by the key of each number, from 0 below `range`; equal keys keep their order. */
function sorted(order: Uint32Array, keys: ArrayLike<number>, range: number): Uint32Array {
  const places = new Uint32Array(range + 1);
  for (const number of order) places[keys[number]! + 1]!++;
  for (let key = 0; key < range; key++) places[key + 1]! += places[key]!;
  const result = new Uint32Array(order.length);
  for (const number of order) result[places[keys[number]!]!++] = number;
  return result;
}

/** Number of higher scores, for each; found by bisection of the sorted scores. */
function placesByScore(scores: readonly number[]): Uint32Array {
  const falling = Float64Array.from(scores).sort().reverse();
  const places = new Uint32Array(scores.length);
  for (let number = 0; number < scores.length; number++) {
    const score = scores[number]!;
    let [low, high] = [0, scores.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (falling[middle]! > score) low = middle + 1;
      else high = middle;
    }
    places[number] = low;
  }
  return places;
}
