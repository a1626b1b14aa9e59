import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { renderBench } from '../../../src/cli/commands/bench-text.js';
import { benchEngine } from '../../../src/quality/bench/bench-engine.js';
import { defaultRequest } from '../../../src/quality/bench/options.js';
import { benchResultSchema } from '../../../src/quality/bench/result.js';
import { benchReport } from '../../../src/report/pages/bench.js';
import { renderReport } from '../../../src/report/pages/report.js';
import { audio, measuring } from '../../fakes/measurer.js';
import { planBytes } from '../../fakes/tensorrt/engine.js';
import { coldStartsSample, percentileBench } from '../../report/compared-samples.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-batches-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const engine = join(folder, 'm.engine');
writeFileSync(engine, planBytes('10', { kind: 'affine' }));

describe('batches measured one after another in one process', () => {
  const doubted = async (backend: string, inferenceMs: number) => {
    const request = {
      ...defaultRequest(engine),
      shapes: { kind: 'batches', batches: [1, 8, 64] },
    } as const;
    const environment = { XDG_CACHE_HOME: join(folder, 'cache') };
    const context = { emit: () => {}, signal: new AbortController().signal, environment };
    const start = measuring(
      { [engine]: [audio('x', 100)] },
      () => {},
      () => inferenceMs,
      backend,
    );
    const { runs, warnings } = await benchEngine(request, context, start);
    const batches = runs
      .filter(({ doubts }) => doubts.some(({ rule }) => rule === 'follows-another'))
      .map(({ batch }) => batch);
    return { batches, warnings: warnings.filter((text) => text.includes('measured before')) };
  };

  it('are doubted but for the first where TensorRT 8 runs many inferences a millisecond', async () => {
    const { batches, warnings } = await doubted('TensorRT 8.6.1.6', 0.2);
    expect(batches).toEqual([8, 64]);
    expect(warnings).toEqual(
      [8, 64].map(
        (batch) =>
          `Do not trust batch ${batch} because another batch was measured before in the same process, and an engine of TensorRT 8.6.1.6 with many small layers is up to a tenth slower then: measure this batch alone (--batch).`,
      ),
    );
  });

  it.each([
    ['TensorRT 8.6.1.6', 5],
    ['TensorRT 10.6.0.26', 0.2],
    ['TensorRT-RTX 1.5.0.114', 0.2],
  ])('are not doubted for it with %s and inferences of %d ms', async (backend, inferenceMs) => {
    expect(await doubted(backend, inferenceMs)).toEqual({ batches: [], warnings: [] });
  });
});

it('a page has the phases of cold starts', () => {
  const result = { ...percentileBench(1000), cold: coldStartsSample() };
  expect(benchResultSchema.safeParse(result).error).toBeUndefined();
  for (const format of ['html', 'markdown'] as const) {
    const { content } = renderReport({ kind: benchReport, result }, format);
    for (const text of ['Cold start', 'first call', '142 ms', '284 ms', '256.0 MiB'])
      expect(content, format).toContain(text);
    expect(content).not.toMatch(/\| CUDA graph|>CUDA graph</);
  }
});

it('a sweep names its valleys, in the result, as text and on every page', async () => {
  const shapes = { kind: 'batches', batches: [1, 2, 4, 8, 12, 16] } as const;
  const context = { emit: () => {}, signal: new AbortController().signal, environment: {} };
  // Milliseconds of an inference: 12 items take longer than 16.
  const times: Readonly<Record<number, number>> = { 1: 1, 2: 1.5, 4: 2, 8: 3, 12: 6, 16: 5 };
  const start = measuring(
    { [engine]: [audio('x', 100)] },
    () => {},
    (_, { shapes: [first] }) => times[first!.shape[0]!]!,
  );
  const result = await benchEngine({ ...defaultRequest(engine), shapes }, context, start);
  expect(benchResultSchema.parse(result).valleys).toMatchObject([{ batch: 12, fastest: 8, use: [8, 16] }]);
  const { message } = result.valleys[0]!;
  const printed: string[] = [];
  const plain = (text: string) => text;
  const colors = { bold: plain, dim: plain, red: plain, green: plain, yellow: plain, cyan: plain };
  renderBench(result, { line: (text = '') => printed.push(text), colors });
  expect(printed).toContain(`valley ${message}`);
  for (const format of ['html', 'markdown'] as const) {
    const { content } = renderReport({ kind: benchReport, result }, format);
    expect(content).toContain(message);
    expect(content).toContain('Throughput by batch');
  }
});
