import { describe, expect, it } from 'vitest';
import { float32Values, integerTensor, type Tensor, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import {
  type Prediction,
  pairOf,
  predictionSchema,
  predictionText,
} from '../../../src/quality/predictions/prediction.js';
import { Predictor, type PredictorHints } from '../../../src/quality/predictions/predictor.js';

/** A picture of 100 by 50 in a letterbox of 64: shown at 0.64, 16 rows of padding above. */
const picture = {
  ...{ width: 100, height: 50 },
  placement: { scaleX: 0.64, scaleY: 0.64, left: 0, top: 16 },
  canvas: { width: 64, height: 64 },
};
const floats = (shape: readonly number[], values: readonly number[]): Tensor =>
  tensorFrom('float32', shape, Float32Array.from(values));
const labelled = (names: readonly string[]): PredictorHints => ({ names, preprocess: 'yolo' });
const unnamed: PredictorHints = { names: undefined, preprocess: 'yolo' };

function predictionsOf(hints: PredictorHints, ...outputs: readonly Tensor[]) {
  const predictor = new Predictor(hints);
  for (const output of outputs) predictor.take(new Map([['y', output]]), picture);
  return predictor.finish();
}

const one = (hints: PredictorHints, output: Tensor) => predictionsOf(hints, output).predictions[0];

describe('boxes', () => {
  /** [1,4+2,N] as YOLO has it: two boxes of one place and one apart. */
  const head = floats(
    [1, 6, 8],
    [
      ...[32, 32, 16, 0, 0, 0, 0, 0],
      ...[32, 32, 48, 0, 0, 0, 0, 0],
      ...[16, 16, 8, 0, 0, 0, 0, 0],
      ...[16, 16, 8, 0, 0, 0, 0, 0],
      ...[0.9, 0.8, 0.1, 0, 0, 0, 0, 0],
      ...[0, 0, 0.5, 0, 0, 0, 0, 0],
    ],
  );

  it('lie on the picture, in its pixels, the strongest of a place alone', () => {
    const expected = {
      kind: 'boxes',
      boxes: [
        { label: 'cat', score: 0.9, box: [37.5, 12.5, 25, 25] },
        { label: 'dog', score: 0.5, box: [18.8, 43.8, 12.5, 6.3] },
      ],
    };
    expect(one(labelled(['cat', 'dog']), head)).toEqual(expected);
    expect(one(unnamed, head)).toMatchObject({ boxes: [{ label: 'class 0' }, { label: 'class 1' }] });
  });

  /** [1,4+2+2,N] and two prototypes [1,2,8,8] as YOLO's segmentation has them: the left and the upper half of the canvas. */
  const channels = [...float32Values(head), ...[2, -1, 0, 0, 0, 0, 0, 0], ...[0, 0, 1, 0, 0, 0, 0, 0]];
  const segmented = floats(
    [1, 8, 9],
    Array.from({ length: 72 }, (_, at) => (at % 9 === 8 ? 0 : channels[8 * Math.floor(at / 9) + (at % 9)]!)),
  );
  const half = (isInside: (x: number, y: number) => boolean) =>
    Array.from({ length: 64 }, (_, at) => (isInside(at % 8, Math.floor(at / 8)) ? 1 : -1));
  const prototypes = floats([1, 2, 8, 8], [...half((x) => x < 4), ...half((_, y) => y < 4)]);

  it.each([labelled(['cat', 'dog']), unnamed])(
    'of segmented objects have masks, by the prototypes that their weights add up',
    (hints) => {
      const predictor = new Predictor(hints);
      predictor.take(
        new Map([
          ['masks', prototypes],
          ['y', segmented],
        ]),
        picture,
      );
      const [prediction] = predictor.finish().predictions;
      expect(predictionSchema.safeParse(prediction).success).toBe(true);
      const boxes = prediction?.kind === 'boxes' ? prediction.boxes : [];
      expect(boxes.map(({ box }) => box)).toEqual([
        [37.5, 12.5, 25, 25],
        [18.8, 43.8, 12.5, 6.3],
      ]);
      const inside = boxes.map(({ mask }) => {
        const cells = mask!.runs.flatMap(([value, count]) => Array(count).fill(value));
        expect(cells).toHaveLength(mask!.columns * mask!.rows);
        return cells
          .map((_, at) => at)
          .filter((at) => cells[at] === 1)
          .map((at) => [at % mask!.columns, Math.floor(at / mask!.columns)]);
      });
      // The first box lies across the middle: its left half is of the object. The second is below the upper half.
      expect(new Set(inside[0]!.map(([column]) => column))).toEqual(
        new Set(Array.from({ length: 12 }, (_, at) => at)),
      );
      expect(inside[1]).toEqual([]);
      const [box] = boxes;
      const endless = { kind: 'boxes', boxes: [{ ...box, mask: { ...box!.mask, runs: [[0, 2 ** 50]] } }] };
      expect(predictionSchema.safeParse(endless).success).toBe(false);
    },
  );

  it('of rows that state their class need no names', () => {
    const rows = floats([1, 2, 6], [16, 24, 32, 40, 0.75, 7, 0, 0, 0, 0, 0, 0]);
    expect(one(unnamed, rows)).toMatchObject({ boxes: [{ label: 'class 7', box: [25, 12.5, 25, 25] }] });
  });

  it('of one of several outputs, the first that is known alone', () => {
    const predictor = new Predictor(labelled(['cat', 'dog']));
    const raw = floats([1, 4, 4], Array(16).fill(1));
    predictor.take(
      new Map([
        ['raw', raw],
        ['boxes', head],
        ['again', head],
      ]),
      picture,
    );
    expect(predictor.finish().predictions).toMatchObject([{ boxes: [{ label: 'cat' }, { label: 'dog' }] }]);
  });

  it('that are not numbers leave that picture alone without a prediction', () => {
    const broken = floats([1, 6, 8], [...Array(32).fill(8), Number.NaN, ...Array(15).fill(0)]);
    const { predictions, why } = predictionsOf(labelled(['cat', 'dog']), head, broken, head);
    expect(predictions.map((each) => each?.kind)).toEqual(['boxes', undefined, 'boxes']);
    expect(why?.code).toBe('TF_EVAL_HEAD');
  });
});

describe('a class', () => {
  const logits = floats([1, 3], [1, 3, 2]);

  it.each([
    ['names of as many classes', labelled(['a', 'b', 'c']), 'b'],
    ["ImageNet's preparation", { names: undefined, preprocess: 'imagenet' }, 'class 1'],
  ])('is known by %s, and its probability is that of a softmax', (_, hints, label) => {
    expect(one(hints, logits)).toEqual({ kind: 'class', label, probability: 0.6652 });
  });

  it('of probabilities is known by itself; an embedding is not', () => {
    const shares = floats([1, 3, 1, 1], [0.2, 0.1, 0.7]);
    expect(one(unnamed, shares)).toEqual({ kind: 'class', label: 'class 2', probability: 0.7 });
    const { predictions, why } = predictionsOf(unnamed, logits);
    expect([predictions, why?.code]).toEqual([[null], 'TF_EVAL_HEAD']);
  });
});

describe('a mask', () => {
  const labels = Array.from({ length: 64 }, (_, at) => (at % 8 < 4 ? 5 : 1));

  it('is the class of each place, of labels or of scores', () => {
    const mask = one(unnamed, integerTensor('int64', [1, 8, 8], labels));
    expect(mask).toMatchObject({ kind: 'mask', columns: 8, rows: 4, labels: ['class 5', 'class 1'] });
    expect(mask).toMatchObject({ area: { left: 0, top: 0, width: 100, height: 50 } });
    const scores = [0, 1].flatMap((kind) => labels.map((label) => (label === 5 ? -kind : kind)));
    const named = one(labelled(['road', 'car']), floats([1, 2, 8, 8], scores));
    expect(named).toMatchObject({
      labels: ['road', 'car'],
      runs: Array.from({ length: 8 }, (_, at) => [at % 2, 4]),
    });
    expect(predictionText(named!, '')).toBe('road 50\u00a0%, car 50\u00a0%');
  });

  it('whose runs are not its cells is no result: drawing it would take any amount of memory', () => {
    const mask = one(unnamed, integerTensor('int64', [1, 8, 8], labels)) as Extract<
      Prediction,
      { kind: 'mask' }
    >;
    expect(predictionSchema.safeParse(mask).success).toBe(true);
    expect(predictionSchema.safeParse({ ...mask, runs: [[0, 1e12]] }).success).toBe(false);
    expect(predictionSchema.safeParse({ ...mask, columns: 1e6, rows: 1e6, runs: [[0, 1e12]] }).success).toBe(
      false,
    );
  });

  it('of a map larger than a page shows is thinned', () => {
    const map = integerTensor('uint8', [1, 1, 400, 200], new Uint8Array(80_000));
    expect(one(unnamed, map)).toMatchObject({ columns: 80, rows: 80, runs: [[0, 6400]] });
  });
});

describe('two sides', () => {
  const box = (label: string, left: number, score = 0.9) => ({
    ...{ label, score },
    box: [left, 0, 10, 10] as [number, number, number, number],
  });
  const boxes = (...all: ReturnType<typeof box>[]): Prediction => ({ kind: 'boxes', boxes: all });

  it('have the same box where class and place are the same', () => {
    const pair = pairOf(boxes(box('a', 0), box('a', 50), box('b', 90)), boxes(box('a', 3), box('c', 90)));
    expect(pair).toMatchObject({
      ...{ lost: 2, new: 1 },
      reference: { boxes: [{ alone: false }, { alone: true }, { alone: true }] },
      candidate: { boxes: [{ alone: false }, { alone: true }] },
    });
    expect(predictionText(pair.reference, 'lost')).toBe('3 boxes: a 0.9 (lost), b 0.9 (lost), a 0.9');
  });

  it('take a box once, and lose all where the candidate has none', () => {
    expect(pairOf(boxes(box('a', 0), box('a', 1)), boxes(box('a', 0)))).toMatchObject({ lost: 1, new: 0 });
    expect(pairOf(boxes(box('a', 0)), null)).toMatchObject({ lost: 1, new: 0, candidate: null });
  });

  it('differ in a class or in places of a mask', () => {
    const kind = (label: string): Prediction => ({ kind: 'class', label, probability: 1 });
    expect(pairOf(kind('a'), kind('b'))).toMatchObject({ lost: 1, new: 1 });
    expect(pairOf(kind('a'), kind('a'))).toMatchObject({ lost: 0, new: 0 });
    const text = (words: string): Prediction => ({ kind: 'text', text: words });
    expect(pairOf(text('a'), text('b'))).toMatchObject({ lost: 1, new: 1 });
    expect(pairOf(text('a'), text('a'))).toMatchObject({ lost: 0, new: 0 });
    expect(pairOf(text('a'), kind('a'))).toMatchObject({ lost: 1, new: 1 });
    const mask = (runs: [number, number][]): Prediction => ({
      ...{ kind: 'mask', area: { left: 0, top: 0, width: 2, height: 2 }, columns: 2, rows: 2 },
      ...{ labels: ['a', 'b'], runs },
    });
    expect(
      pairOf(
        mask([[0, 4]]),
        mask([
          [0, 3],
          [1, 1],
        ]),
      ),
    ).toMatchObject({ lost: 1, new: 1 });
  });
});
