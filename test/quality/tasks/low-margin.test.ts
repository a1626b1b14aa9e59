import { describe, expect, it } from 'vitest';
import { floatTensor } from '../../../src/formats/tensor/tensor.js';
import { argmax } from '../../../src/products/streaming/verify/argmax.js';
import { reasonsOfTask } from '../../../src/products/streaming/verify/task.js';
import {
  agreementOutcome,
  type DecisionDetails,
  isLowMargin,
  movementOf,
  outcomeOfDecisions,
} from '../../../src/quality/tasks/agreement.js';
import type { TaskResult } from '../../../src/quality/tasks/task.js';

const identity = {
  task: 'argmax',
  revision: 2,
  samples: 1,
  dataDigest: '',
  comparabilityKey: '',
  metrics: [],
};

const scores = (rows: readonly (readonly number[])[]) =>
  new Map([
    ['scores', floatTensor('float32', [rows.length, rows[0]!.length], Float32Array.from(rows.flat()))],
  ]);

async function judged(
  reference: readonly (readonly number[])[],
  candidate: readonly (readonly number[])[],
  minAgreement = 0.99,
): Promise<TaskResult<DecisionDetails>> {
  const task = await argmax.open({ output: 'scores', minAgreement }, {});
  await task.take({ index: 0, inputs: new Map(), reference: scores(reference) }, scores(candidate));
  return task.result();
}

const sure = [3, 0, -1, 0];
/** `wrong` places of 100 whose first class leads by 0.01, and the second in the candidate; the other scores move by `movement`. */
const turned = (wrong: number, movement: number, minAgreement?: number) => {
  const rows = (row: readonly number[]) => Array.from({ length: 100 }, (_, at) => (at < wrong ? row : sure));
  return judged(rows([1, 0.99, -1, 0]), rows([1, 1.01, -1 + movement, 0]), minAgreement);
};

describe('the movement of a row', () => {
  it('is the largest of its scores but for the two choices, and of those where there are no others', () => {
    expect(movementOf(Float32Array.of(1, 2, 3, 4), Float32Array.of(9, 2.5, 2, -9), [0, 3])).toBe(1);
    expect(movementOf(Float32Array.of(1, 2), Float32Array.of(3, 2), [0, 1])).toBe(2);
    const masked = Number.NEGATIVE_INFINITY;
    expect(movementOf(Float32Array.of(1, 2, masked), Float32Array.of(3, 2, masked), [0, 1])).toBe(0);
  });

  it('explains a lead up to twice its size, and none where it is not a number', () => {
    expect([0.2, 0.21].map((lead) => isLowMargin(lead, 0.1))).toEqual([true, false]);
    for (const movement of [Number.NaN, Number.POSITIVE_INFINITY])
      expect(isLowMargin(0, movement)).toBe(false);
  });
});

describe('a decision that differs', () => {
  it('is counted and does not fail the task where the row moved enough', async () => {
    const { details, outcome, metrics } = await turned(1, 0.02);
    expect(details).toMatchObject({ different: 1, lowMargin: 1, agreement: 0.99, minAgreement: 0.99 });
    expect(details.differences[0]).toMatchObject({ lowMargin: true });
    expect(details.differences[0]?.movement).toBeCloseTo(0.02);
    expect(details.differences[0]?.referenceMargin).toBeCloseTo(0.01);
    expect(outcome).toBe('pass');
    expect(metrics).toMatchObject([
      { name: 'class-agreement', value: 0.99, higherIsBetter: true },
      { name: 'unexplained-differences', value: 0, higherIsBetter: false },
    ]);
    expect(reasonsOfTask({ ...details, ...identity })).toHaveLength(1);
  });

  it('fails the task where the row did not move', async () => {
    const { details, outcome } = await turned(1, 0);
    expect(details).toMatchObject({ different: 1, lowMargin: 0 });
    expect(outcome).toBe('fail');
  });

  it.each([
    [2, 'inconclusive'],
    [5, 'inconclusive'],
    [6, 'fail'],
    [60, 'fail'],
  ] as const)('%d of 100 that movement explains make it %s', async (wrong, outcome) => {
    const result = await turned(wrong, 1.5);
    expect(result.details).toMatchObject({ different: wrong, lowMargin: wrong });
    expect(result.outcome).toBe(outcome);
    expect(reasonsOfTask({ ...result.details, ...identity })[0]).toContain('--min-agreement');
  });

  it('passes from the requested share on', async () => {
    expect((await turned(10, 1.5, 0.9)).outcome).toBe('pass');
    expect((await turned(11, 1.5, 0.9)).outcome).toBe('fail');
    expect((await turned(1, 1.5, 1)).outcome).toBe('inconclusive');
  });

  it('may lead free decoding another way; other tokens without any difference are a fault', async () => {
    const { details } = await turned(1, 0.02);
    const emitted = { reference: 3, candidate: 4, equal: false };
    expect(outcomeOfDecisions({ ...details, emitted })).toBe('pass');
    expect(outcomeOfDecisions({ ...details, emitted, different: 0, lowMargin: 0 })).toBe('fail');
  });

  it('is not a low-margin one where the candidate has no number', async () => {
    expect((await judged([[1, 1]], [[Number.NaN, Number.NaN]])).outcome).toBe('fail');
  });
});

describe('the floor of agreement', () => {
  const of = (agreement: number | null, decisions: number, different: number) =>
    agreementOutcome({ agreement, decisions, different, minAgreement: 0.99 });

  it('counts whole decisions, and one among few decides nothing', () => {
    expect(of(94 / 95, 95, 1)).toBe('pass');
    expect(of(93 / 95, 95, 2)).toBe('inconclusive');
    expect(of(2 / 3, 3, 1)).toBe('inconclusive');
    expect(of(1 / 3, 3, 2)).toBe('fail');
    expect(of(null, 0, 0)).toBe('inconclusive');
  });
});
