import { describe, expect, it } from 'vitest';
import { floatTensor, integerTensor, type NamedTensors } from '../../../src/formats/tensor/tensor.js';
import { judgeRuns } from '../../../src/quality/verify/judge-runs.js';
import type { VerifyPrecision } from '../../../src/quality/verify/result.js';

function outcome(
  precision: VerifyPrecision,
  reference: readonly NamedTensors[],
  candidate: readonly NamedTensors[],
  isCount = false,
) {
  const bindings = [...reference[0]!].map(([name, { dtype, shape }]) => ({ name, dtype, shape: [...shape] }));
  const { judged } = judgeRuns(
    { reference: 'original.onnx', candidate: 'candidate.onnx' },
    precision,
    { outputs: reference, bindings },
    { outputs: candidate, bindings },
    {
      reaching: () => ({
        inputs: ['images'],
        isOrdered: false,
        isCount,
        areScores: false,
        classAxis: null,
        areLabels: false,
        largestWeight: 1,
      }),
    },
  );
  return judged[0]!.output.outcome;
}

const perSample = (values: readonly number[]): NamedTensors[] =>
  values.map((value) => new Map([['out', integerTensor('int64', [1], [value])]]));

describe('an integer that counts', () => {
  const counts = [12, 3, 20, 7, 15, 9, 18, 4, 11, 16, 2, 14, 8, 19, 6, 13];
  const miscounted = counts.map((count, sample) => (sample % 6 === 0 ? count + 1 : count));

  it('may be off by the share of all that are counted', () => {
    expect(outcome('int8', perSample(counts), perSample(miscounted), true)).toBe('pass');
    expect(outcome('int8', perSample(counts), perSample(miscounted))).toBe('fail');
  });

  it('fails where more are lost', () => {
    const halved = counts.map((count) => Math.floor(count / 2));
    expect(outcome('int8', perSample(counts), perSample(halved), true)).toBe('fail');
    expect(outcome('fp32', perSample(counts), perSample(miscounted), true)).toBe('fail');
  });
});

describe('a probability', () => {
  const CLASSES = 200;
  /** Softmax of logits from about -20 to 0, whose first two classes are near to each other. */
  const rows = (edge: number): NamedTensors[] =>
    Array.from({ length: 8 }, (_, sample) => {
      const logits = Array.from({ length: 40 * CLASSES }, (_, at) => {
        const [row, label] = [Math.floor(at / CLASSES), at % CLASSES];
        const place = (label - row * 7 - sample * 3 + 100 * CLASSES) % CLASSES;
        return place === 0 ? (row === 5 ? edge : 8) : place === 1 && row === 5 ? 0 : -8 - (place % 9);
      });
      const values = Float32Array.from(logits, Math.exp);
      for (let row = 0; row < 40; row++) {
        const own = values.subarray(row * CLASSES, (row + 1) * CLASSES);
        const sum = own.reduce((all, value) => all + value, 0);
        own.set(own.map((value) => value / sum));
      }
      return new Map([['out', floatTensor('float32', [1, 40, CLASSES], values)]]);
    });

  it('of a near tie may move as its logits do', () => {
    expect(outcome('fp16', rows(0.2), rows(0.32))).toBe('pass');
    expect(outcome('fp16', rows(0.2), rows(0.9))).toBe('fail');
  });
});
