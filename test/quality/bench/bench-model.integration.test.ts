import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Binding } from '../../../src/engines/runtime/session.js';
import { ignoreEvents } from '../../../src/events.js';
import { attribute, buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { floatTensor } from '../../../src/formats/tensor/tensor.js';
import { benchModel, modelCases } from '../../../src/quality/bench/bench-model.js';
import { defaultMode } from '../../../src/quality/bench/options.js';
import { benchResultSchema } from '../../../src/quality/bench/result.js';
import { compileFakeOnnxRuntime, fakeProviders } from '../../fakes/onnxruntime/library.js';
import { refusal } from '../../support/refusal.js';
import { writeSample } from '../../support/sample-engine.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-bench-model-'));
const model = join(folder, 'affine.onnx');
const halves = join(folder, 'halves.onnx');
afterAll(() => rmSync(folder, { recursive: true }));

/** y = relu(x + state), whose batch is the state's second axis. */
beforeAll(async () => {
  for (const [path, dtype] of [
    [model, 'float32'],
    [halves, 'float16'],
  ] as const) {
    const graph = new GraphBuilder('affine');
    graph.input('x', dtype, ['n', 8]);
    graph.input('state', dtype, [2, 'n', 8]);
    graph.node('ReduceSum', {
      inputs: ['state'],
      outputs: ['s'],
      attributes: { keepdims: attribute.int(1) },
    });
    graph.node('Add', { inputs: ['x', 's'], outputs: ['sum'] });
    graph.node('Relu', { inputs: ['sum'], outputs: ['y'] });
    graph.output('y', dtype, null);
    await writeModel(buildModel(graph), path);
  }
});

const context = { emit: ignoreEvents, signal: new AbortController().signal, environment: process.env };
type Request = Parameters<typeof benchModel>[0];
const request = (more: Partial<Request> = {}): Request => ({
  model,
  shapes: { kind: 'optimum' },
  inputs: { seed: 0, ranges: [], files: [] },
  samples: undefined,
  pace: { ...defaultMode, warmUpMs: 5, durationMs: 40 },
  ...more,
});

describe('an ONNX model measured on ONNX Runtime', () => {
  it('on CUDA states that copies are in the times, and what ran on the CPU', async () => {
    await compileFakeOnnxRuntime();
    const log = join(folder, 'log');
    const environment = { ...process.env, ...fakeProviders('Add', log) };
    const place = { provider: 'cuda', device: 1, allowFallback: true };
    const result = await benchModel(request(place), { ...context, environment });
    expect(result.backend).toMatch(/\(CUDA, GPU 1\)$/);
    expect(result.warnings).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/every input's way to the GPU and every output's way back/),
        expect.stringMatching(/^2 of 3 nodes ran elsewhere/),
      ]),
    );
    expect(result.warnings.join()).not.toMatch(/no GPU computed/);
    expect(benchResultSchema.parse(result).onnxRuntime).toMatchObject({ provider: 'cuda' });
    const resident = await benchModel(request({ ...place, transfers: false }), { ...context, environment });
    expect(resident.warnings[0]).toMatch(/stay on the GPU/);
    await expect(benchModel(request({ transfers: false }), context)).rejects.toMatchObject({
      code: 'TF_USAGE',
      details: { option: '--no-data-transfers' },
    });
  });

  it('gives host times by the result’s schema, and states that they are no GPU’s', async () => {
    const result = await benchModel(request(), context);
    expect(benchResultSchema.safeParse(result).error).toBeUndefined();
    expect(result).toMatchObject({
      backend: expect.stringMatching(/^ONNX Runtime \d+\.\d+\.\d+ \(CPU\)$/),
      gpu: null,
      gpuMs: null,
      mode: { kind: 'end-to-end', graph: null, spinWait: null, streams: 1 },
      subject: { path: model, bytes: readFileSync(model).length, layers: null, identity: null },
    });
    expect(result.warnings[0]).toMatch(/host times of ONNX Runtime .* no GPU computed/);
    const [run] = result.runs;
    expect(run?.endToEndMs?.count).toBeGreaterThanOrEqual(10);
    expect(run?.wallMs).toBeGreaterThanOrEqual(40);
    // One call after another: together they last no longer than the whole.
    const { count = 0, mean = 0 } = run?.endToEndMs ?? {};
    expect(count * mean).toBeLessThanOrEqual(run?.wallMs ?? 0);
    expect(result.qps).toBeCloseTo((count / (run?.wallMs ?? 1)) * 1000, 6);
    expect(run?.warmUpInferences).toBeGreaterThanOrEqual(1);
  });

  it('has the percentiles that are requested, and rejects others', async () => {
    const { endToEndMs } = await benchModel({ ...request(), percentiles: [50] }, context);
    expect(endToEndMs?.percentiles?.p50).toBeLessThanOrEqual(endToEndMs?.p90 ?? 0);
    await expect(benchModel({ ...request(), percentiles: [101] }, context)).rejects.toMatchObject({
      code: 'TF_USAGE',
    });
  });

  it('measures batches wherever their symbol stands, at least as often as asked, and writes every sample', async () => {
    const samples = join(folder, 'samples.json');
    const pace = { ...defaultMode, warmUpMs: 0, durationMs: 0, iterations: 25 };
    const shapes = { kind: 'batches', batches: [1, 4] } as const;
    const { runs } = await benchModel(request({ shapes, pace, samples }), context);
    expect(runs.map(({ batch, shapes: given }) => [batch, given.map(({ shape }) => shape)])).toEqual([
      [
        1,
        [
          [1, 8],
          [2, 1, 8],
        ],
      ],
      [
        4,
        [
          [4, 8],
          [2, 4, 8],
        ],
      ],
    ]);
    expect(runs.map(({ endToEndMs }) => endToEndMs?.count)).toEqual([25, 25]);
    for (const run of runs) {
      const { columns } = JSON.parse(readFileSync(run.samples ?? '', 'utf8'));
      expect(columns.latencyMs).toHaveLength(25);
      expect(columns.startMs).toEqual(columns.startMs.toSorted((a: number, b: number) => a - b));
    }
  });

  it('takes files, and pauses between calls', async () => {
    const path = join(folder, 'x.npy');
    writeNpy(path, floatTensor('float32', [3, 8], new Float32Array(24).fill(-1)));
    const { runs } = await benchModel(
      request({
        shapes: { kind: 'shapes', shapes: new Map([['state', [2, 3, 8]]]) },
        inputs: { seed: 0, ranges: [], files: [{ name: 'x', path }] },
        pace: { ...defaultMode, warmUpMs: 0, durationMs: 0, iterations: 5, idleMs: 10 },
      }),
      context,
    );
    expect(runs[0]).toMatchObject({ batch: 3, shapes: [{ shape: [3, 8] }, { shape: [2, 3, 8] }] });
    expect(runs[0]?.wallMs).toBeGreaterThanOrEqual(4 * 9);
  });

  it('states what is timed of 16-bit values', async () => {
    const { warnings } = await benchModel(request({ model: halves }), context);
    expect(warnings[1]).toMatch(/16-bit values; they are computed in float32/);
  });

  it('is cancelled in the middle', async () => {
    const stopping = new AbortController();
    const pace = { ...defaultMode, durationMs: 60_000 };
    const attempt = benchModel(request({ pace }), { ...context, signal: stopping.signal });
    setTimeout(() => stopping.abort(), 600);
    await expect(attempt).rejects.toMatchObject({ code: 'TF_CANCELLED' });
  });

  it('rejects --device by name, which the CPU does not use', async () => {
    await expect(benchModel(request({ device: 1 }), context)).rejects.toMatchObject({
      code: 'TF_USAGE',
      details: expect.objectContaining({ option: '--device' }),
    });
  });

  it('rejects a plan', async () => {
    const plan = writeSample(folder);
    await expect(benchModel(request({ model: plan }), context)).rejects.toMatchObject({ code: 'TF_USAGE' });
  });
});

describe('shapes of a model to measure', () => {
  const binding = (name: string, shape: Binding['shape']): Binding => ({ name, dtype: 'float32', shape });

  it('that fixes its batch: that batch, and no other', () => {
    const fixed = [binding('x', [2, 'length'])];
    expect(modelCases(fixed, { kind: 'batches', batches: [2] })).toMatchObject([{ batch: 2 }]);
    const refused = refusal(() => modelCases(fixed, { kind: 'batches', batches: [8] }));
    expect(refused).toMatchObject({ code: 'TF_SHAPE_INVALID', message: expect.stringContaining('batch 8') });
  });

  it('whose axes have no names: the first of each input', () => {
    const unnamed = [binding('x', [null, 3]), binding('scale', [1]), binding('y', [null, null])];
    const [found] = modelCases(unnamed, { kind: 'batches', batches: [5] });
    expect(found?.shapes.get('x')).toEqual([5, 3]);
    expect(found?.shapes.get('scale')).toEqual([1]);
    expect(found?.shapes.get('y')?.[0]).toBe(5);
  });
});
