import { describe, expect, it } from 'vitest';
import type { NamedTensors } from '../../../../src/formats/tensor/tensor.js';
import { tensorFrom } from '../../../../src/formats/tensor/values.js';
import {
  type DecodeOptions,
  decode,
  recogniseHead,
} from '../../../../src/products/evaluation/detection/heads.js';
import { codeOf } from '../../../support/refusal.js';

const CLASSES = 3;
const options: DecodeOptions = { classes: CLASSES, width: 64, height: 64, confidence: 0.1 };
/** Anchors of 64x64 at strides 8, 16 and 32. */
const ANCHORS = 64 + 16 + 4;

/** One output [1, channels, anchors], or [1, anchors, channels], whose values come by anchor and channel. */
function output(
  channels: number,
  anchors: number,
  value: (anchor: number, channel: number) => number,
  order: 'channels first' | 'anchors first' = 'channels first',
): NamedTensors {
  const first = order === 'channels first';
  const values = Float32Array.from({ length: channels * anchors }, (_, at) =>
    first ? value(at % anchors, Math.floor(at / anchors)) : value(Math.floor(at / channels), at % channels),
  );
  return new Map([
    ['out', tensorFrom('float32', first ? [1, channels, anchors] : [1, anchors, channels], values)],
  ]);
}
const decoded = (outputs: NamedTensors) => {
  const head = recogniseHead(outputs, options);
  const { box, score, category } = decode(outputs, head, options);
  const boxes = Array.from(score, (_, at) => Array.from(box.subarray(4 * at, 4 * at + 4)));
  return { head, boxes, scores: Array.from(score), categories: Array.from(category) };
};

describe('[1,4+C,N]', () => {
  // Anchor 7 holds an object of class 2: centre 20, 30, size 8 by 4.
  const boxes = (score: number, background: number) => (anchor: number, channel: number) =>
    channel < 4 ? [20, 30, 8, 4][channel]! : anchor === 7 && channel === 6 ? score : background;

  it.each(['channels first', 'anchors first'] as const)('%s, probabilities', (order) => {
    const { head, ...found } = decoded(output(7, ANCHORS, boxes(0.75, 0.01), order));
    expect(head).toMatchObject({ kind: 'boxes', scores: 'probabilities', needsNms: true });
    expect(found).toEqual({ boxes: [[16, 28, 24, 32]], scores: [0.75], categories: [2] });
  });

  it('logits get their sigmoid', () => {
    const { head, scores } = decoded(output(7, ANCHORS, boxes(2, -6)));
    expect(head.scores).toBe('logits');
    expect(scores[0]).toBeCloseTo(1 / (1 + Math.exp(-2)), 6);
  });

  it('scores between 0.5 and 0.731 were put through a sigmoid twice, whatever the head', () => {
    const many = { ...options, width: 640, height: 640 };
    expect(codeOf(() => recogniseHead(output(7, 8400, boxes(0.73, 0.5)), many))).toBe('TF_EVAL_HEAD');
    const endToEnd = (score: number) =>
      output(6, 300, (_, channel) => [1, 2, 3, 4, score, 0][channel]!, 'anchors first');
    expect(codeOf(() => recogniseHead(endToEnd(0.6), many))).toBe('TF_EVAL_HEAD');
    expect(recogniseHead(endToEnd(0.4), many).kind).toBe('end-to-end');
  });

  it('class scores of 1 beside an objectness are not that', () => {
    const one = { ...options, classes: 1 };
    const outputs = output(6, 2000, (_, channel) => [20, 30, 8, 4, 0.1, 0.99][channel]!, 'anchors first');
    expect(recogniseHead(outputs, one)).toMatchObject({ kind: 'objectness', scores: 'probabilities' });
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY])(
    'a box with %s is TF_EVAL_HEAD where its score counts',
    (y) => {
      const broken = (score: number) => (anchor: number, channel: number) =>
        anchor === 7 && channel === 1 ? y : boxes(score, 0.01)(anchor, channel);
      expect(codeOf(() => decoded(output(7, ANCHORS, broken(0.75))))).toBe('TF_EVAL_HEAD');
      expect(decoded(output(7, ANCHORS, broken(0.05))).boxes).toEqual([]);
    },
  );

  it('a score beyond 1 after an image with probabilities, and NaN, are TF_EVAL_HEAD', () => {
    const head = recogniseHead(output(7, ANCHORS, boxes(0.75, 0.01)), options);
    expect(codeOf(() => decode(output(7, ANCHORS, boxes(3, 0.01)), head, options))).toBe('TF_EVAL_HEAD');
    expect(codeOf(() => decode(output(7, ANCHORS, boxes(Number.NaN, 0.01)), head, options))).toBe(
      'TF_EVAL_HEAD',
    );
  });
});

describe('[1,64+C,N]', () => {
  /** Anchor 64 is the first of stride 16, centre 8, 8: 1 stride to the left, 2 up, 3 right, 0.5 down. */
  const dfl = (anchor: number, channel: number) => {
    if (channel >= 64) return anchor === 64 && channel === 65 ? 3 : -8;
    const [side, bin] = [Math.floor(channel / 16), channel % 16];
    const bins = [[1], [2], [3], [0, 1]][side]!;
    return bins.includes(bin) ? 30 : -30;
  };

  it('distances are expectations over bins, in strides', () => {
    const { head, boxes, categories } = decoded(output(67, ANCHORS, dfl));
    expect(head).toMatchObject({ kind: 'dfl', scores: 'logits' });
    expect(categories).toEqual([1]);
    [8 - 16, 8 - 32, 8 + 48, 8 + 8].forEach((edge, at) => {
      expect(boxes[0]?.[at]).toBeCloseTo(edge, 3);
    });
  });

  it('another number of anchors is TF_EVAL_HEAD', () => {
    expect(codeOf(() => recogniseHead(output(67, 80, dfl), options))).toBe('TF_EVAL_HEAD');
  });
});

it('[1,N,6] needs no suppression', () => {
  const rows = [
    [1, 2, 11, 22, 0.9, 2],
    [5, 5, 9, 9, 0.3, 0],
    [0, 0, 0, 0, 0, 0],
  ];
  const { head, ...found } = decoded(output(6, 3, (row, channel) => rows[row]![channel]!, 'anchors first'));
  expect(head).toMatchObject({ kind: 'end-to-end', needsNms: false });
  expect(found.boxes).toEqual([
    [1, 2, 11, 22],
    [5, 5, 9, 9],
  ]);
  expect(found.categories).toEqual([2, 0]);
});

it('[1,N,5+C] multiplies objectness and class', () => {
  const { head, scores, categories } = decoded(
    output(
      8,
      ANCHORS,
      (anchor, channel) => (channel < 4 ? 10 : anchor === 3 ? ({ 4: 0.5, 6: 0.75 }[channel] ?? 0) : 0),
      'anchors first',
    ),
  );
  expect(head.kind).toBe('objectness');
  expect([scores, categories]).toEqual([[0.375], [1]]);
});

describe('DETR', () => {
  const detr = (channels: number, value: (query: number, channel: number) => number): NamedTensors =>
    new Map([
      [
        'logits',
        tensorFrom(
          'float32',
          [1, 2, channels],
          Float32Array.from({ length: 2 * channels }, (_, at) =>
            value(Math.floor(at / channels), at % channels),
          ),
        ),
      ],
      ['pred_boxes', tensorFrom('float32', [1, 2, 4], Float32Array.of(0.5, 0.5, 0.25, 0.5, 0, 0, 0, 0))],
    ]);

  it('with a background is a softmax over all', () => {
    const { head, boxes, scores, categories } = decoded(
      detr(4, (query, channel) => (query === 0 && channel === 1 ? 2 : query === 1 && channel === 3 ? 9 : 0)),
    );
    expect(head.scores).toBe('softmax');
    expect(categories).toEqual([1]);
    expect(scores[0]).toBeCloseTo(Math.exp(2) / (Math.exp(2) + 3), 6);
    expect(boxes).toEqual([[24, 16, 40, 48]]);
  });

  it('without one scores every class of a query by itself', () => {
    const { head, scores, categories } = decoded(
      detr(3, (query, channel) => (query === 0 ? [1, -4, 3][channel]! : -9)),
    );
    expect(head.scores).toBe('logits');
    expect(categories).toEqual([0, 2]);
    expect(scores.map((score) => score.toFixed(4))).toEqual(['0.7311', '0.9526']);
  });
});

it.each([
  ['a number of channels that fits no head', output(50, ANCHORS, () => 0)],
  ['two images', new Map([['out', tensorFrom('float32', [2, 7, 4], new Float32Array(56))]])],
  ['no output', new Map()],
])('%s is TF_EVAL_HEAD', (_, outputs) => {
  expect(codeOf(() => recogniseHead(outputs as NamedTensors, options))).toBe('TF_EVAL_HEAD');
});

it('is told from its number of anchors where both axes fit', () => {
  const twenty = { ...options, classes: 20 };
  // 84 is 64 + 20 and the number of anchors; 25 is 5 + 20.
  const { kind } = recogniseHead(
    output(25, ANCHORS, () => 0.25, 'anchors first'),
    twenty,
  );
  expect(kind).toBe('objectness');
});
