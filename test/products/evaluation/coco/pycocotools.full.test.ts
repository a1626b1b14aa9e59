import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { CocoData } from '../../../../bench/coco-data.js';
import { describeWith } from '../../../support/needs.js';
import { cocoSets, fileOf, gridData, type PycocotoolsScores, RECORDED, recordOf, scored } from './sets.js';

const script = join(import.meta.dirname, 'pycocotools_scores.py');

describeWith('pycocotools', 'pycocotools 2.0.11', (python) => {
  const pycocotools = (sets: readonly CocoData[]): readonly PycocotoolsScores[] => {
    const files = sets.flatMap(({ instances, detections }) => [fileOf(instances), fileOf(detections)]);
    return JSON.parse(execFileSync(python, [script, ...files], { encoding: 'utf8', maxBuffer: 1 << 28 }));
  };

  // To record it again: npx vitest run --project=full THIS_FILE -u
  test('finds in the sets what is recorded of it', async () => {
    const scores = pycocotools(Object.values(cocoSets));
    const recorded = Object.fromEntries(Object.keys(cocoSets).map((name, at) => [name, scores[at]!]));
    await expect(recordOf(recorded)).toMatchFileSnapshot(RECORDED);
  });

  test('finds in 300 other sets what trtforge finds, to the last bit', async () => {
    const sets = Array.from({ length: 300 }, (_, seed) => gridData(1000 + seed));
    const theirs = pycocotools(sets);
    for (const [at, data] of sets.entries()) expect(await scored(data)).toEqual(theirs[at]);
  }, 600_000);
});
