import { TrtforgeError } from '../../errors.js';
import { float32Values, type NamedTensors, type Tensor } from '../../formats/tensor/tensor.js';
import { BoxEvidence, type BoxForm, type CanvasSize } from './box-format.js';

/** The form of the network's outputs; decided once, from shapes and the values of the first image. */
export interface Head {
  /** `end-to-end` [B,N,6] · `boxes` [B,4+C,N] · `dfl` [B,64+C,N] · `objectness` [B,N,5+C] · `detr` logits and boxes. */
  readonly kind: 'end-to-end' | 'boxes' | 'dfl' | 'objectness' | 'detr';
  /** Whether class scores are probabilities already. */
  readonly scores: 'probabilities' | 'logits' | 'softmax';
  /** Whether overlapping boxes must be suppressed: heads with one box an object have done it. */
  readonly needsNms: boolean;
  /** Names of the outputs that have scores and boxes. */
  readonly outputs: { readonly scores: string; readonly boxes: string };
  /** Of segmented objects: the output of prototypes [1,K,h,w], whose K weights stand behind the scores of a row, and the axis that these are on. */
  readonly masks?: { readonly prototypes: string; readonly axis: 1 | 2 };
  /** For the user: how it was recognised. */
  readonly reason: string;
}

/** What is known of a detector before it runs: its labels, and the size of its input. */
export interface DetectorFacts extends CanvasSize {
  /** Number of labels. */
  readonly classes: number;
}

/** Bins of a distance. */
export const BINS = 16;
export const STRIDES = [8, 16, 32] as const;
/** A sigmoid of probabilities lies between 0.5 and this, in 16 bits too. */
const SIGMOID_OF_ONE = 0.732;
/** So many scores are not all in there by chance. */
const ENOUGH_SCORES = 100;
/** The error that rounding to 16 or 8 bits adds to the sum of a softmax. */
export const SUM_ERROR = 0.02;
/** Logits beyond this are a probability of 1 in any type: larger values are pixels. */
const LARGEST_LOGIT = 50;

export const mismatch = (message: string, remedy: string, details?: Record<string, unknown>) =>
  new TrtforgeError('TF_EVAL_HEAD', message, { remedy, details });

/** Anchors of strides 8, 16 and 32 at an input size. */
const anchorCount = (width: number, height: number): number =>
  STRIDES.reduce((sum, stride) => sum + Math.floor(width / stride) * Math.floor(height / stride), 0);

interface FoundHead {
  readonly head: Head;
  readonly rows: Rows;
  /** Of a DETR head. */
  readonly boxes?: Rows;
}

/** First channel of the class scores. */
export const firstScore = ({ kind }: Head): number =>
  ({ 'end-to-end': 4, boxes: 4, dfl: 4 * BINS, objectness: 5, detr: 0 })[kind];

/** The form of boxes that exporters write for a head. */
export const usualForm = ({ kind }: Head): BoxForm => ({
  layout: kind === 'end-to-end' ? 'corners' : 'centre-size',
  scale: kind === 'detr' ? 'normalised' : 'pixels',
});

/**
 * Recognises the head from the outputs of one image. Throws TF_EVAL_HEAD where no known head has these shapes with this number of labels, where it is open
 * which output has the boxes, and where scores were put through a sigmoid twice, or one beside a background.
 */
export function recogniseHead(outputs: NamedTensors, detector: DetectorFacts): Head {
  const { head, rows } = findHead(outputs, detector);
  const columns = head.kind === 'end-to-end' ? 1 : head.kind === 'detr' ? rows.channels : detector.classes;
  const [low, high] = rows.rangeOf(firstScore(head), columns);
  const isMany = rows.count * columns >= ENOUGH_SCORES;
  const from = `scores from ${low.toPrecision(3)} to ${high.toPrecision(3)}`;
  if (head.scores === 'softmax') {
    if (isSoftmax(rows, low))
      return { ...head, scores: 'probabilities', reason: `${head.reason}; its rows add up to 1 already` };
    if (low < 0 || high > 1 || !isMany) return { ...head, reason: `${head.reason}; ${from} are logits` };
    throw mismatch(
      `The scores of ${detector.classes} classes and a background lie between 0 and 1, and those of a query do not add up to 1.`,
      'Export logits, or a softmax over all classes with the background last.',
      { low, high },
    );
  }
  if (low >= 0.5 && high <= SIGMOID_OF_ONE && isMany)
    throw mismatch(
      `Every score lies between 0.5 and ${high.toPrecision(3)}: the model applies the sigmoid twice.`,
      'Export the model again with one sigmoid, or without.',
      { low, high },
    );
  if (head.kind === 'end-to-end') return head;
  const scores = low < -1e-3 || high > 1 + 1e-3 ? 'logits' : 'probabilities';
  return { ...head, scores, reason: `${head.reason}; ${from} are ${scores}` };
}

/** Whether the scores of every query are those of a softmax. */
function isSoftmax(rows: Rows, low: number): boolean {
  if (low < -1e-3) return false;
  for (let row = 0; row < rows.count; row++) {
    let sum = 0;
    for (let channel = 0; channel < rows.channels; channel++) sum += rows.at(row, channel);
    if (!(Math.abs(sum - 1) <= SUM_ERROR)) return false;
  }
  return rows.count > 0;
}

/** The head by shapes, its scores not looked at yet; `known` is that of the images before. Throws TF_EVAL_HEAD. */
export function findHead(
  outputs: NamedTensors,
  { classes, width, height }: DetectorFacts,
  known?: Head,
): FoundHead {
  const detr = findDetr(outputs, { classes, width, height }, known);
  if (detr !== undefined) return detr;
  const unknown = (why: string) =>
    mismatch(
      `The outputs ${shapesOf(outputs)} are not those of a known detector with ${classes} labels: ${why}.`,
      "Check that --labels belongs to this model. Known: [1,N,6], [1,4+C,N], [1,64+C,N], [1,N,5+C], and DETR's logits with boxes.",
      { classes, outputs: [...outputs].map(([name, { shape }]) => ({ name, shape })) },
    );
  const parts = partsOf(outputs);
  if (parts === undefined) throw unknown(`there are ${outputs.size} outputs`);
  const { name, tensor, prototypes } = parts;
  const dims = tensor.shape.length === 2 ? [1, ...tensor.shape] : tensor.shape;
  if (dims.length !== 3 || dims[0] !== 1) throw unknown('one output of one image has 2 or 3 dimensions');
  const [, first = 0, second = 0] = dims;
  const one = { scores: 'probabilities', outputs: { scores: name, boxes: name } } as const;
  if (prototypes === undefined && second === 6 && first <= 1000) {
    const rows = new Rows(tensor, name, 2);
    const reason = `[1,${first},6] is ${first} rows of a box, its score and its class`;
    if (isEndToEnd(rows, classes))
      return { rows, head: { ...one, kind: 'end-to-end', needsNms: false, reason } };
  }
  const anchors = anchorCount(width, height);
  let why = 'no axis is 4, 5 or 64 longer than the labels';
  for (const [kind, own, what] of [
    ['boxes', 4 + classes, 'a box and one score a class'],
    ['dfl', 4 * BINS + classes, 'distance distributions and one score a class'],
    ['objectness', 5 + classes, 'a box, objectness and one score a class'],
  ] as const) {
    const channels = own + (prototypes?.weights ?? 0);
    const axis = first === channels ? 1 : second === channels ? 2 : undefined;
    if (axis === undefined) continue;
    const rows = new Rows(tensor, name, axis);
    if (kind === 'dfl' && rows.count !== anchors) {
      why = `${rows.count} anchors, where ${width}x${height} has ${anchors} at strides 8, 16 and 32`;
      continue;
    }
    const reason = `[1,${first},${second}] is ${rows.count} anchors of ${what}`;
    if (prototypes === undefined) return { rows, head: { ...one, kind, needsNms: true, reason } };
    const masks = { prototypes: prototypes.name, axis } as const;
    return {
      rows,
      head: { ...one, kind, needsNms: true, masks, reason: `${reason}, and the weights of a mask` },
    };
  }
  throw unknown(why);
}

interface HeadParts {
  readonly name: string;
  readonly tensor: Tensor;
  readonly prototypes?: { readonly name: string; readonly weights: number };
}

/** The output with a row for each box: the only one, or beside prototypes of masks [1,K,h,w] that its rows add up by K weights each, as in YOLO's segmentation. */
export function partsOf(outputs: NamedTensors): HeadParts | undefined {
  const all = [...outputs];
  const maps = all.length === 2 ? all.filter(([, { shape }]) => shape.length === 4 && shape[0] === 1) : [];
  const [[mapsName, { shape: [, weights = 0] = [] }] = ['', {}]] = maps;
  const [[name, tensor] = ['', undefined], ...others] = all.filter(([each]) => each !== mapsName);
  if (tensor === undefined || others.length > 0 || maps.length > 1) return undefined;
  return maps.length === 0 ? { name, tensor } : { name, tensor, prototypes: { name: mapsName, weights } };
}

/** Classes are whole numbers, and scores probabilities. */
function isEndToEnd(rows: Rows, classes: number): boolean {
  for (let row = 0; row < rows.count; row++) {
    const score = rows.at(row, 4);
    const category = rows.at(row, 5);
    if (!Number.isInteger(category) || category < 0 || category >= classes) return false;
    if (score < 0 || score > 1) return false;
  }
  return true;
}

type Output = readonly [name: string, tensor: Tensor];
type Pair = readonly [boxes: Output, scores: Output];

function findDetr(
  outputs: NamedTensors,
  detector: DetectorFacts,
  known: Head | undefined,
): FoundHead | undefined {
  const [one, other, ...more] = [...outputs];
  if (one === undefined || other === undefined || more.length > 0) return undefined;
  const { classes } = detector;
  const pairs = (
    [
      [one, other],
      [other, one],
    ] as const
  ).filter(([[, { shape: boxes }], [, { shape: scores }]]) => {
    const [, queries, channels] = scores;
    const isOfClasses = channels === classes || channels === classes + 1;
    return boxes.length === 3 && scores.length === 3 && boxes[2] === 4 && queries === boxes[1] && isOfClasses;
  });
  const pair = pairs.length > 1 ? (knownPair(pairs, known) ?? pairByValues(pairs, detector)) : pairs[0];
  if (pair === undefined) return undefined;
  const [[boxesName, boxes], [scoresName, scores]] = pair;
  const rows = new Rows(scores, scoresName, 2);
  const background = rows.channels === classes + 1;
  const of = `${rows.count} queries of ${classes} classes`;
  return {
    rows,
    boxes: new Rows(boxes, boxesName, 2),
    head: {
      kind: 'detr',
      scores: background ? 'softmax' : 'probabilities',
      needsNms: false,
      outputs: { scores: scoresName, boxes: boxesName },
      reason: background ? `${of} and a background, softmax` : of,
    },
  };
}

/** With three or four classes both outputs have four columns: names tell which has the boxes. */
function knownPair(pairs: readonly Pair[], known: Head | undefined): Pair | undefined {
  const tests: readonly ((pair: Pair) => boolean)[] =
    known === undefined
      ? [
          ([[boxes], [scores]]) => /box/i.test(boxes) && !/box/i.test(scores),
          ([[boxes], [scores]]) => SCORES.test(scores) && !SCORES.test(boxes),
        ]
      : [([[boxes]]) => boxes === known.outputs.boxes];
  return tests.flatMap((test) => pairs.filter(test))[0];
}

const SCORES = /logit|score|class|cls|prob|conf/i;

/** The pair whose boxes have a form of boxes, and whose scores are no pixels. Throws TF_EVAL_HEAD where both or none do. */
function pairByValues(pairs: readonly Pair[], detector: DetectorFacts): Pair {
  const found = pairs.filter(([[boxesName, boxes], [scoresName, scores]]) => {
    const evidence = new BoxEvidence({ layout: 'centre-size', scale: 'normalised' }, detector);
    evidence.add(new Rows(boxes, boxesName, 2).values);
    return evidence.isOfBoxes && new Rows(scores, scoresName, 2).rangeOf(0, 4)[1] <= LARGEST_LOGIT;
  });
  if (found.length === 1) return found[0]!;
  const names = pairs.map(([[name]]) => name);
  throw mismatch(
    `The outputs ${names.join(' and ')} both have four columns, and neither names nor values tell which has the boxes.`,
    'Rename the outputs of the model, to "boxes" and "logits" for one.',
    { outputs: names },
  );
}

/** A matrix of values by row and channel, however the tensor orders them. */
export class Rows {
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

  /** Lowest and highest value of some channels. */
  rangeOf(first: number, channels: number): readonly [number, number] {
    let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (let row = 0; row < this.count; row++)
      for (let channel = first; channel < first + channels; channel++) {
        const value = this.at(row, channel);
        if (value < low) low = value;
        if (value > high) high = value;
      }
    return [low, high];
  }
}

const shapesOf = (outputs: NamedTensors): string =>
  [...outputs].map(([name, { shape }]) => `${name} [${shape.join(',')}]`).join(', ');
