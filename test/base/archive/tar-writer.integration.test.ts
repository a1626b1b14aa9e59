import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { writeTarGz } from '../../../src/base/archive/tar-writer.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-tar-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);

const long = `${'folder/'.repeat(20)}${'n'.repeat(90)}`;
const file = at('large');
writeFileSync(file, Buffer.alloc(3_000_001, 'large '));
const entries = [
  { name: 'b.txt', content: Buffer.from('text of b') },
  { name: 'a/empty', content: new Uint8Array(0) },
  { name: 'a/block', content: new Uint8Array(512).fill(7) },
  { name: long, content: Buffer.from('long') },
  { name: 'large', content: { path: file } },
];

test('tar reads what was written', async () => {
  const bytes = await writeTarGz(at('a.tar.gz'), entries);
  expect(readFileSync(at('a.tar.gz'))).toHaveLength(bytes);
  const read = (...args: readonly string[]) =>
    execFileSync('tar', [...args], { cwd: folder, maxBuffer: 1 << 24 });
  expect(read('-tzf', 'a.tar.gz').toString().trim().split('\n')).toEqual(
    entries.map(({ name }) => name).sort(),
  );
  for (const { name, content } of entries) {
    const expected = content instanceof Uint8Array ? content : readFileSync(content.path);
    expect(read('-xzOf', 'a.tar.gz', name).equals(expected)).toBe(true);
  }
});

test('the same entries are the same bytes, in whatever order', async () => {
  await writeTarGz(at('one.tar.gz'), entries);
  await writeTarGz(at('other.tar.gz'), entries.toReversed());
  expect(readFileSync(at('one.tar.gz'))).toEqual(readFileSync(at('other.tar.gz')));
});

test('a name that has no room, and a file that is not there, leave nothing', async () => {
  for (const entry of [
    { name: 'x'.repeat(101), content: new Uint8Array(1) },
    { name: 'absent', content: { path: at('absent') } },
  ])
    await expect(writeTarGz(at('none.tar.gz'), [entry])).rejects.toThrow();
  expect(() => readFileSync(at('none.tar.gz'))).toThrow();
});
