import type { Candidates } from './decode.js';

interface SuppressionOptions {
  /** Of two boxes with a larger overlap the one of the lower score goes. */
  readonly overlap: number;
  /** Boxes of different classes suppress one another, too. */
  readonly classAgnostic: boolean;
  /** Only this many candidates of the highest score are looked at. */
  readonly topK: number;
  readonly maxDetections: number;
}

/** Indices of the candidates that are detections: overlapping ones are suppressed where the head needs it. */
export const keptOf = (
  candidates: Candidates,
  needsNms: boolean,
  options: SuppressionOptions,
): readonly number[] =>
  needsNms ? suppress(candidates, options) : strongest(candidates, options.maxDetections);

/** Indices of the candidates that stay, by falling score; equal scores keep their order. */
export function suppress(
  { box, score, category }: Candidates,
  { overlap, classAgnostic, topK, maxDetections }: SuppressionOptions,
): readonly number[] {
  const kept: number[] = [];
  for (const candidate of byScore(score).slice(0, topK)) {
    if (kept.length === maxDetections) break;
    const hidden = kept.some(
      (other) =>
        (classAgnostic || category[other] === category[candidate]) && iou(box, other, candidate) > overlap,
    );
    if (!hidden) kept.push(candidate);
  }
  return kept;
}

/** The candidates of the highest scores: for heads that have one box an object. */
export const strongest = ({ score }: Candidates, maxDetections: number): readonly number[] =>
  byScore(score).slice(0, maxDetections);

/** Indices by falling score; equal scores keep their order. */
const byScore = (score: Float32Array): readonly number[] =>
  Array.from(score.keys()).sort((a, b) => score[b]! - score[a]! || a - b);

/** The overlap of two of these boxes: their common area over the area of both together. */
export function iou(box: Float32Array, first: number, second: number): number {
  const [a, b] = [4 * first, 4 * second];
  const width = Math.min(box[a + 2]!, box[b + 2]!) - Math.max(box[a]!, box[b]!);
  const height = Math.min(box[a + 3]!, box[b + 3]!) - Math.max(box[a + 1]!, box[b + 1]!);
  if (width <= 0 || height <= 0) return 0;
  const common = width * height;
  const areaOf = (at: number) => (box[at + 2]! - box[at]!) * (box[at + 3]! - box[at + 1]!);
  return common / (areaOf(a) + areaOf(b) - common);
}
