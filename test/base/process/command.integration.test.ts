import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runCommand } from '../../../src/base/process/command.js';

const before = process.cwd();
let folder = '';
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'trtforge-command-')));
  process.chdir(folder);
});
afterEach(() => {
  process.chdir(before);
  rmSync(folder, { recursive: true, force: true });
});

it('a short command runs in the root folder, where the working folder lends it no code', async () => {
  expect((await runCommand('pwd', [], { timeoutMs: 240_000 })).stdout.trim()).toBe('/');
});

it('a program named by a relative path is found from the working folder', async () => {
  writeFileSync('program', '#!/bin/sh\necho here\n', { mode: 0o755 });
  expect((await runCommand('./program', [], { timeoutMs: 240_000 })).stdout.trim()).toBe('here');
});
