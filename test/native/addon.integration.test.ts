import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAddon } from '../../scripts/build-native.mjs';
import { type Addon, addonPath, loadAddon } from '../../src/addon/addon.js';
import { openFile } from '../../src/base/files/byte-source.js';
import { readElf } from '../../src/tensorrt/toolchain/elf.js';
import { openRequest } from '../fakes/tensorrt/library.js';
import { describeWith } from '../support/needs.js';
import { rtxToolchain } from './rtx-toolchain.js';
import { staticModel } from './tiny-models.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-addon-'));
beforeAll(async () => {
  await buildAddon({ say: () => {} });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('compiling the addon', () => {
  test('nothing is compiled twice', async () => {
    expect(await buildAddon({ say: () => {} })).toBe(false);
  });

  test('the addon links neither TensorRT nor CUDA', () => {
    const file = openFile(addonPath);
    const { needed } = readElf(file);
    file.close();
    expect(needed).toContain('libc.so.6');
    expect(needed.join(' ')).not.toMatch(/nvinfer|tensorrt|cuda|nvidia/i);
  });

  test('a missing compiler is an error with a code and what to do', async () => {
    const attempt = buildAddon({ output: join(folder, 'x.node'), compiler: '/nowhere/g++', say: () => {} });
    await expect(attempt).rejects.toMatchObject({
      code: 'TF_COMPILER_MISSING',
      remedy: expect.stringContaining('apt install g++'),
    });
  });

  test('the script ends with the code of its error', () => {
    const script = fileURLToPath(new URL('../../scripts/build-native.mjs', import.meta.url));
    const run = spawnSync(process.execPath, [script], {
      encoding: 'utf8',
      env: { ...process.env, CXX: '/nowhere/g++' },
    });
    expect(run.status).toBe(3);
    expect(run.stderr).toContain('TF_COMPILER_MISSING');
  });
});

describe('loading the addon', () => {
  const failure = (load: () => unknown): unknown => {
    try {
      load();
    } catch (error) {
      return error;
    }
    throw new Error('an error was expected');
  };

  test('an addon that is not compiled states how to compile it', () => {
    expect(failure(() => loadAddon(join(folder, 'absent.node')))).toMatchObject({
      code: 'TF_NATIVE_NOT_BUILT',
      remedy: expect.stringContaining(
        `node ${fileURLToPath(new URL('../../scripts/build-native.mjs', import.meta.url))}`,
      ),
    });
  });

  test('a file that is not an addon states why it does not load', () => {
    const path = join(folder, 'broken.node');
    writeFileSync(path, 'no library');
    expect(failure(() => loadAddon(path))).toMatchObject({ code: 'TF_NATIVE_NOT_BUILT' });
  });

  test.skipIf(process.platform !== 'linux')('GPUs are listed, or the reason for an empty list', () => {
    const { gpus, reason } = loadAddon().gpus();
    expect(gpus.length === 0).toBe(reason !== null);
    expect((reason ?? '').split('libcuda.so.1').length).toBeLessThan(3);
  });

  test('a library that does not exist is TF_LIBRARY_LOAD_FAILED', () => {
    expect(failure(() => loadAddon().probe('/nowhere/libnvinfer.so.10'))).toMatchObject({
      code: 'TF_LIBRARY_LOAD_FAILED',
      message: expect.stringContaining('/nowhere/libnvinfer.so.10'),
    });
  });

  test('a library that is another is TF_LIBRARY_LOAD_FAILED, naming the function it lacks', () => {
    expect(failure(() => loadAddon().probe('libm.so.6'))).toMatchObject({
      code: 'TF_LIBRARY_LOAD_FAILED',
      message: expect.stringContaining('getInferLibVersion'),
    });
  });
});

describeWith('toolchain', 'the addon over tensorrt-rtx', (libraries) => {
  const { inference, parser } = rtxToolchain(libraries).libraries;
  type BuildRequest = Parameters<Addon['build']>[0];
  const request = (modelPath: string, more: Partial<BuildRequest> = {}): BuildRequest => ({
    inferenceLibrary: inference,
    parserLibrary: parser ?? '',
    pluginLibrary: null,
    modelPath,
    planPath: join(folder, 'plan'),
    networkFlags: 0,
    parserFlags: 0,
    settings: [],
    profiles: [],
    computeCapabilities: [89],
    pluginPaths: [],
    timingCachePaths: [],
    timingCacheOutputPath: null,
    verbose: false,
    keepBuilder: false,
    ...more,
  });

  test('the library states what it is', () => {
    expect(loadAddon().probe(inference)).toEqual({
      product: 'tensorrt-rtx',
      version: '1.7.1.116',
      code: 10701,
      generation: 'rtx1',
    });
  });

  test('the event loop stays free while it builds', async () => {
    let turns = 0;
    const turn = () => {
      if (!over) setImmediate(turn);
      turns++;
    };
    let over = false;
    const { done } = loadAddon().build(request(staticModel(folder)), () => {});
    turn();
    await done;
    over = true;
    expect(turns).toBeGreaterThan(10);
  });

  test('two builds at once both end', async () => {
    const model = staticModel(folder);
    const job = (name: string) =>
      loadAddon().build(request(model, { planPath: join(folder, name) }), () => {}).done;
    const [first, second] = await Promise.all([job('one.plan'), job('two.plan')]);
    expect(first.bytes).toBe(second.bytes);
  });

  test('a job that is over can still be asked to stop', async () => {
    const job = loadAddon().build(request(staticModel(folder)), () => {});
    await job.done;
    expect(() => job.cancel()).not.toThrow();
  });

  test('a plan is loaded where there is a GPU, and rejected by name elsewhere', async () => {
    const job = loadAddon().build(request(staticModel(folder)), () => {});
    await job.done;
    const outcome = await loadAddon()
      .openEngine(openRequest(inference, join(folder, 'plan')), () => {})
      .done.then(
        ({ facts }) => facts.tensors.map(({ name }) => name),
        (error: unknown) => error,
      );
    if (Array.isArray(outcome)) expect(outcome).toEqual(['x', 'y']);
    else expect(outcome).toMatchObject({ code: 'TF_GPU_UNAVAILABLE' });
  });
});
