import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import { figuresOf } from '../../../src/products/deepstream/record.js';
import { plain, readStreamsLog, streamsLogText } from '../../../src/products/deepstream/trtexec-form-log.js';
import { readTrtexecLog } from '../../../src/tensorrt/trtexec/log/log.js';
import { benchResult } from '../../fakes/deepstream.js';
import { recordedLogs } from '../../fakes/trtexec.js';
import { mutations } from '../../support/mutations.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-streams-log-'));
afterAll(() => rmSync(folder, { recursive: true }));
const at = new Date(2026, 10, 21, 5, 6, 7);
const GPU_BYTES = 141 * 2 ** 30;

function written(name: string, batch: number, imagesPerSecond: number): string {
  const path = join(folder, name);
  const { result, run } = benchResult(batch, imagesPerSecond);
  writeFileSync(
    path,
    streamsLogText({ result, run, enginePath: '/e/net_dynamic_b64.engine', gpuBytes: GPU_BYTES, at }),
  );
  return path;
}

/** The lines of DeepStream's scripts, as they stand there. */
function scripts(path: string): { readonly qps: string; readonly mean: string; readonly p99: string } {
  const run = (pattern: string) =>
    execFileSync('bash', ['-c', `grep -oP '${pattern}' "$1" | tail -1`, 'bash', path], {
      encoding: 'utf8',
    }).trim();
  return {
    qps: run('Throughput:\\s*\\K[0-9.]+'),
    mean: run('GPU Compute Time:.*mean = \\K[0-9.]+'),
    p99: run('GPU Compute Time:.*percentile\\(99%\\) = \\K[0-9.]+'),
  };
}

describe('a log of our own', () => {
  const path = written('own.log', 64, 1280);

  test('is read by the scripts’ own grep lines', () => {
    expect(scripts(path)).toEqual({ qps: '20', mean: '50', p99: '57.5' });
  });

  test('is read back with everything it contains', () => {
    expect(readStreamsLog(path)).toEqual({
      writtenBy: 'trtforge',
      isComplete: true,
      qps: 20,
      gpuMeanMs: 50,
      gpuP99Ms: 57.5,
      firstDims: [64],
      contextBytes: 64 << 20,
      gpuBytes: GPU_BYTES,
    });
    expect(readTrtexecLog(path)).toMatchObject({
      build: { loadEngine: '/e/net_dynamic_b64.engine' },
      measurement: { transfers: false, graph: false, spinWait: false, warmUpMs: 1000 },
      device: { name: 'Test GPU' },
      performance: { hostWalltimeSeconds: 10.0035 },
    });
  });

  test('states in its first lines what wrote it, and has no line for what was not measured', () => {
    const text = readFileSync(path, 'utf8');
    expect(text.split('\n')[0]).toMatch(/^&&&& RUNNING trtforge\.streams \[trtforge v\d/);
    expect(text).toMatch(/Written by: trtforge \d.*, not trtexec/);
    expect(text).not.toMatch(/H2D|D2H|\] Latency:/);
    expect(text).toContain('[11/21/2026-05:06:07] [I] Throughput: 20 qps');
  });

  test('cut short anywhere before its end it is not complete', () => {
    const text = readFileSync(path, 'utf8');
    const end = text.indexOf('Total Host Walltime');
    for (let length = 0; length < end; length += 97) {
      const cut = join(folder, 'cut.log');
      writeFileSync(cut, text.slice(0, length));
      expect(readStreamsLog(cut).isComplete).toBe(false);
    }
  });

  test('numbers stay numbers to grep, however large or small', () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-9, max: 1e12, noNaN: true }), (amount) => {
        expect(plain(amount)).toMatch(/^[0-9.]+$/);
        expect(Math.abs(Number(plain(amount)) - amount)).toBeLessThanOrEqual(Math.max(amount * 1e-5, 1e-11));
      }),
    );
    expect(plain(1_234_567)).toBe('1234570');
  });
});

describe('a log of trtexec', () => {
  test.each<[string, number, boolean]>([
    ['10.6-bench_seed_b1.log', 1, true],
    ['10.6-bench_r50_b1.log', 1, true],
    ['10.6-bench_r50_b64.log', 64, true],
    ['10.6-bench_transfers_graph_b1.log', 1, true],
    ['8.6-bench_b1.log', 1, true],
    ['10.6-build_fp16.log', 1, false],
    ['10.6-err_no_gpu.log', 1, false],
    ['8.6-err_text_plan.log', 1, false],
  ])('%s at batch %d: complete %s, the figures that the scripts find', (name, batch, isComplete) => {
    const path = join(recordedLogs, name);
    const log = readStreamsLog(path);
    expect(log).toMatchObject({ writtenBy: 'trtexec', isComplete });
    const found = scripts(path);
    const figures = figuresOf(log, batch);
    if (!isComplete) expect(figures).toBeNull();
    else
      expect(figures).toEqual({
        qps: Number(found.qps),
        imagesPerSecond: Number(found.qps) * batch,
        gpuMsPerImage: Number(found.mean) / batch,
        gpuMeanMs: Number(found.mean),
        gpuP99Ms: Number(found.p99),
      });
  });

  test('is of another batch than expected', () => {
    expect(figuresOf(readStreamsLog(join(recordedLogs, '10.6-bench_r50_b64.log')), 32)).toBeNull();
  });
});

test('damaged logs are read or rejected, never worse', () => {
  const originals = [
    readFileSync(written('own.log', 8, 1000)),
    readFileSync(join(recordedLogs, '10.6-bench_seed_b1.log')).subarray(0, 30_000),
  ];
  const path = join(folder, 'damaged.log');
  for (const original of originals)
    for (const damaged of mutations(original, 150)) {
      writeFileSync(path, damaged);
      try {
        const figures = figuresOf(readStreamsLog(path), 8);
        if (figures !== null) expect(Number.isFinite(figures.imagesPerSecond)).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(TrtforgeError);
      }
    }
});
