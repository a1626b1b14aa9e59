import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSession } from 'trtforge';
import { evaluate, imageSamples, preprocessingFor, type Scorer } from 'trtforge/evaluation';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { calibrationError } from '../../examples/metrics/calibration-error.js';
import type { Sample } from '../../src/quality/tasks/task.js';
import { channelMeans, paint } from '../products/evaluation/image-networks.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-metric-'));
const names = ['a.png', 'b.png', 'c.png', 'd.png'];
beforeAll(() =>
  paint(folder, {
    'a.png': [250, 10, 10],
    'b.png': [10, 250, 10],
    'c.png': [10, 20, 250],
    'd.png': [200, 30, 10],
  }),
);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const images = names.map((id) => ({ id, path: join(folder, id) }));

it('a metric in one file is fed by a session over images', async () => {
  await using session = await openSession(await channelMeans());
  const over = () => imageSamples(session, images, preprocessingFor(session, 'rt-detr', 640));
  const right = over();
  const { result, run } = await evaluate(calibrationError([0, 1, 2, 0]), session, {
    ...right,
    warmUpRuns: 1,
    skipLatency: 1,
  });
  // Logits are the channels' means, 0 to 1: confident by about a half, and always right.
  expect(result).toBeGreaterThan(0.4);
  expect(result).toBeLessThan(0.6);
  expect(run).toMatchObject({ samples: 4, latency: { count: 3 } });
  expect(right.facts().firstInput).toMatchObject({ id: 'a.png' });
  const wrong = await evaluate(calibrationError([1, 0, 1, 2]), session, over());
  expect(wrong.result).not.toBeCloseTo(result, 2);
});

it('samples of any kind are taken in their order, and what a metric throws ends the evaluation', async () => {
  await using session = await openSession(await channelMeans());
  const [input] = session.inputs;
  const tensor = { dtype: 'float32', shape: [1, 3, 16, 16], bytes: new Uint8Array(3072) } as const;
  const samples = [0, 1, 2].map((index) => ({
    index,
    inputs: new Map([[input!.name, tensor]]),
    reference: new Map(),
  }));
  const order: number[] = [];
  const metric: Scorer<Sample, number> = {
    take: ({ index }) => {
      order.push(index);
      if (index === 1) throw new RangeError('enough');
    },
    result: () => order.length,
  };
  await expect(evaluate(metric, session, { samples })).rejects.toThrow(RangeError);
  expect(order).toEqual([0, 1]);
  // The second one fails while the first is taken.
  const narrow = { ...tensor, shape: [1, 3, 16, 8], bytes: new Uint8Array(1536) } as const;
  const broken = [samples[0]!, { ...samples[1]!, inputs: new Map([[input!.name, narrow]]) }, samples[2]!];
  order.length = 0;
  await expect(evaluate(metric, session, { samples: broken })).rejects.toMatchObject({
    code: 'TF_SESSION_INPUT',
  });
  expect(order).toEqual([0]);
  const cancelled = evaluate(metric, session, { samples, signal: AbortSignal.abort() });
  await expect(cancelled).rejects.toMatchObject({ code: 'TF_CANCELLED' });
});
