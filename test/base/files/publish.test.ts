import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { beginFile, publishFile, UNPUBLISHED_SUFFIX } from '../../../src/base/files/publish.js';
import { TrtforgeError } from '../../../src/errors.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trtforge-publish-'));
});
afterEach(() => {
  chmodSync(folder, 0o755);
  rmSync(folder, { recursive: true });
});

describe('a published file', () => {
  test('appears whole, under its own name, and leaves nothing else behind', () => {
    publishFile(join(folder, 'a', 'plan'), 'content');
    expect(readFileSync(join(folder, 'a', 'plan'), 'utf8')).toBe('content');
    expect(readdirSync(join(folder, 'a'))).toEqual(['plan']);
  });

  test('is not there, and the old one stays, until it is published', () => {
    writeFileSync(join(folder, 'plan'), 'old');
    const file = beginFile(join(folder, 'plan'));
    file.write(Buffer.from('....new'));
    file.writeAt(Buffer.from('head'), 0);
    expect(file.position).toBe(7);
    expect(readFileSync(join(folder, 'plan'), 'utf8')).toBe('old');
    file.publish();
    expect(readFileSync(join(folder, 'plan'), 'utf8')).toBe('headnew');
  });

  test('that is discarded leaves no trace', () => {
    const file = beginFile(join(folder, 'plan'));
    file.write(Buffer.from('half'));
    expect(readdirSync(folder)[0]).toMatch(new RegExp(`${UNPUBLISHED_SUFFIX}$`));
    file.discard();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('that cannot be written is an error that names it', () => {
    writeFileSync(join(folder, 'file'), '');
    expect(() => publishFile(join(folder, 'file', 'plan'), 'x')).toThrow(TrtforgeError);
    mkdirSync(join(folder, 'taken', 'inner'), { recursive: true });
    expect(() => publishFile(join(folder, 'taken'), 'x')).toThrow(/taken could not be written/);
    expect(readdirSync(folder).sort()).toEqual(['file', 'taken']);
  });
});
