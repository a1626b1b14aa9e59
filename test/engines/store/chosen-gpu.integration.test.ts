import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { visibleGpus } from '../../../src/addon/gpus.js';
import type { BuildOptions, PlanBuilder } from '../../../src/engines/builder/options.js';
import { resolveBuild } from '../../../src/engines/builder/resolve-build.js';
import { ignoreEvents } from '../../../src/events.js';
import { buildOrLoad } from '../../../src/quality/known-answer/build-or-load.js';
import { type FoundToolchain, surveyToolchains } from '../../../src/tensorrt/toolchain/find.js';
import { countingBuilder } from '../../fakes/builder.js';
import { noDevices, noGpus, twoGpus } from '../../fakes/gpus.js';
import { fakeTrtexec } from '../../fakes/trtexec.js';
import { sampleToolchain, writeSampleModel } from '../../support/sample-engine.js';

vi.mock(import('../../../src/tensorrt/toolchain/find.js'), async (real) => ({
  ...(await real()),
  surveyToolchains: vi.fn(),
}));
vi.mock(import('../../../src/addon/gpus.js'), async (real) => ({
  ...(await real()),
  visibleGpus: vi.fn(),
}));

const folder = mkdtempSync(join(tmpdir(), 'trtforge-chosen-gpu-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const seen = join(folder, 'gpus');
const environment = {
  ...process.env,
  XDG_CACHE_HOME: join(folder, 'cache'),
  CUDA_VISIBLE_DEVICES: '6,GPU-seven',
};
let model: string;
beforeAll(async () => {
  model = await writeSampleModel(join(folder, 'sample.onnx'));
});
beforeEach(() => {
  writeFileSync(seen, '');
  vi.mocked(visibleGpus).mockReturnValue(twoGpus);
  vi.mocked(surveyToolchains).mockResolvedValue({ toolchains: [tensorrt, sampleToolchain], damaged: [] });
});

const tensorrt: FoundToolchain = {
  ...sampleToolchain,
  name: 'tensorrt-10.6.0.26',
  product: 'tensorrt',
  version: '10.6.0.26',
  trtexec: fakeTrtexec(folder, { version: '10.6', gpuFile: seen }),
};

const build = (wishes: Partial<BuildOptions>, builder?: PlanBuilder) =>
  buildOrLoad(
    {
      model,
      profiles: ['x:1x64/8x64/32x64'],
      builder: 'trtexec',
      store: false,
      remote: false,
      knownAnswer: false,
      ...wishes,
    },
    { environment, ...(builder === undefined ? {} : { build: builder }) },
  );
const output = (name: string) => join(folder, `${name}.engine`);

describe('TensorRT builds on the GPU that was chosen', () => {
  test('for its compute capability, in a process that sees no other; the passport names it', async () => {
    const { passport } = await build({ device: 1, output: output('second') });
    expect(passport.identity.document.target).toMatchObject({
      product: 'tensorrt',
      computeCapabilities: [90],
    });
    expect(passport.built).toMatchObject({ builder: 'trtexec', gpu: 'NVIDIA H200', driver: '570.86' });
    expect(readFileSync(seen, 'utf8')).toBe('GPU-seven -\n');
  });

  test('the first is usual, and named so it is the same; its kernel times are kept apart', async () => {
    const usual = await build({ output: output('usual') });
    expect(usual.passport).toMatchObject({
      identity: { document: { target: { computeCapabilities: [89] } } },
      built: { gpu: 'NVIDIA L4' },
    });
    const first = await build({ device: 0, output: output('first') });
    expect(first.identity).toBe(usual.identity);
    expect(readFileSync(seen, 'utf8').split('\n')).toEqual(['6,GPU-seven -', '6 -', '']);
    await build({ device: 1, output: output('again') });
    const caches = readdirSync(join(folder, 'cache/trtforge/timing'));
    expect(caches.map((name) => /_sm_\d+_/.exec(name)?.[0]).sort()).toEqual(['_sm_89_', '_sm_90_']);
  });

  test('an engine of the other GPU is another engine in the store', async () => {
    const store = join(folder, 'store');
    const sources = [];
    for (const device of [0, 1, 0, 1]) sources.push((await build({ device, store })).source);
    expect(sources).toEqual(['built', 'built', 'local', 'local']);
  });

  test('a target that is not of that GPU is rejected', async () => {
    await expect(build({ device: 1, target: 'tensorrt:sm_89' })).rejects.toMatchObject({
      code: 'TF_TARGET_UNAVAILABLE',
      message: expect.stringMatching(/sm_89 .* but the GPU it would be built on is sm_90/),
      remedy: expect.stringContaining('--device'),
    });
  });

  test.each([
    ['of two', twoGpus, 2, undefined, /^Building with TensorRT .* no GPU 2 here: 0 is NVIDIA L4, 1 is/],
    ['of none', noGpus, 1, undefined, /^Building with TensorRT .* shows none: There is no driver\.$/],
    ['of none, not even the first', noGpus, 0, 'tensorrt:sm_90', /shows none/],
  ])(
    'one that is not there is rejected before anything is read: %s',
    async (_, list, device, target, why) => {
      vi.mocked(visibleGpus).mockReturnValue(list);
      const missing = join(folder, 'nowhere.onnx');
      await expect(build({ device, target, model: missing })).rejects.toMatchObject({
        code: 'TF_GPU_UNAVAILABLE',
        message: expect.stringMatching(why),
      });
      expect([readFileSync(seen, 'utf8'), existsSync(output('none'))]).toEqual(['', false]);
    },
  );
});

describe('tensorrt-rtx builds without a GPU', () => {
  test('and the engine is the same whichever is chosen, be it there or not', async () => {
    const { build: builder, count } = countingBuilder();
    const wishes = { target: 'tensorrt-rtx:sm_89', builder: 'native', store: join(folder, 'rtx') } as const;
    const first = await build(wishes, builder);
    for (const device of [0, 1, 9])
      expect(await build({ ...wishes, device }, builder)).toMatchObject({
        source: 'local',
        identity: first.identity,
      });
    expect(count()).toBe(1);
  });

  test('which is what a machine without one does unless its second is chosen', async () => {
    vi.mocked(visibleGpus).mockReturnValue(noGpus);
    const context = { emit: ignoreEvents, environment };
    const { identity } = await resolveBuild({ model, device: 0, profiles: ['x:1x64'] }, context);
    expect(identity.target.product).toBe('tensorrt-rtx');
  });
});

test.each(noDevices)('%s is not a GPU', async (device) => {
  await expect(build({ device })).rejects.toMatchObject({
    code: 'TF_USAGE',
    message: expect.stringMatching(/^device is /),
  });
});
