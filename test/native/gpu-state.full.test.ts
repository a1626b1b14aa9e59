import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { NativeGpuState } from '../../src/addon/native-engine.js';
import { FakeBench } from '../fakes/tensorrt/library.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-gpu-state-'));
const uuid = 'GPU-00112233-4455-6677-8899-aabbccddeeff';
let bench: FakeBench;

/** libnvidia-ml as drivers of another age have it, in a folder for LD_LIBRARY_PATH. */
function nvmlOfAge(api: number): string {
  const output = join(folder, `nvml-${api}`, 'libnvidia-ml.so.1');
  mkdirSync(dirname(output), { recursive: true });
  const source = fileURLToPath(new URL('../fakes/tensorrt/nvml.cpp', import.meta.url));
  const args = ['-std=c++17', '-fPIC', '-shared', '-O1', `-DFAKE_NVML_API=${api}`, source, '-o', output];
  const done = spawnSync(process.env.CXX ?? 'g++', args, { encoding: 'utf8' });
  if (done.status !== 0) throw new Error(done.stderr);
  return dirname(output);
}

beforeAll(async () => {
  bench = await FakeBench.sanitized(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ask = (environment: Record<string, string> = {}, of: unknown = uuid) => {
  const answer = bench.call<NativeGpuState | null>('gpuState', of, environment);
  expect(answer.signal).toBeNull();
  return answer;
};

const calm: NativeGpuState = {
  smClockMHz: 1980,
  memoryClockMHz: 3201,
  maxSmClockMHz: 1980,
  maxMemoryClockMHz: 3201,
  temperatureC: 41,
  slowdownTemperatureC: 87,
  powerW: 121.5,
  powerLimitW: 700,
  throttleReasons: 0,
  utilizationPercent: 0,
  memoryUsedBytes: 2 ** 30,
  memoryTotalBytes: 150 * 2 ** 30,
  persistenceMode: true,
  migMode: false,
  eccErrorsUncorrected: 0,
  processes: [],
};

test('a calm GPU is reported in full', () => {
  expect(ask().result).toEqual(calm);
});

test('a hot, throttled and shared one too', () => {
  const FAKE_NVML =
    'sm=1215,temperature=88,power=699900,reasons=0x60,utilization=97,ecc=2,persistence=0,processes=4242:1048576+77:-';
  expect(ask({ FAKE_NVML }).result).toEqual({
    ...calm,
    smClockMHz: 1215,
    temperatureC: 88,
    powerW: 699.9,
    throttleReasons: 0x60,
    utilizationPercent: 97,
    eccErrorsUncorrected: 2,
    persistenceMode: false,
    processes: [
      { pid: 4242, usedBytes: 1048576 },
      { pid: 77, usedBytes: null },
    ],
  });
});

test.each([
  ['sm', 'smClockMHz'],
  ['memory', 'memoryClockMHz'],
  ['max-sm', 'maxSmClockMHz'],
  ['max-memory', 'maxMemoryClockMHz'],
  ['temperature', 'temperatureC'],
  ['slowdown', 'slowdownTemperatureC'],
  ['power', 'powerW'],
  ['power-limit', 'powerLimitW'],
  ['reasons', 'throttleReasons'],
  ['utilization', 'utilizationPercent'],
  ['persistence', 'persistenceMode'],
  ['mig', 'migMode'],
  ['ecc', 'eccErrorsUncorrected'],
  ['processes', 'processes'],
])('a board without %s answers null for %s and the rest as it is', (value, field) => {
  expect(ask({ FAKE_NVML: `${value}=-` }).result).toEqual({ ...calm, [field]: null });
});

test('memory that the newer function does not report comes from the older one, with what the driver keeps', () => {
  const { result } = ask({ FAKE_NVML: 'used=-' });
  expect(result).toEqual({ ...calm, memoryUsedBytes: 1.5 * 2 ** 30 });
});

test('more processes than were expected are all listed', () => {
  const pids = Array.from({ length: 100 }, (_, index) => index + 1);
  const { result } = ask({
    FAKE_NVML: `processes=${pids.map((pid) => `${pid}:${pid * 1024}`).join('+')}`,
  });
  expect(result?.processes).toEqual(pids.map((pid) => ({ pid, usedBytes: pid * 1024 })));
});

describe.each([
  ['before the entries had instances', 1],
  ['of driver 520', 2],
  ['of driver 535, whose entries are longer', 535],
])('an NVML %s', (_, api) => {
  const processes = [
    { pid: 4242, usedBytes: 1048576 },
    { pid: 77, usedBytes: 2097152 },
    { pid: 78, usedBytes: null },
  ];

  test('lists the same processes and throttle reasons', () => {
    const { result } = ask({
      FAKE_NVML: 'reasons=0x4,processes=4242:1048576+77:2097152+78:-',
      LD_LIBRARY_PATH: `${nvmlOfAge(api)}:${bench.drivers}`,
    });
    expect(result).toEqual({ ...calm, throttleReasons: 4, memoryUsedBytes: 1.5 * 2 ** 30, processes });
  });
});

test('entries of the usual length are read right on a 535 driver that has them', () => {
  const { result } = ask({ FAKE_NVML: 'driver=535.230.02,processes=1:10+2:20' });
  expect(result?.processes).toEqual([
    { pid: 1, usedBytes: 10 },
    { pid: 2, usedBytes: 20 },
  ]);
});

test('a slice of a GPU in MIG mode shows its own memory and the board’s clocks', () => {
  const { result } = ask({ FAKE_NVML: 'handle=slice,mig=1,used=5368709120' });
  expect(result).toEqual({ ...calm, migMode: true, memoryUsedBytes: 5 * 2 ** 30 });
});

test.each([
  ['NVML does not know the GPU', {}, 'GPU-ffffffff-4455-6677-8899-aabbccddeeff'],
  ['the name is no uuid', {}, ''],
  ['NVML does not start', { FAKE_NVML: 'init=9' }, uuid],
  ['there is no NVML', { LD_LIBRARY_PATH: '/nowhere' }, uuid],
])('null where %s', (_, environment, of) => {
  const { result, error } = ask(environment as Record<string, string>, of);
  expect(error).toBeUndefined();
  expect(result).toBeNull();
});

test('a uuid that is not text is an error, not a crash', () => {
  expect(ask({}, 17).error?.code).toBe('TF_INTERNAL');
});
