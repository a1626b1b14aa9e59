import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import type { BuildFiles, BuildOptions, ResolvedBuild } from '../../../src/engines/builder/options.js';
import { buildResult, buildResultSchema } from '../../../src/engines/builder/result.js';
import { calibrationOf } from '../../../src/engines/calibration/calibration.js';
import { readPassport } from '../../../src/engines/identity/passport.js';
import { verifyEngine } from '../../../src/engines/plan/verify-engine.js';
import { TrtforgeError } from '../../../src/errors.js';
import type { WorkEvent } from '../../../src/events.js';
import { openModel } from '../../../src/formats/onnx/model.js';
import { convertModel } from '../../../src/formats/precision/convert.js';
import type { Calibration } from '../../../src/formats/precision/options.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { buildOrLoad } from '../../../src/quality/known-answer/build-or-load.js';
import { missLines } from '../../../src/report/sentences.js';
import { countingBuilder } from '../../fakes/builder.js';
import { sampleOutcome, samplePlan, sampleToolchain, writeSampleModel } from '../../support/sample-engine.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-obtain-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folder = root;
let model = '';
beforeEach(async () => {
  folder = mkdtempSync(join(root, 'case-'));
  model = await writeSampleModel(join(folder, 'sample.onnx'));
});

const profile = 'x:1x64/8x64/32x64';
const obtain = (
  wishes: Partial<BuildOptions>,
  build = countingBuilder().build,
  emit = (_: WorkEvent) => {},
) =>
  buildOrLoad(
    {
      model,
      target: 'tensorrt-rtx:sm_89',
      toolchain: sampleToolchain,
      knownAnswer: false,
      profiles: [profile],
      ...wishes,
    },
    { build, emit, environment: { XDG_CACHE_HOME: join(folder, 'xdg') } },
  );

async function refusal(attempt: Promise<unknown>): Promise<TrtforgeError> {
  const error: unknown = await attempt.then(
    () => undefined,
    (reason) => reason,
  );
  if (error instanceof TrtforgeError) return error;
  throw new Error(`a TrtforgeError was expected, not ${String(error)}`);
}

describe('build or load', () => {
  test('builds the first time, loads the second, and reports which', async () => {
    const { build, count } = countingBuilder();
    const first = await obtain({}, build);
    expect(first).toMatchObject({ source: 'built', why: [{ from: 'local', code: null, nearest: null }] });
    expect(first.engine).toContain(join(folder, 'xdg', 'trtforge', 'engines', 'by-identity'));
    const second = await obtain({}, build);
    expect(second).toMatchObject({
      source: 'local',
      why: [],
      identity: first.identity,
      engine: first.engine,
    });
    expect(second.timings.buildMs).toBe(0);
    expect(count()).toBe(1);
    expect(buildResultSchema.parse(buildResult(second))).toMatchObject({
      source: 'local',
      target: 'tensorrt-rtx:sm_89',
      profiles: 1,
      layers: expect.any(Number),
      bytes: 4096,
    });
  });

  test('puts no engine over what it reads: the model, its weights elsewhere, a plug-in, the first time and when it is remembered', async () => {
    const { build, count } = countingBuilder();
    const external = await writeSampleModel(join(folder, 'external.onnx'), { external: true });
    const plugin = join(folder, 'plugin.so');
    writeFileSync(plugin, 'library');
    const inputs = [external, `${external}.data`, plugin];
    const before = inputs.map((path) => readFileSync(path));
    const wishes = { model: external, plugins: [plugin] };
    // Past the time in which a file is too young to be remembered.
    await new Promise((resolve) => setTimeout(resolve, 100));
    for (const store of [undefined, false, undefined] as const)
      for (const output of inputs)
        expect((await refusal(obtain({ ...wishes, store, output }, build))).code).toBe('TF_OUTPUT_IS_INPUT');
    expect(count()).toBe(0);
    expect(inputs.map((path) => readFileSync(path))).toEqual(before);
  });

  test('a timing cache that is named for tensorrt-rtx is not used, and a warning names it', async () => {
    const events: WorkEvent[] = [];
    const timingCache = join(folder, 'times.cache');
    const { build } = countingBuilder();
    const used: (string | null)[] = [];
    await obtain(
      { timingCache },
      (request, ...rest) => {
        used.push(request.timingCache);
        return build(request, ...rest);
      },
      (event) => events.push(event),
    );
    expect(used).toEqual([null]);
    expect(events).toContainEqual({
      type: 'log',
      source: 'trtforge',
      severity: 'warning',
      message: expect.stringContaining(timingCache),
    });
  });

  test('a model that only moved its weights is the same; one changed weight is another', async () => {
    const { build, count } = countingBuilder();
    const first = await obtain({}, build);
    const moved = await obtain(
      { model: await writeSampleModel(join(folder, 'other.onnx'), { external: true }) },
      build,
    );
    expect(moved).toMatchObject({ source: 'local', identity: first.identity });
    await writeSampleModel(model, { scale: 0.02 });
    const changed = await obtain({}, build);
    expect(changed).toMatchObject({
      source: 'built',
      why: [
        {
          reason: expect.stringMatching(
            /has no engine of this model; the one named sample there is of another content$/,
          ),
          nearest: null,
          differences: [],
        },
      ],
    });
    expect(count()).toBe(2);
  });

  test('a store with other models only is reported, and not how their engines differ', async () => {
    expect((await obtain({})).why[0]?.reason).toMatch(/has no engine of this model$/);
    const other = await writeSampleModel(join(folder, 'other.onnx'), { scale: 0.02 });
    const { why } = await obtain({ model: other });
    expect(why).toEqual([
      {
        from: 'local',
        code: null,
        reason: expect.stringMatching(/has no engine of this model$/),
        nearest: null,
        differences: [],
      },
    ]);
    expect(missLines(why[0]!)).toEqual([`local store: miss (${why[0]?.reason})`]);
  });

  test('an engine of the model is reported, however many engines of others are newer and nearer', async () => {
    const first = await obtain({});
    const other = await writeSampleModel(join(folder, 'other.onnx'), { scale: 0.02 });
    const farther = { profiles: ['x:1x64/8x64/64x64'] };
    await obtain({ model: other, ...farther });
    const { why } = await obtain(farther);
    expect(why).toMatchObject([
      {
        nearest: { identity: first.identity },
        differences: [{ field: 'recipe.profiles.0.x.max' }],
      },
    ]);
  });

  test('a miss names the nearest engine and the field that differs', async () => {
    const first = await obtain({});
    const { why } = await obtain({ profiles: ['x:1x64/8x64/64x64'] });
    expect(why).toEqual([
      {
        from: 'local',
        code: null,
        reason: expect.stringContaining('has no engine of this identity'),
        nearest: { identity: first.identity, name: first.passport.name },
        differences: [{ field: 'recipe.profiles.0.x.max', wanted: [64, 64], stored: [32, 64] }],
      },
    ]);
  });

  test('a damaged engine is reported, built again and replaced', async () => {
    const { engine } = await obtain({});
    writeFileSync(engine, samplePlan(9));
    const again = await obtain({});
    expect(again).toMatchObject({
      source: 'built',
      why: [{ code: 'TF_ENGINE_DIGEST_MISMATCH', nearest: null }],
    });
    expect(verifyEngine(engine)).toEqual(again.passport);
    expect((await obtain({})).source).toBe('local');
  });

  test('forced, it builds again and replaces what the store has', async () => {
    await obtain({});
    const forced = await obtain({ forceRebuild: true }, countingBuilder(samplePlan(7)).build);
    expect(forced).toMatchObject({
      source: 'built',
      why: [{ reason: expect.stringContaining('--force-rebuild') }],
    });
    expect(readFileSync((await obtain({})).engine)).toEqual(samplePlan(7));
  });

  test('-o writes engine and passport where it names, from a build and from a hit', async () => {
    for (const name of ['one.engine', 'two.engine']) {
      const output = join(folder, 'out', name);
      const { engine, passportPath } = await obtain({ output });
      expect([engine, passportPath]).toEqual([output, `${output}.passport.json`]);
      expect(verifyEngine(output)).toEqual(readPassport(output));
    }
    expect(readdirSync(join(folder, 'out'))).toHaveLength(4);
  });

  test('without a store nothing is kept but the output', async () => {
    const { build, count } = countingBuilder();
    const output = join(folder, 'out', 'm.engine');
    for (let time = 1; time <= 2; time++) {
      expect(await obtain({ store: false, output }, build)).toMatchObject({
        source: 'built',
        readablePath: null,
      });
    }
    expect(count()).toBe(2);
    expect(readdirSync(join(folder, 'out')).sort()).toEqual(['m.engine', 'm.engine.passport.json']);
    expect(existsSync(join(folder, 'xdg', 'trtforge', 'engines'))).toBe(false);
  });
});

describe('what the builder is given', () => {
  const capture = () => {
    const requests: (ResolvedBuild & { readonly files: BuildFiles })[] = [];
    const build = async (request: ResolvedBuild, files: BuildFiles) => {
      requests.push({ ...request, files });
      writeFileSync(files.planPath, samplePlan());
      return sampleOutcome(4096);
    };
    return { requests, build };
  };

  test('the model as it is, the recipe, the capabilities, a place that is not the final one', async () => {
    const { requests, build } = capture();
    const { engine, passport } = await obtain(
      { settings: { optimizationLevel: 5, flags: ['refit', 'no-tf32', 'refit'] } },
      build,
    );
    expect(requests).toMatchObject([
      {
        toolchain: sampleToolchain,
        modelPath: model,
        files: { modelPath: model, planPath: expect.stringContaining('.unpublished') },
        identity: {
          recipe: { optimizationLevel: 5, flags: ['no-tf32', 'refit'], stronglyTyped: true },
          target: { computeCapabilities: [89] },
        },
        conversion: null,
        timingCache: null,
        pluginPaths: [],
        builder: 'native',
      },
    ]);
    expect(requests[0]?.files.planPath).not.toBe(engine);
    expect(passport.identity.document).toEqual(requests[0]?.identity);
  });

  test('the converted model when a precision is asked for; a hit then converts nothing', async () => {
    const types: string[] = [];
    const build = async (_: ResolvedBuild, { modelPath, planPath }: BuildFiles) => {
      const converted = openModel(modelPath);
      types.push(...(converted.proto.graph?.initializer ?? []).map((tensor) => String(tensor.dataType)));
      converted.close();
      writeFileSync(planPath, samplePlan());
      return sampleOutcome(4096);
    };
    const first = await obtain({ precision: 'fp16' }, build);
    expect(types).toEqual(['10']);
    expect(first.passport.built.conversionMs).toBeGreaterThan(0);
    expect(first.passport.name).toMatch(/^sample_[0-9a-f]{8}_fp16_sm_89_1\.7\.1\.116\.engine$/);
    const phases: string[] = [];
    const second = await obtain(
      { precision: 'fp16' },
      build,
      (event) => void (event.type === 'phase-start' && phases.push(event.phase)),
    );
    expect(second.source).toBe('local');
    expect(phases).not.toContain('convert');
    const kept = await obtain({ precision: 'fp16', conversion: { keepOps: new Set(['Softmax']) } }, build);
    expect(kept.source).toBe('built');
    expect(kept.why[0]?.differences.map(({ field }) => field)).toEqual(['recipe.conversion.keepOps']);
  });

  test('a model whose conversion is calibrated by the samples passed, which a hit does not run', async () => {
    const sample = join(folder, 'sample.npz');
    writeNpz(sample, new Map([['x', tensorFrom('float32', [1, 64], new Float32Array(64))]]));
    const observed: string[] = [];
    const observe: Calibration['observe'] = async (path) => {
      observed.push(path);
      return new Map([['y', { min: 0, max: 1e6 }]]);
    };
    const options = {
      precision: 'fp16',
      conversion: { calibration: { ...calibrationOf({ data: [sample] }), observe }, allowUnconverted: true },
    } as const;
    const types: (string | undefined)[] = [];
    const build = async (_: ResolvedBuild, { modelPath, planPath }: BuildFiles) => {
      const built = openModel(modelPath);
      types.push(...(built.proto.graph?.initializer ?? []).map((tensor) => String(tensor.dataType)));
      built.close();
      writeFileSync(planPath, samplePlan());
      return sampleOutcome(4096);
    };
    const first = await obtain(options, build);
    expect((await obtain(options, build)).source).toBe('local');
    // y goes beyond FP16, so the product and its weights stay FP32.
    expect({ observed: observed.length, types }).toEqual({ observed: 1, types: ['1'] });
    expect(first.passport.identity.document.recipe.conversion?.calibration).toMatch(/^[0-9a-f]{64}$/);
    expect((await obtain({ precision: 'fp16' }, build)).source).toBe('built');
  });

  test('nothing when a builder returns less than it stated, something else, or another version', async () => {
    const broken: readonly [string, string, Buffer, number][] = [
      ['TF_BUILD_FAILED', 'left 4096 bytes', samplePlan(), 5000],
      ['TF_BUILD_FAILED', 'left 100 bytes', samplePlan(0, 100), 100],
      ['TF_PLAN_INVALID', 'not a TensorRT plan', Buffer.alloc(4096, 1), 4096],
      [
        'TF_ENGINE_HEADER_MISMATCH',
        '1.7.2.116',
        Buffer.from(samplePlan().map((byte, at) => (at === 26 ? 2 : byte))),
        4096,
      ],
    ];
    for (const [code, message, plan, bytes] of broken) {
      const build = async (_: ResolvedBuild, { planPath }: BuildFiles) => {
        writeFileSync(planPath, plan);
        return sampleOutcome(bytes);
      };
      const error = await refusal(obtain({}, build));
      expect(error.code).toBe(code);
      expect(error.message).toContain(message);
    }
    expect((await refusal(obtain({}, async () => sampleOutcome(4096)))).message).toContain('wrote no plan');
    const store = join(folder, 'xdg', 'trtforge', 'engines');
    expect(existsSync(join(store, 'by-identity'))).toBe(false);
    expect(readdirSync(join(store, 'pending'))).toEqual([]);
    expect(readdirSync(join(store, 'leases'))).toEqual([]);
  });
});

describe('requests that cannot be met stop before any build', () => {
  test.each<[string, string, Partial<BuildOptions>]>([
    ['TF_PROFILE_MISSING', 'no profile', { profiles: [] }],
    ['TF_PROFILE_INVALID', 'an unknown input', { profiles: ['y:1x64'] }],
    ['TF_TARGET_UNSUPPORTED', 'Hopper for tensorrt-rtx', { target: 'tensorrt-rtx:sm_90' }],
    ['TF_TARGET_UNSUPPORTED', 'BF16 for Turing', { target: 'tensorrt-rtx:sm_75', precision: 'bf16' }],
    ['TF_FILE_NOT_FOUND', 'no model', { model: '/nowhere/m.onnx' }],
    ['TF_FILE_NOT_FOUND', 'no plug-in', { plugins: ['/nowhere/plugin.so'] }],
  ])('%s: %s', async (code, _what, wishes) => {
    const { build, count } = countingBuilder();
    expect((await refusal(obtain(wishes, build))).code).toBe(code);
    expect(count()).toBe(0);
  });

  test('a model that already has a type which the target lacks', async () => {
    const { build, count } = countingBuilder();
    const typed = join(folder, 'typed.onnx');
    await convertModel(model, typed, { precision: 'bf16' });
    const wishes = { model: typed, precision: 'as-is' } as const;
    const error = await refusal(obtain({ ...wishes, target: 'tensorrt-rtx:sm_75,sm_89' }, build));
    expect([error.code, count()]).toEqual(['TF_TARGET_UNSUPPORTED', 0]);
    await obtain({ ...wishes, target: 'tensorrt-rtx:sm_89' }, build);
    expect(count()).toBe(1);
  });

  test.each([
    ['a setting that there is not', { optimisationLevel: 5 }, /"optimisationLevel".* "optimizationLevel"\?/],
    ['text for a number', { optimizationLevel: '5' }, /"optimizationLevel": a number is expected here/],
    ['one memory pool of five', { memoryPools: { workspace: 1 } }, /"memoryPools\.\w+": it is missing/],
  ])('settings of a caller without types: %s', async (_, settings, message) => {
    const { build, count } = countingBuilder();
    const error = await refusal(obtain({ settings: settings as BuildOptions['settings'] & {} }, build));
    expect([error.code, count()]).toEqual(['TF_USAGE', 0]);
    expect(error.message).toMatch(message);
  });

  test('cancelled before it starts', async () => {
    const { build, count } = countingBuilder();
    const signal = AbortSignal.abort();
    const attempt = buildOrLoad(
      { model, target: 'tensorrt-rtx', toolchain: sampleToolchain, knownAnswer: false, profiles: [profile] },
      { build, signal, environment: { XDG_CACHE_HOME: join(folder, 'xdg') } },
    );
    expect((await refusal(attempt)).code).toBe('TF_CANCELLED');
    expect(count()).toBe(0);
  });
});

describe('several stores', () => {
  test('a layer below the store serves, and nothing is written into either', async () => {
    const [base, top] = [join(folder, 'base'), join(folder, 'top')];
    const built = await obtain({ store: base });
    const { build, count } = countingBuilder();
    const found = await obtain({ store: top, layers: [join(folder, 'empty'), base] }, build);
    expect(found).toMatchObject({ source: 'local', engine: built.engine, rule: 'exact' });
    expect(found.why.map(({ from }) => from)).toEqual(['local', 'layer']);
    expect([existsSync(top), existsSync(join(folder, 'empty')), count()]).toEqual([false, false, 0]);
  });

  test('what no layer has is built into the first store', async () => {
    const base = join(folder, 'base');
    const built = await obtain({ store: join(folder, 'top'), layers: [base] });
    expect(built).toMatchObject({ source: 'built', why: [{ from: 'local' }, { from: 'layer' }] });
    expect([built.engine.startsWith(join(folder, 'top')), existsSync(base)]).toEqual([true, false]);
  });

  test('an engine for several GPUs serves one of them, never the other way round', async () => {
    await obtain({ target: 'tensorrt-rtx:sm_89,sm_120' });
    expect(await obtain({})).toMatchObject({ source: 'local', rule: 'several-gpus' });
    expect(await obtain({ target: 'tensorrt-rtx:sm_86,sm_89' })).toMatchObject({ source: 'built' });
  });

  test('a limit is kept after each new engine, and what this process uses stays', async () => {
    const limit = { maxBytes: 4096 };
    const first = await obtain(limit);
    const second = await obtain({ ...limit, profiles: ['x:1x64/8x64/64x64'] });
    expect([existsSync(first.engine), existsSync(second.engine)]).toEqual([true, true]);
    expect(second.warnings).toEqual([expect.stringContaining('4096 bytes over its limit')]);
    const output = join(folder, 'mine.engine');
    // A copy of one's own leaves the store free to drop its own.
    await obtain({ output });
    const third = await obtain({ ...limit, profiles: ['x:1x64/8x64/16x64'] });
    expect([existsSync(first.engine), existsSync(third.engine), existsSync(output)]).toEqual([
      false,
      true,
      true,
    ]);
  });
});
