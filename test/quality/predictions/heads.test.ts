import { describe, expect, it } from 'vitest';
import { type NamedTensors, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { type Candidates, Decoder } from '../../../src/quality/predictions/decode.js';
import { recogniseHead } from '../../../src/quality/predictions/heads.js';
import { codeOf } from '../../support/refusal.js';

const CLASSES = 3;
const options: ConstructorParameters<typeof Decoder>[0] = {
  classes: CLASSES,
  width: 64,
  height: 64,
  confidence: 0.1,
  multiLabel: false,
};
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
const boxesOf = ({ box, score }: Candidates) =>
  Array.from(score, (_, at) => Array.from(box.subarray(4 * at, 4 * at + 4)));
/** What is found on images, and what their outputs were taken for. */
function decodedAll(images: readonly NamedTensors[], given = options) {
  const decoder = new Decoder(given);
  const found: Candidates[] = [];
  for (const outputs of images) decoder.take(outputs, (candidates) => found.push(candidates));
  return { head: decoder.finish(), found };
}
const decoded = (outputs: NamedTensors) => {
  const { head, found } = decodedAll([outputs]);
  const [image] = found as [Candidates];
  return {
    head,
    boxes: boxesOf(image),
    scores: Array.from(image.score),
    categories: Array.from(image.category),
  };
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

  it('multi-label has each class above the confidence, by itself', () => {
    const both = (anchor: number, channel: number) =>
      anchor === 7 && channel === 5 ? 0.5 : boxes(0.75, 0.01)(anchor, channel);
    const { found } = decodedAll([output(7, ANCHORS, both)], { ...options, multiLabel: true });
    expect(found.map(({ score, category }) => [[...score], [...category]])).toEqual([
      [
        [0.5, 0.75],
        [1, 2],
      ],
    ]);
    expect(decoded(output(7, ANCHORS, both)).categories).toEqual([2]);
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
    const first = output(7, ANCHORS, boxes(0.75, 0.01));
    for (const score of [3, Number.NaN])
      expect(codeOf(() => decodedAll([first, output(7, ANCHORS, boxes(score, 0.01))]))).toBe('TF_EVAL_HEAD');
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

describe('the form of boxes', () => {
  /** Cells of 12 pixels, all over the input and a bit beyond it: left, top, right, bottom. */
  const cells = Array.from({ length: 36 }, (_, at) => {
    const [left, top] = [(at % 6) * 10.5 - 1, Math.floor(at / 6) * 10.5 - 1];
    return [left, top, left + 12, top + 12];
  });
  type Box = readonly number[];
  const forms: Readonly<Record<string, (box: Box) => Box>> = {
    corners: (box) => box,
    'centre-size': ([l = 0, t = 0, r = 0, b = 0]) => [(l + r) / 2, (t + b) / 2, r - l, b - t],
    'left-top-size': ([l = 0, t = 0, r = 0, b = 0]) => [l, t, r - l, b - t],
  };
  const scaled = { pixels: 1, normalised: 1 / 64 };
  const written = Object.entries(forms).flatMap(([layout, write]) =>
    Object.entries(scaled).map(([scale, factor]) => ({
      form: { layout, scale },
      boxes: cells.map((cell) => write(cell).map((value) => value * factor)),
    })),
  );
  const scores = Array.from({ length: 36 }, (_, at) => [0.9 - at / 100, 0, 0]);
  /** The heads that have four numbers a box, with these boxes. */
  const heads: Readonly<Record<string, (boxes: readonly Box[]) => NamedTensors>> = {
    'end-to-end': (boxes) =>
      output(6, boxes.length, (row, at) => [...boxes[row]!, scores[row]![0]!, 0][at]!, 'anchors first'),
    boxes: (boxes) => output(7, boxes.length, (row, at) => [...boxes[row]!, ...scores[row]!][at]!),
    objectness: (boxes) =>
      output(8, boxes.length, (row, at) => [...boxes[row]!, 1, ...scores[row]!][at]!, 'anchors first'),
    detr: (boxes) => {
      const rows = boxes.map((_, row) =>
        scores[row]!.map((score) => Math.log((score + 1e-6) / (1.01 - score))),
      );
      return new Map([
        ['logits', tensorFrom('float32', [1, boxes.length, 3], Float32Array.from(rows.flat()))],
        ['boxes', tensorFrom('float32', [1, boxes.length, 4], Float32Array.from(boxes.flat()))],
      ]);
    },
  };

  it.each(
    Object.keys(heads).flatMap((kind) =>
      written.map((each) => ({ kind, ...each, name: Object.values(each.form).join(', ') })),
    ),
  )('$kind: $name', ({ kind, form, boxes }) => {
    const { head, ...found } = decoded(heads[kind]!(boxes));
    expect(head).toMatchObject({ kind, boxes: { ...form, alsoFits: [], count: 36 } });
    expect(found.boxes.map((box) => box.map((side) => Number(side.toFixed(3))))).toEqual(cells);
  });

  it('that values leave open is the usual one of the head, and the others are named', () => {
    const one = (kind: string) => decoded(heads[kind]!([[30, 30, 40, 40]])).head.boxes;
    expect(one('end-to-end')).toMatchObject({ layout: 'corners', alsoFits: ['centre-size in pixels'] });
    expect(one('boxes')).toMatchObject({ layout: 'centre-size', alsoFits: ['corners in pixels'] });
  });

  it('is decided by all images where none has many boxes', () => {
    const centres = written.find(
      ({ form }) => form.layout === 'centre-size' && form.scale === 'pixels',
    )!.boxes;
    const { head, found } = decodedAll(centres.map((box) => heads['end-to-end']!([box])));
    expect(head.boxes).toMatchObject({ layout: 'centre-size', count: 36 });
    expect(found.flatMap(boxesOf)).toEqual(cells);
  });

  it('that no box has, or that changes, is TF_EVAL_HEAD', () => {
    const image = (boxes: readonly Box[]) => heads['end-to-end']!(boxes);
    const far = cells.map((cell) => cell.map((side) => side * 3 + 100));
    expect(codeOf(() => decodedAll([image(far)]))).toBe('TF_EVAL_HEAD');
    const sizes = written.find(
      ({ form }) => form.layout === 'left-top-size' && form.scale === 'pixels',
    )!.boxes;
    const many = (boxes: readonly Box[], count: number) => Array.from({ length: count }, () => image(boxes));
    expect(codeOf(() => decodedAll([...many(cells, 2), ...many(sizes, 8)]))).toBe('TF_EVAL_HEAD');
  });
});

describe('DETR', () => {
  const matrix = (rows: readonly (readonly number[])[]) =>
    tensorFrom('float32', [1, rows.length, rows[0]!.length], Float32Array.from(rows.flat()));
  const some = [
    [0.5, 0.5, 0.25, 0.5],
    [0, 0, 0, 0],
  ];
  const detr = (scores: readonly (readonly number[])[]): NamedTensors =>
    new Map([
      ['logits', matrix(scores)],
      ['pred_boxes', matrix(some)],
    ]);

  it('with a background is a softmax over all', () => {
    const { head, boxes, scores, categories } = decoded(
      detr([
        [0, 2, 0, 0],
        [0, 0, 0, 9],
      ]),
    );
    expect(head).toMatchObject({ scores: 'softmax', outputs: { scores: 'logits', boxes: 'pred_boxes' } });
    expect(categories).toEqual([1]);
    expect(scores[0]).toBeCloseTo(Math.exp(2) / (Math.exp(2) + 3), 6);
    expect(boxes).toEqual([[24, 16, 40, 48]]);
  });

  it('with a softmax inside gets no second one', () => {
    const { head, scores, categories } = decoded(
      detr([
        [0.2, 0.7, 0.05, 0.05],
        [0, 0.01, 0, 0.99],
      ]),
    );
    expect(head.scores).toBe('probabilities');
    expect(categories).toEqual([1]);
    expect(scores[0]).toBeCloseTo(0.7, 6);
  });

  it('a sigmoid of classes and a background is TF_EVAL_HEAD', () => {
    const rows = Array.from({ length: 50 }, () => [0.1, 0.9, 0.1, 0.2]);
    const outputs = new Map([
      ['logits', matrix(rows)],
      ['boxes', matrix(rows.map(() => some[0]!))],
    ]);
    expect(codeOf(() => recogniseHead(outputs, options))).toBe('TF_EVAL_HEAD');
  });

  it('without one scores every class of a query by itself', () => {
    const { head, scores, categories } = decoded(
      detr([
        [1, -4, 3],
        [-9, -9, -9],
      ]),
    );
    expect(head.scores).toBe('logits');
    expect(categories).toEqual([0, 2]);
    expect(scores.map((score) => score.toFixed(4))).toEqual(['0.7311', '0.9526']);
  });

  describe('of four classes, whose outputs have one shape', () => {
    const four = { ...options, classes: 4 };
    const boxes = Array.from({ length: 9 }, (_, at) => [0.1 + at / 11, 0.5, 0.1, 0.3]);
    const pixels = boxes.map((box) => box.map((side) => 64 * side));
    const logits = boxes.map((_, at) => [-5, -4.5, -6, at === 3 ? 2 : -3]);
    const shares = boxes.map((_, at) => [0.01, 0.02, 0.01, at === 3 ? 0.9 : 0.03]);
    const found = (first: string, rows: typeof boxes, second: string, others: typeof boxes) =>
      recogniseHead(
        new Map([
          [first, matrix(rows)],
          [second, matrix(others)],
        ]),
        four,
      ).outputs;

    it.each([
      ['a name with box', 'pred_boxes', boxes, 'out', shares],
      ['a name with logits', 'out', boxes, 'pred_logits', shares],
      ['boxes from 0 to 1 beside logits', 'a', boxes, 'b', logits],
      ['boxes in pixels beside logits', 'a', pixels, 'b', logits],
      ['boxes in pixels beside probabilities', 'a', pixels, 'b', shares],
    ])('%s', (_, boxesName, rows, scoresName, others) => {
      const expected = { boxes: boxesName, scores: scoresName };
      expect(found(boxesName, rows, scoresName, others)).toEqual(expected);
      expect(found(scoresName, others, boxesName, rows)).toEqual(expected);
    });

    it('boxes from 0 to 1 beside probabilities without names are TF_EVAL_HEAD', () => {
      expect(codeOf(() => found('a', boxes, 'b', shares))).toBe('TF_EVAL_HEAD');
    });

    it('the first image decides for all', () => {
      const image = (scores: typeof boxes): NamedTensors =>
        new Map([
          ['b', matrix(scores)],
          ['a', matrix(boxes)],
        ]);
      const { found: images } = decodedAll([image(logits), image(shares)], four);
      expect(images.map(({ box }) => box.length / 4)).toEqual([1, 36]);
    });
  });
});

it.each([
  ['a number of channels that fits no head', output(50, ANCHORS, () => 0)],
  ['two images', new Map([['out', tensorFrom('float32', [2, 7, 4], new Float32Array(56))]])],
  ['no output', new Map()],
])('%s is TF_EVAL_HEAD', (_, outputs) => {
  expect(codeOf(() => recogniseHead(outputs as NamedTensors, options))).toBe('TF_EVAL_HEAD');
});

it('is recognised by its number of anchors where both axes fit', () => {
  const twenty = { ...options, classes: 20 };
  // 84 is 64 + 20 and the number of anchors; 25 is 5 + 20.
  const { kind } = recogniseHead(
    output(25, ANCHORS, () => 0.25, 'anchors first'),
    twenty,
  );
  expect(kind).toBe('objectness');
});
