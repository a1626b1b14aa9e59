import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statfsSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import type { BenchResult } from '../../../src/quality/bench/result.js';
import { fakeEngine } from '../../fakes/tensorrt/engine.js';
import { type Answer, trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-bench-cold-'));
const at = (name: string) => join(folder, name);
let environment: NodeJS.ProcessEnv = {};
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The fake of TensorRT 10.3 laid out as an installation. */
beforeAll(async () => {
  await buildAddon({ say: () => {} });
  const engine = await fakeEngine('10');
  environment = engine.environment({
    TENSORRT_HOME: engine.install(at('home')),
    XDG_CACHE_HOME: at('cache'),
  });
  engine.writePlan(at('a.engine'), {
    kind: 'affine',
    inner: 4,
    profiles: [
      [1, 2, 4],
      [4, 8, 64],
    ],
  });
});

/** Of statfs: its files have no other place than memory. */
const TMPFS = 0x01021994;
/** Keeps a library loaded, and so its pages in memory, until its input ends. */
const HOLD = `try { process.dlopen({ exports: {} }, process.argv[1], 0x1002); } catch {}
console.log('loaded');
process.stdin.resume();`;
const QUICK = ['--warm-up', '10', '--duration', '0.15'];

const bench = (args: readonly string[], more: NodeJS.ProcessEnv = {}) =>
  trtforge(['bench', ...args], { ...environment, ...more });

async function json<T>(args: readonly string[], more: NodeJS.ProcessEnv = {}) {
  const { exitCode: status, json: parsed } = await bench([...args, '--json'], more);
  return { status, answer: parsed<T & Answer>() };
}

describe('trtforge bench ENGINE --cold', () => {
  it('measures cold starts, whose phases add up, with the page cache and after it was dropped', async () => {
    const words = [at('a.engine'), '--cold', '--graph', ...QUICK];
    const { status, answer } = await json<BenchResult>(words, { FAKE_CALLS: at('cold-calls') });
    expect(status).toBe(0);
    const { starts, warm, dropped, files } = answer.cold ?? expect.fail('there are no cold starts');
    // A process each, and that of the measurement.
    const calls = readFileSync(at('cold-calls'), 'utf8').split('\n');
    expect(calls.filter((line) => line === 'reads a mapped file')).toHaveLength(2 * starts + 1);
    for (const { ms, hostMemory } of [warm, dropped]) {
      const { total, capture, ...parts } = ms;
      for (const spread of Object.values(ms)) {
        const { min, median, max } = spread ?? expect.fail('10.3 has every phase');
        expect([min, median, max]).toEqual([min, median, max].toSorted((a, b) => a - b));
        expect(min).toBeGreaterThan(0);
      }
      const least = Object.values(parts).reduce((sum, spread) => sum + (spread?.min ?? 0), 0);
      expect(total?.min).toBeGreaterThanOrEqual(least);
      expect(hostMemory.peakBytes).toBeGreaterThanOrEqual(0);
    }
    expect(files.map(({ path }) => path)).toEqual([at('a.engine'), at('home/lib/libnvinfer.so.10')]);
    for (const { path, bytes, stayedBytes } of files) {
      expect(bytes).toBe(statSync(path).size);
      expect(stayedBytes).toBe(statfsSync(path).type === TMPFS ? bytes : 0);
    }
    const { out } = await bench(words);
    const table = out.slice(out.indexOf('cold start  5 new processes each')).split('\n');
    expect(table.slice(2, 11).map((line) => line.slice(2, 14).trim())).toEqual([
      ...['start', 'check', 'library', 'read', 'deserialize', 'contexts'],
      ...['first call', 'total', 'CUDA graph'],
    ]);
    expect(new Set(table.slice(2, 11).map((line) => line.indexOf(' – ', 30) > 0))).toEqual(new Set([true]));
  });

  it('has no phase of a graph that the library rejects', async () => {
    const engine = await fakeEngine('11');
    engine.writePlan(at('eleven.engine'), { kind: 'affine', inner: 4 });
    const more = { TENSORRT_HOME: engine.install(at('eleven')), FAKE_CAPTURE: 'refused' };
    const words = [at('eleven.engine'), '--cold', '--graph', ...QUICK];
    const { answer } = await json<BenchResult>(words, more);
    expect(answer.cold?.warm.ms).toMatchObject({ read: { min: expect.any(Number) }, capture: null });
  });

  it('names a file that another process keeps in the page cache', async () => {
    const library = at('home/lib/libnvinfer.so.10');
    const holder = spawn(process.execPath, ['-e', HOLD, library], { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(holder.stdout!, 'data');
    try {
      const { answer } = await json<BenchResult>([at('a.engine'), '--cold', ...QUICK]);
      expect(answer.cold?.files[1]?.stayedBytes).toBeGreaterThan(0);
      expect(answer.warnings.join('\n')).toMatch(/libnvinfer\.so\.10 stayed in the page cache/);
    } finally {
      holder.stdin?.end();
      await once(holder, 'close');
    }
  });
});
