import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { planBytes } from '../fakes/tensorrt/engine.js';
import { type Fake, FakeBench, openRequest, sanitizerLibrary } from '../fakes/tensorrt/library.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-layer-times-'));
const driver = fileURLToPath(new URL('../fakes/tensorrt/drive-layers.mjs', import.meta.url));
const generations: readonly Fake[] = ['8', '10', '11'];
let bench: FakeBench;

beforeAll(async () => {
  bench = await FakeBench.sanitized(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Answer {
  readonly result?: readonly { readonly name: string; readonly ms: number; readonly runs: number }[];
  readonly error?: { readonly code: string; readonly message: string };
}

/** Layer times after runs that reported these layers, `name:ms` with commas. */
function layerTimes(fake: Fake, runs: readonly string[], profiling = true): Answer {
  const planPath = join(folder, 'plan');
  writeFileSync(planPath, planBytes(fake, { kind: 'affine' }));
  const open = openRequest(bench.library(fake), planPath);
  const sanitizer = sanitizerLibrary();
  const done = spawnSync(process.execPath, [driver, bench.addon, JSON.stringify({ open, runs, profiling })], {
    encoding: 'utf8',
    env: {
      ...bench.environment(),
      ASAN_OPTIONS: 'detect_leaks=0:abort_on_error=1',
      ...(sanitizer === undefined ? {} : { LD_PRELOAD: sanitizer }),
    },
  });
  expect(done.signal, done.stderr).toBeNull();
  return JSON.parse(done.stdout) as Answer;
}

describe.each(generations)('layer times of generation %s', (fake) => {
  test('are summed over runs, in the order the layers appear', () => {
    const run = 'conv:0.5,relu:0.125,fc:0.25';
    expect(layerTimes(fake, [run, run, run]).result).toEqual([
      { name: 'conv', ms: 1.5, runs: 3 },
      { name: 'relu', ms: 0.375, runs: 3 },
      { name: 'fc', ms: 0.75, runs: 3 },
    ]);
  });

  test('keep layers of the same name apart', () => {
    const run = 'conv:1,copy:0.25,conv:2,copy:0.5';
    expect(layerTimes(fake, [run, run]).result).toEqual([
      { name: 'conv', ms: 2, runs: 2 },
      { name: 'copy', ms: 0.5, runs: 2 },
      { name: 'conv', ms: 4, runs: 2 },
      { name: 'copy', ms: 1, runs: 2 },
    ]);
  });

  test('count a layer behind a condition in the runs it was in', () => {
    const runs = ['a:1,c:1', 'a:1,b:4,c:1', 'a:1,c:1'];
    expect(layerTimes(fake, runs).result).toEqual([
      { name: 'a', ms: 3, runs: 3 },
      { name: 'b', ms: 4, runs: 1 },
      { name: 'c', ms: 3, runs: 3 },
    ]);
  });

  test('are none before the first run, and rejected without profiling', () => {
    expect(layerTimes(fake, []).result).toEqual([]);
    expect(layerTimes(fake, [], false).error?.code).toBe('TF_SESSION_INPUT');
  });
});
