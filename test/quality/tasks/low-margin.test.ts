import { describe, expect, it } from 'vitest';
import { floatTensor } from '../../../src/formats/tensor/values.js';
import { reasonsOfTask } from '../../../src/products/streaming/verify/task.js';
import { argmax } from '../../../src/quality/tasks/argmax.js';
import { type DecisionDetails, outcomeOfDecisions } from '../../../src/quality/tasks/decisions.js';
import { isLowMargin, lowMarginShare, type Rounding } from '../../../src/quality/tasks/low-margin.js';
import type { TaskResult } from '../../../src/quality/tasks/task.js';

const identity = {
  task: 'argmax',
  revision: 1,
  samples: 1,
  dataDigest: '',
  comparabilityKey: '',
  metrics: [],
};

/** Class scores of one place: the reference's first class leads the second by `margin`, the candidate's second one leads. */
async function turned(margin: number, rounding: Rounding): Promise<TaskResult<DecisionDetails>> {
  const task = await argmax.open({ output: 'scores', rounding }, {});
  const scores = (...values: number[]) =>
    new Map([['scores', floatTensor('float32', [1, 4], Float32Array.from(values))]]);
  const sample = { index: 0, inputs: new Map(), reference: scores(1, 1 - margin, -1, 0) };
  await task.take(sample, scores(1, 1.1, -1, 0));
  return task.result();
}

describe('a decision that a rounding may turn', () => {
  it('is one whose margin is a small share of the scores, by what the candidate rounds to', () => {
    const scores = Float32Array.of(1, -1, 1, -1);
    const roundings = ['fp32', 'tf32', 'fp16', 'bf16'] as const;
    expect(roundings.map(lowMarginShare)).toEqual([1e-5, 0.005, 0.02, 0.16]);
    expect(roundings.map((one) => isLowMargin(0.01, scores, lowMarginShare(one)))).toEqual([
      false,
      false,
      true,
      true,
    ]);
    expect(isLowMargin(0, new Float32Array(4), lowMarginShare('fp32'))).toBe(true);
  });

  it('is counted and reported, and does not fail the task', async () => {
    const { details, outcome, metrics } = await turned(0.001, 'tf32');
    expect(details).toMatchObject({ different: 1, lowMargin: 1, lowMarginShare: 0.005, agreed: 0 });
    expect(details.differences[0]?.lowMargin).toBe(true);
    expect(outcome).toBe('pass');
    expect(metrics).toMatchObject([
      { name: 'class-agreement', value: 0, higherIsBetter: true },
      { name: 'unexplained-differences', value: 0, higherIsBetter: false },
    ]);
    expect(reasonsOfTask({ ...details, ...identity, swap: null })).toEqual([
      expect.stringMatching(/class 1 where .* 0, by .*, a low-margin decision\.$/),
    ]);
  });

  it('fails it where the candidate rounds less than that', async () => {
    const { details, outcome } = await turned(0.001, 'fp32');
    expect(details).toMatchObject({ different: 1, lowMargin: 0 });
    expect(outcome).toBe('fail');
  });

  it('fails it beside one that is none', async () => {
    const { details } = await turned(0.001, 'tf32');
    expect(outcomeOfDecisions({ ...details, different: 2 })).toBe('fail');
  });

  it('may lead free decoding another way; other tokens without any difference are a fault', async () => {
    const { details } = await turned(0.001, 'tf32');
    const emitted = { reference: 3, candidate: 4, equal: false };
    expect(outcomeOfDecisions({ ...details, emitted })).toBe('pass');
    expect(outcomeOfDecisions({ ...details, emitted, different: 0, lowMargin: 0 })).toBe('fail');
  });

  it('is none where the candidate has no number', async () => {
    const task = await argmax.open({ output: 'scores', rounding: 'bf16' }, {});
    const of = (values: number[]) =>
      new Map([['scores', floatTensor('float32', [1, 2], Float32Array.from(values))]]);
    await task.take({ index: 0, inputs: new Map(), reference: of([1, 1]) }, of([Number.NaN, Number.NaN]));
    expect(task.result().outcome).toBe('fail');
  });
});
