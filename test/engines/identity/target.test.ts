import { describe, expect, test } from 'vitest';
import { describeComputeCapability } from '../../../src/behaviour/facts.js';
import {
  type BuildMachine,
  isOfProduct,
  type Platform,
  parseGpu,
  parseTarget,
  parseToolchain,
  platformFaults,
  platformFor,
  resolveTarget,
  targetText,
  thisPlatform,
} from '../../../src/engines/identity/target.js';
import { randomStream } from '../../../src/formats/tensor/random.js';
import { refusal } from '../../support/refusal.js';
import { runs } from '../../support/runs.js';

const otherArch = thisPlatform.arch === 'x86_64' ? 'aarch64' : 'x86_64';

describe('a target', () => {
  test.each([
    ['tensorrt-rtx', 'tensorrt-rtx', null],
    ['tensorrt-rtx:sm_89', 'tensorrt-rtx', [89]],
    ['tensorrt-rtx:sm_120,sm_89,sm_89', 'tensorrt-rtx', [89, 120]],
    ['tensorrt-rtx:8.9,12.0', 'tensorrt-rtx', [89, 120]],
    ['tensorrt-rtx:sm75', 'tensorrt-rtx', [75]],
    ['tensorrt', 'tensorrt', null],
    ['tensorrt:sm_90', 'tensorrt', [90]],
    [' tensorrt:90 ', 'tensorrt', [90]],
  ])('%s is read', (text, product, computeCapabilities) => {
    expect(parseTarget(text)).toEqual({ product, computeCapabilities });
  });

  test.each([
    ['tensorrt@10.13.3.9:sm_90', 'tensorrt', '10.13.3.9', null],
    ['tensorrt@10.13.3.9+cuda12.9:sm_90', 'tensorrt', '10.13.3.9', 12],
    ['tensorrt-rtx@1.7.1.116:sm_89', 'tensorrt-rtx', '1.7.1.116', null],
  ])('%s is that of another machine', (text, product, version, cudaMajor) => {
    expect(parseTarget(text)).toMatchObject({ product, named: { version, cudaMajor } });
  });

  test.each([
    '',
    'tensorrt@10.13:sm_90',
    'tensorrt@latest:sm_90',
    'tensorrt:sm_90@10.13.3.9',
    'rtx',
    'tensorrt-rtx:',
    'tensorrt-rtx:ada',
    'tensorrt:sm_',
    'tensorrt:sm_9',
    'TensorRT',
    'tensorrt:sm_90,',
    'tensorrt:sm_90:',
    'tensorrt:sm_90:aarch64',
    'tensorrt:sm_90:linux-arm64',
    'tensorrt:linux-aarch64:sm_90',
    'tensorrt:sm_90:linux-aarch64:linux-aarch64',
  ])('"%s" is no target', (text) => {
    expect(refusal(() => parseTarget(text))).toMatchObject({ code: 'TF_USAGE' });
  });

  test.each([
    ['rtx4090', 'tensorrt-rtx:sm_89'],
    ['tensort', 'tensorrt'],
    ['tensorrtrtx:sm_120', 'tensorrt-rtx:sm_120'],
  ])('%s: the remedy has the target that is meant, %s', (text, meant) => {
    const { remedy } = refusal(() => parseTarget(text));
    const [, named = ''] = /"(.*?)"/.exec(remedy) ?? [];
    expect(named).toBe(meant);
    expect(targetText(parseTarget(named))).toBe(meant);
  });

  test('of TensorRT has one GPU', () => {
    const error = refusal(() => parseTarget('tensorrt:sm_86,sm_89'));
    expect(error.code).toBe('TF_TARGET_UNSUPPORTED');
  });

  test.each([
    ['tensorrt:sm_130', [130]],
    ['tensorrt-rtx:RTX 4090,A10G', [86, 89]],
    ['tensorrt@10.3.0.30:Jetson AGX Orin', [87]],
    ['tensorrt:NVIDIA GB10', [121]],
    ['tensorrt:NVIDIA Thor', [110]],
  ])('%s has its GPUs by number or name', (text, computeCapabilities) => {
    expect(parseTarget(text)).toMatchObject({ computeCapabilities });
  });

  test.each([
    'tensorrt-rtx:sm_89,sm_120',
    'tensorrt:sm_90',
    'tensorrt-rtx',
    'tensorrt@10.13.3.9+cuda12:sm_90',
    'tensorrt@10.3.0.30:sm_87',
    'tensorrt:sm_90:linux-aarch64',
    'tensorrt:sm_89:windows-x86_64',
    `tensorrt-rtx:sm_121:linux-${otherArch}`,
    `tensorrt-rtx:linux-${otherArch}`,
  ])('%s is written as it is read', (text) => {
    expect(targetText(parseTarget(text))).toBe(text);
  });

  test.each([
    ['tensorrt@10.3.0.30:sm_87:linux-aarch64', 'tensorrt@10.3.0.30:sm_87'],
    [`tensorrt-rtx:sm_89:linux-${thisPlatform.arch}`, 'tensorrt-rtx:sm_89'],
  ])('%s is written without the platform that it has anyway, as %s', (text, short) => {
    expect(targetText(parseTarget(text))).toBe(short);
  });

  test('is read and written as the same, or rejected, whatever its parts', () => {
    const parts = ['tensorrt', 'tensorrt-rtx', '@', '10.3.0.30', '+cuda12', ':', ':', ',', 'sm_87', 'GH200'];
    const more = ['RTX 4090', '12.1', 'linux', 'windows', '-', '-aarch64', '-x86_64', ':linux-aarch64', ' '];
    const random = randomStream(7);
    const all = [...parts, ...more];
    let read = 0;
    for (let run = 0; run < runs(40_000); run += 1) {
      const length = random.integer(1, 6);
      const picked = Array.from({ length }, () => all[random.integer(0, all.length - 1)]);
      const text = (run % 2 === 0 ? ['tensorrt', ...picked] : picked).join('');
      let target: ReturnType<typeof parseTarget>;
      try {
        target = parseTarget(text);
      } catch (error) {
        expect(['TF_USAGE', 'TF_TARGET_UNSUPPORTED'], text).toContain((error as { code: unknown }).code);
        continue;
      }
      read += 1;
      const again = parseTarget(targetText(target));
      expect({ ...again, ...platformFor(again) }, text).toEqual({ ...target, ...platformFor(target) });
    }
    expect(read).toBeGreaterThan(runs(40_000) / 100);
  });

  test('that replaces the version of others has neither GPUs nor a platform', () => {
    expect(parseToolchain('tensorrt@10.6.0.26').named?.version).toBe('10.6.0.26');
    for (const text of ['tensorrt@10.6.0.26:sm_87', 'tensorrt@10.6.0.26:linux-aarch64'])
      expect(refusal(() => parseToolchain(text))).toMatchObject({ code: 'TF_USAGE' });
  });

  test('an unknown architecture is named by its number', () => {
    expect(describeComputeCapability(990)).toBe('sm_990');
  });
});

const x64: Platform = { os: 'linux', arch: 'x86_64' };
const arm: Platform = { os: 'linux', arch: 'aarch64' };

describe('a target made whole', () => {
  const rtx = { product: 'tensorrt-rtx', version: '1.7.1.116', cudaMajor: 13 } as const;
  const trt = { product: 'tensorrt', version: '10.6.0.26', cudaMajor: 12 } as const;
  const machine = (gpuComputeCapability: number | null): BuildMachine => ({
    platform: x64,
    gpuComputeCapability,
  });

  test('tensorrt-rtx without capabilities is for every RTX generation since Ampere, whatever GPU is here', () => {
    const target = resolveTarget(parseTarget('tensorrt-rtx'), rtx, machine(90));
    expect(target).toEqual({
      product: 'tensorrt-rtx',
      version: '1.7.1.116',
      cudaMajor: null,
      computeCapabilities: [80, 86, 89, 120],
      os: 'linux',
      arch: 'x86_64',
    });
  });

  test('TensorRT without a capability takes that of the GPU, and CUDA is part of it', () => {
    expect(resolveTarget(parseTarget('tensorrt'), trt, machine(90))).toMatchObject({
      computeCapabilities: [90],
      cudaMajor: 12,
    });
  });

  test('an engine for another GPU may be looked for on a machine without a GPU', () => {
    expect(resolveTarget(parseTarget('tensorrt:sm_86'), trt, machine(null)).computeCapabilities).toEqual([
      86,
    ]);
  });

  test.each([
    ['tensorrt', null, /this machine shows none/, 'tensorrt@10.6.0.26+cuda12:sm_89'],
    ['tensorrt@10.6.0.26', null, /this machine shows none/, 'tensorrt@10.6.0.26+cuda12:sm_89'],
    [
      'tensorrt:sm_86',
      90,
      /sm_86 .* but the GPU it would be built on is sm_90/,
      'tensorrt@10.6.0.26+cuda12:sm_86',
    ],
  ])('%s with a GPU of %s is rejected', (text, gpu, message, elsewhere) => {
    const error = refusal(() => resolveTarget(parseTarget(text), trt, machine(gpu)));
    expect(error.code).toBe('TF_TARGET_UNAVAILABLE');
    expect(error.message).toMatch(message);
    // The target that finds the engine instead.
    const [, named = ''] = /--target (\S+)$/.exec(error.remedy) ?? [];
    expect(named).toBe(elsewhere);
    expect(resolveTarget(parseTarget(named), trt, machine(null)).computeCapabilities).toHaveLength(1);
  });
});

describe('the platform of a target', () => {
  const built = (text: string, platform: Platform) => {
    const toolchain = { product: 'tensorrt', version: '10.13.3.9', cudaMajor: null } as const;
    return resolveTarget(parseTarget(text), toolchain, { platform, gpuComputeCapability: null });
  };

  test.each([
    // TensorRT builds on the GPU that the engine is for: where that exists with Arm alone, so does the engine.
    ['tensorrt:sm_62', 'aarch64', 'aarch64'],
    ['tensorrt:sm_72', 'aarch64', 'aarch64'],
    ['tensorrt:sm_87', 'aarch64', 'aarch64'],
    ['tensorrt@10.3.0.30:sm_87', 'aarch64', 'aarch64'],
    ['tensorrt:sm_53', 'aarch64', 'aarch64'],
    ['tensorrt:sm_101', 'aarch64', 'aarch64'],
    ['tensorrt:sm_110', 'aarch64', 'aarch64'],
    ['tensorrt:sm_121', 'aarch64', 'aarch64'],
    ['tensorrt:Orin', 'aarch64', 'aarch64'],
    ['tensorrt:GH200', 'aarch64', 'aarch64'],
    ['tensorrt:GB300', 'aarch64', 'aarch64'],
    ['tensorrt:sm_75', 'x86_64', 'aarch64'],
    ['tensorrt:sm_86', 'x86_64', 'aarch64'],
    ['tensorrt:sm_89', 'x86_64', 'aarch64'],
    ['tensorrt:sm_90', 'x86_64', 'aarch64'],
    ['tensorrt:H100', 'x86_64', 'aarch64'],
    ['tensorrt:sm_100', 'x86_64', 'aarch64'],
    ['tensorrt:sm_103', 'x86_64', 'aarch64'],
    ['tensorrt:sm_120', 'x86_64', 'aarch64'],
    ['tensorrt:sm_130', 'x86_64', 'aarch64'],
    // TensorRT-RTX builds for every GPU on any machine.
    ['tensorrt-rtx', 'x86_64', 'aarch64'],
    ['tensorrt-rtx:sm_89', 'x86_64', 'aarch64'],
    ['tensorrt-rtx:sm_121', 'x86_64', 'aarch64'],
    ['tensorrt-rtx:sm_121:linux-aarch64', 'aarch64', 'aarch64'],
    ['tensorrt-rtx:sm_121:linux-x86_64', 'x86_64', 'x86_64'],
    ['tensorrt:sm_90:linux-aarch64', 'aarch64', 'aarch64'],
  ])('%s is for %s on x86-64, for %s on Arm', (text, onX64, onArm) => {
    expect(built(text, x64)).toMatchObject({ os: 'linux', arch: onX64 });
    expect(built(text, arm)).toMatchObject({ os: 'linux', arch: onArm });
  });

  test('of Windows is written, too', () => {
    expect(built('tensorrt:sm_89:windows-x86_64', x64)).toMatchObject({ os: 'windows', arch: 'x86_64' });
  });
});

describe('a GPU that does not exist on the platform', () => {
  test.each([
    ['tensorrt@10.3.0.30:sm_87:linux-x86_64', 'sm_87 (Ampere: Jetson Orin) exists with Arm processors'],
    ['tensorrt:Orin:windows-x86_64', 'with Arm processors (aarch64) alone'],
    ['tensorrt@10.3.0.30:sm_87:windows-aarch64', 'with Linux alone, and the platform is windows-aarch64'],
    ['tensorrt@10.13.3.9:Thor:linux-x86_64', 'Jetson Thor'],
    ['tensorrt@10.13.3.9:GB10:linux-x86_64', 'GB10'],
    // H100 has its number, and cards of x86-64 have it.
    ['tensorrt:GH200:linux-x86_64', 'GH200 exists with Arm processors (aarch64) alone'],
  ])('%s is no target', (text, message) => {
    const error = refusal(() => parseTarget(text));
    expect(error).toMatchObject({ code: 'TF_TARGET_UNSUPPORTED', exitCode: 2 });
    expect(error.message).toContain(message);
    expect(error.remedy).toContain('linux-aarch64');
  });

  test.each([
    'tensorrt:sm_90:linux-x86_64',
    'tensorrt:sm_121:windows-aarch64',
    'tensorrt:sm_89:windows-aarch64',
    'tensorrt-rtx:sm_121:linux-x86_64',
  ])('%s is one', (text) => {
    expect(parseTarget(text)).toMatchObject({ computeCapabilities: [expect.any(Number)] });
  });

  test.each([
    ['tensorrt-rtx', [89, 121], 'linux-x86_64', ['sm_121 (Blackwell: DGX Spark, GB10) exists with Arm']],
    ['tensorrt-rtx', [89, 121], 'linux-aarch64', []],
    ['tensorrt', [90], 'linux-x86_64', []],
    ['tensorrt', [89], 'windows-x86_64', []],
    ['tensorrt', [89], 'windows-aarch64', ['Nothing is known of sm_89 on windows-aarch64']],
    ['tensorrt', [121], 'windows-aarch64', ['Nothing is known of sm_121']],
  ] as const)('%s for %s on %s is doubted by %s', (product, computeCapabilities, platform, messages) => {
    const [os, arch] = platform.split('-') as [Platform['os'], Platform['arch']];
    const faults = platformFaults({ product, computeCapabilities: [...computeCapabilities] }, { os, arch });
    expect(faults.map(({ severity }) => severity)).toEqual(messages.map(() => 'warning'));
    for (const [at, message] of messages.entries()) expect(faults[at]?.message).toContain(message);
  });
});

describe('a GPU', () => {
  test.each([
    ['sm_89', { capability: 89 }],
    ['8.9', { capability: 89 }],
    ['L40S', { capability: 89, product: 'L40S' }],
    ['rtx4090', { capability: 89, product: 'RTX 4090' }],
    ['NVIDIA A100-SXM4-40GB', { capability: 80, product: 'A100' }],
    ['Tesla T4', { capability: 75, product: 'T4' }],
    ['NVIDIA GB10', { capability: 121, product: 'GB10' }],
    ['Jetson AGX Orin', { capability: 87, product: 'Jetson Orin' }],
    ['Orin', { capability: 87, product: 'Jetson Orin' }],
    ['Thor', { capability: 110, product: 'Jetson Thor' }],
    ['GB10', { capability: 121, product: 'GB10' }],
    ['Spark', { capability: 121, product: 'DGX Spark' }],
    ['NVIDIA DGX Spark', { capability: 121, product: 'DGX Spark' }],
    ['Orin (nvgpu)', { capability: 87, product: 'Jetson Orin' }],
    ['NVIDIA Thor', { capability: 110, product: 'Jetson Thor' }],
    ['NVIDIA A10G', { capability: 86, product: 'A10G' }],
    ['NVIDIA GH200 480GB', { capability: 90, product: 'GH200' }],
  ])('%s is known', (text, gpu) => {
    expect(parseGpu(text)).toEqual(gpu);
  });

  test.each(['fast', '', 'A1000'])('"%s" is not', (text) => {
    expect(refusal(() => parseGpu(text))).toMatchObject({ code: 'TF_USAGE' });
  });

  test.each([
    ['Orn', 'Orin'],
    ['Thro', 'Thor'],
    ['RTX 4090Ti', 'RTX 4090'],
  ])('%s: the message has the one that is meant, %s', (text, meant) => {
    const { message } = refusal(() => parseGpu(text));
    expect(message).toContain(`Did you mean "${meant}"?`);
    expect(parseGpu(meant)).toMatchObject({ capability: expect.any(Number) });
  });

  test('of a product has its whole name', () => {
    expect(isOfProduct('NVIDIA L4', 'L4')).toBe(true);
    expect(isOfProduct('NVIDIA L40S', 'L4')).toBe(false);
  });
});
