import { describe, expect, it } from 'vitest';
import { floatTensor } from '../../../src/formats/tensor/values.js';
import type { JudgedTask } from '../../../src/products/streaming/compare/task-schema.js';
import { ArgmaxTask } from '../../../src/products/streaming/task/argmax.js';
import { reasonsOfTask } from '../../../src/products/streaming/task/sentences.js';
import { outcomeOfTask } from '../../../src/products/streaming/task/task.js';
import { closeCallShare, isCloseCall } from '../../../src/quality/tasks/low-margin.js';

/** Class scores of one place: the reference's first class leads the second by `margin`, the candidate's second one leads. */
async function turned(margin: number, share: number): Promise<JudgedTask> {
  const task = new ArgmaxTask('scores', share);
  const scores = (...values: number[]) =>
    new Map([['scores', floatTensor('float32', [1, 4], Float32Array.from(values))]]);
  await task.take(0, scores(1, 1.1, -1, 0), scores(1, 1 - margin, -1, 0));
  return task.result();
}

describe('a decision that a rounding may turn', () => {
  it('is one whose margin is a small share of the scores, by what the candidate rounds to', () => {
    const scores = Float32Array.of(1, -1, 1, -1);
    expect(Object.values(closeCallShare).map((share) => isCloseCall(0.01, scores, share))).toEqual([
      false,
      false,
      true,
      true,
    ]);
    expect(isCloseCall(0, new Float32Array(4), closeCallShare.fp32)).toBe(true);
  });

  it('is counted and told, and does not fail the task', async () => {
    const task = await turned(0.001, closeCallShare.tf32);
    expect(task).toMatchObject({ different: 1, closeCalls: 1, closeCallShare: 0.005, agreed: 0 });
    expect(task.differences[0]?.closeCall).toBe(true);
    expect(outcomeOfTask(task)).toBe('pass');
    expect(reasonsOfTask(task)).toEqual([
      expect.stringMatching(/class 1 where .* 0, by .*, a close call\.$/),
    ]);
  });

  it('fails it where the candidate rounds less than that', async () => {
    const task = await turned(0.001, closeCallShare.fp32);
    expect(task).toMatchObject({ different: 1, closeCalls: 0 });
    expect(outcomeOfTask(task)).toBe('fail');
  });

  it('fails it beside one that is none', async () => {
    const close = await turned(0.001, closeCallShare.tf32);
    expect(outcomeOfTask({ ...close, different: 2 })).toBe('fail');
  });

  it('may lead free decoding another way; other tokens without any difference are a fault', async () => {
    const task = await turned(0.001, closeCallShare.tf32);
    const emitted = { reference: 3, candidate: 4, equal: false };
    expect(outcomeOfTask({ ...task, emitted })).toBe('pass');
    expect(outcomeOfTask({ ...task, emitted, different: 0, closeCalls: 0 })).toBe('fail');
  });

  it('is none where the candidate has no number', async () => {
    const task = new ArgmaxTask('scores', closeCallShare.bf16);
    const of = (values: number[]) =>
      new Map([['scores', floatTensor('float32', [1, 2], Float32Array.from(values))]]);
    await task.take(0, of([Number.NaN, Number.NaN]), of([1, 1]));
    expect(outcomeOfTask(task.result())).toBe('fail');
  });
});
