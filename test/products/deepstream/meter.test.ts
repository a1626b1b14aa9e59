import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { workOf } from '../../../src/events.js';
import type { StreamsEngine } from '../../../src/products/deepstream/effects.js';
import { streamsMeter } from '../../../src/products/deepstream/meter.js';
import { seedMode } from '../../../src/products/deepstream/options.js';
import { figuresOf } from '../../../src/products/deepstream/record.js';
import { readStreamsLog } from '../../../src/products/deepstream/trtexec-form-log.js';
import type { BenchTool } from '../../../src/quality/bench/bench-engine.js';
import type { BenchContext, BenchRequest } from '../../../src/quality/bench/options.js';
import type { BenchRun } from '../../../src/quality/bench/result.js';
import { benchResult } from '../../fakes/deepstream.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-streams-meter-'));
afterAll(() => rmSync(folder, { recursive: true }));

const engine: StreamsEngine = {
  maxBatch: 64,
  path: '/e/net_dynamic_b64.engine',
  bytes: 1,
  sha256: 'a',
  identity: 'b',
  buildSeconds: 1,
  library: 'tensorrt 10.6.0.26',
  warnings: [],
};

/** A meter over a bench that keeps what it was asked and answers with a measurement of batch 8. */
function meterOver(tool: BenchTool, change: (run: BenchRun) => BenchRun = (run) => run) {
  const asked: { request: BenchRequest; context: BenchContext }[] = [];
  const meter = streamsMeter(tool, {
    mode: { ...seedMode, graph: true },
    inputs: {
      image: 'images',
      layout: 'NCHW',
      channels: 3,
      height: 64,
      width: 32,
      inputs: [
        { name: 'images', shape: ['batch', 3, 64, 32] },
        { name: 'sizes', shape: ['batch', 2] },
      ],
      notes: [],
    },
    loading: { toolchain: undefined, device: 1, plugins: ['/p.so'] },
    bench: async (request, context) => {
      asked.push({ request, context });
      const { result, run } = benchResult(8, 800, { ...seedMode, graph: true });
      return { ...result, runs: [change(run)], warnings: ['The GPU was warm.'] };
    },
    work: workOf({ environment: {} }),
  });
  return { meter, asked };
}

describe('measuring with trtforge’s own bench', () => {
  test('asks for the scripts’ mode: nothing copied, 10 s after 1 s of warm-up, one stream', async () => {
    const { meter, asked } = meterOver('trtforge');
    const log = join(folder, 'b8', 'trtexec_b8.log');
    const facts = await meter.measure(engine, 8, log);
    expect(asked[0]?.request).toMatchObject({
      engine: engine.path,
      device: 1,
      plugins: ['/p.so'],
      shapes: {
        kind: 'shapes',
        shapes: new Map([
          ['images', [8, 3, 64, 32]],
          ['sizes', [8, 2]],
        ]),
      },
      mode: {
        transfers: false,
        graph: true,
        spinWait: false,
        streams: 1,
        warmUpMs: 1000,
        durationMs: 10_000,
      },
    });
    expect(facts).toMatchObject({
      gpu: 'Test GPU',
      graph: true,
      contextBytes: 64 << 20,
      warnings: ['The GPU was warm.'],
    });
    expect(readStreamsLog(log)).toMatchObject({
      qps: 100,
      gpuMeanMs: 10,
      firstDims: [8],
      writtenBy: 'trtforge',
    });
    expect(readFileSync(log, 'utf8')).toContain('CUDA Graph: Enabled');
  });

  test('the images need not be the engine’s first input', async () => {
    const { meter } = meterOver('trtforge', (run) => ({
      ...run,
      batch: 100,
      shapes: [{ name: 'anchors', shape: [100, 4] }, ...run.shapes],
    }));
    const log = join(folder, 'anchors.log');
    await meter.measure(engine, 8, log);
    expect(figuresOf(readStreamsLog(log), 8)).toMatchObject({ qps: 100, imagesPerSecond: 800 });
    expect(figuresOf(readStreamsLog(log), 16)).toBeNull();
  });

  test.each<[string, (run: BenchRun) => BenchRun]>([
    ['another batch', (run) => ({ ...run, shapes: [{ name: 'images', shape: [4, 3, 64, 32] }] })],
    ['transfers', (run) => ({ ...run, mode: { ...run.mode, kind: 'with-transfers' } })],
  ])('figures of %s are no figures', async (_what, change) => {
    const { meter } = meterOver('trtforge', change);
    await expect(meter.measure(engine, 8, join(folder, 'x.log'))).rejects.toMatchObject({
      code: 'TF_INTERNAL',
    });
  });
});

test('trtexec gets the place of its log', async () => {
  const { meter, asked } = meterOver('trtexec');
  await meter.measure(engine, 8, '/logs/trtexec_b8.log');
  expect(asked[0]?.context.trtexecLog).toBe('/logs/trtexec_b8.log');
});
