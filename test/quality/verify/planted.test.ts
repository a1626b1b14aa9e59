import { describe, expect, it } from 'vitest';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { tensorReader } from '../../../src/formats/tensor/tensor-reader.js';
import { judgeOutput } from '../../../src/quality/verify/judge-output.js';
import type { JudgeRequest } from '../../../src/quality/verify/judged.js';

/** Numbers that look drawn, the same in every run. */
function numbers(seed: number) {
  let state = seed * 2654435761 + 1;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** `[1, 6, 200]`: four rows of boxes up to 640, two rows of scores up to 1. */
function detections(seed: number, scores = 1) {
  const draw = numbers(seed);
  return Float32Array.from({ length: 1200 }, (_, at) => draw() * (at < 800 ? 640 : scores));
}

const judge = (
  shape: readonly number[],
  pairs: readonly (readonly [candidate: Float32Array, reference: Float32Array])[],
  more: Partial<JudgeRequest> = {},
) =>
  judgeOutput({
    name: 'y',
    precision: 'fp16',
    atol: [],
    rtol: [],
    candidate: pairs.map(([values]) => tensorReader(tensorFrom('float32', shape, values))),
    reference: pairs.map(([, values]) => tensorReader(tensorFrom('float32', shape, values))),
    ...more,
  }).output;

const same = (values: Float32Array) => [values, values] as const;
const shape = [1, 6, 200];

describe('slices', () => {
  it('of another size are judged by their own scale: scores of 0 beside boxes fail', () => {
    const reference = [detections(1), detections(2), detections(3)];
    const pairs = reference.map(
      (values) => [values.map((value, at) => (at < 800 ? value : 0)), values] as const,
    );
    const output = judge(shape, pairs);
    expect(output.outcome).toBe('fail');
    const failed = output.checks.find(({ pass }) => !pass);
    expect(failed).toMatchObject({ statistic: 'RMS', slice: { axis: 1 } });
    expect([4, 5]).toContain(failed?.slice?.position);
    expect(judge(shape, reference.map(same)).outcome).toBe('pass');
  });

  it('are not made of a few elements each', () => {
    const states = [1, 2, 3].map((seed) => {
      const draw = numbers(seed);
      return Float32Array.from({ length: 128 }, (_, at) => (draw() - 0.5) * 2 ** -(at / 8));
    });
    const output = judge([1, 128], states.map(same));
    expect(output.checks.every(({ slice }) => slice === undefined)).toBe(true);
  });
});

describe('planted errors', () => {
  it('are accepted where every sample has the same output', () => {
    const draw = numbers(1);
    const flat = Float32Array.from({ length: 64 }, () => draw());
    const output = judge([1, 64], [same(flat), same(flat), same(flat)]);
    expect(output).toMatchObject({ outcome: 'inconclusive', pass: true });
    expect(output.planted).toContainEqual({ error: 'another sample', slice: null });
  });

  it.each([
    ['inconclusive', 0.5],
    ['pass', 0.1],
  ])('decide by how near the candidate is where outputs hardly vary: %s', (outcome, share) => {
    const flat = [1, 2, 3].map((seed) => {
      const draw = numbers(seed);
      return Float32Array.from({ length: 64 }, () => 0.5 + (draw() - 0.5) * 1e-3);
    });
    const output = judge(
      [1, 64],
      flat.map((values) => [values.map((value) => 0.5 + (value - 0.5) * (1 - share)), values] as const),
    );
    expect(output.outcome).toBe(outcome);
  });

  it('name the slice that they are accepted in', () => {
    const reference = [1, 2, 3].map((seed) => detections(seed).map((v, at) => (at < 1000 ? v : 1e-7 * v)));
    const pairs = reference.map((values) => [values.map((v, at) => (at < 1000 ? v : 0)), values] as const);
    const output = judge(shape, pairs);
    expect(output.outcome).toBe('inconclusive');
    expect(output.planted[0]).toMatchObject({ slice: { axis: 1, positions: [5] } });
  });

  it('do not count for what no input reaches, which is compared as a constant', () => {
    const anchors = new Float32Array(50).fill(2);
    const pairs = [same(anchors), same(anchors)];
    expect(judge([50], pairs, { reachedBy: () => [] }).outcome).toBe('pass');
    expect(judge([50], pairs, { reachedBy: () => ['x'] }).outcome).toBe('inconclusive');
  });
});

describe('samples', () => {
  it('are judged one by one: a sample that is off is not hidden by others', () => {
    const reference = Array.from({ length: 40 }, (_, seed) => {
      const draw = numbers(seed + 1);
      return Float32Array.from({ length: 2000 }, () => draw() - 0.5);
    });
    const pairs = reference.map(
      (values, at) => [at === 7 ? values.map((v) => v * 0.97) : values, values] as const,
    );
    const output = judge([1, 2000], pairs);
    expect(output.outcome).toBe('fail');
    expect(output.checks).toContainEqual(expect.objectContaining({ pass: false, sample: 7 }));
  });

  it('that are extremes set no scale: a silent one may be off by what the others may', () => {
    const draw = numbers(5);
    const loud = Float32Array.from({ length: 2000 }, () => draw() - 0.5);
    const silent = new Float32Array(2000).fill(1e-6);
    const pairs = [
      [silent.map((value) => value + 1e-4), silent] as const,
      same(loud),
      same(loud.map((v) => -v)),
    ];
    const samples = ['edge', 'drawn', 'drawn'].map((kind) => ({
      origin: kind,
      kind: kind as 'edge' | 'drawn',
    }));
    expect(judge([1, 2000], pairs, { samples }).outcome).toBe('pass');
  });

  it('of a map that is nearly 0 everywhere are counted over what is not', () => {
    const sparse = (factor: number) => (seed: number) => {
      const draw = numbers(seed);
      return Float32Array.from({ length: 30_000 }, (_, at) => (at % 250 === 0 ? factor * (1 + draw()) : 0));
    };
    const pairs = [1, 2, 3].map((seed) => [sparse(0.98)(seed), sparse(1)(seed)] as const);
    expect(judge([1, 30_000], pairs).outcome).toBe('fail');
  });
});

describe('values of a few steps of FP16', () => {
  it('are neither failed by one rounding nor passed by limits that see nothing', () => {
    const draw = numbers(3);
    const tiny = [0, 1].map(() => Float32Array.from({ length: 4000 }, () => 4e-7 + draw() * 1e-8));
    const rounded = tiny.map((values) => values.map((value) => Math.round(value * 2 ** 24) / 2 ** 24));
    const output = judge(
      [1, 4000],
      tiny.map((values, at) => [rounded[at]!, values] as const),
    );
    expect(output).toMatchObject({ outcome: 'inconclusive', pass: true });
  });
});
