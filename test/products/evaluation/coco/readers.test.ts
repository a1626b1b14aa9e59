import { constants } from 'node:buffer';
import { truncateSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cocoData } from '../../../../bench/coco-data.js';
import { TrtforgeError } from '../../../../src/errors.js';
import { evaluateCoco } from '../../../../src/products/evaluation/coco/coco.js';
import { mutations } from '../../../support/mutations.js';
import { runs } from '../../../support/runs.js';
import { fileOf } from './sets.js';

test('a file that is larger than one text can be is rejected', async () => {
  const large = fileOf('[');
  truncateSync(large, constants.MAX_STRING_LENGTH + 1);
  const evaluation = evaluateCoco({ instances: large, detections: fileOf([]) });
  await expect(evaluation).rejects.toMatchObject({
    code: 'TF_EVAL_DATA',
    remedy: expect.stringContaining('segmentations'),
  });
});

describe('damaged files are scored or rejected', () => {
  const data = cocoData({
    seed: 9,
    images: 6,
    categories: 4,
    annotations: 12,
    detections: 30,
    scoreDecimals: 2,
  });
  const files = {
    instances: Buffer.from(JSON.stringify({ info: { year: 2017 }, ...data.instances })),
    detections: Buffer.from(JSON.stringify(data.detections)),
  };

  test.each(['instances', 'detections'] as const)(
    '%s',
    async (damaged) => {
      const whole = { instances: fileOf(files.instances), detections: fileOf(files.detections) };
      const began = performance.now();
      let rejected = 0;
      for (const bytes of mutations(files[damaged], runs(3000), 13)) {
        try {
          const { stats } = await evaluateCoco({ ...whole, [damaged]: fileOf(bytes) });
          expect(stats.every((value) => value === -1 || (value >= 0 && value <= 1))).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(TrtforgeError);
          expect((error as TrtforgeError).code).toBe('TF_EVAL_DATA');
          expect((error as TrtforgeError).message.length).toBeLessThan(3000);
          rejected++;
        }
      }
      expect(rejected).toBeGreaterThan(runs(3000) / 3);
      expect(performance.now() - began).toBeLessThan(120_000);
    },
    180_000,
  );

  test('records of any JSON are scored or rejected', async () => {
    const odd = fc.oneof(
      fc.constantFrom(0, 1, -1, 1e308, 2 ** 53, null, true, '1', [], {}),
      fc.jsonValue({ maxDepth: 1 }),
    );
    const record = fc.dictionary(
      fc.constantFrom('id', 'image_id', 'category_id', 'bbox', 'score', 'area', 'iscrowd', 'name'),
      fc.oneof(odd, fc.array(fc.oneof(fc.double(), fc.integer()), { minLength: 4, maxLength: 4 })),
      { noNullPrototype: true },
    );
    const records = fc.array(fc.oneof(record, odd), { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(
        records,
        records,
        records,
        records,
        async (images, categories, annotations, detections) => {
          const evaluation = evaluateCoco({
            instances: fileOf({ images, categories, annotations }),
            detections: fileOf(detections),
          });
          await evaluation.catch((error: unknown) =>
            expect((error as TrtforgeError).code).toBe('TF_EVAL_DATA'),
          );
        },
      ),
      { numRuns: runs(2000) },
    );
  });

  test('thousands of annotations of one image and category, and of categories, end in time', async () => {
    const many = Array.from({ length: 30_000 }, (_, id) => ({
      id: id + 1,
      image_id: 1,
      category_id: 1,
      bbox: [0, 0, 9, 9],
      area: 81,
      iscrowd: 0,
    }));
    const detections = Array.from({ length: 200 }, (_, n) => ({
      image_id: 1,
      category_id: 1,
      bbox: [0, 0, 9, 9],
      score: n,
    }));
    const images = [{ id: 1 }];
    const began = performance.now();
    const { stats } = await evaluateCoco({
      instances: fileOf({ images, categories: [{ id: 1 }], annotations: many }),
      detections: fileOf(detections),
    });
    const tooMany = evaluateCoco({
      instances: fileOf(
        `{"images":[{"id":1}],"categories":[{"id":1}],"annotations":[${Array.from({ length: 1_000_001 }, (_, id) => `{"id":${id},"image_id":1,"category_id":1,"bbox":[0,0,9,9]}`).join()}]}`,
      ),
      detections: fileOf([]),
    });
    await expect(tooMany).rejects.toMatchObject({ code: 'TF_EVAL_DATA' });
    expect(stats[8]).toBeCloseTo(100 / 30_000, 9);
    const categories = Array.from({ length: 100_000 }, (_, id) => ({ id }));
    const evaluation = evaluateCoco({
      instances: fileOf({ images, categories, annotations: [] }),
      detections: fileOf(detections),
    });
    await expect(evaluation).rejects.toMatchObject({ code: 'TF_EVAL_DATA' });
    expect(performance.now() - began).toBeLessThan(60_000);
  });
});
