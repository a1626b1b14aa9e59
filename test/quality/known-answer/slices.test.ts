import { describe, expect, it } from 'vitest';
import { randomStream } from '../../../src/formats/tensor/random.js';
import { floatTensor, type Tensor } from '../../../src/formats/tensor/tensor.js';
import type { AnsweredOutput } from '../../../src/quality/known-answer/answer.js';
import { judgeAnswer } from '../../../src/quality/known-answer/judge.js';
import { coarser, type Sketch, sizesOnly, sketchOf } from '../../../src/quality/known-answer/sketch.js';

/** Rows of box, score and class, [1, 120, 6]. */
const ROWS = 120;
const WIDTH = 6;
const stream = randomStream(1, 'rows');
const drawn = Array.from({ length: ROWS }, () => [
  ...Array.from({ length: 4 }, () => 640 * stream.uniform()),
  0.3 + 0.5 * stream.uniform(),
  stream.integer(0, 79),
]);
const tensorOf = (rows: readonly (readonly number[])[]): Tensor =>
  floatTensor('float32', [1, rows.length, WIDTH], Float32Array.from(rows.flat()));

const asSet = (tensor: Tensor) => sketchOf('rows', tensor, 'set', 64, 2);
const limited = (sketch: Sketch, more: Partial<AnsweredOutput> = {}): AnsweredOutput => ({
  ...sketch,
  limit: { rms: 8, max: 13, slices: sketch.slices!.rms.map((rms) => 0.1 * rms) },
  measured: { rms: 0, max: 0 },
  ...more,
});

describe('rows that are ordered by value', () => {
  const answer = limited(asSet(tensorOf(drawn)));
  const scores = (change: (score: number) => number) =>
    tensorOf(drawn.map((row) => row.map((value, at) => (at === 4 ? change(value) : value))));

  it('may come in another order', () => {
    expect(judgeAnswer(answer, asSet(tensorOf(drawn.toReversed()))).outcome).toBe('pass');
  });

  it.each<[string, (score: number) => number]>([
    ['that are 0', () => 0],
    ['x 0.7', (score) => 0.7 * score],
  ])('fail for scores %s, by their column', (_, change) => {
    const found = asSet(scores(change));
    expect(judgeAnswer(answer, found)).toMatchObject({ outcome: 'fail', wrong: { axis: 2, place: 4 } });
    const unmeasured = { ...answer, measured: null };
    expect(judgeAnswer(unmeasured, found).outcome).toBe('inconclusive');
  });

  it('pass without limits by column, as older answers have none', () => {
    const older = { ...answer, slices: undefined };
    expect(judgeAnswer(older, asSet(scores(() => 0))).outcome).toBe('pass');
  });
});

describe('an axis of 1207 positions', () => {
  const [SIZE, PLACES] = [1207, 100];
  const values = Float32Array.from({ length: SIZE * PLACES }, (_, at) =>
    at < 4 * PLACES ? 640 * stream.uniform() : 0.01 * stream.uniform(),
  );
  const sketched = (change: (value: number, at: number) => number = (value) => value) =>
    sketchOf('output', floatTensor('float32', [1, SIZE, PLACES], values.map(change)), 'values', 64, 1);

  it('keeps 128 of them, by which scores of 0 and classes that are turned fail', () => {
    const answer = limited(sketched());
    expect(answer.slices?.rms).toHaveLength(128);
    expect(JSON.stringify(answer).length).toBeLessThan(12_000);
    expect(judgeAnswer(answer, sketched()).outcome).toBe('pass');
    expect(
      judgeAnswer(
        answer,
        sketched((value, at) => (at < 4 * PLACES ? value : 0)),
      ).outcome,
    ).toBe('fail');
    const turned = sketched((value, at) => (at < 5 * PLACES ? value : values[at - PLACES]!));
    expect(judgeAnswer(answer, turned)).toMatchObject({ outcome: 'fail', wrong: { axis: 1 } });
    expect(judgeAnswer({ ...answer, slices: null }, turned).outcome).toBe('pass');
  });

  it('is judged by sizes alone where the passport has no room for its sums', () => {
    const coarse = (sketch: Sketch) => sizesOnly(coarser(sketch));
    const answer = limited(coarse(sketched()));
    expect(answer.slices?.sums).toEqual([]);
    const found = (change?: (value: number, at: number) => number) => coarse(sketched(change));
    expect(judgeAnswer(answer, found()).outcome).toBe('pass');
    expect(
      judgeAnswer(
        answer,
        found((value, at) => (at < 4 * PLACES ? value : 0)),
      ).outcome,
    ).toBe('fail');
  });
});
