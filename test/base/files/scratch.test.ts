import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeScratch } from '../../../src/base/files/folders.js';
import { codeOf } from '../../support/refusal.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-scratch-test-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

test('a folder for temporary files that is missing is TF_WRITE_FAILED', () => {
  expect(codeOf(() => makeScratch('model', join(root, 'missing')))).toBe('TF_WRITE_FAILED');
});

test('what a killed process left a day ago is removed, and nothing else', () => {
  const dead = 2 ** 22 + 1;
  const days = (count: number) => new Date(Date.now() - count * 24 * 3600 * 1000);
  const cases = [
    [`trtforge-model-${dead}-abc123`, 2, false],
    [`trtforge-model-${dead}-new123`, 0, true],
    [`trtforge-model-${process.pid}-abc123`, 2, true],
    [`someone-model-${dead}-abc123`, 2, true],
  ] as const;
  for (const [name, age] of cases) {
    mkdirSync(join(root, name));
    utimesSync(join(root, name), days(age), days(age));
  }
  expect(existsSync(makeScratch('model', root))).toBe(true);
  for (const [name, , stays] of cases) expect([name, existsSync(join(root, name))]).toEqual([name, stays]);
});
