import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { GpuList, NativeBuildResult } from '../../src/addon/addon.js';
import type { NativeGpuState } from '../../src/addon/native-engine.js';
import { onlyGpu } from '../../src/engines/identity/target.js';
import { FakeBench } from '../fakes/tensorrt/library.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-visible-gpus-'));
let bench: FakeBench;
beforeAll(async () => {
  bench = await FakeBench.sanitized(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const uuids = ['GPU-00112233-4455-6677-8899-aabbccddeeff', 'GPU-01112233-4455-6677-8899-aabbccddeeff'];
const two = { FAKE_GPUS: '2', FAKE_GPU_BYTES: '17179869184,8589934592' };
const seeing = (visible: string | undefined) =>
  visible === undefined ? two : { ...two, CUDA_VISIBLE_DEVICES: visible };

describe('of two GPUs', () => {
  test.each([
    [undefined, [0, 1]],
    ['1', [1]],
    ['1,0', [1, 0]],
    [' 1, 0', [1, 0]],
    ['GPU-01', [1]],
    [`${uuids[1]},${uuids[0]}`, [1, 0]],
    ['0,7,1', [0]],
  ])('CUDA_VISIBLE_DEVICES=%s shows %j, counted anew', (visible, shown) => {
    const { result } = bench.call<GpuList>('gpus', null, seeing(visible));
    expect(
      result?.gpus.map(({ index, name, uuid, memoryBytes }) => [index, name, uuid, memoryBytes]),
    ).toEqual(
      shown.map((gpu, index) => [
        index,
        gpu === 0 ? 'NVIDIA Fake' : 'NVIDIA Fake 1',
        uuids[gpu],
        gpu === 0 ? 2 ** 34 : 2 ** 33,
      ]),
    );
  });

  test.each([undefined, '1', '0', '1,0'])(
    'NVML is asked by UUID, with CUDA_VISIBLE_DEVICES=%s',
    (visible) => {
      const FAKE_NVML = 'temperature@0=40,temperature@1=66,processes@1=4242:1048576';
      const state = (uuid: string | undefined) =>
        bench.call<NativeGpuState>('gpuState', uuid, { ...seeing(visible), FAKE_NVML }).result;
      expect(state(uuids[0])).toMatchObject({ temperatureC: 40, processes: [] });
      expect(state(uuids[1])).toMatchObject({
        temperatureC: 66,
        processes: [{ pid: 4242, usedBytes: 1048576 }],
      });
    },
  );

  test('a slice of the second in MIG mode is found behind its own board', () => {
    const FAKE_NVML = 'handle=slice,temperature@1=66,used@1=5368709120';
    const { result } = bench.call<NativeGpuState>('gpuState', uuids[1], { ...two, FAKE_NVML });
    expect(result).toMatchObject({ temperatureC: 66, memoryUsedBytes: 5 * 2 ** 30 });
  });

  test.each([
    [{}, 0, 'NVIDIA Fake'],
    [{}, 1, 'NVIDIA Fake 1'],
    [{ CUDA_VISIBLE_DEVICES: '1,0' }, 0, 'NVIDIA Fake 1'],
    [{ CUDA_VISIBLE_DEVICES: '1,0' }, 1, 'NVIDIA Fake'],
    [{ CUDA_VISIBLE_DEVICES: uuids[1] }, 0, 'NVIDIA Fake 1'],
  ])('a child that is to see one GPU, of %j number %i, builds on %s', (visible, device, name) => {
    const { CUDA_VISIBLE_DEVICES = '' } = onlyGpu(visible, device);
    const environment = { ...two, CUDA_VISIBLE_DEVICES };
    const { calls, result } = bench.call<NativeBuildResult>('build', bench.buildRequest('10'), environment);
    expect(result?.bytes).toBe(64);
    expect(calls.filter((call) => call.startsWith('builds on'))).toEqual([`builds on ${name}`]);
  });

  test('a child that is to see one that its parent does not see builds on none', () => {
    const { CUDA_VISIBLE_DEVICES = '' } = onlyGpu({ CUDA_VISIBLE_DEVICES: '1' }, 1);
    const environment = { ...two, CUDA_VISIBLE_DEVICES };
    const { error } = bench.call<NativeBuildResult>('build', bench.buildRequest('10'), environment);
    expect(error?.code).toBe('TF_BUILDER_UNAVAILABLE');
  });
});
