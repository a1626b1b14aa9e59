import { TrtforgeError } from '../../../errors.js';
import type { NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import { float32Values } from '../../../formats/tensor/values.js';

/** Candidate boxes of one image, in pixels of the network's input: left, top, right, bottom. */
export interface Candidates {
  readonly box: Float32Array;
  readonly score: Float32Array;
  /** Index into the labels. */
  readonly category: Int32Array;
}

/** What the network's outputs are; decided once, from shapes and the values of the first image. */
export interface Head {
  /** `end-to-end` [B,N,6] · `boxes` [B,4+C,N] · `dfl` [B,64+C,N] · `objectness` [B,N,5+C] · `detr` logits and boxes. */
  readonly kind: 'end-to-end' | 'boxes' | 'dfl' | 'objectness' | 'detr';
  /** Whether class scores are probabilities already. */
  readonly scores: 'probabilities' | 'logits' | 'softmax';
  /** Whether overlapping boxes must be suppressed: heads with one box an object have done it. */
  readonly needsNms: boolean;
  /** For the user: how it was recognised. */
  readonly reason: string;
}

export interface DecodeOptions {
  /** Number of labels. */
  readonly classes: number;
  readonly width: number;
  readonly height: number;
  /** Candidates of this score or less are dropped. */
  readonly confidence: number;
}

const BINS = 16;
/** A sigmoid of probabilities lies between 0.5 and this, in 16 bits too. */
const SIGMOID_OF_ONE = 0.732;
/** So many scores are not all in there by chance. */
const ENOUGH_SCORES = 100;
const STRIDES = [8, 16, 32] as const;

const mismatch = (message: string, remedy: string, details?: Record<string, unknown>) =>
  new TrtforgeError('TF_EVAL_HEAD', message, { remedy, details });

const shapesOf = (outputs: NamedTensors): string =>
  [...outputs].map(([name, { shape }]) => `${name} [${shape.join(',')}]`).join(', ');

/** Anchors of strides 8, 16 and 32 at an input size. */
const anchorCount = (width: number, height: number): number =>
  STRIDES.reduce((sum, stride) => sum + Math.floor(width / stride) * Math.floor(height / stride), 0);

/** A matrix of values by row and channel, however the tensor orders them. */
class Rows {
  readonly values: Float32Array;
  readonly count: number;
  readonly channels: number;
  readonly #row: number;
  readonly #channel: number;

  constructor(tensor: Tensor, name: string, channelAxis: 1 | 2) {
    const [, first = 0, second = 0] = tensor.shape.length === 2 ? [1, ...tensor.shape] : tensor.shape;
    this.values = float32Values(tensor, name);
    [this.channels, this.count] = channelAxis === 1 ? [first, second] : [second, first];
    [this.#channel, this.#row] = channelAxis === 1 ? [second, 1] : [1, second];
  }

  at(row: number, channel: number): number {
    return this.values[row * this.#row + channel * this.#channel]!;
  }
}

interface Found {
  readonly head: Head;
  readonly rows: Rows;
  /** Of a DETR head. */
  readonly boxes?: Rows;
}

/**
 * Recognises the head from the outputs of one image. Throws TF_EVAL_HEAD where no known head has these shapes with this number of labels, and where the
 * scores were put through a sigmoid twice.
 */
export function recogniseHead(outputs: NamedTensors, options: DecodeOptions): Head {
  const { head, rows } = find(outputs, options);
  if (head.scores === 'softmax') return head;
  const columns = head.kind === 'end-to-end' ? 1 : options.classes;
  const [low, high] = rangeOf(rows, head, columns);
  if (low >= 0.5 && high <= SIGMOID_OF_ONE && rows.count * columns >= ENOUGH_SCORES)
    throw mismatch(
      `Every score lies between 0.5 and ${high.toPrecision(3)}: the model applies the sigmoid twice.`,
      'Export the model again with one sigmoid, or without.',
      { low, high },
    );
  if (head.kind === 'end-to-end') return head;
  if (low < -1e-3 || high > 1 + 1e-3)
    return {
      ...head,
      scores: 'logits',
      reason: `${head.reason}; scores from ${low.toPrecision(3)} to ${high.toPrecision(3)} are logits`,
    };
  return {
    ...head,
    reason: `${head.reason}; scores from ${low.toPrecision(3)} to ${high.toPrecision(3)} are probabilities`,
  };
}

function find(outputs: NamedTensors, { classes, width, height }: DecodeOptions): Found {
  const detr = findDetr(outputs, classes);
  if (detr !== undefined) return detr;
  const unknown = (why: string) =>
    mismatch(
      `The outputs ${shapesOf(outputs)} are not those of a known detector with ${classes} labels: ${why}.`,
      "Check that --labels belongs to this model. Known: [1,N,6], [1,4+C,N], [1,64+C,N], [1,N,5+C], and DETR's logits with boxes.",
      { classes, outputs: [...outputs].map(([name, { shape }]) => ({ name, shape })) },
    );
  if (outputs.size !== 1) throw unknown(`there are ${outputs.size} outputs`);
  const [[name, tensor]] = [...outputs] as [[string, Tensor]];
  const dims = tensor.shape.length === 2 ? [1, ...tensor.shape] : tensor.shape;
  if (dims.length !== 3 || dims[0] !== 1) throw unknown('one output of one image has 2 or 3 dimensions');
  const [, first = 0, second = 0] = dims;
  if (second === 6 && first <= 1000) {
    const rows = new Rows(tensor, name, 2);
    if (isEndToEnd(rows, classes))
      return {
        rows,
        head: {
          kind: 'end-to-end',
          scores: 'probabilities',
          needsNms: false,
          reason: `[1,${first},6] is left, top, right, bottom, score, class`,
        },
      };
  }
  const anchors = anchorCount(width, height);
  let why = 'no axis is 4, 5 or 64 longer than the labels';
  for (const [kind, channels, what] of [
    ['boxes', 4 + classes, 'centre, size and one score a class'],
    ['dfl', 4 * BINS + classes, 'distance distributions and one score a class'],
    ['objectness', 5 + classes, 'centre, size, objectness and one score a class'],
  ] as const) {
    const axis = first === channels ? 1 : second === channels ? 2 : undefined;
    if (axis === undefined) continue;
    const rows = new Rows(tensor, name, axis);
    if (kind === 'dfl' && rows.count !== anchors) {
      why = `${rows.count} anchors, where ${width}x${height} has ${anchors} at strides 8, 16 and 32`;
      continue;
    }
    const reason = `[1,${first},${second}] is ${rows.count} anchors of ${what}`;
    return { rows, head: { kind, scores: 'probabilities', needsNms: true, reason } };
  }
  throw unknown(why);
}

/** Classes are whole numbers, scores probabilities, and boxes have their corners in order. */
function isEndToEnd(rows: Rows, classes: number): boolean {
  for (let row = 0; row < rows.count; row++) {
    const [score, category] = [rows.at(row, 4), rows.at(row, 5)];
    if (!Number.isInteger(category) || category < 0 || category >= classes) return false;
    if (score < 0 || score > 1) return false;
  }
  return true;
}

function findDetr(outputs: NamedTensors, classes: number): Found | undefined {
  if (outputs.size !== 2) return undefined;
  const entries = [...outputs];
  const ofBoxes = entries.filter(([, { shape }]) => shape.length === 3 && shape[2] === 4);
  // With three or four classes both outputs may have four columns.
  const boxes = ofBoxes.find(([name]) => /box/i.test(name)) ?? ofBoxes[0];
  const logits = entries.find((entry) => entry !== boxes);
  if (boxes === undefined || logits === undefined) return undefined;
  const [, queries, channels = 0] = logits[1].shape;
  if (logits[1].shape.length !== 3 || queries !== boxes[1].shape[1]) return undefined;
  if (channels !== classes && channels !== classes + 1) return undefined;
  const background = channels === classes + 1;
  return {
    rows: new Rows(logits[1], logits[0], 2),
    boxes: new Rows(boxes[1], boxes[0], 2),
    head: {
      kind: 'detr',
      scores: background ? 'softmax' : 'probabilities',
      needsNms: false,
      reason: background
        ? `${queries} queries of ${classes} classes and a background, softmax`
        : `${queries} queries of ${classes} classes`,
    },
  };
}

/** First channel of the class scores. */
const firstScore = ({ kind }: Head): number =>
  ({ 'end-to-end': 4, boxes: 4, dfl: 4 * BINS, objectness: 5, detr: 0 })[kind];

function rangeOf(rows: Rows, head: Head, columns: number): readonly [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  const start = firstScore(head);
  for (let row = 0; row < rows.count; row++)
    for (let channel = start; channel < start + columns; channel++) {
      const score = rows.at(row, channel);
      if (score < low) low = score;
      if (score > high) high = score;
    }
  return [low, high];
}

const sigmoid = (value: number): number => 1 / (1 + Math.exp(-value));

/**
 * Boxes of one image with the score of their best class, above the confidence. Throws TF_EVAL_HEAD where the outputs are not those of the head that was
 * recognised, as for scores beyond 1 where probabilities were seen before, and for scores and boxes that are not finite numbers.
 */
export function decode(outputs: NamedTensors, head: Head, options: DecodeOptions): Candidates {
  const found = find(outputs, options);
  if (found.head.kind !== head.kind)
    throw mismatch(
      `The outputs of this image look like a ${found.head.kind} head, those before like ${head.kind}.`,
      'Report the model: the head is decided by the first image.',
    );
  const { rows, boxes } = found;
  const box: number[] = [];
  const score: number[] = [];
  const category: number[] = [];
  for (let row = 0; row < rows.count; row++)
    for (const scored of scoresOf(rows, row, head, options)) {
      if (Number.isNaN(scored.score)) throw notFinite('score');
      if (scored.score <= options.confidence) continue;
      const corners = boxOf(rows, boxes, row, head, options);
      if (!corners.every(Number.isFinite)) throw notFinite('box');
      score.push(scored.score);
      category.push(scored.category);
      box.push(...corners);
    }
  return {
    box: Float32Array.from(box),
    score: Float32Array.from(score),
    category: Int32Array.from(category),
  };
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

/** What one row is taken for: its best class, or, of queries with independent classes, each of them (the best 300 of all decide, as RT-DETR does it). */
function scoresOf(rows: Rows, row: number, head: Head, options: DecodeOptions): readonly Scored[] {
  if (head.kind === 'end-to-end') return [{ score: rows.at(row, 4), category: rows.at(row, 5) }];
  if (head.kind !== 'detr' || head.scores === 'softmax') return [bestClass(rows, row, head, options)];
  const probability = head.scores === 'logits' ? sigmoid : (value: number) => value;
  return Array.from({ length: options.classes }, (_, category) => ({
    score: probability(rows.at(row, category)),
    category,
  }));
}

function bestClass(rows: Rows, row: number, head: Head, { classes }: DecodeOptions): Scored {
  const start = firstScore(head);
  let [best, category] = [Number.NEGATIVE_INFINITY, 0];
  for (let at = 0; at < classes; at++) {
    const value = rows.at(row, start + at);
    if (Number.isNaN(value)) return { score: Number.NaN, category: at };
    if (value > best) [best, category] = [value, at];
  }
  let score = best;
  if (head.scores === 'logits') score = sigmoid(best);
  else if (head.scores === 'softmax') score = softmaxShare(rows, row, best, classes);
  else if (best > 1 + 1e-3)
    throw mismatch(
      `A class score is ${best}, but those of the first image were probabilities.`,
      'Evaluate images with something on them first, or export the model with its sigmoid.',
    );
  if (head.kind === 'objectness')
    score *= head.scores === 'logits' ? sigmoid(rows.at(row, 4)) : rows.at(row, 4);
  return { score, category };
}

/** Of the best class among all and the background, which is the last channel. */
function softmaxShare(rows: Rows, row: number, best: number, classes: number): number {
  let sum = 0;
  const top = Math.max(best, rows.at(row, classes));
  for (let at = 0; at <= classes; at++) sum += Math.exp(rows.at(row, at) - top);
  return Math.exp(best - top) / sum;
}

function boxOf(
  rows: Rows,
  boxes: Rows | undefined,
  row: number,
  { kind }: Head,
  { width, height }: DecodeOptions,
): readonly [number, number, number, number] {
  if (kind === 'end-to-end') return [rows.at(row, 0), rows.at(row, 1), rows.at(row, 2), rows.at(row, 3)];
  if (kind === 'dfl') return fromDistances(rows, row, width, height);
  const source = boxes ?? rows;
  const [scaleX, scaleY] = kind === 'detr' ? [width, height] : [1, 1];
  const [x, y] = [source.at(row, 0) * scaleX, source.at(row, 1) * scaleY];
  const [halfWidth, halfHeight] = [(source.at(row, 2) * scaleX) / 2, (source.at(row, 3) * scaleY) / 2];
  return [x - halfWidth, y - halfHeight, x + halfWidth, y + halfHeight];
}

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
