import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { visibleGpus } from '../../../src/addon/gpus.js';
import type { BuildReport } from '../../../src/cli/commands/build.js';
import { resolveBuild } from '../../../src/engines/builder/resolve-build.js';
import { buildResultSchema } from '../../../src/engines/builder/result.js';
import { passportPath } from '../../../src/engines/identity/engine-name.js';
import { identityDigest } from '../../../src/engines/identity/identity.js';
import { readPassport } from '../../../src/engines/identity/passport.js';
import { readPlanHeader } from '../../../src/engines/plan/header.js';
import { enginesInspectedSchema } from '../../../src/engines/plan/inspect.js';
import { verifyEngine } from '../../../src/engines/plan/verify-engine.js';
import {
  cacheClearSchema,
  cacheListSchema,
  cacheVerifySchema,
  cacheWhySchema,
} from '../../../src/engines/store/result.js';
import { buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { writeModel } from '../../../src/formats/onnx/index.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { buildOrLoad } from '../../../src/quality/known-answer/build-or-load.js';
import { toolchainsFolder } from '../../../src/tensorrt/toolchain/places.js';
import { convolution, perChannel, product } from '../../formats/onnx/support/quantized.js';
import { describeWith } from '../../support/needs.js';
import { samplePassport, samplePlan, writeSampleModel } from '../../support/sample-engine.js';
import { trtforge as runLine } from '../../support/trtforge.js';

const main = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'trtforge-build-command-'));
const model = join(root, 'sample.onnx');
beforeAll(async () => {
  await writeSampleModel(model);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A configuration file with this text. */
function written(text: string): string {
  const path = join(mkdtempSync(join(root, 'config-')), 'config.yaml');
  writeFileSync(path, text);
  return path;
}

/** The environment of a command line with a cache folder of its own. */
const ownCache = { ...process.env, XDG_CACHE_HOME: join(root, 'xdg'), TENSORRT_CACHE_DIR: '' };
const trtforge = (args: readonly string[]) => runLine(args, ownCache);

describeWith('toolchain', 'an engine of TensorRT-RTX that can be refitted', () => {
  const rtx = ['--target', 'tensorrt-rtx:sm_89', '--profile', 'x:1x64'];
  const environment = { ...ownCache, TRTFORGE_TOOLCHAINS: toolchainsFolder(process.env) };
  const code = 'TF_GPU_UNAVAILABLE';

  test.skipIf(visibleGpus().gpus.length > 0).each(['refit', 'strip-plan'])(
    'is refused without a GPU before any work, planned or done, also from code: %s',
    async (flag) => {
      const flags = flag === 'refit' ? ['--refit'] : ['--builder-config', `flags=${flag}`];
      for (const more of [['--dry-run'], []]) {
        const words = ['build', model, ...rtx, '--precision', 'fp16', ...flags, ...more, '--events'];
        const { exitCode, err } = await runLine(words, environment);
        expect(exitCode).toBe(3);
        expect(err).toMatch(code);
        expect(err).not.toMatch(/"phase":"(?:convert|build)"/);
      }
      const request = {
        model,
        target: rtx[1]!,
        profiles: ['x:1x64'],
        store: false as const,
        settings: { flags: [flag] },
      };
      await expect(buildOrLoad(request, { environment })).rejects.toMatchObject({
        code,
        exitCode: 3,
      });
      const why = await runLine(['cache', 'why', model, ...rtx, ...flags, '--json'], environment);
      expect(why.json()).toMatchObject({ engine: null, refits: null });
    },
  );
});

describe('an engine of another machine', () => {
  const target = ['--target', 'tensorrt@10.13.3.9:sm_90', '--profile', 'x:1x64'];

  test('has the identity that it has there, and is found in a store', async () => {
    const { exitCode, json } = await trtforge(['build', model, ...target, '--dry-run', '--json']);
    expect(exitCode).toBe(0);
    const { resolved } = json<{ resolved: { identity: string } }>();
    const { identity } = await resolveBuild(
      { model, target: target[1], profiles: ['x:1x64'] },
      { emit: () => {} },
    );
    expect(resolved.identity).toBe(identityDigest(identity));
    expect(identity.target).toMatchObject({
      product: 'tensorrt',
      version: '10.13.3.9',
      computeCapabilities: [90],
      cudaMajor: null,
    });
    const plan = samplePlan();
    plan.set([10, 13, 3, 9], 24);
    plan.write('ftrt', 0, 'latin1');
    const engine = join(mkdtempSync(join(root, 'elsewhere-')), 'sample.engine');
    writeFileSync(engine, plan);
    writeFileSync(passportPath(engine), JSON.stringify(samplePassport(plan, identity)));
    const cache = ['--cache-dir', mkdtempSync(join(root, 'store-'))];
    expect((await trtforge(['cache', 'import', engine, ...cache])).exitCode).toBe(0);
    const found = await trtforge(['build', model, ...target, ...cache, '--json']);
    expect(found.json()).toMatchObject({ source: 'local', identity: resolved.identity });
  });

  test.each([
    ['tensorrt@10.3.0.30:sm_87', 'aarch64'],
    ['tensorrt@10.3.0.30:sm_87:linux-aarch64', 'aarch64'],
    ['tensorrt@10.13.3.9:GH200', 'aarch64'],
    ['tensorrt@10.13.3.9:sm_90:linux-aarch64', 'aarch64'],
    ['tensorrt@10.13.3.9:sm_90:linux-x86_64', 'x86_64'],
    ['tensorrt-rtx@1.7.1.116:sm_121:linux-aarch64', 'aarch64'],
  ])('%s is of its platform wherever it is decided', async (text, arch) => {
    const args = ['--target', text, '--profile', 'x:1x64', '--dry-run', '--json'];
    const { exitCode, json } = await trtforge(['build', model, ...args]);
    const { identity } = await resolveBuild(
      { model, target: text, profiles: ['x:1x64'] },
      { emit: () => {} },
    );
    expect(identity.target).toMatchObject({ os: 'linux', arch });
    expect([exitCode, json<{ resolved: { identity: string } }>().resolved.identity]).toEqual([
      0,
      identityDigest(identity),
    ]);
  });

  test.each([
    ['tensorrt@10.3.0.30:sm_87:linux-x86_64', 2, /exists with Arm processors \(aarch64\) alone/],
    ['tensorrt@10.3.0.30:sm_87:windows-aarch64', 2, /exists with Linux alone/],
    ['tensorrt@10.13.3.9:sm_89:windows-aarch64', 0, /Nothing is known of sm_89 on windows-aarch64/],
    ['tensorrt-rtx@1.7.1.116:sm_121:linux-x86_64', 0, /load on another platform is unproven/],
  ])('%s is decided with exit code %i', async (text, exitCode, message) => {
    const line = ['build', model, '--target', text, '--profile', 'x:1x64', '--dry-run'];
    const decided = await trtforge(line);
    expect(decided.exitCode).toBe(exitCode);
    expect(decided.err).toMatch(message);
  });

  test('without a TensorRT here or a version in the target, the remedy names both', async () => {
    const bare = { ...ownCache, TENSORRT_HOME: '', TRTFORGE_TOOLCHAINS: join(root, 'none') };
    const line = ['build', model, '--target', 'tensorrt:Orin', '--profile', 'x:1x64', '--json'];
    const { error } = (await runLine(line, bare)).json();
    expect(error?.code).toBe('TF_TOOLCHAIN_NOT_FOUND');
    expect(error?.remedy).toContain('tensorrt@VERSION:sm_87');
    expect(error?.remedy).not.toContain('tensorrt-rtx');
  });

  test('is not built where its TensorRT is not', async () => {
    const { exitCode, json } = await trtforge(['build', model, ...target, '--json']);
    expect({ exitCode, code: json().error?.code }).toEqual({ exitCode: 3, code: 'TF_TOOLCHAIN_NOT_FOUND' });
  });
});

describeWith('toolchain', 'an engine of another platform', () => {
  const line = ['--profile', 'x:1x64', '--no-cache', '-o', join(root, 'platform.engine'), '--json'];
  const [here, there] = process.arch === 'arm64' ? ['aarch64', 'x86_64'] : ['x86_64', 'aarch64'];
  const of = (target: string) =>
    runLine(['build', model, '--target', target, ...line], {
      ...ownCache,
      TRTFORGE_TOOLCHAINS: toolchainsFolder(),
    });

  test('is not built by the library of this one, and what to do instead finds its identity', async () => {
    const { exitCode, json } = await of(`tensorrt-rtx:sm_121:linux-${there}`);
    const { code, remedy = '' } = json().error!;
    expect([exitCode, code]).toEqual([3, 'TF_TARGET_UNAVAILABLE']);
    const [, target = ''] = /--target (\S+)$/.exec(remedy) ?? [];
    expect(target).toBe(`tensorrt-rtx@1.7.1.116:sm_121:linux-${there}`);
    expect((await of(target)).json().error?.code).toBe('TF_TOOLCHAIN_NOT_FOUND');
  });

  test('is built where the target names this one', async () => {
    const { exitCode, json } = await of(`tensorrt-rtx@1.7.1.116:sm_121:linux-${here}`);
    expect([exitCode, json()]).toMatchObject([0, { target: 'tensorrt-rtx:sm_121' }]);
  });
});

describe('trtforge build rejects before any work', () => {
  test.each<[string, readonly string[], RegExp]>([
    ['two ways of saying profiles', ['--profile', 'x:1x64', '--batch', '1'], /--profile, --batch/],
    ['a setting that does not exist', ['--builder-config', 'heap=4G'], /`heap=4G` is not a builder setting/],
    [
      'a setting called like a method',
      ['--builder-config', 'constructor=4G'],
      /`constructor=4G` is not a builder setting/,
    ],
    ['a size that is none', ['--workspace', '4X'], /"4X" is not a size/],
    ['an optimization level beyond 5', ['--builder-config', 'optimization-level=6'], /optimization-level: /],
    ['a target that cannot be', ['--target', 'tensorrt-rtx:sm_90'], /sm_90 \(Hopper/],
    [
      'a table of ranges of nothing',
      ['--calibration-cache', 'c.cache'],
      /--calibration-cache is about a conv/,
    ],
    ['a calibration of nothing', ['--calibration', 'sample.npz'], /--calibration is about a conversion/],
    [
      'a limit without a calibration',
      ['--precision', 'fp16', '--config', written('data-max: 512')],
      /there is none/,
    ],
    ['contradicting store options', ['--no-cache', '--force-rebuild'], /contradict each other/],
    ['a file as the store', ['--cache-dir', model], /sample\.onnx is a file/],
    ['a folder as the engine', ['-o', root], /is a folder/],
    ['a misspelt option', ['--precison', 'fp16'], /precison/],
  ])('%s', async (_what, words, message) => {
    const { exitCode, json, err } = await trtforge(['build', model, ...words, '--json']);
    expect(exitCode).toBe(2);
    expect(json()).toMatchObject({
      ok: false,
      exitCode: 2,
      error: { message: expect.stringMatching(message) },
    });
    expect(err).not.toContain('identify');
  });
});

describe('trtforge cache without engines', () => {
  test('lists none, finds none wrong, clears none', async () => {
    const where = ['--cache-dir', join(root, 'empty'), '--json'];
    const [ls, verify, clear] = await Promise.all(
      ['ls', 'verify', 'clear'].map((word) => trtforge(['cache', word, ...where])),
    );
    expect(cacheListSchema.parse(ls?.json()).engines).toEqual([]);
    expect(cacheVerifySchema.parse(verify?.json())).toMatchObject({
      verified: 0,
      exitCode: 4,
    });
    expect(cacheClearSchema.parse(clear?.json()).removed).toBe(0);
  });
});

describeWith('toolchain', 'trtforge build with a real tensorrt-rtx', (toolchain) => {
  const environment = {
    ...ownCache,
    LD_LIBRARY_PATH: [toolchain, process.env.LD_LIBRARY_PATH].filter(Boolean).join(':'),
    // Nothing but the toolchain named: what else is on this machine must not decide.
    TRTFORGE_TOOLCHAINS: join(root, 'none'),
  };
  const run = async (...words: readonly string[]) => runLine(words, environment);
  const ask = [
    '--target',
    'tensorrt-rtx:sm_86,sm_89',
    '--precision',
    'fp16',
    '--profile',
    'x:1x64/8x64/32x64',
    '--profile',
    'x:64x64/64x64/64x64',
  ];
  const build = async (...words: readonly string[]) => {
    const { json } = await run('build', model, ...ask, '--json', ...words);
    return buildResultSchema.parse(json());
  };

  beforeAll(async () => {
    await buildAddon({ say: () => {} });
  });

  test('has a known answer, or states in text, events and JSON why it has none', async () => {
    const folder = join(root, 'answers');
    const words = ['build', model, ...ask, '--cache-dir', folder];
    const built = await run(...words, '--force-rebuild', '--json', '--events');
    const { unanswered } = built.json<{ unanswered: string | null }>();
    const ends = built.err
      .split('\n')
      .filter((line) => line.includes('"known answer"') && !line.includes('phase-start'))
      .map((line) => JSON.parse(line));
    const end = unanswered === null ? { type: 'phase-end' } : { type: 'phase-skipped', reason: unanswered };
    expect(ends).toMatchObject([end]);
    const text = (await run(...words)).out;
    expect(text.includes('answer    none: ')).toBe(unanswered !== null);
    const whole = await run(...words, '--known-answer', '--json');
    expect(whole.json()).toMatchObject({ source: 'local', unanswered: null });
    expect(readPassport(join(whole.json<{ engine: string }>().engine)).knownAnswer).toBeDefined();
  });

  test('a tensorrt-rtx that is named is the one here, whatever CUDA its library names', async () => {
    const [{ version = '' } = {}] = (await run('toolchain', 'list', '--json')).json<{
      toolchains: { version: string }[];
    }>().toolchains;
    const target = ['--target', `tensorrt-rtx@${version}:sm_89`];
    const line = ['build', model, '--profile', 'x:5x64', ...target, '-o', join(root, 'named.engine')];
    const { json } = await run(...line, '--no-cache', '--json');
    expect(buildResultSchema.parse(json()).source).toBe('built');
  });

  test('a remote store that does not answer is a warning, and the last line', async () => {
    const remote = {
      ARTIFACTS_ENDPOINT: 'http://127.0.0.1:1',
      ARTIFACTS_BUCKET: 'team',
      ARTIFACTS_ACCESS_KEY: 'a',
      ARTIFACTS_SECRET_KEY: 'b',
    };
    const line = ['build', model, '--profile', 'x:3x64', '--target', 'tensorrt-rtx:sm_89', '--force-rebuild'];
    const asked = async (...words: readonly string[]) =>
      runLine([...line, ...words], { ...environment, ...remote, XDG_CACHE_HOME: join(root, 'other') });
    const { warnings, source } = buildResultSchema.parse((await asked('--json')).json());
    expect([source, warnings.length]).toEqual(['built', 1]);
    const { exitCode, out } = await asked();
    expect(exitCode).toBe(0);
    expect(out.trimEnd().split('\n').at(-1)).toContain(remote.ARTIFACTS_ENDPOINT);
  });

  test('an endpoint without a bucket is a warning, and a reason of the dry run', async () => {
    const line = ['build', model, '--profile', 'x:3x64', '--target', 'tensorrt-rtx:sm_89', '--json'];
    const asked = async (...words: readonly string[]) =>
      (
        await runLine([...line, ...words], {
          ...environment,
          ARTIFACTS_ENDPOINT: 'http://127.0.0.1:1',
          XDG_CACHE_HOME: join(root, 'other'),
        })
      ).json();
    const about = [expect.stringContaining('ARTIFACTS_BUCKET')];
    expect(buildResultSchema.parse(await asked()).warnings).toEqual(about);
    expect(buildResultSchema.parse(await asked('--remote', 'none')).warnings).toEqual([]);
    expect(await asked('--dry-run', '--force-rebuild')).toMatchObject({
      resolved: {
        why: expect.arrayContaining([expect.objectContaining({ from: 'remote', reason: about[0] })]),
      },
    });
  });

  test('two that start together build one engine, and later ones find it', async () => {
    const args = [main, 'build', model, ...ask, '--json'];
    const started = [1, 2].map(() => promisify(execFile)(process.execPath, args, { env: environment }));
    const both = (await Promise.all(started)).map(({ stdout }) =>
      buildResultSchema.parse(JSON.parse(stdout)),
    );
    expect(both.map(({ source }) => source).sort()).toEqual(['built', 'local']);
    const [first] = both;
    expect(await build()).toMatchObject({ source: 'local', identity: first?.identity, why: [] });
    const engine = first?.engine ?? '';
    const passport = verifyEngine(engine);
    expect(readPlanHeader(engine)).toMatchObject({
      product: 'tensorrt-rtx',
      version: passport.identity.document.target.version,
    });
    expect(passport.plan.inputs).toEqual([
      { name: 'x', dtype: 'float32', shape: [null, 64], symbols: ['batch', null] },
    ]);
    expect(passport.identity.document.recipe.profiles).toHaveLength(2);
    expect(passport.warnings).toEqual([]);
  });

  test('text, -o, and a passport that has everything without a path of this machine', async () => {
    const output = join(root, 'out', 'mine.engine');
    const { out, exitCode } = await run('build', model, ...ask, '-o', output, '--name', 'mine:v2');
    expect(exitCode).toBe(0);
    expect(out).toMatch(/(built|found) in/);
    expect(out).toContain('tensorrt-rtx:sm_86,sm_89');
    const { identity, built } = readPassport(output);
    expect(identity.document.target.computeCapabilities).toEqual([86, 89]);
    expect(built.conversionMs).toBeGreaterThan(0);
    const text = readFileSync(`${output}.passport.json`, 'utf8');
    expect(text).not.toContain(root);
    expect(text).not.toContain(dirname(toolchain));
  });

  test('what a quantized model computes wrongly is a warning', async () => {
    const blocks = join(root, 'blocks.onnx');
    await writeModel(product({}, { scaleShape: [8, 128], axis: 0, block: 32 }).model(), blocks);
    const args = ['--target', 'tensorrt-rtx:sm_89', '-o', join(root, 'blocks.engine'), '--no-cache'];
    const { warnings } = buildResultSchema.parse((await run('build', blocks, ...args, '--json')).json());
    expect(warnings).toEqual(
      expect.arrayContaining([expect.stringMatching(/MatMul "y_MatMul".*\(quantized-blocks\)$/)]),
    );
  });

  test('warnings that need nothing are counted by their kind, whether built or found', async () => {
    const integers = join(root, 'integers.onnx');
    const g = new GraphBuilder('integers');
    for (const name of ['a', 'b']) g.input(name, 'int64', [1, 8]);
    g.node('Add', { name: 'sum', inputs: ['a', 'b'], outputs: ['y'] });
    g.output('y', 'int64', [1, 8]);
    await writeModel(buildModel(g), integers);
    const line = ['build', integers, '--target', 'tensorrt-rtx:sm_89', '--cache-dir', join(root, 'own')];
    for (const source of ['built', 'local']) {
      const { warnings, harmless, ...built } = (await run(...line, '--json')).json<BuildReport>();
      expect(built.source).toBe(source);
      expect(harmless).toEqual([{ id: 'int64-binding', warnings }]);
      expect(warnings.length).toBeGreaterThan(1);
      const { out } = await run(...line);
      expect(out).toContain(`int64-binding ${warnings.length}`);
      expect(out).not.toContain(warnings[0]);
    }
  });

  test('the result of a conversion has its warnings', async () => {
    const plain = join(root, 'plain.onnx');
    const g = new GraphBuilder('plain');
    g.input('x', 'float32', [1, 64]);
    g.initializer('w', tensorFrom('float32', [64, 64], new Float32Array(64 * 64).fill(1 / 64)));
    g.node('MatMul', { name: 'first', inputs: ['x', 'w'], outputs: ['h'] });
    g.node('MatMul', { name: 'last', inputs: ['h', 'w'], outputs: ['y'] });
    g.output('y', 'float32', [1, 64]);
    await writeModel(buildModel(g), plain);
    const samples = join(root, 'plain.npz');
    writeNpz(samples, new Map([['x', tensorFrom('float32', [1, 64], new Float32Array(64).fill(2))]]));
    const args = ['--target', 'tensorrt-rtx:sm_89', '-o', join(root, 'plain.engine'), '--no-cache'];
    const quantized = [...args, '--precision', 'int8', '--calibration', samples, '--json'];
    const { warnings } = buildResultSchema.parse((await run('build', plain, ...quantized)).json());
    expect(warnings).toEqual(expect.arrayContaining([expect.stringContaining('1 sample')]));
  });

  test('a quantized model is reported by what it computes in, from the build on', async () => {
    const quantized = join(root, 'quantized.onnx');
    await writeModel(convolution({ weights: { scales: perChannel(64), axis: 1 } }).model(), quantized);
    const engine = join(root, 'quantized.engine');
    const args = ['build', quantized, '--target', 'tensorrt-rtx:sm_89', '-o', engine, '--no-cache'];
    const precisions = {
      operators: [{ op: 'Conv', nodes: 1, types: { float32: 1 } }],
      floating: [{ node: 'y0_Conv', requested: 'int8', finding: 'quantized-weight-axis' }],
    };
    expect(buildResultSchema.parse((await run(...args, '--json')).json())).toMatchObject({ precisions });
    const built = await run(...args);
    expect(built.out).toContain('y0_Conv runs in FP32');
    const inspected = await run('engine', 'inspect', engine, '--json');
    const [facts] = enginesInspectedSchema.loose().parse(inspected.json()).engines;
    expect(facts).toMatchObject({
      passport: { content: { plan: { precisions } } },
      program: {
        architectures: ['sm_89'],
        operators: [{ operator: 'convolution', types: { float32: 1 } }],
      },
    });
    const text = (await run('engine', 'inspect', engine)).out;
    expect(text).toContain('1 convolution in FP32');
    expect(text).toContain('y0_Conv runs in FP32');
  });

  test('cache why: in the store, or what differs from the nearest', async () => {
    const found = cacheWhySchema.parse((await run('cache', 'why', model, ...ask, '--json')).json());
    expect(found).toMatchObject({ engine: expect.stringContaining('engine.plan'), why: [] });
    const other = await run('cache', 'why', model, ...ask, '--workspace', '1G', '--json');
    expect(cacheWhySchema.parse(other.json())).toMatchObject({
      engine: null,
      why: [{ differences: [{ field: 'recipe.memoryPools.workspace', wanted: 2 ** 30, stored: null }] }],
    });
    const { out } = await run('cache', 'why', model, ...ask, '--workspace', '1G');
    expect(out).toContain('recipe.memoryPools.workspace: wanted 1073741824, stored null');
  });

  test('cache ls, verify and clear', async () => {
    const { out } = await run('cache', 'ls');
    expect(out).toMatch(/sample_[0-9a-f]{8}_fp16_sm_86-89_1\.7\.1\.\d+\.engine/);
    expect((await run('cache', 'verify')).exitCode).toBe(0);
    const { engine } = await build();
    writeFileSync(engine, readFileSync(engine).fill(7, 1000, 1100));
    const { exitCode, out: bad } = await run('cache', 'verify');
    expect(exitCode).toBe(1);
    expect(bad).toContain('TF_ENGINE_DIGEST_MISMATCH');
    expect(await build()).toMatchObject({ source: 'built', why: [{ code: 'TF_ENGINE_DIGEST_MISMATCH' }] });
    expect((await run('cache', 'clear', '--yes')).out).toContain('1 engine removed');
    expect(await build()).toMatchObject({ source: 'built' });
  });

  test('an open dimension without a range ends with sizes to copy', async () => {
    const { exitCode, err } = await run('build', model, '--target', 'tensorrt-rtx');
    expect(exitCode).toBe(2);
    expect(err).toContain('--batch 1/8/32');
    expect((await run('build', model, '--target', 'tensorrt-rtx:sm_89', '--batch', '1/8/32')).exitCode).toBe(
      0,
    );
  });
});
