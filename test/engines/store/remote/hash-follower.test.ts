import { createHash, randomBytes } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HashFollower } from '../../../../src/engines/store/remote/hash-follower.js';

const MIB = 1 << 20;

/** A file as a download writes it, its pieces handed over in memory where `inMemory` says so. */
async function follow(path: string, bytes: Buffer, piece: number, inMemory: (index: number) => boolean) {
  const file = openSync(path, 'w');
  const follower = new HashFollower(path);
  let waits = 0;
  try {
    for (let at = 0, index = 0; at < bytes.length; at += piece, index++) {
      const part = bytes.subarray(at, at + piece);
      const slot = follower.slot().subarray(0, part.length);
      slot.set(part);
      writeSync(file, slot, 0, slot.length, at);
      if (!inMemory(index)) {
        follower.reached(at + part.length);
        continue;
      }
      const room = follower.hand(slot, at);
      if (room !== undefined) waits++;
      await room;
    }
    return { digest: await follower.digest(), waits };
  } finally {
    closeSync(file);
    await follower.stop();
  }
}

describe('a hash that follows a file', () => {
  let folder: string;
  const bytes = randomBytes(40 * MIB + 12_345);
  const expected = createHash('sha256').update(bytes).digest('hex');
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'trtforge-hash-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test.each<[string, number, (index: number) => boolean]>([
    ['from the file alone', MIB, () => false],
    ['from memory', MIB, () => true],
    ['from memory in small pieces', 100_000, () => true],
    ['from memory and file in turns', 777_777, (index) => index % 3 > 0],
    ['from memory, then from the file, as when more connections join', MIB, (index) => index < 20],
    [
      'from the file, then from memory, as when an earlier download is gone on with',
      MIB,
      (index) => index > 20,
    ],
  ])('%s', async (_how, piece, inMemory) => {
    expect((await follow(join(folder, 'plan'), bytes, piece, inMemory)).digest).toBe(expected);
  });

  test('holds up a writer that is faster, so that no memory is written before it was hashed', async () => {
    const { waits } = await follow(join(folder, 'plan'), bytes, 64 << 10, () => true);
    expect(waits).toBeGreaterThan(0);
  });

  test('gives its failure to whoever asks for the digest, and keeps nobody waiting before', async () => {
    const path = join(folder, 'short');
    closeSync(openSync(path, 'w'));
    const follower = new HashFollower(path);
    follower.reached(MIB);
    for (let index = 0; index < 40; index++) await follower.hand(follower.slot().subarray(0, 10), MIB);
    await expect(follower.digest()).rejects.toThrow('is shorter than what was written to it');
    await follower.stop();
  });
});
