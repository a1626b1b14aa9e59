import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { bytesSource, openFile } from '../../../src/base/files/byte-source.js';
import { sha256, sha256OfRange } from '../../../src/base/files/digest.js';

describe('digests', () => {
  const content = Buffer.from(Array.from({ length: 9_000_001 }, (_, index) => index % 251));

  test('of a range, in pieces, are those of the bytes', () => {
    const source = bytesSource('memory', content);
    expect(sha256OfRange(source)).toBe(createHash('sha256').update(content).digest('hex'));
    expect(sha256OfRange(source, 5, 4_500_000)).toBe(sha256(content.subarray(5, 4_500_005)));
    expect(sha256OfRange(source, 0, 0)).toBe(sha256(''));
  });

  test('of a file are those of its content', () => {
    const folder = mkdtempSync(join(tmpdir(), 'trtforge-digest-'));
    writeFileSync(join(folder, 'file'), content);
    const file = openFile(join(folder, 'file'));
    expect(sha256OfRange(file)).toBe(sha256(content));
    file.close();
    file.close();
    expect(() => sha256OfRange(file)).toThrow('was read after it was closed');
    rmSync(folder, { recursive: true });
  });
});

describe('a file that cannot be read', () => {
  test.each([
    ['/nowhere/at/all', 'TF_FILE_NOT_FOUND'],
    [tmpdir(), 'TF_FILE_UNREADABLE'],
  ])('%s is %s', (path, code) => {
    expect(() => openFile(path)).toThrow(expect.objectContaining({ code }));
  });
});
