import { describe, expect, test } from 'vitest';
import { ExitCode } from '../../../../src/errors.js';
import { cocoResultSchema } from '../../../../src/products/evaluation/coco/result.js';
import { trtforge } from '../../../support/trtforge.js';
import { cocoSets, dataOf, fileOf } from '../coco/sets.js';

const files = ({ instances, detections } = cocoSets['few detections']!) => [
  '--instances',
  fileOf(instances),
  '--detections',
  fileOf(detections),
];

describe('trtforge eval coco', () => {
  test('prints figures, the lowest categories and warnings', async () => {
    const { exitCode, out } = await trtforge(['eval', 'coco', ...files()]);
    expect(exitCode).toBe(ExitCode.pass);
    expect(out).toMatch(/60 images, 300 detections/);
    expect(out).toMatch(/0\.50:0\.95 0\.0869/);
    expect(out).toMatch(/class \d+ {2}AP 0\.0/);
    expect(out).toMatch(/warning 1 annotations with id 0/);
  });

  test('prints a result in its schema', async () => {
    const { exitCode, json } = await trtforge(['eval', 'coco', ...files(), '--json']);
    expect(exitCode).toBe(ExitCode.pass);
    const { ok, command, ...result } = json();
    expect([ok, command]).toEqual([true, 'eval coco']);
    expect(cocoResultSchema.strict().safeParse(result).error).toBeUndefined();
  });

  test('is inconclusive where nothing is annotated', async () => {
    const { exitCode, out } = await trtforge([
      'eval',
      'coco',
      ...files(dataOf([], [{ bbox: [1, 2, 3, 4] }])),
    ]);
    expect(exitCode).toBe(ExitCode.inconclusive);
    expect(out).toMatch(/0\.50:0\.95 –/);
  });

  test('scores the images of a list', async () => {
    const ids = cocoSets['few detections']!.instances.images.slice(0, 7).map(({ id }) => id);
    const list = fileOf(`# the first seven\n${ids.join('\n')}\n`);
    const { json } = await trtforge(['eval', 'coco', ...files(), '--image-ids', list, '--json']);
    expect(json()).toMatchObject({ subset: true, metrics: { num_images: 7 } });
  });

  test.each<[string, readonly string[], string]>([
    ['no file', [], 'TF_USAGE'],
    ['one file', files().slice(0, 2), 'TF_USAGE'],
    ['a negative number', [...files(), '--allow-missing', '-1'], 'TF_USAGE'],
    ['a file that is not there', ['--instances', 'no.json', '--detections', 'no.json'], 'TF_FILE_NOT_FOUND'],
    ['detections as instances', ['--instances', files()[3]!, '--detections', files()[3]!], 'TF_EVAL_DATA'],
  ])('rejects %s', async (_, words, code) => {
    const { exitCode, json } = await trtforge(['eval', 'coco', ...words, '--json']);
    expect(exitCode).toBe(ExitCode.badInput);
    expect(json().error?.code).toBe(code);
  });
});
