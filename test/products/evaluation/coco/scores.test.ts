import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { cocoSets, type PycocotoolsScores, RECORDED, scored } from './sets.js';

const recorded = JSON.parse(readFileSync(RECORDED, 'utf8')) as Readonly<Record<string, PycocotoolsScores>>;

describe('the scorer', () => {
  test.each(Object.entries(cocoSets))(
    'finds what pycocotools finds, to the last bit: %s',
    async (name, data) => {
      expect(await scored(data)).toEqual(recorded[name]);
    },
  );
});
