import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cocoData } from '../../../../bench/coco-data.js';
import { TrtforgeError } from '../../../../src/errors.js';
import { evaluateCoco } from '../../../../src/products/evaluation/coco/coco.js';
import { mutations } from '../../../support/mutations.js';
import { runs } from '../../../support/runs.js';
import { fileOf } from './sets.js';

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

  test.each(['instances', 'detections'] as const)('%s', async (damaged) => {
    const whole = { instances: fileOf(files.instances), detections: fileOf(files.detections) };
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
  });

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
});
