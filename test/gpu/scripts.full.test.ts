import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildAddon } from '../../scripts/build-native.mjs';

const folder = fileURLToPath(new URL('.', import.meta.url));
const bench = fileURLToPath(new URL('../../bench/gpu/main.mjs', import.meta.url));
const tests = fileURLToPath(new URL('../../scripts/test-gpu.mjs', import.meta.url));
const checks = readdirSync(folder).filter((file) => file.endsWith('.gpu.mjs'));

/** Runs a script where CUDA shows no GPU, whatever this machine has. */
const run = (script: string, ...words: string[]) =>
  spawnSync(process.execPath, [script, ...words], {
    encoding: 'utf8',
    env: { ...process.env, CUDA_VISIBLE_DEVICES: '' },
  });

describe('the scripts for a GPU machine, where there is no GPU', () => {
  beforeAll(() => buildAddon({ say: () => {} }));

  it.each(checks)('%s finds what it imports, reports that there is no GPU, and ends with 3', (file) => {
    const { status, stdout, stderr } = run(`${folder}${file}`);
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toMatchObject({ check: 'machine', ok: false, why: expect.any(String) });
    expect(status).toBe(3);
  });

  it.each([
    ['test:gpu', tests],
    ['bench:gpu', bench],
  ])('%s rejects an unknown option in one line, with 2', (_, script) => {
    const { status, stderr } = run(script, '--nonsense');
    expect(stderr).toMatch(/^Unknown option '--nonsense'.*\n$/);
    expect(status).toBe(2);
  });

  it('test:gpu counts nothing as passed and ends with 3', () => {
    const { status, stdout } = run(tests, 'inspect');
    expect(stdout).toMatch(/\n0 passed, 0 failed: this machine has no GPU or no TensorRT\n$/);
    expect(status).toBe(3);
  });

  it('so do the benchmarks', () => {
    const { status, stderr } = run(bench);
    expect(stderr).toMatch(/GPU|NVIDIA driver/);
    expect(status).toBe(3);
  });
});
