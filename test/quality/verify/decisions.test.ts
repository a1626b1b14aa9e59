import { describe, expect, it } from 'vitest';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { tensorReader } from '../../../src/formats/tensor/tensor-reader.js';
import { judgeOutput } from '../../../src/quality/verify/judge-output.js';
import type { JudgeRequest, SampleInfo } from '../../../src/quality/verify/judged.js';

/** Numbers that look drawn, the same in every run. */
function numbers(seed: number) {
  let state = seed * 2654435761 + 1;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const CLASSES = 12;
const ANCHORS = 200;
const shape = [1, 4 + CLASSES, ANCHORS];

/** A picture's boxes of up to 640 pixels beside the scores of the classes that it shows, at a few anchors. */
function scene(picture: number): Float32Array {
  const draw = numbers(picture + 1);
  const shown = [picture % CLASSES, (5 * picture + 3) % CLASSES];
  return Float32Array.from({ length: (4 + CLASSES) * ANCHORS }, (_, at) => {
    const [row, anchor] = [Math.floor(at / ANCHORS), at % ANCHORS];
    if (row < 4) return draw() * 640;
    const isHit = shown.includes(row - 4) && anchor % 50 === row;
    return isHit ? 0.6 + 0.35 * draw() : 1e-6 * (1 + draw());
  });
}

const data = (count: number): SampleInfo[] =>
  Array.from({ length: count }, (_, at) => ({ origin: `${at}.png`, kind: 'data' }));

const judge = (
  references: readonly Float32Array[],
  change: (value: number, row: number, at: number) => number,
  more: Partial<JudgeRequest> = {},
) =>
  judgeOutput({
    name: 'y',
    precision: 'fp16',
    atol: [],
    rtol: [],
    decides: () => ({ areScores: true, classAxis: null, areLabels: false, isOrdered: false }),
    reachedBy: () => ['images'],
    samples: data(references.length),
    reference: references.map((values) => tensorReader(tensorFrom('float32', shape, values))),
    candidate: references.map((values) =>
      tensorReader(
        tensorFrom(
          'float32',
          shape,
          values.map((value, at) => change(value, Math.floor(at / ANCHORS) % shape[1]!, at)),
        ),
      ),
    ),
    ...more,
  }).output;

describe('classes that come and go between pictures', () => {
  const isScore = (row: number) => row >= 4;
  const faults: readonly (readonly [string, (value: number, row: number, at: number) => number])[] = [
    ['no scores', (value, row) => (isScore(row) ? 0 : value)],
    ['one class without scores', (value, row) => (row === 7 ? 0 : value)],
    ['scores x 0.7', (value, row) => (isScore(row) ? 0.7 * value : value)],
    ['boxes x 0.9', (value, row) => (isScore(row) ? value : 0.9 * value)],
    ['the same score everywhere', (value, row) => (isScore(row) ? 0.5 : value)],
  ];
  for (const precision of ['fp16', 'int8'] as const)
    for (const pictures of [6, 26])
      it(`${precision}, ${pictures} pictures: faults fail, twins pass`, () => {
        const references = Array.from({ length: pictures }, (_, at) => scene(at));
        for (const [fault, change] of faults)
          expect([fault, judge(references, change, { precision }).outcome]).toEqual([
            fault,
            fault === 'boxes x 0.9' && precision === 'int8' ? expect.any(String) : 'fail',
          ]);
        const twin = judge(references, (value) => Math.fround(value * (1 + 1e-3)), { precision });
        expect(twin.outcome).toBe('pass');
        expect(twin.decisions?.[0]).toMatchObject({ rule: 'above 0.5', lost: 0, new: 0 });
      });

  it('are listed where no picture shows them, and do not undecide the others', () => {
    const references = [0, 1, 2].map(scene);
    const twin = judge(references, (value) => value * (1 + 1e-3));
    expect(twin.outcome).toBe('pass');
    expect(twin.classes?.of).toBe(CLASSES);
    expect(twin.classes?.unpredicted).toBeGreaterThan(3);
  });

  it('are not judged at all by pictures without objects', () => {
    const empty = [0, 1, 2, 3].map((at) =>
      scene(at).map((value) => (value < 1 ? Math.min(value, 2e-6) : value)),
    );
    const blind = judge(empty, (value, row) => (isScore(row) ? 0 : value));
    expect(blind.outcome).toBe('inconclusive');
    expect(blind.planted[0]?.slice?.axis).toBe(1);
  });
});

describe('decisions', () => {
  /** Scores from 0 to 1 of which `hits` are detections. */
  const scores = (hits: number, turned: (at: number) => boolean, precision: JudgeRequest['precision']) => {
    const length = 4000;
    const draw = numbers(3);
    const reference = Float32Array.from({ length }, (_, at) =>
      at % 90 === 0 && at / 90 < hits ? 0.55 + 0.4 * draw() : 0.001,
    );
    const candidate = reference.map((value, at) => (turned(at) ? 0.3 : value));
    const tensor = (values: Float32Array) => [tensorReader(tensorFrom('float32', [1, length], values))];
    return judgeOutput({
      name: 'y',
      precision,
      atol: [],
      rtol: [],
      decides: () => ({ areScores: true, classAxis: null, areLabels: false, isOrdered: false }),
      samples: data(1),
      reference: tensor(reference),
      candidate: tensor(candidate),
      plant: false,
    }).output;
  };

  it('12 new ones beside 44 fail in INT8, whatever the errors', () => {
    const output = scores(44, (at) => at % 300 === 7 && at < 3600, 'int8');
    expect(output.decisions).toMatchObject([
      { rule: 'above 0.5', reference: 44, kept: 44, new: 0, pass: true },
      { rule: 'above 0.25', reference: 44, kept: 44, lost: 0, new: 12, pass: false },
    ]);
    expect(output.outcome).toBe('fail');
  });

  it('one of 44 may turn, two in 16 bits may not', () => {
    expect(scores(44, (at) => at === 90, 'fp16').decisions?.[0]).toMatchObject({
      kept: 43,
      lost: 1,
      pass: true,
    });
    expect(scores(44, (at) => at === 90 || at === 180, 'fp16').decisions?.[0]).toMatchObject({
      lost: 2,
      pass: false,
    });
    expect(scores(44, (at) => at === 90 || at === 180, 'int8').decisions?.[0]).toMatchObject({
      lost: 2,
      pass: true,
    });
  });

  it('fewer than 20 do not decide', () => {
    expect(scores(6, (at) => at === 90, 'int8').decisions?.[0]).toMatchObject({ lost: 1, pass: null });
  });

  it('along the axis of classes are those of the highest, near ties apart', () => {
    const rows = 60;
    const reference = Float32Array.from({ length: rows * 3 }, (_, at) =>
      at % 3 === Math.floor(at / 3) % 3 ? 0.5 : at % 3 === (Math.floor(at / 3) + 1) % 3 ? 0.499 : 0.001,
    );
    const judged = (candidate: Float32Array) =>
      judgeOutput({
        name: 'y',
        precision: 'fp16',
        atol: [],
        rtol: [],
        decides: () => ({ areScores: true, classAxis: -1, areLabels: false, isOrdered: false }),
        plant: false,
        reference: [tensorReader(tensorFrom('float32', [rows, 3], reference))],
        candidate: [tensorReader(tensorFrom('float32', [rows, 3], candidate))],
      }).output.decisions?.find(({ rule }) => rule === 'argmax');
    const swapped = reference.map((value) =>
      value === 0.5 ? Math.fround(0.499) : value > 0.4 ? 0.5 : value,
    );
    expect(judged(swapped)).toMatchObject({ reference: rows, kept: 0, lost: 0, ties: rows, pass: true });
    const wrong = reference.map((value, at) => (at < 9 ? reference[(at + 2) % 9]! : value));
    expect(judged(wrong)).toMatchObject({ reference: rows, pass: false });
  });
});
