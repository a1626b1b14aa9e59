import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sha256 } from '../../src/base/files/digest.js';
import { UNPUBLISHED_SUFFIX } from '../../src/base/files/publish.js';
import { passportPath } from '../../src/engines/identity/engine-name.js';
import { readPassport } from '../../src/engines/identity/passport.js';
import { TrtforgeError } from '../../src/errors.js';
import type { WorkEvent } from '../../src/events.js';
import type { Machine } from '../../src/forge/environment.js';
import { forge } from '../../src/forge/forge.js';
import type { ForgeOptions } from '../../src/forge/options.js';
import { type ForgeResult, forgeResultSchema } from '../../src/report/forge-result.js';
import { forgeReport } from '../../src/report/pages/forge.js';
import { readReport } from '../../src/report/pages/report.js';
import { missLines } from '../../src/report/sentences.js';
import { modelFile } from '../engines/runtime/onnxruntime/models.js';
import { dynamicModel, staticModel, unknownOpModel } from '../native/tiny-models.js';
import { describeWith, found } from '../support/needs.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-forge-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const runRoot = (name: string): string => join(folder, name);
const profile = 'x:1x64/8x64/32x64';
const statuses = ({ phases }: ForgeResult) =>
  Object.fromEntries(phases.map(({ name, status }) => [name, status]));

/** Files of a folder and its folders, none of them half-written. */
function filesUnder(root: string): readonly string[] {
  const all = readdirSync(root, { recursive: true, encoding: 'utf8' }).sort();
  expect(all.filter((path) => path.endsWith(UNPUBLISHED_SUFFIX))).toEqual([]);
  return all;
}

describe('forge without TensorRT', () => {
  let result: ForgeResult;
  const events: WorkEvent[] = [];
  beforeAll(async () => {
    result = await forge(
      {
        model: dynamicModel(folder),
        precision: 'fp16',
        skip: ['build', 'verify'],
        runRoot: runRoot('no-build'),
      },
      { emit: (event) => events.push(event) },
    );
  });

  test('inspects and converts, and names what it left out with the reason', () => {
    expect(statuses(result)).toMatchObject({
      inspect: 'done',
      resolve: 'skipped',
      convert: 'done',
      build: 'skipped',
      verify: 'skipped',
      bench: 'skipped',
    });
    expect(result.conversion).toMatchObject({ precision: 'fp16', nodes: { converted: 2, kept: 0 } });
    expect([result.engine, result.build]).toEqual([null, null]);
  });

  test('leaves a run root that has the same as what it returned', () => {
    expect(readReport(result.runRoot, [forgeReport]).result).toEqual(JSON.parse(JSON.stringify(result)));
    expect(filesUnder(result.runRoot)).toEqual(
      expect.arrayContaining([
        'report.html',
        'report.md',
        'timings.json',
        join('model', 'dynamic.fp16.onnx'),
      ]),
    );
    for (const { path } of result.files) expect(existsSync(join(result.runRoot, path)), path).toBe(true);
  });

  test('reports every phase while it works', () => {
    const told = events.flatMap((event) =>
      event.type === 'phase-end' || event.type === 'phase-skipped' ? [event.phase] : [],
    );
    expect(told).toEqual(expect.arrayContaining(['inspect', 'convert', 'build', 'bench', 'report']));
  });
});

describe('forge that cannot go on', () => {
  test('a model that is not there throws before anything is written', async () => {
    const root = runRoot('never');
    await expect(forge({ model: join(folder, 'nowhere.onnx'), runRoot: root })).rejects.toMatchObject({
      code: 'TF_FILE_NOT_FOUND',
    });
    expect(existsSync(root)).toBe(false);
  });

  test('what is no model stops in inspect, with code, remedy and exit code, and leaves no report', async () => {
    const path = join(folder, 'text.onnx');
    writeFileSync(path, 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n');
    const result = await forge({ model: path, runRoot: runRoot('text') });
    expect(result).toMatchObject({
      exitCode: 2,
      error: { phase: 'inspect', code: 'TF_ONNX_NOT_A_MODEL' },
      verdict: { outcome: 'error' },
      model: null,
      report: null,
      files: [],
    });
    expect(new Set(Object.values(statuses(result)))).toEqual(new Set(['failed', 'not-reached']));
    expect(existsSync(result.runRoot)).toBe(false);
  });

  test('a run that finished keeps its report, whatever stops a later one before it has a new engine', async () => {
    const root = runRoot('kept');
    const wishes = { model: staticModel(folder), precision: 'fp16', skip: ['build'], runRoot: root } as const;
    const good = await forge(wishes);
    expect(good.report).toBe(join(root, 'report.html'));
    const contents = () =>
      filesUnder(root).map((path) => [
        path,
        statSync(join(root, path)).isFile() && readFileSync(join(root, path)),
      ]);
    const before = contents();
    const text = join(folder, 'text.onnx');
    writeFileSync(text, 'no model');
    const failures = [
      await forge({ ...wishes, model: text }),
      await forge({ ...wishes, skip: [], profiles: ['absent:1x2'] }),
      await forge(wishes, { signal: AbortSignal.abort() }),
    ];
    expect(failures.map(({ exitCode }) => exitCode).slice(0, 1)).toEqual([2]);
    for (const { report, error } of failures) expect([report, error === null]).toEqual([null, false]);
    expect(contents()).toEqual(before);
  });

  test('a run root that cannot be is an error before any work', async () => {
    const file = join(folder, 'in-the-way');
    writeFileSync(file, '');
    await expect(
      forge({ model: staticModel(folder), skip: ['build'], runRoot: join(file, 'run') }),
    ).rejects.toMatchObject({ code: 'TF_WRITE_FAILED' });
  });

  test('cancelled before it began it still leaves a report that states it', async () => {
    const result = await forge(
      { model: staticModel(folder), precision: 'fp16', skip: ['build'], runRoot: runRoot('cancelled') },
      { signal: AbortSignal.abort() },
    );
    expect(result).toMatchObject({ exitCode: 4, error: { code: 'TF_CANCELLED', phase: 'inspect' } });
    expect(existsSync(result.report!)).toBe(true);
  });
});

describeWith('toolchain', 'forge with tensorrt-rtx', (libraries) => {
  const store = join(folder, 'store');
  // Comparing has its own tests below; engines are what these are about.
  const options = {
    skip: ['verify'],
    model: '',
    precision: 'fp16',
    target: 'tensorrt-rtx:sm_89',
    profiles: [profile],
    toolchain: libraries,
    store,
  } as const;
  let model: string;
  let first: ForgeResult;
  beforeAll(async () => {
    model = dynamicModel(folder);
    first = await forge({ ...options, model, runRoot: runRoot('first') });
  });

  test('goes the whole way to a real engine whose passport fits it', () => {
    expect(first.error).toBeNull();
    expect(first).toMatchObject({ exitCode: 0, verdict: { outcome: 'built' }, build: { source: 'built' } });
    const passport = readPassport(first.engine!);
    expect(passport.plan.sha256).toBe(sha256(readFileSync(first.engine!)));
    expect(first.build).toMatchObject({ identity: passport.identity.digest, passport });
    expect(first.passport).toBe(passportPath(first.engine!));
    expect(basename(first.engine!)).toMatch(/^dynamic_[0-9a-f]{8}_fp16_sm_89_1\.\d+\.\d+\.\d+\.engine$/);
    forgeResultSchema.parse(JSON.parse(JSON.stringify(first)));
  });

  test('builds from the model it converted, once', () => {
    expect(first.phases.find(({ name }) => name === 'build')?.steps.map(({ name }) => name)).not.toContain(
      'convert',
    );
    const passport = readPassport(first.engine!);
    expect(passport.built.conversionMs).toBeGreaterThan(0);
    expect(passport.identity.document.recipe.precision).toBe('fp16');
  });

  test('keeps what the library logged in the log of the build', () => {
    expect(readFileSync(join(first.runRoot, 'logs', 'build.log'), 'utf8')).toMatch(/^\s+\d+\.\d{3} {2}\S/m);
  });

  test('a second run finds the engine in the store and reports when it was built', async () => {
    const again = await forge({ ...options, model, runRoot: runRoot('again') });
    expect(again.build).toMatchObject({
      source: 'local',
      identity: first.build?.identity,
      passport: { built: first.build?.passport.built },
      why: [],
    });
    expect(readFileSync(again.engine!)).toEqual(readFileSync(first.engine!));
  });

  test('a changed recipe is another engine, and the report names the field that differs', async () => {
    const changed = await forge({
      ...options,
      model,
      settings: { optimizationLevel: 1 },
      runRoot: runRoot('changed'),
    });
    expect(changed.build?.source).toBe('built');
    expect(changed.build?.why).toMatchObject([
      {
        from: 'local',
        nearest: { name: first.build?.passport.name },
        differences: [{ field: 'recipe.optimizationLevel' }],
      },
    ]);
    expect(missLines(changed.build!.why[0]!).join()).toContain('recipe.optimizationLevel: wanted');
  });

  test('a forced rebuild shows how long the last one took while it runs', async () => {
    const events: WorkEvent[] = [];
    const rebuilt = await forge(
      { ...options, model, forceRebuild: true, runRoot: runRoot('forced') },
      { emit: (event) => events.push(event) },
    );
    expect(rebuilt.build?.source).toBe('built');
    expect(events).toContainEqual({
      type: 'phase-start',
      phase: 'build',
      detail: expect.stringMatching(/^last built in \d/),
    });
  });

  test('a missing range stops in resolve, before any time is spent, with a ready-made suggestion', async () => {
    const result = await forge({ ...options, model, profiles: [], runRoot: runRoot('no-profile') });
    expect(statuses(result)).toMatchObject({ inspect: 'done', resolve: 'failed', convert: 'not-reached' });
    expect(result.error).toMatchObject({
      code: 'TF_PROFILE_MISSING',
      remedy: expect.stringContaining('--batch 1/8/32'),
    });
    expect(result.exitCode).toBe(2);
  });

  test('a model that the library rejects stops in build; what came before is in the report', async () => {
    const refused = unknownOpModel(folder);
    const conversion = { allowUnconverted: true };
    const request = { ...options, model: refused, profiles: [], conversion };
    const result = await forge({ ...request, runRoot: runRoot('refused') });
    expect(result.error).toMatchObject({ phase: 'build', code: 'TF_MODEL_REJECTED' });
    expect(result.model?.nodesTotal).toBe(2);
    expect(result.conversion).not.toBeNull();
    expect(filesUnder(result.runRoot).filter((path) => path.startsWith('engines'))).toEqual([]);
    expect(readFileSync(result.report!, 'utf8')).toContain('Frobnicate');
  });

  test('a library that dies stops in build too, and its report names the signal', async () => {
    const result = await forge(
      { ...options, model, store: false, runRoot: runRoot('died') },
      {
        build: async () => {
          throw new TrtforgeError('TF_CHILD_DIED', 'The process building it was killed by SIGSEGV.');
        },
      },
    );
    expect(result).toMatchObject({ exitCode: 5, error: { phase: 'build', code: 'TF_CHILD_DIED' } });
    expect(readFileSync(result.report!, 'utf8')).toContain('SIGSEGV');
  });

  const machine = (gpus: Machine['gpus']): Machine => ({
    os: 'linux',
    processor: 'p',
    processors: 1,
    memoryBytes: 1,
    node: '20',
    gpus,
  });

  test.each([
    [
      'no driver',
      { gpus: [], cudaVersion: null, driverVersion: null, reason: 'there is no NVIDIA driver: libcuda' },
      'this machine has no usable NVIDIA GPU (there is no NVIDIA driver)',
    ],
    [
      'a GPU that the engine does not serve',
      {
        gpus: [
          {
            index: 0,
            name: 'NVIDIA H200',
            uuid: 'u',
            computeCapability: 90,
            memoryBytes: 1,
            multiprocessors: 1,
          },
        ],
        cudaVersion: '13.0',
        driverVersion: '580',
        reason: null,
      },
      'the engine serves sm_89 and GPU 0 is NVIDIA H200, sm_90',
    ],
  ])('on a machine with %s, running the engine is skipped with that reason', async (name, gpus, reason) => {
    const result = await forge({ ...options, model, runRoot: runRoot(name) }, { machine: machine(gpus) });
    for (const phase of ['verify engine', 'bench'])
      expect(result.phases.find((each) => each.name === phase)).toMatchObject({
        status: 'skipped',
        detail: reason,
      });
  });
});

describeWith('onnxruntime', 'forge that compares', () => {
  const compare = (more: Partial<ForgeOptions>) =>
    forge({ model: dynamicModel(folder), precision: 'fp16', skip: ['build'], ...more });

  test('holds the typed model against the original, and passes with numbers', async () => {
    const result = await compare({ runRoot: runRoot('compared'), verify: { samples: 2, seed: 5 } });
    expect(result).toMatchObject({ exitCode: 0, verdict: { outcome: 'pass' }, error: null });
    expect(result.verification).toMatchObject({ precision: 'fp16', samples: 6, seed: 5, outcome: 'pass' });
    const [output] = result.verification!.outputs;
    expect(output!.checks.every(({ pass }) => pass)).toBe(true);
    expect(output!.statistics.find(({ name }) => name === 'max')?.amount).toBeGreaterThan(0);
    expect(readFileSync(result.report!, 'utf8')).toContain('Distribution of the absolute error of y');
    expect(existsSync(join(result.runRoot, 'steps', 'verify.json'))).toBe(true);
  });

  test('an output outside tolerance is exit 1 with every step still taken and the report written', async () => {
    const result = await compare({
      runRoot: runRoot('off'),
      verify: { samples: 1, atol: [{ name: null, value: 1e-9 }] },
    });
    expect(result).toMatchObject({ exitCode: 1, verdict: { outcome: 'fail' }, error: null });
    expect(statuses(result)).toMatchObject({ verify: 'done', bench: 'skipped' });
    expect(result.verdict.reasons.join('\n')).toMatch(/^y: /m);
    expect(readFileSync(result.report!, 'utf8')).toContain('<p class="verdict-word">Fail</p>');
  });

  test('a model that is built as it is has nothing to be compared with', async () => {
    const result = await compare({ precision: 'as-is', runRoot: runRoot('as-is') });
    expect(result.phases.find(({ name }) => name === 'verify')).toMatchObject({
      status: 'skipped',
      detail: 'the model was not converted, so there is no typed model to compare',
    });
    expect(result.exitCode).toBe(4);
  });
});

describeWith('toolchain', 'forge that builds and compares', (libraries) => {
  test.skipIf(found('onnxruntime') === undefined)(
    'compares at the shapes that the engine is optimized for',
    async () => {
      const result = await forge({
        model: dynamicModel(folder),
        precision: 'bf16',
        target: 'tensorrt-rtx:sm_89',
        profiles: [profile],
        toolchain: libraries,
        store: join(folder, 'store'),
        runRoot: runRoot('whole'),
      });
      expect(result.error).toBeNull();
      expect(result.verdict).toMatchObject({
        outcome: 'pass',
        headline:
          'The typed model agrees with the original on every output, on drawn samples, and the engine was built from it.',
      });
      expect(result.verification?.inputs).toMatchObject([{ name: 'x', shape: [8, 64] }]);
      expect([result.repeat, result.verification?.repeat]).toEqual([null, null]);
    },
  );

  test.skipIf(found('onnxruntime') === undefined)(
    'compares an input without a shape as the scalar that the engine takes',
    async () => {
      const model = await modelFile((graph) => {
        graph.input('x', 'float32', [4, 8]);
        graph.input('scale', 'float32', null);
        graph.node('Mul', { inputs: ['x', 'scale'], outputs: ['m'] });
        graph.node('Tanh', { inputs: ['m'], outputs: ['y'] });
        graph.output('y', 'float32', [4, 8]);
      });
      const result = await forge({
        model,
        precision: 'fp16',
        target: 'tensorrt-rtx:sm_89',
        toolchain: libraries,
        store: join(folder, 'store'),
        runRoot: runRoot('scalar'),
      });
      expect(result.error).toBeNull();
      expect(result.verification?.inputs).toMatchObject([
        { name: 'x', shape: [4, 8] },
        { name: 'scale', shape: [] },
      ]);
    },
  );
});
