import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

const root = mkdtempSync(join(tmpdir(), 'trtforge-byte-source-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const MKFIFO = 'mkfifo';
const module = new URL('../../../dist/base/files/byte-source.js', import.meta.url).href;

test.each<[string, (path: string) => void, string]>([
  ['a file', (path) => writeFileSync(path, 'four'), '4'],
  ['a FIFO that nobody writes to', (path) => void spawnSync(MKFIFO, [path]), 'TF_FILE_UNREADABLE'],
  ['a device', (path) => symlinkSync('/dev/zero', path), 'TF_FILE_UNREADABLE'],
  ['a folder', (path) => mkdirSync(path), 'TF_FILE_UNREADABLE'],
  ['a link to itself', (path) => symlinkSync(path, path), 'TF_FILE_UNREADABLE'],
  ['nothing', () => {}, 'TF_FILE_NOT_FOUND'],
])('%s is opened or rejected at once', (what, make, expected) => {
  const path = join(root, what);
  make(path);
  // In a process of its own: one that waits in `open` hears no timer.
  const script = `import { openFile } from ${JSON.stringify(module)};
    try { console.log(openFile(${JSON.stringify(path)}).size); } catch (error) { console.log(error.code); }`;
  const run = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    timeout: 240_000,
    killSignal: 'SIGKILL',
  });
  expect([run.signal, run.stdout.trim()]).toEqual([null, expected]);
});
