import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { visibleGpus } from '../../src/addon/gpus.js';
import { forge } from '../../src/forge/forge.js';
import type { ForgeOptions } from '../../src/forge/options.js';
import { benchEngine } from '../../src/quality/bench/bench-engine.js';
import { verifyModel } from '../../src/quality/verify/verify.js';
import type { ForgeResult } from '../../src/report/forge-result.js';
import { countingBuilder } from '../fakes/builder.js';
import { benchResult } from '../fakes/deepstream.js';
import { noDevices, noGpus, twoGpus } from '../fakes/gpus.js';
import { fakeTrtexec } from '../fakes/trtexec.js';
import { sampleResult } from '../report/sample.js';
import { sampleToolchain, writeSampleModel } from '../support/sample-engine.js';

vi.mock(import('../../src/quality/bench/bench-engine.js'), async (real) => ({
  ...(await real()),
  benchEngine: vi.fn(),
}));
vi.mock(import('../../src/quality/verify/verify.js'), async (real) => ({
  ...(await real()),
  verifyModel: vi.fn(),
}));
vi.mock(import('../../src/addon/gpus.js'), async (real) => ({
  ...(await real()),
  visibleGpus: vi.fn(),
}));

const folder = mkdtempSync(join(tmpdir(), 'trtforge-forge-gpu-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const seen = join(folder, 'gpus');
let model: string;
beforeAll(async () => {
  model = await writeSampleModel(join(folder, 'sample.onnx'));
});
beforeEach(() => {
  vi.mocked(visibleGpus).mockReturnValue(twoGpus);
  vi.mocked(verifyModel).mockReset().mockResolvedValue(sampleResult().verification!);
  vi.mocked(benchEngine).mockReset().mockResolvedValue(benchResult(8, 1000).result);
});

let made = 0;
function forged(wishes: Partial<ForgeOptions>): Promise<ForgeResult> {
  const { build } = countingBuilder();
  const isRtx = wishes.toolchain === sampleToolchain;
  return forge(
    {
      model,
      profiles: ['x:1x64/8x64/32x64'],
      store: false,
      remote: false,
      runRoot: join(folder, `run${made++}`),
      ...wishes,
    },
    {
      environment: { ...process.env, XDG_CACHE_HOME: join(folder, 'cache'), CUDA_VISIBLE_DEVICES: '6,7' },
      ...(isRtx ? { build } : {}),
    },
  );
}

const tensorrt = {
  ...sampleToolchain,
  product: 'tensorrt',
  version: '10.6.0.26',
  trtexec: fakeTrtexec(folder, { version: '10.6', gpuFile: seen }),
} as const;
const onTensorrt = { toolchain: tensorrt, builder: 'trtexec' } as const;
const onRtx = { toolchain: sampleToolchain, target: 'tensorrt-rtx:sm_89' } as const;

const gpuRow = ({ environment }: ForgeResult) => environment.find(({ name }) => name === 'GPU')?.text;
const phase = ({ phases }: ForgeResult, name: string) => phases.find((each) => each.name === name);
/** Where the engine was verified and measured. */
const ranOn = () =>
  [vi.mocked(verifyModel).mock.lastCall, vi.mocked(benchEngine).mock.lastCall].map(
    (call) => call?.[0].device,
  );

describe('forge on a machine with two unlike GPUs', () => {
  test('builds, verifies and measures on the one that was chosen, and the report names it', async () => {
    const result = await forged({ ...onTensorrt, device: 1 });
    expect(result.error).toBeNull();
    expect(result.build?.passport.identity.document.target.computeCapabilities).toEqual([90]);
    expect(readFileSync(seen, 'utf8')).toBe('7 -\n');
    expect(ranOn()).toEqual([1, 1]);
    expect(gpuRow(result)).toBe('NVIDIA H200 (sm_90), number 1');
    expect(readFileSync(result.report!, 'utf8')).toContain('NVIDIA H200 (sm_90), number 1');
  });

  test('does it all on the first where none was chosen, and reports no other', async () => {
    const result = await forged(onTensorrt);
    expect(result.build?.passport.identity.document.target.computeCapabilities).toEqual([89]);
    expect(ranOn()).toEqual([undefined, 0]);
    expect(gpuRow(result)).toBe('NVIDIA L4 (sm_89)');
  });

  test('an engine of tensorrt-rtx runs on the one that was chosen, or on none', async () => {
    expect((await forged({ ...onRtx, device: 0 })).error).toBeNull();
    expect(ranOn()).toEqual([0, 0]);
    const other = await forged({ ...onRtx, device: 1 });
    for (const name of ['verify engine', 'bench'])
      expect(phase(other, name)).toMatchObject({
        status: 'skipped',
        detail: 'the engine serves sm_89 and GPU 1 is NVIDIA H200, sm_90',
      });
  });

  test.each([
    ['TensorRT', onTensorrt, twoGpus, 2, 'there is no GPU 2 here: 0 is NVIDIA L4, 1 is NVIDIA H200'],
    ['tensorrt-rtx', onRtx, twoGpus, 2, 'there is no GPU 2 here: 0 is NVIDIA L4, 1 is NVIDIA H200'],
    ['tensorrt-rtx without any', onRtx, noGpus, 1, 'this machine shows none: There is no driver'],
  ])('one that is not there stops it before anything is converted: %s', async (_, on, list, device, why) => {
    vi.mocked(visibleGpus).mockReturnValue(list);
    const result = await forged({ ...on, device, precision: 'fp16' });
    expect(result).toMatchObject({
      exitCode: 3,
      error: {
        phase: 'resolve',
        code: 'TF_GPU_UNAVAILABLE',
        message: `Building and running an engine needs an NVIDIA GPU, and ${why}.`,
      },
    });
    expect(phase(result, 'convert')?.status).toBe('not-reached');
  });

  test('the first of a machine without any is no choice for tensorrt-rtx', async () => {
    vi.mocked(visibleGpus).mockReturnValue(noGpus);
    const result = await forged({ ...onRtx, device: 0 });
    expect([result.error, gpuRow(result)]).toEqual([null, 'none: There is no driver']);
    expect(phase(result, 'bench')?.detail).toContain('no usable NVIDIA GPU');
  });

  test.each(noDevices.filter((device) => device !== null))('%s is no GPU', async (device) => {
    const runRoot = join(folder, 'never');
    await expect(forged({ ...onRtx, device, runRoot })).rejects.toMatchObject({ code: 'TF_USAGE' });
    expect(existsSync(runRoot)).toBe(false);
  });
});
