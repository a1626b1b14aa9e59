import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { NativeRuntime } from '../../src/addon/native-engine.js';
import { type NetworkPlan, planBytes } from '../fakes/tensorrt/engine.js';
import { type Fake, FakeBench, openRequest, sanitizerLibrary } from '../fakes/tensorrt/library.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-measure-'));
const driver = fileURLToPath(new URL('../fakes/tensorrt/drive-measure.mjs', import.meta.url));
const generations: readonly Fake[] = ['8', '10', '11'];
let bench: FakeBench;

beforeAll(async () => {
  bench = await FakeBench.sanitized(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Columns {
  readonly streams: readonly number[];
  readonly inputStart: readonly number[];
  readonly inputEnd: readonly number[];
  readonly computeStart: readonly number[];
  readonly computeEnd: readonly number[];
  readonly outputStart: readonly number[];
  readonly outputEnd: readonly number[];
  readonly enqueueMs: readonly number[];
}
interface Measured extends Columns {
  readonly wallMs: number;
  readonly warmUpInferences: number;
  readonly graph: boolean;
  readonly graphRefusal: string | null;
  readonly gpuMemory: { readonly peakUsed: number; readonly total: number };
}
interface Answer {
  readonly result?: Measured;
  readonly error?: { readonly code: string; readonly message: string };
  readonly calls: readonly string[];
}

const mode: Omit<Parameters<NativeRuntime['measure']>[1], 'inputs'> = {
  profile: 0,
  shapes: [{ name: 'x', shape: [2, 64], values: null }],
  streams: 1,
  warmUpMs: 0,
  durationMs: 0,
  iterations: 20,
  transfers: false,
  graph: false,
  spinWait: true,
  idleMs: 0,
};

interface Case {
  readonly fake?: Fake;
  readonly plan?: NetworkPlan;
  readonly mode?: Partial<typeof mode> & { readonly threads?: boolean };
  /** Zeros to give as inputs. */
  readonly inputs?: readonly { readonly name: string; readonly bytes: number }[];
  /** `FAKE_CLOCK: 'paper'` makes times that are the same on every machine. */
  readonly environment?: Record<string, string>;
  readonly cancelAfterMs?: number;
  readonly exitAfterMs?: number;
}

/** Opens a fake engine (y = 2x + 1 unless the plan says otherwise) and measures on it, in a process of its own. */
function drive({
  fake = '10',
  plan = { kind: 'affine' },
  inputs = [{ name: 'x', bytes: 512 }],
  ...rest
}: Case): SpawnSyncReturns<string> {
  const planPath = join(folder, 'plan');
  const callsFile = bench.path('calls');
  writeFileSync(planPath, planBytes(fake, plan));
  rmSync(callsFile, { force: true });
  const request = {
    open: openRequest(bench.library(fake), planPath),
    measure: { ...mode, ...rest.mode, inputs },
    cancelAfterMs: rest.cancelAfterMs,
    exitAfterMs: rest.exitAfterMs,
  };
  const sanitizer = sanitizerLibrary();
  const done = spawnSync(process.execPath, [driver, bench.addon, JSON.stringify(request)], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    // A child that hangs holds this process up, which the runner's limit cannot end.
    timeout: 240_000,
    killSignal: 'SIGKILL',
    env: {
      ...bench.environment(),
      ASAN_OPTIONS: 'detect_leaks=0:abort_on_error=1:alloc_dealloc_mismatch=1',
      ...(sanitizer === undefined ? {} : { LD_PRELOAD: sanitizer }),
      ...rest.environment,
    },
  });
  expect(done.signal, done.stderr).toBeNull();
  return done;
}

function measure(wanted: Case): Answer {
  const done = drive(wanted);
  const callsFile = bench.path('calls');
  const calls = existsSync(callsFile) ? readFileSync(callsFile, 'utf8').trim().split('\n') : [];
  return { ...(JSON.parse(done.stdout) as Omit<Answer, 'calls'>), calls };
}

function measured(wanted: Case): Measured & Pick<Answer, 'calls'> {
  const { result, error, calls } = measure(wanted);
  if (result === undefined) throw new Error(`${error?.code}: ${error?.message}`);
  return { ...result, calls };
}

const differences = (ends: readonly number[], starts: readonly number[]): number[] =>
  ends.map((end, at) => end - (starts[at] ?? Number.NaN));
function expectEach(ms: number, times: readonly number[]): void {
  for (const time of times) expect(time).toBeCloseTo(ms, 5);
}
/** From the beginning of an inference's compute to that of the next. */
const steps = ({ computeStart }: Columns): number[] => differences(computeStart.slice(1), computeStart);

function expectOrdered(columns: Columns): void {
  const { inputStart, inputEnd, computeStart, computeEnd, outputStart, outputEnd, enqueueMs } = columns;
  const moments = [inputStart, inputEnd, computeStart, computeEnd, outputStart, outputEnd];
  const { length } = columns.streams;
  for (const column of [...moments, enqueueMs]) expect(column).toHaveLength(length);
  for (let at = 0; at < length; at += 1) {
    const times = moments.map((column) => column[at] ?? Number.NaN);
    for (const [earlier, time] of times.slice(0, -1).entries())
      expect(times[earlier + 1] ?? Number.NaN).toBeGreaterThanOrEqual(time - 1e-6);
    expect(enqueueMs[at]).toBeGreaterThanOrEqual(0);
  }
  expect(inputStart[0]).toBe(0);
  expect(inputStart.toSorted((one, other) => one - other)).toEqual(inputStart);
}

/** Objects the fake handed out and never got back. */
function unreturned(calls: readonly string[]): string[] {
  const open: string[] = [];
  for (const call of calls) {
    const [verb, name] = call.split(' ');
    if (verb === 'create' && name !== undefined) open.push(name);
    if (verb === 'destroy' && name !== undefined) open.splice(open.lastIndexOf(name), 1);
  }
  return open;
}

describe.each(generations)('measuring with a library of generation %s', (fake) => {
  test.each([
    { transfers: false, graph: false },
    { transfers: false, graph: true },
    { transfers: true, graph: false },
    { transfers: true, graph: true },
  ])('gives the GPU’s own times: %o', (how) => {
    const environment = { FAKE_CLOCK: 'paper', FAKE_COMPUTE_US: '800', FAKE_COPY_US: '300' };
    const result = measured({ fake, mode: how, environment });
    expectOrdered(result);
    expect(result.streams.length).toBeGreaterThanOrEqual(20);
    expectEach(0.8, differences(result.computeEnd, result.computeStart));
    const copyMs = how.transfers ? 0.3 : 0;
    expectEach(copyMs, differences(result.inputEnd, result.inputStart));
    expectEach(copyMs, differences(result.outputEnd, result.outputStart));
    expect(result).toMatchObject({ graph: how.graph, graphRefusal: null });
    expect(unreturned(result.calls)).toEqual([]);
  });
});

test('copies overlap the compute of the inference before', () => {
  const environment = { FAKE_CLOCK: 'paper', FAKE_COMPUTE_US: '3000', FAKE_COPY_US: '2000' };
  const result = measured({ mode: { transfers: true, graph: true, iterations: 40 }, environment });
  const { inputStart, computeEnd } = result;
  for (const [at, end] of computeEnd.slice(0, -1).entries()) expect(inputStart[at + 1]).toBeLessThan(end);
  // Two under way at a time are done in 7 ms, as is a last one alone; one after another would take 14.
  expect(result.wallMs).toBeCloseTo(Math.ceil(computeEnd.length / 2) * 7, 5);
});

test('times keep their resolution from the first inference to the last', () => {
  const result = measured({
    mode: { iterations: 400 },
    environment: { FAKE_CLOCK: 'paper', FAKE_COMPUTE_US: '333' },
  });
  // A single-precision time since the start would be off by microseconds.
  for (const time of differences(result.computeEnd, result.computeStart)) expect(time).toBeCloseTo(0.333, 6);
  for (const step of steps(result)) expect(step).toBeCloseTo(0.333, 6);
});

test('the warm-up is run and not counted, and the duration is measured after it', () => {
  const result = measured({
    mode: { warmUpMs: 60, durationMs: 90, iterations: 1 },
    environment: { FAKE_CLOCK: 'paper', FAKE_COMPUTE_US: '1000' },
  });
  expect(result.warmUpInferences).toBe(60);
  // Those that begin 0 to 90 ms after the first, and the one that is under way by then.
  expect(result.streams).toHaveLength(92);
  expect(result.wallMs).toBeCloseTo(92, 5);
  expectOrdered(result);
});

test.each([
  ['at the end of the warm-up', 40],
  ['in the measurement', 100],
])('a host that is delayed %s measures for as long as it should', (_, launch) => {
  const result = measured({
    mode: { warmUpMs: 60, durationMs: 90, iterations: 1 },
    environment: { FAKE_CLOCK: 'paper', FAKE_COMPUTE_US: '1000', FAKE_HELD_UP: `${launch}:70000` },
  });
  expect(result.wallMs).toBeGreaterThanOrEqual(90);
  expect(result.wallMs).toBe(Math.max(...result.outputEnd));
});

test('iterations are a minimum that outlasts the duration', () => {
  const result = measured({
    mode: { durationMs: 1, iterations: 50 },
    environment: { FAKE_COMPUTE_US: '500' },
  });
  expect(result.streams.length).toBeGreaterThanOrEqual(50);
  expect(result.streams.length).toBeLessThanOrEqual(53);
});

test.each([[false], [true]])('several streams each measure their share (a thread each: %s)', (threads) => {
  const result = measured({
    mode: { streams: 3, threads, transfers: true, iterations: 15 },
    environment: { FAKE_COMPUTE_US: '500', FAKE_COPY_US: '100' },
  });
  expectOrdered(result);
  for (const stream of [0, 1, 2])
    expect(result.streams.filter((one) => one === stream).length).toBeGreaterThanOrEqual(15);
  expect(result.calls.filter((call) => call === 'create IExecutionContext')).toHaveLength(3);
  expect(unreturned(result.calls)).toEqual([]);
});

test('streams run beside each other', () => {
  const result = measured({
    mode: { streams: 2, iterations: 30 },
    environment: { FAKE_CLOCK: 'paper', FAKE_COMPUTE_US: '2000' },
  });
  // One of each stream in the time of one.
  expectEach(2, differences(result.computeEnd, result.computeStart));
  expect(result.wallMs).toBeCloseTo((result.streams.length / 2) * 2, 5);
});

test('idle time lies between inferences', () => {
  const result = measured({ mode: { idleMs: 5, iterations: 8 }, environment: { FAKE_COMPUTE_US: '100' } });
  // The second is under way before the first is measured.
  for (const step of steps(result).slice(1)) expect(step).toBeGreaterThanOrEqual(4.999);
});

test.each([
  [true, 'spins'],
  [false, 'blocks'],
])('with spin wait %s a thread that waits %s', (spinWait, how) => {
  const { calls } = measured({ mode: { spinWait, iterations: 3 } });
  expect(calls.filter((call) => call === `event that ${how}`).length).toBeGreaterThanOrEqual(6);
  expect(calls.filter((call) => call === 'event that spins').length > 0).toBe(spinWait);
});

test('an engine that cannot be captured is measured without a graph, and the reason is reported', () => {
  const result = measured({ mode: { graph: true }, environment: { FAKE_CAPTURE: 'refused' } });
  expect(result.graph).toBe(false);
  expect(result.graphRefusal).toContain('operation not permitted when stream is capturing');
  expect(result.streams.length).toBeGreaterThanOrEqual(20);
});

test('outputs whose shape depends on the data are measured too', () => {
  const result = measured({
    plan: { kind: 'nonzero' },
    mode: { shapes: [{ name: 'x', shape: [8], values: null }], transfers: true, graph: true },
    inputs: [{ name: 'x', bytes: 32 }],
  });
  expect(result.graph).toBe(false);
  expect(result.streams.length).toBeGreaterThanOrEqual(20);
  expectOrdered(result);
});

test('shape tensors take their values', () => {
  const shapes = [
    { name: 'x', shape: [2, 64], values: null },
    { name: 's', shape: [2], values: [3, 5] },
  ];
  const result = measured({ plan: { kind: 'shape' }, mode: { shapes, transfers: true } });
  expectOrdered(result);
});

test('memory at its peak counts the contexts and buffers', () => {
  const { gpuMemory } = measured({ plan: { kind: 'affine', memory: 2 ** 28 }, mode: { streams: 2 } });
  expect(gpuMemory.peakUsed).toBeGreaterThanOrEqual(2 ** 30 + 2 * 2 ** 28 + 2 * 1024);
  expect(gpuMemory.total).toBe(161061273600);
});

test.each([
  ['no bytes for an input', { inputs: [] }, 'TF_SESSION_INPUT', 'no bytes for the input'],
  [
    'bytes of another length',
    { inputs: [{ name: 'x', bytes: 511 }] },
    'TF_SESSION_INPUT',
    'takes 512 bytes, and 511',
  ],
  [
    'a shape outside the profile',
    { mode: { shapes: [{ name: 'x', shape: [65, 64], values: null }] } },
    'TF_SESSION_INPUT',
    '65x64',
  ],
  [
    'an input the engine lacks',
    { mode: { shapes: [{ name: 'z', shape: [1], values: null }] } },
    'TF_SESSION_INPUT',
    'no tensor z',
  ],
  ['a profile the engine lacks', { mode: { profile: 3 } }, 'TF_SESSION_INPUT', 'no profile 3'],
  [
    'a context that takes more memory than there is',
    { plan: { kind: 'affine', memory: 900_000_000_000 } },
    'TF_GPU_MEMORY',
    'activation memory',
  ],
  [
    'an engine that fails at its first run',
    { environment: { FAKE_ENQUEUE: '1' } },
    'TF_RUN_FAILED',
    'illegal memory access',
  ],
  [
    'an engine that fails in the middle',
    { environment: { FAKE_ENQUEUE: '9' } },
    'TF_RUN_FAILED',
    'illegal memory access',
  ],
  [
    'a GPU that has gone astray',
    { environment: { FAKE_FAULT: '1' } },
    'TF_RUN_FAILED',
    'an illegal memory access was encountered (CUDA error 700)',
  ],
  [
    'memory that cannot be pinned',
    { mode: { transfers: true }, environment: { FAKE_PINNED: 'none' } },
    'TF_GPU_MEMORY',
    'cannot pin 512 B of host memory',
  ],
  [
    'one of several threads whose engine fails',
    { mode: { streams: 3, threads: true }, environment: { FAKE_ENQUEUE: '20', FAKE_COMPUTE_US: '300' } },
    'TF_RUN_FAILED',
    'illegal memory access',
  ],
] as const)('%s is an error, and nothing is left behind', (_, wanted, code, message) => {
  const { error, calls } = measure(wanted as Case);
  expect(error?.code).toBe(code);
  expect(error?.message).toContain(message);
  expect(unreturned(calls)).toEqual([]);
});

test('8.6 has one context for each profile of open shapes, and reports it to a second stream', () => {
  const { error, calls } = measure({ fake: '8', mode: { streams: 2 } });
  expect(error?.code).toBe('TF_CONTEXT_FAILED');
  expect(error?.message).toContain('has been chosen by another IExecutionContext');
  expect(unreturned(calls)).toEqual([]);
  expect(measured({ fake: '8', plan: { kind: 'affine', rows: 2 }, mode: { streams: 2 } }).streams).toContain(
    1,
  );
});

test.each([
  ['while it runs', { durationMs: 1e9 }],
  ['while it warms up', { warmUpMs: 1e9 }],
  ['in a pause', { idleMs: 1e9, durationMs: 1e9 }],
  ['with a thread for each stream', { streams: 2, threads: true, durationMs: 1e9 }],
])('a measurement is cancelled %s', (_, how) => {
  const { error, calls } = measure({
    mode: how,
    environment: { FAKE_COMPUTE_US: '1000' },
    cancelAfterMs: 150,
  });
  expect(error?.code).toBe('TF_CANCELLED');
  expect(unreturned(calls)).toEqual([]);
});

test.each([[false], [true]])(
  'a process that ends while it measures does not wait for it (a thread each: %s)',
  (threads) => {
    const how = { streams: 2, threads, transfers: true, durationMs: 1e9 };
    const { status, stderr } = drive({
      mode: how,
      environment: { FAKE_COMPUTE_US: '1000' },
      exitAfterMs: 150,
    });
    expect(status, stderr).toBe(3);
  },
);
