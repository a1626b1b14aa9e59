import { constants } from 'node:buffer';
import { truncateSync } from 'node:fs';
import { expect, test } from 'vitest';
import { evaluateCoco } from '../../../../src/products/evaluation/coco/coco.js';
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

test('thousands of annotations of one image and category, and of categories, are scored or rejected', async () => {
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
});
