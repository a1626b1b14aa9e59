import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { contextModel } from '../../../src/engines/exports/context-model.js';
import type { Passport } from '../../../src/engines/identity/passport.js';
import { defaultRecipe, type Recipe } from '../../../src/engines/identity/recipe.js';
import { parseGpu, parseTarget, type Target } from '../../../src/engines/identity/target.js';
import { parseProfile } from '../../../src/engines/profiles/profile.js';
import { LocalStore } from '../../../src/engines/store/local.js';
import type { Objects } from '../../../src/engines/store/remote/objects.js';
import { RemoteStore } from '../../../src/engines/store/remote/remote-store.js';
import { noTrust } from '../../../src/engines/store/trust.js';
import { TrtforgeError } from '../../../src/errors.js';
import { type Machine, machineOf, readInventory } from '../../../src/products/fleet/which/machine.js';
import { type Which, whichSchema } from '../../../src/products/fleet/which/result.js';
import { type Candidate, judgeEngines } from '../../../src/products/fleet/which/rulings.js';
import { findEngines } from '../../../src/products/fleet/which/which.js';
import { planBytes } from '../../fakes/tensorrt/engine.js';
import { mutations } from '../../support/mutations.js';
import { runs } from '../../support/runs.js';
import { sampleIdentity, samplePassport, samplePlan } from '../../support/sample-engine.js';
import { type Answer, codeOfLine, trtforge } from '../../support/trtforge.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-which-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const forward = { flags: ['version-compatible'] };
const reach = { hardwareCompatibility: 'ampere-plus' } as const;
const same = { hardwareCompatibility: 'same-compute-capability' } as const;
interface More {
  readonly recipe?: Partial<Recipe>;
  readonly target?: Partial<Target>;
  readonly gpu?: string;
}

const built: Readonly<Record<string, More>> = {
  forward: { recipe: forward },
  lean: { recipe: { flags: ['exclude-lean-runtime', 'version-compatible'] } },
  reach: { recipe: reach },
  both: { recipe: { ...forward, ...reach } },
  same: { recipe: same },
  windows: { recipe: { runtimePlatform: 'windows-amd64' } },
  cuda12: { target: { cudaMajor: 12 } },
  cuda13: { target: { cudaMajor: 13 } },
  arm: { target: { arch: 'aarch64' } },
};

/** `10.13.3.9:89 forward`, `rtx-1.7.1.116:80,89`: version, capabilities, and how it was built. */
function passportOf(text: string, more: More = {}, plan = samplePlan()): Passport {
  const [, rtx, version = '', list = '', how = ''] = /^(rtx-)?([\d.]+):([\d,]+) ?(\w+)?$/.exec(text) ?? [];
  const { recipe, target, gpu } = { ...built[how], ...more };
  const sample = sampleIdentity();
  const passport = samplePassport(plan, {
    ...sample,
    recipe: { ...defaultRecipe, ...recipe },
    target: {
      ...sample.target,
      product: rtx === undefined ? 'tensorrt' : 'tensorrt-rtx',
      version,
      computeCapabilities: list.split(',').map(Number),
      ...target,
    },
  });
  return { ...passport, built: { ...passport.built, gpu: gpu ?? null } };
}

/** The same as it is found; `bare`: without its passport; `damaged`. */
function candidate(text: string, more?: More): Candidate {
  const passport = passportOf(text.replace(/^(bare|damaged) /, ''), more);
  const { digest, document } = passport.identity;
  const engine = { engine: `${text}.engine`, name: passport.name, identity: digest, warning: null };
  const broken = { found: false, code: 'TF_PLAN_INVALID', reason: 'det.engine is cut short.' } as const;
  if (text.startsWith('damaged ')) return { ...engine, header: broken, passport: null };
  if (text.startsWith('bare ')) return { ...engine, header: document.target, identity: null, passport: null };
  return { ...engine, header: document.target, passport };
}

/** `10.13.3.9 L4 driver=550.54`: what an inventory states of TensorRT, the GPU and more; `-` for nothing, `*` for any GPU. */
function machine(text: string): Machine {
  const [, rtx, version, name, more] = /^(rtx-)?(\S+) ([^=]+?)((?: \w+=\S+)*)$/.exec(text) ?? [];
  const product = rtx === undefined ? 'tensorrt' : 'tensorrt-rtx';
  const stated = {
    ...(version === '-' ? {} : { [product]: version }),
    ...(name === '-' || name === '*' ? {} : { gpu: parseGpu(name!) }),
    ...Object.fromEntries((more!.match(/\w+=\S+/g) ?? []).map((pair) => pair.split('='))),
  };
  return machineOf('m', stated, name === '*');
}

const judged = (engine: Candidate, on: Machine) =>
  judgeEngines({ query: 'q', model: null, engines: [engine] }, [on]).machines[0]!.loads[0]!;

describe('whether a machine loads an engine', () => {
  it.each([
    // TensorRT's support policies: another major, minor, patch or build does not load it.
    ['its own version and GPU', '10.13.3.9:89', '10.13.3.9 L4', 'yes', 'exact'],
    ['a newer minor', '10.13.3.9:89', '10.14.1.48 L4', 'no', 'other-version'],
    ['an older minor', '10.13.3.9:89', '10.9.0.34 L4', 'no', 'other-version'],
    ['another patch', '10.13.3.9:89', '10.13.2.6 L4', 'no', 'other-version'],
    ['another build', '10.13.3.9:89', '10.13.3.10 L4', 'no', 'other-version'],
    ['another build, equal modulo 256', '10.13.3.9:89', '10.13.3.265 L4', 'no', 'other-version'],
    ['the next major', '10.13.3.9:89', '11.1.0.106 L4', 'no', 'other-version'],
    ['a version without its build', '10.13.3.9:89', '10.13.3 L4', 'unknown', 'not-stated'],
    ['a version of two parts', '10.13.3.9:89', '10.13 L4', 'unknown', 'not-stated'],
    ['another version of two parts', '10.13.3.9:89', '10.14 L4', 'no', 'other-version'],
    // Version-compatible: forward within a major, from 8 to 10 and from 10 to 11, not from 8 to 11 (support matrix of 11.4).
    ['a newer minor', '10.6.0.26:89 forward', '10.13.3.9 L4', 'if-allowed', 'version-compatible'],
    ['its own version', '10.6.0.26:89 forward', '10.6.0.26 L4', 'if-allowed', 'exact'],
    ['an older minor', '10.6.0.26:89 forward', '10.5.0.18 L4', 'no', 'other-version'],
    ['8 in 10', '8.6.1.6:89 forward', '10.0.1.6 L4', 'if-allowed', 'version-compatible'],
    ['10 in 11', '10.6.0.26:89 forward', '11.1.0.106 L4', 'if-allowed', 'version-compatible'],
    ['8 in 11', '8.6.1.6:89 forward', '11.1.0.106 L4', 'no', 'other-version'],
    ['11 in 10', '11.1.0.106:89 forward', '10.13.3.9 L4', 'no', 'other-version'],
    ['newer by two parts', '10.6.0.26:89 forward', '10.13 L4', 'if-allowed', 'version-compatible'],
    // Without the lean runtime inside, only a runtime of its own version loads it.
    ['a newer minor', '10.6.0.26:89 lean', '10.13.3.9 L4', 'no', 'other-version'],
    ['its own version', '10.6.0.26:89 lean', '10.6.0.26 L4', 'yes', 'exact'],
    // "plan generated on an incompatible device, expecting compute X.Y" (NVIDIA/TensorRT#564, #2176); kAMPERE_PLUS (NvInfer.h).
    ['another architecture', '10.13.3.9:89', '10.13.3.9 H100', 'no', 'other-gpu'],
    ['another GPU of one architecture', '10.13.3.9:80', '10.13.3.9 sm_86', 'no', 'other-gpu'],
    ['a newer architecture', '10.13.3.9:80 reach', '10.13.3.9 H100', 'yes', 'hardware-compatible'],
    ['an older architecture', '10.13.3.9:90 reach', '10.13.3.9 A100', 'yes', 'hardware-compatible'],
    ['Turing', '10.13.3.9:80 reach', '10.13.3.9 T4', 'no', 'other-gpu'],
    ['Jetson', '10.13.3.9:80 reach', '10.13.3.9 sm_87 arch=x86_64', 'no', 'other-gpu'],
    ['both', '10.6.0.26:80 both', '10.13.3.9 H100', 'if-allowed', 'version-and-hardware-compatible'],
    ['another capability', '10.13.3.9:89 same', '10.13.3.9 sm_90', 'no', 'other-gpu'],
    ['another product of its capability', '10.13.3.9:89', '10.13.3.9 RTX 4090', 'yes', 'exact'],
    // TensorRT and TensorRT-RTX write plans of their own.
    ['TensorRT on TensorRT-RTX', '10.13.3.9:89', 'rtx-1.7.1.116 L4', 'no', 'other-product'],
    ['TensorRT-RTX on TensorRT', 'rtx-1.7.1.116:89', '10.13.3.9 L4', 'no', 'other-product'],
    ['one of its GPUs', 'rtx-1.7.1.116:80,86,89', 'rtx-1.7.1.116 L4', 'yes', 'several-gpus'],
    ['a GPU that it was not built for', 'rtx-1.7.1.116:80,86', 'rtx-1.7.1.116 T4', 'no', 'other-gpu'],
    ['a GPU that the product lacks', 'rtx-1.7.1.116:89', 'rtx-1.7.1.116 H100', 'no', 'gpu-not-served'],
    ['a newer TensorRT-RTX', 'rtx-1.7.1.116:89', 'rtx-1.8.0.10 L4', 'no', 'other-version'],
    ['its flag changes nothing', 'rtx-1.7.1.116:89 forward', 'rtx-1.8.0.10 L4', 'no', 'other-version'],
    // Plans are not portable between operating systems; one for Windows can be built on Linux, and does not run there (NvInfer.h).
    ['another processor', '10.13.3.9:89', '10.13.3.9 L4 arch=aarch64', 'no', 'other-platform'],
    ['another system', '10.13.3.9:89', '10.13.3.9 L4 os=windows', 'no', 'other-platform'],
    ['Linux', '10.13.3.9:89 windows', '10.13.3.9 L4', 'no', 'other-platform'],
    ['Windows', '10.13.3.9:89 windows', '10.13.3.9 L4 os=windows', 'yes', 'exact'],
    // GPUs that exist with Arm processors alone: their machines are such without a word.
    ['Orin', '10.3.0.30:87 arm', '10.3.0.30 Orin', 'yes', 'exact'],
    ['Orin', '10.3.0.30:87', '10.3.0.30 Orin', 'no', 'other-platform'],
    ['Grace', '10.13.3.9:90 arm', '10.13.3.9 GH200', 'yes', 'exact'],
    ['Hopper', '10.13.3.9:90 arm', '10.13.3.9 H100', 'no', 'other-platform'],
    ['Spark', '10.13.3.9:121 arm', '10.13.3.9 Spark', 'yes', 'exact'],
    // Of TensorRT-RTX it is not known; what rules an engine out does so there too.
    ['an engine from Arm', 'rtx-1.7.1.116:121 arm', 'rtx-1.7.1.116 Spark', 'yes', 'exact'],
    ['an engine from x86-64', 'rtx-1.7.1.116:121', 'rtx-1.7.1.116 Spark', 'unknown', 'other-platform'],
    ['another system', 'rtx-1.7.1.116:89', 'rtx-1.7.1.116 L4 os=windows', 'unknown', 'other-platform'],
    ['another GPU from x86-64', 'rtx-1.7.1.116:89', 'rtx-1.7.1.116 Spark', 'no', 'other-gpu'],
    ['another version from x86-64', 'rtx-1.7.1.116:121', 'rtx-1.8.0.10 Spark', 'no', 'other-version'],
    // CUDA 13 needs driver 580 (release notes of CUDA); libraries of one version for another CUDA are other libraries.
    ['a driver too old', '10.13.3.9:89', '10.13.3.9+cuda13 L4 driver=550.54', 'no', 'driver-old'],
    ['a driver new enough', '10.13.3.9:89', '10.13.3.9+cuda13 L4 driver=580.65.06', 'yes', 'exact'],
    ['a driver, and no CUDA to judge it', '10.13.3.9:89', '10.13.3.9 L4 driver=450.1', 'yes', 'exact'],
    ['a driver, and an older CUDA', '10.13.3.9:89', '10.13.3.9+cuda12 L4 driver=550.54', 'yes', 'exact'],
    ['another CUDA', '10.13.3.9:89 cuda12', '10.13.3.9+cuda13.0 L4', 'no', 'other-cuda'],
    ['the same CUDA', '10.13.3.9:89 cuda13', '10.13.3.9+cuda13.0 L4', 'yes', 'exact'],
    // NVIDIA's support matrices.
    ['a GPU from before the release', '10.13.3.9:70', '10.13.3.9 V100', 'no', 'gpu-not-served'],
    // What nobody stated is unknown, unless the rest rules it out.
    ['no GPU', '10.13.3.9:89', '10.13.3.9 -', 'unknown', 'not-stated'],
    ['no GPU, another version', '10.13.3.9:89', '10.14.1.48 -', 'no', 'other-version'],
    ['no TensorRT', '10.13.3.9:89', '- L4', 'unknown', 'not-stated'],
    ['no TensorRT, another GPU', '10.13.3.9:89', '- H100', 'no', 'other-gpu'],
    ['a container', '10.0.1.6:89', '- L4 container=nvcr.io/nvidia/tritonserver:24.05-py3', 'yes', 'exact'],
    ['a container', '10.13.3.9:89', '- L4 container=tritonserver:24.05', 'no', 'other-version'],
    ['an unknown container', '10.0.1.6:89', '- L4 container=tritonserver:25.01-py3', 'unknown', 'not-stated'],
    ['no build of a container', '10.15.1.29:89', '- L4 container=tensorrt:26.02', 'unknown', 'not-stated'],
    ['a variant', '10.0.1.6:89', '- L4 container=tritonserver:24.05-py3-igpu', 'unknown', 'not-stated'],
    ['DeepStream', '10.14.1.48:89', '- L4 container=deepstream:9.0-triton-multiarch', 'yes', 'exact'],
    [
      'DeepStream on Jetson',
      '10.14.1.48:87 arm',
      '- sm_87 container=deepstream:9.0',
      'unknown',
      'not-stated',
    ],
    [
      'a container that has TensorRT, of whatever version',
      'rtx-1.7.1.116:89',
      '- L4 container=nvcr.io/nvidia/tritonserver:99.01-py3',
      'no',
      'other-product',
    ],
    ['a container of its user', 'rtx-1.7.1.116:89', '- L4 container=me/app:1', 'unknown', 'not-stated'],
    ['a container for any GPU', '10.0.1.6:89', '- * container=tritonserver:24.05', 'yes', 'exact'],
    // Without a passport the header alone is known.
    ['its own version', 'bare 10.13.3.9:89', '10.13.3.9 L4', 'unknown', 'no-passport'],
    ['any GPU', 'bare 10.0.1.6:89', '- * container=tritonserver:24.05', 'yes', 'exact'],
    ['a newer minor', 'bare 10.6.0.26:89', '10.13.3.9 L4', 'unknown', 'no-passport'],
    ['an older minor', 'bare 10.13.3.9:89', '10.6.0.26 L4', 'no', 'other-version'],
    ['another product', 'bare 10.13.3.9:89', 'rtx-1.7.1.116 L4', 'no', 'other-product'],
    ['a newer TensorRT-RTX', 'bare rtx-1.7.1.116:89', 'rtx-1.8.0.10 L4', 'no', 'other-version'],
    ['no TensorRT', 'bare 10.13.3.9:89', '- L4', 'unknown', 'no-passport'],
    ['what is damaged', 'damaged 10.13.3.9:89', '10.13.3.9 L4', 'no', 'TF_PLAN_INVALID'],
  ])('%s: %s on %s', (_, engine, on, verdict, rule) => {
    expect(judged(candidate(engine), machine(on))).toMatchObject({ verdict, rule });
  });

  it.each([
    ['another product', { gpu: 'NVIDIA L4' }, 'RTX 4090', true],
    ['the product', { gpu: 'NVIDIA L4' }, 'NVIDIA L4', false],
    ['the capability alone', { gpu: 'NVIDIA L4' }, 'sm_89', false],
    ['a passport without a GPU', {}, 'RTX 4090', false],
    ['an engine for all of the capability', { gpu: 'NVIDIA L4', recipe: same }, 'RTX 4090', false],
  ])('warns of tactics that were timed elsewhere: %s', (_, more, gpu, warns) => {
    expect(judged(candidate('10.13.3.9:89', more), machine(`10.13.3.9 ${gpu}`)).warning !== null).toBe(warns);
  });
});

const own = candidate('10.13.3.9:89');

describe('what a machine takes, and what it builds', () => {
  const profiles = [{ x: { min: [1, 3], opt: [8, 3], max: [32, 3], values: false } }];
  const which = (engines: readonly Candidate[], on: Machine, model: string | null = 'a') =>
    judgeEngines({ query: 'my det.onnx', model, engines }, [on]);

  it('takes what was built for it before what is compatible, and what carries a runtime last', () => {
    const reaching = candidate('10.13.3.9:80 reach');
    const carrying = candidate('10.6.0.26:89 forward');
    const on = machine('10.13.3.9 L4');
    const best = (engines: readonly Candidate[]) => which(engines, on).machines[0]?.best;
    expect(best([carrying, reaching, own])).toBe(own.engine);
    expect(best([carrying, reaching])).toBe(reaching.engine);
    expect(best([carrying])).toBe(carrying.engine);
    expect(which([carrying], on).machines[0]).toMatchObject({ outcome: 'pass', build: null });
  });

  it.each([
    [
      '10.14.1.48 L4',
      { precision: 'fp16', profiles },
      "trtforge build 'my det.onnx' --precision fp16 --profile x:1x3/8x3/32x3 --target tensorrt@10.14.1.48:sm_89",
    ],
    ['10.14.1.48+cuda13 L4', {}, "trtforge build 'my det.onnx' --target tensorrt@10.14.1.48+cuda13:sm_89"],
    ['10.14 L4', {}, "trtforge build 'my det.onnx' --target tensorrt:sm_89"],
    ['10.14.1.48 -', {}, "trtforge build 'my det.onnx' --target tensorrt"],
    ['rtx-1.7.1.116 RTX 3090', {}, "trtforge build 'my det.onnx' --target tensorrt-rtx@1.7.1.116:sm_86"],
    [
      '10.14.1.48 A100',
      { precision: 'fp8' },
      "trtforge build 'my det.onnx' --target tensorrt@10.14.1.48:sm_80",
    ],
    ['rtx-1.7.1.116 H100', {}, null],
    ['10.3.0.30 Orin', {}, "trtforge build 'my det.onnx' --target tensorrt@10.3.0.30:sm_87"],
    [
      '10.14.1.48 H100 arch=aarch64',
      {},
      "trtforge build 'my det.onnx' --target tensorrt@10.14.1.48:sm_90:linux-aarch64",
    ],
    [
      'rtx-1.7.1.116 Spark',
      {},
      "trtforge build 'my det.onnx' --target tensorrt-rtx@1.7.1.116:sm_121:linux-aarch64",
    ],
  ] as const)('on %s', (on, recipe, line) => {
    const engine = candidate('10.13.3.9:89', { recipe: recipe as Partial<Recipe> });
    const { build } = which([engine], machine(on)).machines[0]!;
    expect(build).toBe(line);
    const [, profile, target] = /(?:--profile (\S+) )?--target (\S+)$/.exec(build ?? '') ?? [];
    if (target !== undefined) expect(parseTarget(target)).toMatchObject({ product: expect.any(String) });
    if (profile !== undefined) expect(Object.fromEntries(parseProfile(profile))).toEqual(profiles[0]);
  });

  it.each([
    ['- L4', 'tensorrt-rtx:sm_89'],
    ['- -', 'tensorrt-rtx'],
    ['- H100', 'tensorrt:sm_90'],
    ['- L4 container=me/app:1', 'tensorrt-rtx:sm_89'],
    ['- L4 container=tritonserver:99.01-py3', 'tensorrt:sm_89'],
    ['- sm_87 container=nvcr.io/nvidia/deepstream:7.1-triton-multiarch', 'tensorrt:sm_87'],
  ])('on %s, of engines of TensorRT-RTX, it is %s', (on, target) => {
    const { build } = which([candidate('rtx-1.7.1.116:86')], machine(on)).machines[0]!;
    expect(build?.split(' --target ')[1]).toBe(target);
  });

  it('names what differs between engines of one name, and which of them is taken', () => {
    const refit = candidate('10.13.3.9:89', { recipe: { flags: ['refit-individual'] } });
    const plain = { ...own, engine: 'plain.engine' };
    const { best, chosen } = which([{ ...refit, engine: 'refit.engine' }, plain], machine('10.13.3.9 L4'))
      .machines[0]!;
    expect(best).toBe('refit.engine');
    const [taken, other] = [refit, plain].map(({ identity }) => identity!.slice(0, 12));
    expect(chosen).toBe(
      `2 engines load. Taken: the types of the model (${taken}), the newest of those that fit best; the others: the types of the model (${other}, with recipe.flags []).`,
    );
    const half = candidate('10.13.3.9:89', { recipe: { precision: 'fp16' } });
    expect(which([half, plain], machine('10.13.3.9 L4')).machines[0]?.chosen).toMatch(
      /Taken: FP16, .*; the others: the types of the model\.$/,
    );
  });

  it('is none where the driver is too old for that CUDA: it would end with an error', () => {
    const on = (driver: string) =>
      which([candidate('10.13.3.9:89 cuda13')], machine(`10.13.3.9+cuda13 L4 driver=${driver}`)).machines[0]!;
    expect(on('570.10')).toMatchObject({ build: null, loads: [{ rule: 'driver-old' }] });
    expect(on('570.10').chosen).toContain('CUDA 13 needs driver 580 or newer; this is 570.10.');
    const other = which([own], machine('10.14.1.48+cuda13 L4 driver=580.10')).machines[0]!;
    expect(other.build).toContain('--target tensorrt@10.14.1.48+cuda13:sm_89');
  });

  it('leaves the precision out that needs a calibration', () => {
    const conversion = { calibration: 'f'.repeat(64) } as Recipe['conversion'];
    const engine = candidate('10.13.3.9:89', { recipe: { precision: 'int8', conversion } });
    expect(which([engine], machine('10.14.1.48 L4')).machines[0]?.build).not.toContain('--precision');
  });

  it('names the model by its engines, and nothing without either', () => {
    expect(which([own], machine('10.14.1.48 L4'), null).machines[0]?.build).toContain('build sample.onnx ');
    expect(
      which([candidate('bare 10.13.3.9:89')], machine('10.14.1.48 L4'), null).machines[0]?.build,
    ).toBeNull();
  });

  it.each([
    [['10.13.3.9 L4', '10.13.3.9 L4'], 'pass'],
    [['10.13.3.9 L4', '10.13.3.9 -'], 'inconclusive'],
    [['10.14.1.48 L4', '10.13.3.9 -', '10.13.3.9 L4'], 'fail'],
  ])('%j together: %s', (texts, outcome) => {
    const machines = texts.map((text) => machine(text));
    expect(judgeEngines({ query: 'q', model: 'a', engines: [own] }, machines).outcome).toBe(outcome);
  });

  it('fails a machine where the store has nothing', () => {
    expect(which([], machine('- -'))).toMatchObject({
      outcome: 'fail',
      machines: [{ loads: [], best: null }],
    });
  });
});

const inventory = `machines:
  edge:
    gpu: L4
    driver: 550.54
    tensorrt: 10.13.3.9+cuda12.9
  h100: { gpu: "NVIDIA H100 80GB HBM3", container: "nvcr.io/nvidia/tritonserver:24.05-py3" }
  desk: { gpu: 8.9, tensorrt-rtx: 1.7.1.116, os: windows }
  arm: { gpu: sm_90, tensorrt: "10.14", arch: aarch64 }
  orin: { gpu: Orin, tensorrt: 10.3.0.30 }
  thor: { gpu: Thor }
  spark: { gpu: Spark, tensorrt-rtx: 1.7.1.116 }
  gb10: { gpu: GB10 }
  grace: { gpu: GH200 }
  odd: { gpu: sm_121, os: windows }
`;

function written(text: string): string {
  const path = join(root, 'inventory.yaml');
  writeFileSync(path, text);
  return path;
}

describe('an inventory', () => {
  it('states machines, and containers complete them', () => {
    expect(readInventory(written(inventory))).toMatchObject([
      {
        name: 'edge',
        gpu: { capability: 89, product: 'L4' },
        driver: '550.54',
        tensorrt: { product: 'tensorrt', version: '10.13.3.9', cudaMajor: 12 },
      },
      {
        name: 'h100',
        gpu: { capability: 90, product: 'H100' },
        driver: null,
        tensorrt: { version: '10.0.1.6' },
      },
      {
        name: 'desk',
        gpu: { capability: 89 },
        tensorrt: { product: 'tensorrt-rtx' },
        os: 'windows',
        arch: 'x86_64',
      },
      { name: 'arm', tensorrt: { version: '10.14', cudaMajor: null }, arch: 'aarch64' },
      { name: 'orin', gpu: { capability: 87 }, arch: 'aarch64' },
      { name: 'thor', gpu: { capability: 110 }, arch: 'aarch64' },
      { name: 'spark', gpu: { capability: 121 }, arch: 'aarch64' },
      { name: 'gb10', gpu: { capability: 121 }, arch: 'aarch64' },
      { name: 'grace', gpu: { capability: 90 }, arch: 'aarch64' },
      { name: 'odd', gpu: { capability: 121 }, os: 'windows', arch: 'aarch64' },
    ]);
  });

  it.each([
    ['a key that is misspelt', 'machines: { a: { gpuu: L4 } }', 'line 1', 'Did you mean "gpu"?'],
    ['a key at the top', '\nmachine: { a: {} }', 'line 2', 'Did you mean "machines"?'],
    ['a version that YAML reads as a number', 'machines:\n  a:\n    tensorrt: 10.10', 'line 3', 'quotes'],
    ['a version that is none', 'machines: { a: { tensorrt: new } }', 'machines.a.tensorrt', 'version'],
    ['another processor', 'machines: { a: { arch: riscv } }', 'machines.a.arch', 'x86_64'],
    ['a driver that is none', 'machines: { a: { driver: latest } }', 'machines.a.driver', '550.54'],
    ['a GPU that is misspelt', 'machines: { a: { gpu: Orn } }', 'machines.a.gpu', 'Did you mean "Orin"?'],
    ['a GPU that is not known', 'machines:\n  a: { gpu: L5 }', 'line 2, machines.a.gpu', '"L5"'],
    ['Windows', 'machines:\n  a: { gpu: Orin, os: windows }', 'line 2, machines.a', 'with Linux alone'],
    ['x86-64', 'machines: { a: { gpu: Spark, arch: x86_64 } }', 'machines.a', 'Arm processors'],
    ['the processor of Grace', 'machines: { a: { gpu: GH200, arch: x86_64 } }', 'machines.a', 'GH200 exists'],
    ['a list', '- a', 'inventory.yaml', 'entries'],
    ['what is not YAML', 'machines: [', 'line 1', ']'],
    [
      'two products',
      'machines: { a: { tensorrt: 1.2.3, tensorrt-rtx: 1.2.3 } }',
      'machines.a',
      'two machines',
    ],
  ])('is rejected for %s', (_, text, where, hint) => {
    expect(() => readInventory(written(text))).toThrow(
      expect.objectContaining({ code: 'TF_INVENTORY_INVALID', message: expect.stringContaining(where) }),
    );
    expect(() => readInventory(written(text))).toThrow(hint);
    expect(() => readInventory(written(text))).not.toThrow(/\.\./);
  });

  it('has a compute capability that YAML reads as a whole number', () => {
    const stated = 'machines: { a: { gpu: 8.0 }, b: { gpu: 12.0 }, c: { gpu: 89 } }';
    expect(readInventory(written(stated)).map(({ gpu }) => gpu?.capability)).toEqual([80, 120, 89]);
  });

  it('is read or rejected, whatever its bytes', () => {
    for (const bytes of mutations(Buffer.from(inventory), runs(3000))) {
      try {
        const machines = readInventory(written(Buffer.from(bytes).toString('latin1')));
        const result = judgeEngines(
          { query: 'q', model: null, engines: [own, candidate('rtx-1.7.1.116:89')] },
          machines,
        );
        expect(whichSchema.safeParse(result).success).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(TrtforgeError);
        expect(['TF_INVENTORY_INVALID', 'TF_USAGE', 'TF_FILE_UNREADABLE']).toContain(
          (error as TrtforgeError).code,
        );
      }
    }
  });
});

/** A bucket in memory, as far as entries are read and written. */
function bucket({ bytes, sha256 }: Passport['plan']): Objects {
  const content = new Map<string, Buffer>();
  const unused = () => Promise.reject(new Error('no plan is fetched'));
  return {
    place: 's3://team/engines',
    head: async (key) => ({ key, bytes, etag: '', metadata: { 'trtforge-sha256': sha256 } }),
    ...{ stream: unused, startParts: unused, remove: unused, close: () => {} },
    read: async (key) => (content.has(key) ? { body: content.get(key)!, etag: '' } : undefined),
    put: async (key, body) => {
      content.set(key, Buffer.from(body));
      return '';
    },
    async *list(prefix) {
      for (const [key, { length: bytes }] of content)
        if (key.startsWith(prefix)) yield { key, bytes, modified: new Date(0) };
    },
  };
}

describe('the engines that are searched', () => {
  it('are those of the store, of layers and of the bucket, each once, the newest of a place first', async () => {
    const kept = async (folder: string, ...engines: readonly Passport[]) => {
      const local = new LocalStore(join(root, folder), join(root, `${folder}-memo`));
      for (const [seed, passport] of engines.entries()) {
        const plan = samplePlan(seed);
        const pending = join(root, 'pending.plan');
        writeFileSync(pending, plan);
        const { sha256, bytes } = samplePassport(plan).plan;
        await local.put(pending, { ...passport, plan: { ...passport.plan, sha256, bytes } });
      }
      return local;
    };
    const at = (date: string, passport: Passport) => ({
      ...passport,
      built: { ...passport.built, at: `${date}T12:00:00.000Z` },
    });
    const [old, young] = [passportOf('rtx-1.7.1.116:80'), passportOf('rtx-1.7.1.116:86')];
    const far = passportOf('rtx-1.7.1.116:89');
    const store = await kept('first', at('2026-01-01', old), at('2026-02-01', young));
    const layer = await kept('second', old);
    const remote = new RemoteStore(bucket(far.plan), 'engines');
    for (const passport of [young, far])
      await remote.sign({ key: 'engines/sample/e.engine', passport }, null);
    const stores = { store, layers: [layer], remote, trust: noTrust, maxBytes: null };
    const context = { emit: () => {}, signal: new AbortController().signal, environment: {} };
    const { engines } = await findEngines('sample', stores, context);
    const digests = [young, old, far].map(({ identity }) => identity.digest);
    expect(engines.map(({ identity }) => identity)).toEqual(digests);
    expect(engines.at(-1)?.engine).toBe('s3://team/engines/sample/e.engine');
  });
});

describe('trtforge which', () => {
  const store = join(root, 'engines');
  const environment = {
    PATH: process.env.PATH,
    NO_COLOR: '1',
    XDG_CACHE_HOME: join(root, 'xdg'),
    TENSORRT_CACHE_DIR: store,
  };
  const on = ['--on', join(root, 'fleet.yaml')];
  writeFileSync(
    on[1]!,
    'machines: { l4: { gpu: L4, tensorrt-rtx: 1.7.1.116 }, h100: { gpu: H100, tensorrt: 10.13.3.9 } }',
  );

  it('searches the store by name or identity, and judges every machine', async () => {
    const plan = samplePlan(3);
    const pending = join(root, 'pending.plan');
    writeFileSync(pending, plan);
    const { identity, planPath } = await new LocalStore(store, join(root, 'memo')).put(
      pending,
      passportOf('rtx-1.7.1.116:89', {}, plan),
    );
    for (const query of ['sample', identity.slice(0, 8)]) {
      const { exitCode, json } = await trtforge(['which', query, ...on, '--json'], environment);
      const { command: _, ok: _ok, exitCode: _exit, ...result } = json<Answer & Which>();
      expect(exitCode).toBe(1);
      expect(whichSchema.parse(result).machines).toMatchObject([
        { name: 'l4', outcome: 'pass', best: planPath, build: null },
        {
          name: 'h100',
          outcome: 'fail',
          best: null,
          build: expect.stringContaining('tensorrt@10.13.3.9:sm_90'),
        },
      ]);
    }
    const { out } = await trtforge(['which', 'sample', ...on], environment);
    expect(out).toContain(`take  ${planPath}`);
    expect(out).toContain('build  trtforge build sample.onnx');
    writeFileSync(planPath, plan.subarray(0, 100));
    const { json } = await trtforge(['which', 'sample', ...on, '--json'], environment);
    expect(json<Answer & Which>().machines[0]?.loads[0]).toMatchObject({
      verdict: 'no',
      rule: 'TF_ENGINE_SIZE_MISMATCH',
    });
  });

  it('writes the start of the identity beside names that are equal', async () => {
    const twins = new LocalStore(join(root, 'twins'), join(root, 'twins-memo'));
    const pending = join(root, 'pending.plan');
    const kept: string[] = [];
    for (const flags of [[], ['refit-individual']]) {
      const plan = samplePlan(5 + flags.length);
      writeFileSync(pending, plan);
      const passport = passportOf('rtx-1.7.1.116:89', { recipe: { flags } }, plan);
      kept.push((await twins.put(pending, passport)).identity);
    }
    const { out } = await trtforge(['which', 'sample', ...on, '--cache-dir', twins.place], environment);
    for (const identity of kept)
      expect(out).toMatch(new RegExp(`sample_\\S+\\.engine {2}${identity.slice(0, 12)}`));
  });

  it('takes engines of layers, and of any place only those that a trusted key signed', async () => {
    const plan = samplePlan(4);
    const pending = join(root, 'pending.plan');
    writeFileSync(pending, plan);
    const layer = join(root, 'layer');
    const { planPath } = await new LocalStore(layer, join(root, 'layer-memo')).put(
      pending,
      passportOf('rtx-1.7.1.116:89', {}, plan),
    );
    const keys = ['own.pem', 'other.pem'].map((name) => join(root, name));
    for (const key of keys) await trtforge(['cache', 'keygen', '-o', key], environment);
    await trtforge(['cache', 'sign', '--cache-dir', layer, '--sign-key', keys[0]!], environment);
    const taken = async (trust: Readonly<Record<string, unknown>>) => {
      const config = join(root, 'which.json');
      writeFileSync(config, JSON.stringify({ 'cache-from': layer, ...trust }));
      const line = ['which', 'sample', ...on, '--cache-dir', join(root, 'empty'), '--config', config];
      return (await trtforge([...line, '--json'], environment)).json<Answer & Which>().machines[0]?.best;
    };
    const trusting = (key = '') => ({ 'require-signature': true, 'trust-key': `${key}.pub` });
    expect(await taken({})).toBe(planPath);
    expect(await taken(trusting(keys[0]))).toBe(planPath);
    expect(await taken(trusting(keys[1]))).toBe(null);
  });

  it('reads an engine file by its passport, without one by its header, and rejects what is damaged', async () => {
    const file = join(root, 'det.engine');
    const plan = planBytes('10', { kind: 'copy', memory: 1 });
    const version = [...plan.subarray(24, 28)].join('.');
    const read = async (...more: readonly string[]) => {
      const { exitCode, json } = await trtforge(['which', file, ...more, '--json'], environment);
      return { exitCode, machine: json<Answer & Which>().machines[0]! };
    };
    writeFileSync(file, plan);
    writeFileSync(join(root, 'one.yaml'), `machines: { a: { gpu: L4, tensorrt: ${version} } }`);
    const here = ['--on', join(root, 'one.yaml')];
    expect(await read(...here)).toMatchObject({ exitCode: 4, machine: { loads: [{ rule: 'no-passport' }] } });
    writeFileSync(`${file}.passport.json`, JSON.stringify(passportOf(`${version}:89`, {}, plan)));
    expect(await read(...here)).toMatchObject({ exitCode: 0, machine: { best: file } });
    const around = join(root, 'det_ctx.onnx');
    const wrapped = async () => {
      const { exitCode, json } = await trtforge(['which', around, ...here, '--json'], environment);
      const { machines: [machine] = [], error } = json<Partial<Which> & Answer>();
      return { exitCode, best: machine?.best, code: error?.code };
    };
    writeFileSync(around, contextModel(samplePassport(plan).plan, 'det.engine'));
    expect(await wrapped()).toMatchObject({ exitCode: 0, best: around });
    writeFileSync(around, contextModel(samplePassport(plan).plan, 'gone.engine'));
    expect(await wrapped()).toMatchObject({ exitCode: 2, code: 'TF_FILE_NOT_FOUND' });
    expect(await read('--triton', '24.05-py3', '--gpu', 'L4')).toMatchObject({ exitCode: 1 });
    expect(await read('--deepstream', '3.0')).toMatchObject({ exitCode: 4, machine: { tensorrt: null } });
    writeFileSync(`${file}.passport.json`, JSON.stringify(passportOf(`${version}:89`)));
    const other = await read(...here);
    expect(other).toMatchObject({ exitCode: 4, machine: { loads: [{ warning: expect.any(String) }] } });
    writeFileSync(file, plan.subarray(0, 20));
    expect(await codeOfLine(['which', file, ...here], environment)).toBe('TF_PLAN_INVALID');
  });

  it.each([
    ['no machine', []],
    ['a GPU without a container', [...on, '--gpu', 'L4']],
    ['a name that nothing has', on],
  ])('rejects %s', async (_, options) => {
    expect(await codeOfLine(['which', 'nobody', ...options], environment)).toBe('TF_USAGE');
  });
});
