import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { statIfThere } from '../../../src/base/files/files.js';
import { runShellLine } from '../../../src/base/process/command.js';
import { isAlive } from '../../support/processes.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-group-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const options = { timeoutMs: 60_000, environment: process.env, signal: undefined, doing: 'checking' };

test('a shell line has its exit code and texts, in the working folder', async () => {
  const ran = await runShellLine('pwd -P; echo bad >&2; exit 3', options);
  expect(ran).toEqual({ outcome: 'ended', exitCode: 3, stdout: `${process.cwd()}\n`, stderr: 'bad\n' });
});

test('it ends with all that it started when it is cancelled, and when it is late', async () => {
  const pid = join(folder, 'pid');
  const line = `sleep 600 & echo $! > ${pid}.part; mv ${pid}.part ${pid}; wait`;
  const stopping = new AbortController();
  const cancelled = runShellLine(line, { ...options, signal: stopping.signal });
  await vi.waitUntil(() => statIfThere(pid) !== undefined, { timeout: 240_000 });
  stopping.abort();
  await expect(cancelled).rejects.toMatchObject({ code: 'TF_CANCELLED' });
  await expect.poll(() => isAlive(Number(readFileSync(pid, 'utf8')))).toBe(false);
  expect(await runShellLine(line, { ...options, timeoutMs: 300 })).toMatchObject({
    outcome: 'timed-out',
    exitCode: null,
  });
  await expect.poll(() => isAlive(Number(readFileSync(pid, 'utf8')))).toBe(false);
});
