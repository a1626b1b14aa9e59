import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildWithTrtexec, timingCacheState } from '../../../src/engines/builder/trtexec-build.js';
import { defaultRecipe, type Recipe } from '../../../src/engines/identity/recipe.js';
import type { TrtforgeError } from '../../../src/errors.js';
import { ignoreEvents } from '../../../src/events.js';
import { ModelProtoSchema } from '../../../src/formats/onnx/onnx_pb.js';
import type { Toolchain } from '../../../src/tensorrt/toolchain/toolchain.js';
import { readTrtexecLog } from '../../../src/tensorrt/trtexec/log/log.js';
import { type FakeVersion, fakeTrtexec, fakeVersions, recordedLogs } from '../../fakes/trtexec.js';
import { type BuildChanges, resolvedBuild, writeSampleModel } from '../../support/sample-engine.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-trtexec-build-'));
const logs = join(folder, 'logs');
const planPath = join(folder, 'out', 'm.engine');
let modelPath: string;
beforeAll(async () => {
  modelPath = await writeSampleModel(join(folder, 'sample.onnx'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const range = { min: [1, 64], opt: [8, 64], max: [32, 64], values: false };
const profiles = [{ x: range }];

const toolchainOf = (version: FakeVersion, trtexec: string): Toolchain => ({
  product: 'tensorrt',
  version: fakeVersions[version],
  libraries: { inference: '/nowhere/libnvinfer.so', parser: null, plugins: null },
  trtexec,
  foundBy: 'the test',
});

function build(
  version: FakeVersion,
  recipe: Partial<Recipe> = {},
  fault?: string,
  changes: BuildChanges = {},
) {
  const build = resolvedBuild(modelPath, {
    toolchain: toolchainOf(version, fakeTrtexec(folder, { version, fault })),
    recipe: { stronglyTyped: version !== '8.6', profiles, ...recipe },
    logFolder: logs,
    ...changes,
  });
  return buildWithTrtexec(build, { modelPath: build.modelPath, planPath }, { emit: ignoreEvents });
}

const failure = (attempt: Promise<unknown>): Promise<TrtforgeError> =>
  attempt.then(
    () => expect.unreachable('an error was expected'),
    (error: TrtforgeError) => error,
  );

const pools = (workspace: number) => ({ memoryPools: { ...defaultRecipe.memoryPools, workspace } });

/** `y = Cast(x)` of an int8 input. */
function int8Model(): string {
  const path = join(folder, 'int8.onnx');
  const tensor = (name: string, elemType: number) => ({
    name,
    type: {
      value: {
        case: 'tensorType' as const,
        value: { elemType, shape: { dim: [{ value: { case: 'dimValue' as const, value: 4n } }] } },
      },
    },
  });
  const model = create(ModelProtoSchema, {
    irVersion: 8n,
    opsetImport: [{ version: 17n }],
    graph: {
      name: 'int8',
      input: [tensor('x', 3)],
      output: [tensor('y', 1)],
      node: [{ opType: 'Cast', input: ['x'], output: ['y'], attribute: [{ name: 'to', type: 2, i: 1n }] }],
    },
  });
  writeFileSync(path, toBinary(ModelProtoSchema, model));
  return path;
}

describe('a build with trtexec', () => {
  test('an int8 input, which trtexec before 10.1 makes float, is rejected there', async () => {
    const request = { modelPath: int8Model() };
    const error = await failure(build('8.6', { profiles: [] }, undefined, request));
    expect([error.code, error.message]).toEqual([
      'TF_OPTION_UNSUPPORTED',
      expect.stringContaining('int8 input "x"'),
    ]);
    expect((await build('10.6', { profiles: [] }, undefined, request)).inputs).toMatchObject([
      { name: 'x', dtype: 'int8' },
    ]);
  });

  test.each([
    ['8.6', '8.6.1.6'],
    ['10.6', '10.6.0.26'],
    ['11.1', '11.1.0.106'],
  ] as const)('%s: a plan whose header, size and echo agree', async (version, libraryVersion) => {
    const outcome = await build(version, pools(4 * 2 ** 30));
    expect(outcome).toMatchObject({
      builder: 'trtexec',
      bytes: 4096,
      libraryVersion,
      layers: null,
      timingCache: 'none',
      inputs: [{ name: 'x', dtype: 'float32', shape: [null, 64] }],
      outputs: [{ name: 'y', dtype: 'float32', shape: [null, 32] }],
    });
    expect(statSync(planPath).size).toBe(4096);
    expect(readdirSync(join(folder, 'out'))).toEqual(['m.engine']);
  });

  test('weakly typed FP16, and two profiles', async () => {
    await build('8.6', { precision: 'fp16' });
    await build('10.6', { stronglyTyped: false, precision: 'fp16', profiles: [{ x: range }, { x: range }] });
    const log = readFileSync(join(logs, newestLog()), 'utf8');
    expect(log).toMatch(/Precision: FP32\+FP16/);
    expect(log).toMatch(/Input build shape \(profile 1\): x=1x64\+8x64\+32x64/);
  });

  test('a workspace that is not a whole number of MiB is understood', async () => {
    await build('10.6', pools(3 * 2 ** 20 + 524288));
    await build('8.6', pools(3 * 2 ** 20 + 524288));
  });

  test('the timing cache is kept beside the run, and its state reported', async () => {
    const timingCache = join(folder, 'timing.cache');
    const outcome = await build('10.6', {}, undefined, { timingCache });
    expect(outcome.timingCache).toBe('hit');
    expect(readFileSync(timingCache, 'utf8')).toBe('a timing cache');
    expect((await build('8.6', {}, undefined, { timingCache })).timingCache).toBe('new');
  });

  test.each([
    // Built in 19 s after 63 s, whatever 8.6 says of its compiler's part of the cache.
    ['8.6-build_fp16_warm', 'hit'],
    ['8.6-build_fp16', 'new'],
    ['10.6-build_fp16_warm', 'hit'],
  ])('%s: the timing cache is %s', (name, word) => {
    expect(timingCacheState(readTrtexecLog(join(recordedLogs, `${name}.log`)))).toBe(word);
  });

  test.each([
    'Error[4]: The timing cache will not be used!',
    '[TRT] Detected invalid timing cache, setup a local cache instead',
  ])('"%s" and a local cache in its place: rejected', (said) => {
    const lines = [
      '[I] Loaded 7 bytes of timing cache from t',
      `[E] ${said}`,
      '[I] [TRT] Local timing cache in use. Profiling results in this builder pass will not be stored.',
    ];
    const log = readTrtexecLog(lines.map((line) => `[11/20/2026-21:32:52] ${line}`));
    expect(timingCacheState(log)).toBe('rejected');
  });

  test('trtexec gets what the native builder gets: the folder of the libraries, and huge pages', async () => {
    const [told, trtexec] = [join(folder, 'told.txt'), join(folder, 'telling-trtexec')];
    const fake = fakeTrtexec(folder, { version: '10.6' });
    writeFileSync(
      trtexec,
      `#!/bin/sh\necho "$GLIBC_TUNABLES $LD_LIBRARY_PATH" > ${told}\nexec ${fake} "$@"\n`,
      { mode: 0o755 },
    );
    await build('10.6', {}, undefined, { toolchain: toolchainOf('10.6', trtexec) });
    expect(readFileSync(told, 'utf8')).toMatch(/glibc\.malloc\.hugetlb=1 \/nowhere/);
  });

  test('every line is in the log, named after the model', () => {
    expect(newestLog()).toMatch(/^sample_\d{8}_\d{6}_\d+\.log$/);
    expect(readFileSync(join(logs, newestLog()), 'utf8')).toContain('&&&& PASSED');
  });
});

const newestLog = (): string => {
  const time = (name: string) => statSync(join(logs, name)).mtimeMs;
  return readdirSync(logs).sort((a, b) => time(b) - time(a))[0] ?? '';
};

describe('what trtexec leaves is checked', () => {
  test.each([
    ['partial-plan', 'TF_BUILD_FAILED', /4096 bytes .* 100/],
    ['no-plan', 'TF_BUILD_FAILED', /wrote no plan/],
    ['other-header', 'TF_BUILD_FAILED', /9\.9\.9\.9.*10\.6\.0\.26/],
    ['no-last-line', 'TF_BUILD_FAILED', /without its line "PASSED"/],
    ['misreads-pools', 'TF_TRTEXEC_MISREAD', /memPoolSize=workspace 4294967296 bytes and echoes 32768 bytes/],
    ['fails', 'TF_BUILD_FAILED', /failed with exit code 1 .*Its errors:\n {2}Engine could not be created/s],
    ['out-of-memory', 'TF_GPU_MEMORY', /Requested size was 34359738368 bytes/],
    ['leaves-tactics-out', 'TF_BUILD_FAILED', /Engine could not be created/],
    ['lacks-a-library', 'TF_LIBRARY_LOAD_FAILED', /libcublas\.so\.12/],
    ['refuses-model', 'TF_MODEL_REJECTED', /Failed to parse ONNX model/],
    ['killed', 'TF_CHILD_DIED', /killed by SIGKILL while building/],
    ['aborts', 'TF_CHILD_DIED', /killed by SIGABRT .*LLVM ERROR: out of memory/s],
  ])('%s: %s', async (fault, code, why) => {
    writeFileSync(planPath, 'an older engine');
    const error = await failure(build('10.6', pools(4 * 2 ** 30), fault));
    expect({ code: error.code, message: error.message }).toEqual({
      code,
      message: expect.stringMatching(why),
    });
    expect(readFileSync(planPath, 'utf8')).toBe('an older engine');
    expect(readdirSync(join(folder, 'out'))).toEqual(['m.engine']);
    expect(existsSync(String(error.details?.log))).toBe(true);
  });

  test.each([
    [{ engineCapability: 'safety' }, /engine capability safety/],
    [{ flags: ['refit-individual'] }, /builder flag refit-individual/],
    [{ tilingOptimizationLevel: 'fast' }, /trtexec 10\.8 and newer/],
  ] satisfies [Partial<Recipe>, RegExp][])('%j is rejected before it runs', async (recipe, why) => {
    const error = await failure(build('10.6', recipe));
    expect(error.code).toBe('TF_OPTION_UNSUPPORTED');
    expect(error.message).toMatch(why);
  });

  test('a toolchain without trtexec, and tensorrt-rtx', async () => {
    const toolchain = {
      product: 'tensorrt' as const,
      version: '10.6.0.26',
      libraries: { inference: '/nowhere/libnvinfer.so.10', parser: null, plugins: null },
      trtexec: null,
      foundBy: 'pip package',
    };
    expect((await failure(build('10.6', {}, undefined, { toolchain }))).code).toBe('TF_TRTEXEC_NOT_FOUND');
    const rtx = { ...toolchain, product: 'tensorrt-rtx' as const, trtexec: '/bin/true' };
    expect((await failure(build('10.6', {}, undefined, { toolchain: rtx }))).code).toBe(
      'TF_OPTION_UNSUPPORTED',
    );
  });
});
