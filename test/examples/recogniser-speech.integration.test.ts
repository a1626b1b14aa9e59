import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { record, testUtterance, writeSet } from '../../examples/recogniser/speech-set.js';
import { readManifest } from '../../src/products/evaluation/wer/manifest.js';
import { describeWith } from '../support/needs.js';

const list = readFileSync(new URL('../../examples/recogniser/test-set.sha256', import.meta.url), 'utf8');
const committed = new Map(
  list
    .trim()
    .split('\n')
    .map((line) => [line.slice(66), line.slice(0, 64)]),
);

describeWith('espeak-ng', 'phrases that are spoken', () => {
  test('are the committed ones, and eval recogniser reads their manifest', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'trtforge-speech-'));
    try {
      const utterances = Array.from({ length: 16 }, (_, index) => testUtterance(index));
      const digests = await writeSet(utterances, folder);
      expect(Object.fromEntries(digests)).toEqual(
        Object.fromEntries(utterances.map(({ id }) => [`${id}.wav`, committed.get(`${id}.wav`)])),
      );
      const spoken = readManifest(join(folder, 'manifest.tsv'));
      expect(spoken.map(({ reference }) => reference)).toEqual(utterances.map(({ text }) => text));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('another voice gives other audio', async () => {
    const digest = async (voice: string) =>
      createHash('sha256')
        .update(await record({ ...testUtterance(1), voice }))
        .digest('hex');
    expect(await digest('en-us+m1')).not.toBe(await digest('en-us+f2'));
  });
});
