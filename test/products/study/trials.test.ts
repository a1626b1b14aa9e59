import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { candidateTrials } from '../../../src/products/study/bisect/candidates.js';
import { mutations } from '../../support/mutations.js';
import { runs } from '../../support/runs.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-trials-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = join(folder, 'candidates.json');

const trial = () => ({
  what: '2 nodes in FP32',
  outcome: 'fail' as const,
  reasons: ['y: one element is NaN.'],
  kept: 2,
  same: null,
  ms: { convert: 1, build: null, run: 2.5 },
  model: 'digest',
  program: null,
});

test('what was tried is found again for the same question, and for no other', async () => {
  const trials = candidateTrials(folder, { question: 'question' });
  for (const key of ['a', 'b', 'a']) await trials.once(key, undefined, async () => trial());
  expect(trials.made).toBe(2);
  const again = candidateTrials(folder, { question: 'question' }).all;
  expect(again).toEqual(trials.all);
  expect(again.map(({ id, key }) => [id, key])).toEqual([
    [1, 'a'],
    [2, 'b'],
  ]);
  expect(candidateTrials(folder, { question: 'another' }).all).toEqual([]);
});

test('of a damaged file nothing is taken, or trials of the right form', () => {
  const whole = readFileSync(file);
  for (const bytes of mutations(whole, runs(3000))) {
    writeFileSync(file, bytes);
    const { all } = candidateTrials(folder, { question: 'question' });
    for (const { outcome, kept } of all) {
      expect(['pass', 'fail', 'unresolved']).toContain(outcome);
      expect(Number.isInteger(kept)).toBe(true);
    }
  }
});
