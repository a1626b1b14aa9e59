import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { readNpz } from '../../../src/formats/tensor/npz.js';
import { float32Values, integerTensor, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import {
  type BenchComparison,
  type BenchResult,
  benchComparisonSchema,
  benchResultSchema,
} from '../../../src/quality/bench/result.js';
import { fakeIdentity } from '../../fakes/tensorrt/affine.js';
import { fakeEngine } from '../../fakes/tensorrt/engine.js';
import { fakeTrtexec } from '../../fakes/trtexec.js';
import { gate, policyOf } from '../../quality/gate/gate-case.js';
import { samplePassport } from '../../support/sample-engine.js';
import { type Answer, trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-bench-'));
const at = (name: string) => join(folder, name);
const main = new URL('../../../dist/main.js', import.meta.url).pathname;
let environment: NodeJS.ProcessEnv = {};
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The fake of TensorRT 10.3 laid out as an installation; inferences take 2 ms of the fake GPU's time. */
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
  engine.writePlan(at('b.engine'), { kind: 'affine', inner: 4, profiles: [[1, 8, 64]] });
  engine.writePlan(at('stated.engine'), { kind: 'affine', inner: 4, profiles: [[1, 8, 64]] });
  const identity = fakeIdentity();
  const x = { min: [1, 4], opt: [8, 4], max: [64, 4], values: false };
  const passport = samplePassport(readFileSync(at('stated.engine')), {
    ...identity,
    recipe: { ...identity.recipe, profiles: [{ x }] },
  });
  const inputs = [{ name: 'x', dtype: 'float32', shape: [null, 4] }];
  writeFileSync(
    at('stated.engine.passport.json'),
    JSON.stringify({ ...passport, plan: { ...passport.plan, inputs } }),
  );
  engine.writePlan(at('streamed.engine'), { kind: 'affine', inner: 4, streamable: 1 << 20 });
  engine.writePlan(at('shape.engine'), { kind: 'shape', inner: 4 });
  writeNpy(at('wide.npy'), tensorFrom('float32', [16, 4], new Float32Array(64)));
  writeNpy(at('s.npy'), integerTensor('int32', [2], [3, 4]));
  writeNpy(at('x.npy'), tensorFrom('float32', [2, 4], new Float32Array(8)));
  writeFileSync(at('text.engine'), 'this is not a plan, and it is long enough to hold a header of one');
});

/** What the fake library says it is. */
const VERSION = '10.3.0.26';
const QUICK = ['--warm-up', '10', '--duration', '0.15'];

const bench = (args: readonly string[], more: NodeJS.ProcessEnv = {}) =>
  trtforge(['bench', ...args], { ...environment, ...more });

async function json<T>(args: readonly string[], more: NodeJS.ProcessEnv = {}) {
  const { exitCode: status, json: parsed } = await bench([...args, '--json'], more);
  return { status, answer: parsed<T & Answer>() };
}

describe('trtforge bench ENGINE', () => {
  it('gives times, rates, memory and how it was measured, by its schema', async () => {
    const { status, answer } = await json<BenchResult>([at('a.engine'), ...QUICK]);
    expect(status).toBe(0);
    expect(benchResultSchema.safeParse(answer).error).toBeUndefined();
    const { gpuMs, endToEndMs, qps, itemsPerSecond, mode, runs, gpu } = answer;
    expect(gpuMs?.median).toBeCloseTo(2, 3);
    expect(endToEndMs?.median).toBeGreaterThanOrEqual(gpuMs?.median ?? 0);
    // A run of the fake takes 2 ms, and the first one's input waits as long behind the run before.
    const { count = 0 } = gpuMs ?? {};
    expect(qps).toBeCloseTo((500 * count) / (count + 1), 3);
    expect(itemsPerSecond).toBeCloseTo(2 * qps, 6);
    expect(mode).toMatchObject({ kind: 'with-transfers', graph: false, spinWait: false, streams: 1 });
    expect(runs[0]).toMatchObject({ batch: 2, profile: 0, shapes: [{ name: 'x', shape: [2, 4] }] });
    expect(runs[0]?.gpuStates.before?.smClockMHz).toBeGreaterThan(0);
    expect(runs[0]?.peakGpuBytes).toBeGreaterThan(0);
    expect(gpu?.uuid).toMatch(/^GPU-/);
  });

  it('measures a list of batches on the GPU alone, each in the profile that takes it', async () => {
    const words = ['--batch', '1,8,64', '--no-data-transfers', '--graph', '--spin-wait', ...QUICK];
    const { answer } = await json<BenchResult>([at('a.engine'), ...words]);
    expect(answer.runs.map(({ batch, profile }) => [batch, profile])).toEqual([
      [1, 0],
      [8, 1],
      [64, 1],
    ]);
    expect(answer.endToEndMs).toBeNull();
    expect(answer.mode).toMatchObject({ kind: 'gpu-only', graph: true, spinWait: true });
    expect(answer.qps).toBe(answer.runs[0]?.qps);
  });

  it('prints what the numbers are', async () => {
    const { exitCode: status, out } = await bench([
      at('a.engine'),
      '--no-data-transfers',
      '--graph',
      '--spin-wait',
      ...QUICK,
    ]);
    expect(status).toBe(0);
    expect(out).toMatch(/batch 2 {2}x:2x4 {2}GPU only, CUDA graph, spin wait/);
    expect(out).toMatch(/GPU compute +2\.0000? .*\n/);
    expect(out).toMatch(/qps, .* items\/s over \d+ samples/);
    expect(out).toContain('has no passport');
  });

  it('reports any percentile in every spread, in the text in order, and to the gate', async () => {
    const words = [at('a.engine'), '--percentile', '99.9,50,90', ...QUICK];
    const { answer } = await json<BenchResult>(words);
    expect(benchResultSchema.safeParse(answer).error).toBeUndefined();
    const { gpuMs, endToEndMs, runs } = answer;
    for (const spread of [gpuMs, endToEndMs, runs[0]?.inputMs]) {
      const { p90, max, percentiles } = spread ?? expect.fail('nothing was measured');
      expect(Object.keys(percentiles ?? {}).toSorted()).toEqual(['p50', 'p90', 'p99.9']);
      expect(percentiles?.p90).toBe(p90);
      expect(percentiles?.['p99.9']).toBeLessThanOrEqual(max);
    }
    const titles = (await bench(words)).out.split('\n').find((line) => line.startsWith('  ms'));
    expect(titles?.trim().split(/ +/).slice(4)).toEqual(['p50', 'p90', 'p95', 'p99', 'p99.9', 'max']);
    const check = {
      id: 'tail',
      result: { schema: 'trtforge.bench/1' },
      field: "gpuMs.percentiles['p99.9']",
      fail: { above: 0.001 },
    };
    const { findings } = gate({ 'policy.yaml': policyOf({ checks: [check] }), 'bench.json': answer });
    expect(findings.find(({ check: id }) => id === 'tail')?.rule).toBe('limit');
  });

  it.each(['', 'p99', '101', '-1'])('rejects the percentile "%s"', async (list) => {
    const { status, answer } = await json([at('a.engine'), `--percentile=${list}`]);
    expect([status, answer.error?.code]).toEqual([2, 'TF_USAGE']);
  });

  it('reports why a graph was rejected and measures without one', async () => {
    const { status, answer } = await json<BenchResult>([at('a.engine'), '--graph', ...QUICK], {
      FAKE_CAPTURE: 'refused',
    });
    expect(status).toBe(0);
    expect(answer.mode.graph).toBe(false);
    expect(answer.mode.graphFallback).toBeTruthy();
    expect(answer.warnings.join('\n')).toMatch(/no CUDA graph: /);
  });

  it('writes every sample as npz, one file a batch, and as JSON', async () => {
    const { answer } = await json<BenchResult>([
      at('a.engine'),
      '--batch',
      '1,2',
      '--samples',
      at('s.npz'),
      ...QUICK,
    ]);
    expect(answer.runs.map(({ samples }) => samples)).toEqual([at('s.b1.npz'), at('s.b2.npz')]);
    const columns = readNpz(at('s.b1.npz'));
    const compute = columns.get('computeMs') ?? expect.fail('no column');
    expect(compute.shape).toEqual([answer.runs[0]?.gpuMs?.count]);
    expect(Math.min(...float32Values(compute))).toBeCloseTo(answer.runs[0]?.gpuMs?.min ?? 0, 5);
    await bench([at('a.engine'), '--samples', at('s.json'), ...QUICK]);
    expect(JSON.parse(readFileSync(at('s.json'), 'utf8'))).toMatchObject({
      schema: 'trtforge.bench-samples/1',
    });
  });

  it('takes the shape of a file, in the profile that holds it, and the values of a shape tensor', async () => {
    const { answer } = await json<BenchResult>([
      at('a.engine'),
      '--inputs',
      `x=@${at('wide.npy')}`,
      ...QUICK,
    ]);
    expect(answer.runs[0]).toMatchObject({ batch: 16, profile: 1, shapes: [{ name: 'x', shape: [16, 4] }] });
    const shaped = await json<BenchResult>([at('shape.engine'), '--inputs', `s=@${at('s.npy')}`, ...QUICK]);
    expect(shaped.answer.runs[0]?.shapes).toEqual([
      { name: 'x', shape: [8, 4] },
      { name: 's', shape: [3, 4] },
    ]);
    const batched = ['--batch', '2', '--inputs', `s=@${at('s.npy')}`, ...QUICK];
    expect((await json<object>([at('shape.engine'), ...batched])).answer.error).toMatchObject({
      code: 'TF_USAGE',
      message: expect.stringMatching(/values of s, which decide shapes/),
    });
    const other = await json<object>([
      at('a.engine'),
      '--batch',
      '2',
      '--inputs',
      `x=@${at('wide.npy')}`,
      ...QUICK,
    ]);
    expect(other.answer.error).toMatchObject({ code: 'TF_SHAPE_INVALID' });
  });

  it('keeps as much of streamed weights on the GPU as requested, and reports it', async () => {
    const half = (await json<BenchResult>([at('streamed.engine'), '--weight-budget', '1K', ...QUICK])).answer;
    expect(benchResultSchema.safeParse(half).error).toBeUndefined();
    const told = { weightBudgetAsked: 1024, weightBudgetBytes: 1024 };
    expect(half.subject).toMatchObject({ streamableWeightsBytes: 1 << 20, ...told });
    const { out } = await bench([at('streamed.engine'), ...QUICK]);
    expect(out).toContain('1.00 MiB of 1.00 MiB of weights kept on the GPU');
    const trtexec = fakeTrtexec(folder, { version: '10.6', says: VERSION, streamable: 1 << 20 });
    const words = [at('streamed.engine'), '--with', 'trtexec', '--shapes', 'x:2x4', '--weight-budget'];
    const measured = (await json<BenchResult>([...words, '1K'], { TRTEXEC: trtexec })).answer;
    expect(measured.subject).toMatchObject(told);
    expect((await bench([...words, '1M'], { TRTEXEC: trtexec })).out).toContain(
      'at most 1.00 MiB of weights kept on the GPU',
    );
  });

  it('uses several streams and states what that does to times', async () => {
    const { answer } = await json<BenchResult>([at('a.engine'), '--streams', '2', ...QUICK]);
    expect(answer.mode.streams).toBe(2);
    expect(answer.runs[0]?.doubts.map(({ rule }) => rule)).toContain('several-streams');
  });

  it('times layers in runs of their own', async () => {
    const { status, answer } = await json<BenchResult>([at('a.engine'), '--layers', ...QUICK]);
    expect(status).toBe(0);
    expect(answer.layers?.runs).toBe(20);
    expect(answer.layers?.layers.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 9);
  });

  it.each<[string, readonly string[], number, string, NodeJS.ProcessEnv?]>([
    ['cold starts of a comparison', ['compare', 'a.engine', 'b.engine', '--cold'], 2, 'TF_USAGE'],
    ['cold starts by trtexec', ['a.engine', '--with', 'trtexec', '--cold'], 2, 'TF_USAGE'],
    ['cold starts of a model', ['m.onnx', '--cold'], 2, 'TF_USAGE'],
    ['cold starts on ONNX Runtime', ['model', 'm.onnx', '--cold'], 2, 'TF_USAGE'],
    ['a text', ['text.engine'], 2, 'TF_PLAN_INVALID'],
    ['a file that is not there', ['none.engine'], 2, 'TF_FILE_NOT_FOUND'],
    ['a batch no profile takes', ['a.engine', '--batch', '65'], 2, 'TF_PROFILE_MISFIT'],
    ['an unknown input', ['a.engine', '--shapes', 'z:1'], 2, 'TF_SESSION_INPUT'],
    ['a machine without GPU', ['a.engine'], 3, 'TF_GPU_UNAVAILABLE', { FAKE_GPU: 'none' }],
    [
      'an input file that is not there, even without GPU',
      ['a.engine', '--inputs', 'x=@none.npy'],
      2,
      'TF_FILE_NOT_FOUND',
      { FAKE_GPU: 'none' },
    ],
    [
      'an input given twice, even without GPU',
      ['a.engine', '--inputs', `x=@${at('x.npy')}`, '--inputs', `x=@${at('x.npy')}`],
      2,
      'TF_USAGE',
      { FAKE_GPU: 'none' },
    ],
    [
      'a batch that no profile of the passport takes, even without GPU',
      ['stated.engine', '--batch', '99'],
      2,
      'TF_PROFILE_MISFIT',
      { FAKE_GPU: 'none' },
    ],
    [
      'shapes that no profile of the passport takes, even without GPU',
      ['stated.engine', '--shapes', 'x:99x4'],
      2,
      'TF_PROFILE_MISFIT',
      { FAKE_GPU: 'none' },
    ],
    [
      'a machine without GPU, with a batch that a profile takes',
      ['stated.engine', '--batch', '64'],
      3,
      'TF_GPU_UNAVAILABLE',
      { FAKE_GPU: 'none' },
    ],
    [
      'an engine to compare with that is not there, even without GPU',
      ['compare', 'a.engine', 'none.engine'],
      2,
      'TF_FILE_NOT_FOUND',
      { FAKE_GPU: 'none' },
    ],
    ['a GPU that is not there', ['a.engine', '--device', '7'], 3, 'TF_GPU_UNAVAILABLE'],
    ['memory that runs out', ['a.engine'], 3, 'TF_GPU_MEMORY', { FAKE_CONTEXT: 'memory' }],
    ['a library that aborts', ['a.engine'], 5, 'TF_CHILD_DIED', { FAKE_RUN: 'aborts' }],
    ['an ONNX model', ['m.onnx'], 2, 'TF_USAGE'],
    ['an ONNX model that is not there', ['model', 'm.onnx'], 2, 'TF_FILE_NOT_FOUND'],
    ['a comparison with an ONNX model', ['compare', 'a.engine', 'm.onnx'], 2, 'TF_USAGE'],
    ['a comparison of an ONNX model', ['compare', 'm.onnx', 'a.engine'], 2, 'TF_USAGE'],
    ['trtexec for an ONNX model', ['model', 'm.onnx', '--with', 'trtexec'], 2, 'TF_USAGE'],
    ['--batch beside --shapes', ['a.engine', '--batch', '1', '--shapes', 'x:1x4'], 2, 'TF_USAGE'],
    [
      'a budget of weights that are not streamed',
      ['a.engine', '--weight-budget', '1K'],
      2,
      'TF_OPTION_UNSUPPORTED',
    ],
    [
      'a budget in a comparison with an engine whose weights are not streamed',
      ['compare', 'streamed.engine', 'a.engine', '--weight-budget', '1K'],
      2,
      'TF_OPTION_UNSUPPORTED',
    ],
    ['a budget that is no size', ['streamed.engine', '--weight-budget', 'half'], 2, 'TF_SIZE_INVALID'],
    ['samples of another ending', ['a.engine', '--samples', 'times.csv'], 2, 'TF_USAGE'],
    ['no mode at all', ['compare', 'a.engine', 'a.engine', '--mode', ''], 2, 'TF_USAGE'],
    ['a limit without a comparison', ['a.engine', '--fail-above', '1.02'], 2, 'TF_USAGE'],
    ['a comparison with nothing', ['compare', 'a.engine'], 2, 'TF_USAGE'],
    ['a mode nobody knows', ['compare', 'a.engine', '--mode', 'grph'], 2, 'TF_USAGE'],
  ])('rejects %s by name', async (_, words, status, code, more = {}) => {
    const named = words.map((word) => (/^[\w.]+\.(engine|onnx)$/.test(word) ? at(word) : word));
    const found = await json<object>([...named, ...QUICK], more);
    expect([found.status, found.answer.error?.code]).toEqual([status, code]);
  });
});

describe('trtforge bench compare', () => {
  it('measures in turns at the same shapes and gives ratios with intervals, by its schema', async () => {
    const words = [at('b.engine'), '--rounds', '4', '--duration', '0.4', '--warm-up', '10'];
    const line = ['compare', at('a.engine'), ...words, '--no-data-transfers'];
    const { answer } = await json<BenchComparison>(line);
    expect(benchComparisonSchema.safeParse(answer).error).toBeUndefined();
    expect(answer).toMatchObject({ metric: 'gpuMs', rounds: 4, batch: 2, verdict: 'equal', gate: null });
    expect(answer.ratios.gpuMs.ratio).toBeCloseTo(1, 3);
    expect(answer.ratios.endToEndMs).toBeNull();
  });

  it('times the layers of both, and by ONNX operator, which add up to them', async () => {
    const line = ['compare', at('a.engine'), at('b.engine'), '--rounds', '3', '--layers', ...QUICK];
    const { answer } = await json<BenchComparison>(line);
    expect(answer).not.toHaveProperty('error');
    expect(benchComparisonSchema.safeParse(answer).error).toBeUndefined();
    const { candidate, reference, operators } = answer.layers!;
    for (const [index, times] of [candidate!, reference!].entries()) {
      expect(times.layers.length).toBeGreaterThan(0);
      const sides = operators.map(({ sides: of }) => of[index]!);
      expect(sides.reduce((sum, { ms }) => sum + (ms ?? 0), 0)).toBeCloseTo(times.totalMs, 9);
      expect(sides.reduce((sum, { layers }) => sum + layers, 0)).toBe(times.layers.length);
    }
  });

  it('gives both sides the budget for streamed weights', async () => {
    const words = ['--mode', 'spin-wait', '--weight-budget', '1K', '--rounds', '3'];
    const { answer } = await json<BenchComparison>(['compare', at('streamed.engine'), ...words, ...QUICK]);
    expect(benchComparisonSchema.safeParse(answer).error).toBeUndefined();
    for (const { subject } of [answer.candidate, answer.reference])
      expect(subject).toMatchObject({ weightBudgetAsked: 1024, weightBudgetBytes: 1024 });
  });

  it.each([
    ['0.5', 1, 'fail'],
    ['1.02', 0, 'pass'],
  ] as const)('above %s exits with %i', async (limit, code, outcome) => {
    const words = ['--mode', 'graph', '--rounds', '3', '--duration', '0.3', '--fail-above', limit];
    const line = ['compare', at('a.engine'), ...words, '--no-data-transfers'];
    const { status, answer } = await json<BenchComparison>(line);
    expect([status, answer.gate?.outcome]).toEqual([code, outcome]);
    expect([answer.candidate.mode.graph, answer.reference.mode.graph]).toEqual([false, true]);
  });
});

describe('two benches on one GPU', () => {
  let first: ChildProcess;
  const started = (): Promise<void> =>
    new Promise((resolve) => {
      first.stderr?.on('data', (chunk: Buffer) => {
        if (chunk.toString().includes('measure')) resolve();
      });
    });
  const begin = (seconds: string) => {
    first = spawn(process.execPath, [main, 'bench', at('a.engine'), '--duration', seconds, '--events'], {
      env: { ...environment, FAKE_CLOCK: undefined },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    return started();
  };
  const ended = () => new Promise<number | null>((resolve) => first.once('close', resolve));

  it('the second reports that it is not alone, or waits', async () => {
    await begin('4');
    const end = ended();
    const { answer } = await json<BenchResult>([at('b.engine'), ...QUICK]);
    expect(answer.warnings.join('\n')).toMatch(/Another bench measures on this GPU \(process \d+ on /);
    const { answer: waited } = await json<BenchResult>([at('b.engine'), '--wait', ...QUICK]);
    expect(waited.warnings.join('\n')).not.toContain('Another bench');
    expect(await end).toBe(0);
  });

  it('Ctrl-C ends a bench and its child at once and frees the GPU', async () => {
    await begin('60');
    const end = ended();
    first.kill('SIGINT');
    expect(await end).toBe(4);
    const { answer } = await json<BenchResult>([at('b.engine'), ...QUICK]);
    expect(answer.warnings.join('\n')).not.toContain('Another bench');
    expect(existsSync(at('cache'))).toBe(true);
  });
});
