import type { Placement } from '../../formats/images/preprocess.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import { BoxEvidence, type BoxFormat, type CanvasSize, cornersOf, nameOf } from './box-format.js';
import {
  BINS,
  type DetectorFacts,
  findHead,
  firstScore,
  type Head,
  mismatch,
  type Rows,
  recogniseHead,
  STRIDES,
  usualForm,
} from './heads.js';

/** Candidate boxes of one image. */
export interface Candidates {
  /** Four numbers each: left, top, right, bottom in pixels of the network's input; before `withCorners` as the head has them. */
  readonly box: Float32Array;
  readonly score: Float32Array;
  /** Index into the labels. */
  readonly category: Int32Array;
  /** Row of the output. */
  readonly row: Int32Array;
}

const sigmoid = (value: number): number => 1 / (1 + Math.exp(-value));

/**
 * Boxes of one image with the score of their best class, or of each class (`multiLabel`), above the confidence. Throws TF_EVAL_HEAD where the outputs are not those of the head that was
 * recognised, as for scores beyond 1 where probabilities were seen before, and for scores and boxes that are not finite numbers.
 */
function decode(outputs: NamedTensors, head: Head, options: DecodeOptions): Candidates {
  const found = findHead(outputs, options, head);
  if (found.head.kind !== head.kind)
    throw mismatch(
      `The outputs of this image look like a ${found.head.kind} head, those before like ${head.kind}.`,
      'Report the model: the head is decided by the first image.',
    );
  const { rows, boxes } = found;
  const box: number[] = [];
  const score: number[] = [];
  const category: number[] = [];
  const from: number[] = [];
  for (let row = 0; row < rows.count; row++)
    for (const scored of scoresOf(rows, row, head, options)) {
      if (Number.isNaN(scored.score)) throw notFinite('score');
      if (scored.score <= options.confidence) continue;
      const numbers = boxOf(boxes ?? rows, row, head, options);
      if (!numbers.every(Number.isFinite)) throw notFinite('box');
      score.push(scored.score);
      category.push(scored.category);
      from.push(row);
      box.push(...numbers);
    }
  return {
    box: Float32Array.from(box),
    score: Float32Array.from(score),
    category: Int32Array.from(category),
    row: Int32Array.from(from),
  };
}

/** The candidates with their boxes as corners in pixels. */
function withCorners(candidates: Candidates, format: BoxFormat, canvas: CanvasSize): Candidates {
  const box = new Float32Array(candidates.box.length);
  for (let at = 0; at < box.length; at += 4) box.set(cornersOf(format, candidates.box, at, canvas), at);
  return { ...candidates, box };
}

/** An image with its place on the network's input, which both are in pixels. */
export interface PlacedImage {
  readonly width: number;
  readonly height: number;
  readonly placement: Placement;
}

/** Left, top, width, height in pixels of the image, within it, of corners in pixels of the network's input. */
export function boxOnImage(
  [left, top, right, bottom]: Iterable<number>,
  { width, height, placement }: PlacedImage,
): readonly [number, number, number, number] {
  const clip = (value: number, limit: number) => Math.min(Math.max(value, 0), limit);
  const x = (value = 0) => clip((value - placement.left) / placement.scaleX, width);
  const y = (value = 0) => clip((value - placement.top) / placement.scaleY, height);
  return [x(left), y(top), Math.max(0, x(right) - x(left)), Math.max(0, y(bottom) - y(top))];
}

const notFinite = (what: 'score' | 'box') =>
  mismatch(
    `A ${what} is not a finite number.`,
    'Look for overflow: `trtforge verify` names outputs with NaN or infinities.',
  );

interface Scored {
  readonly score: number;
  readonly category: number;
}

/** The classes of one row: the best, or each (`multiLabel`; queries with independent classes, where the best 300 of all decide, as in RT-DETR). */
function scoresOf(rows: Rows, row: number, head: Head, options: DecodeOptions): readonly Scored[] {
  if (head.kind === 'end-to-end') return [{ score: rows.at(row, 4), category: rows.at(row, 5) }];
  const hasBackground = head.kind === 'detr' && rows.channels > options.classes;
  const takesEach = head.kind === 'detr' ? !hasBackground : options.multiLabel;
  if (!takesEach) {
    const category = bestClass(rows, row, head, options);
    return [{ score: scoreOf(rows, row, category, head, options), category }];
  }
  return Array.from({ length: options.classes }, (_, category) => ({
    score: scoreOf(rows, row, category, head, options),
    category,
  }));
}

/** The first class that is not a number, else that of the highest value. */
function bestClass(rows: Rows, row: number, head: Head, { classes }: DetectorFacts): number {
  const start = firstScore(head);
  let category = 0;
  for (let at = 0; at < classes; at++) {
    const value = rows.at(row, start + at);
    if (Number.isNaN(value)) return at;
    if (value > rows.at(row, start + category)) category = at;
  }
  return category;
}

function scoreOf(rows: Rows, row: number, category: number, head: Head, { classes }: DetectorFacts): number {
  const value = rows.at(row, firstScore(head) + category);
  let score = value;
  if (head.scores === 'logits') score = sigmoid(value);
  else if (head.scores === 'softmax') score = softmaxShare(rows, row, value, classes);
  else if (value > 1 + 1e-3)
    throw mismatch(
      `A class score is ${value}, but those of the first image were probabilities.`,
      'Evaluate images with something on them first, or export the model with its sigmoid.',
    );
  if (head.kind === 'objectness')
    score *= head.scores === 'logits' ? sigmoid(rows.at(row, 4)) : rows.at(row, 4);
  return score;
}

/** Of the best class among all and the background, which is the last channel. */
function softmaxShare(rows: Rows, row: number, best: number, classes: number): number {
  let sum = 0;
  const top = Math.max(best, rows.at(row, classes));
  for (let at = 0; at <= classes; at++) sum += Math.exp(rows.at(row, at) - top);
  return Math.exp(best - top) / sum;
}

/** The four numbers as the head has them, or the corners that distances are from an anchor. */
const boxOf = (rows: Rows, row: number, { kind }: Head, { width, height }: CanvasSize) =>
  kind === 'dfl'
    ? fromDistances(rows, row, width, height)
    : ([rows.at(row, 0), rows.at(row, 1), rows.at(row, 2), rows.at(row, 3)] as const);

/** Distances to left, top, right and bottom are expectations over 16 bins, in strides, from the centre of the anchor's cell. */
function fromDistances(
  rows: Rows,
  row: number,
  width: number,
  height: number,
): readonly [number, number, number, number] {
  let cell = row;
  for (const stride of STRIDES) {
    const columns = Math.floor(width / stride);
    const cells = columns * Math.floor(height / stride);
    if (cell >= cells) {
      cell -= cells;
      continue;
    }
    const [x, y] = [((cell % columns) + 0.5) * stride, (Math.floor(cell / columns) + 0.5) * stride];
    const distance = (side: number) => expectation(rows, row, side * BINS) * stride;
    return [x - distance(0), y - distance(1), x + distance(2), y + distance(3)];
  }
  throw new RangeError(`anchor ${row} of ${rows.count}`);
}

function expectation(rows: Rows, row: number, first: number): number {
  let top = Number.NEGATIVE_INFINITY;
  for (let bin = 0; bin < BINS; bin++) top = Math.max(top, rows.at(row, first + bin));
  let [sum, weighted] = [0, 0];
  for (let bin = 0; bin < BINS; bin++) {
    const share = Math.exp(rows.at(row, first + bin) - top);
    sum += share;
    weighted += share * bin;
  }
  return weighted / sum;
}

/** So many boxes wait at most for their form: about 1 MB. */
const MOST_WAITING = 50_000;

/** The function that `take` passes candidates to, with boxes as corners in pixels. */
interface DecodeOptions extends DetectorFacts {
  /** Candidates of this score or less are dropped. */
  readonly confidence: number;
  /** Each class of a box above the confidence is a candidate, not its best class alone; for heads that need suppression. */
  readonly multiLabel: boolean;
}

type Use = (candidates: Candidates, head: Head) => void;

/** The recognised form of a detector's outputs, after the last image. */
export interface DecodedHead extends Head {
  /** `distances` are from the anchor of a box: nothing is open about them. */
  readonly boxes: Omit<BoxFormat, 'layout'> & { readonly layout: BoxFormat['layout'] | 'distances' };
}

/**
 * Turns the outputs of images into boxes. The head is recognised from the first image; candidates wait until enough of them show which form boxes have, so
 * `use` may be called later than `take`.
 */
export class Decoder {
  readonly #options: DecodeOptions;
  #head: Head | undefined;
  #evidence: BoxEvidence | undefined;
  #format: BoxFormat | undefined;
  #waiting: { readonly candidates: Candidates; readonly use: Use }[] = [];
  #count = 0;

  constructor(options: DecodeOptions) {
    this.#options = options;
  }

  /** Throws what `recogniseHead` and `decode` throw, and TF_EVAL_HEAD for boxes of no known form. */
  take(outputs: NamedTensors, use: Use): void {
    this.#head ??= recogniseHead(outputs, this.#options);
    const candidates = decode(outputs, this.#head, this.#options);
    if (this.#head.kind === 'dfl') {
      use(candidates, this.#head);
      return;
    }
    this.#evidence ??= new BoxEvidence(usualForm(this.#head), this.#options);
    this.#evidence.add(candidates.box);
    this.#waiting.push({ candidates, use });
    this.#count += candidates.score.length;
    if (this.#format === undefined && (this.#evidence.isDecided || this.#count >= MOST_WAITING))
      this.#format = this.#evidence.format();
    if (this.#format !== undefined) this.#flush(this.#head, this.#format);
  }

  /** Hands over what waits. Throws TF_EVAL_HEAD for boxes of no known form, and where later boxes have another one than the first. */
  finish(): DecodedHead {
    const head = this.#head!;
    if (head.kind === 'dfl')
      return { ...head, boxes: { layout: 'distances', scale: 'pixels', alsoFits: [], count: 0, misfits: 0 } };
    const boxes = this.#evidence!.format(this.#format);
    this.#flush(head, boxes);
    const form = `boxes are ${nameOf(boxes)}${boxes.alsoFits.length > 0 ? ' (assumed)' : ''}`;
    return { ...head, boxes, reason: `${head.reason}; ${form}` };
  }

  #flush(head: Head, format: BoxFormat): void {
    for (const { candidates, use } of this.#waiting)
      use(withCorners(candidates, format, this.#options), head);
    this.#waiting = [];
  }
}

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
