import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { describeWith } from '../support/needs.js';
import { dynamicModel } from './tiny-models.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-many-builds-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describeWith('toolchain', 'the addon over tensorrt-rtx', (libraries) => {
  test('fifty builds in one process leave no memory, file or thread behind', () => {
    const script = fileURLToPath(new URL('./many-builds.mjs', import.meta.url));
    const run = spawnSync(
      process.execPath,
      ['--expose-gc', script, libraries, dynamicModel(folder), join(folder, 'many.plan'), '50'],
      { encoding: 'utf8' },
    );
    const held = JSON.parse(run.stdout) as { residentBytes: number; files: number; threads: number }[];
    expect(held).toHaveLength(50);
    // The first builds warm the library's own caches; a plan of this model is 18 KB, its build's arena some MB.
    const [warm, last] = [held[9], held[49]];
    if (warm === undefined || last === undefined) throw new Error('builds are missing');
    expect(last.residentBytes - warm.residentBytes).toBeLessThan(16 << 20);
    expect(last.files).toBe(warm.files);
    expect(last.threads).toBe(warm.threads);
  });
});
