import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { statIfThere } from '../../../src/base/files/files.js';
import { isBelow, makeFolder } from '../../../src/base/files/folders.js';
import { publishFile } from '../../../src/base/files/publish.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-folders-'));
const file = join(root, 'a file');
writeFileSync(file, '');
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('folders that are made', () => {
  test('with all that is missing above, and again', () => {
    const folder = join(root, 'größe', 'b c', 'd');
    makeFolder(folder);
    makeFolder(folder);
    expect(existsSync(folder)).toBe(true);
  });

  test('rejected, and not tried for ever, where a file system takes none', () => {
    expect(() => makeFolder('/proc/trtforge/a')).toThrow(/ENOENT/);
    expect(() => publishFile('/proc/trtforge/a/b', '')).toThrow(/no folder can be made there/);
  });

  test('rejected where a file is in the way', () => {
    expect(() => makeFolder(file)).toThrow(/EEXIST/);
    expect(() => makeFolder(join(file, 'a', 'b'))).toThrow(/ENOTDIR/);
    expect(() => publishFile(join(file, 'b'), '')).toThrow(/a file is where its folder should be/);
  });
});

test('what lies below a file is not there', () => {
  expect(statIfThere(join(file, 'b'))).toBeUndefined();
  expect(statIfThere(join(root, 'missing'))).toBeUndefined();
  expect(statIfThere(file)?.size).toBe(0);
});

test.each([
  ['a', true],
  ['.', true],
  ['not/here/yet', true],
  ['..name', true],
  ['..', false],
  ['a/../../b', false],
  ['/etc', false],
  ['out', false],
  ['out/b', false],
  ['dangling', false],
])('%s is below its folder: %s', (path, expected) => {
  const folder = mkdtempSync(join(root, 'below-'));
  symlinkSync(tmpdir(), join(folder, 'out'));
  symlinkSync(join(folder, 'nothing'), join(folder, 'dangling'));
  expect([isBelow(folder, path), isBelow(join(folder, 'new'), 'x'), isBelow('/', folder)]).toEqual([
    expected,
    true,
    true,
  ]);
});
