import { describe, expect, it } from 'vitest';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { taskKind as tokens } from '../../../src/products/bundle/token-task.js';
import { argmax } from '../../../src/products/streaming/verify/argmax.js';
import { openTask, type Sample, taskIdentitySchema } from '../../../src/quality/tasks/task.js';
import { taskKind } from '../../fakes/task.js';

const floats = (...values: number[]) => tensorFrom('float32', [values.length], Float32Array.from(values));
const sample = (index: number, x: number, truth = 1): Sample => ({
  index,
  inputs: new Map([['x', floats(x)]]),
  reference: new Map([['y', floats(truth)]]),
});

async function resultOf(samples: readonly Sample[], needed = 1) {
  const task = await openTask([argmax, taskKind], 'counted', { needed }, {});
  for (const one of samples) await task.take(one, one.index === 9 ? null : new Map());
  const result = task.result();
  await task.close();
  return result;
}

describe('a task', () => {
  it('takes samples and outputs, and returns metrics, an outcome and details in the schema of its kind', async () => {
    const result = await resultOf([sample(0, 1), sample(9, 2)], 2);
    expect(taskIdentitySchema.parse(result)).toMatchObject({
      task: 'counted',
      revision: 1,
      samples: 2,
      metrics: [{ name: 'outputs', value: 1, unit: 'samples', higherIsBetter: true }],
    });
    expect(result.outcome).toBe('fail');
    expect(taskKind.details.parse(result.details)).toEqual({ scored: 1, failed: 1 });
  });

  it('has the digest of its data: inputs, what is true of them, and their order', async () => {
    const digestOf = async (...samples: Sample[]) => (await resultOf(samples)).dataDigest;
    const digest = await digestOf(sample(0, 1), sample(1, 2));
    expect(await digestOf(sample(0, 1), sample(1, 2))).toBe(digest);
    for (const other of [
      [sample(0, 1)],
      [sample(1, 2), sample(0, 1)],
      [sample(0, 1), sample(1, 3)],
      [sample(0, 1), sample(1, 2, 0)],
    ])
      expect(await digestOf(...other)).not.toBe(digest);
  });

  it('may score a part of the reference only, and then that part is its data', async () => {
    const keyOf = async (scores: number, rest: number) => {
      const task = await argmax.open({ output: 'y', minAgreement: 0.99 }, {});
      const reference = new Map([
        ['y', floats(scores, 0)],
        ['state', floats(rest)],
      ]);
      await task.take({ index: 0, inputs: new Map(), reference }, reference);
      return task.result().comparabilityKey;
    };
    const key = await keyOf(1, 1);
    expect(await keyOf(1, 2)).toBe(key);
    expect(await keyOf(2, 1)).not.toBe(key);
  });

  it('has a key that is equal for equal data and settings only', async () => {
    const [one, again, stricter, more] = await Promise.all([
      resultOf([sample(0, 1)]),
      resultOf([sample(0, 1)]),
      resultOf([sample(0, 1)], 2),
      resultOf([sample(0, 1), sample(1, 1)]),
    ]);
    expect(again.comparabilityKey).toBe(one.comparabilityKey);
    expect(stricter.dataDigest).toBe(one.dataDigest);
    expect(new Set([one, stricter, more].map(({ comparabilityKey }) => comparabilityKey)).size).toBe(3);
  });

  it('is opened by the id of its kind, with settings that its schema accepts', async () => {
    await expect(openTask([taskKind], 'coco', {}, {})).rejects.toMatchObject({
      code: 'TF_USAGE',
      details: { task: 'coco', known: ['counted'] },
    });
    await expect(openTask([taskKind], 'counted', { needed: 'two' }, {})).rejects.toMatchObject({
      code: 'TF_USAGE',
      message: expect.stringContaining('needed'),
    });
  });
});

it('the kinds there are have ids of their own', () => {
  expect([argmax.id, tokens.id]).toEqual(['argmax', 'tokens']);
});
