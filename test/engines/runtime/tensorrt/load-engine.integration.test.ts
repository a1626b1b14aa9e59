import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { passportPath } from '../../../../src/engines/identity/engine-name.js';
import { readPassport } from '../../../../src/engines/identity/passport.js';
import { thisPlatform } from '../../../../src/engines/identity/target.js';
import { openEngineSession } from '../../../../src/engines/runtime/tensorrt/engine-session.js';
import type { loadEngine } from '../../../../src/engines/runtime/tensorrt/load-engine.js';
import { makeKeys } from '../../../../src/engines/store/sign-engines.js';
import { readPrivateKey, signaturePath, signDocument } from '../../../../src/engines/store/trust.js';
import { TrtforgeError } from '../../../../src/errors.js';
import { doubling, FakeAddon, tensor } from '../../../fakes/addon.js';
import {
  sampleIdentity,
  samplePassport,
  samplePlan,
  sampleToolchain,
  writeSample,
} from '../../../support/sample-engine.js';

type LoadOptions = NonNullable<Parameters<typeof loadEngine>[1]>;

const folder = mkdtempSync(join(tmpdir(), 'trtforge-load-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let made = 0;
const engine = (plan?: Buffer) => writeSample(folder, `m${made++}.engine`, plan);

async function refusal(path: string, options: LoadOptions = {}, addon = new FakeAddon(doubling)) {
  const error: unknown = await openEngineSession(path, {
    addon,
    toolchain: sampleToolchain,
    ...(options as object),
  }).then(
    () => undefined,
    (reason) => reason,
  );
  if (!(error instanceof TrtforgeError)) throw new Error(`nothing was refused: ${String(error)}`);
  return { code: error.code, message: error.message, remedy: error.remedy, opened: addon.opened.length };
}

describe('loading an engine', () => {
  it('passes the library what was requested, once everything is checked', async () => {
    const addon = new FakeAddon(doubling);
    const path = engine();
    const plugin = join(folder, 'plugin.so');
    writeFileSync(plugin, 'x');
    await using session = await openEngineSession(path, {
      addon,
      toolchain: sampleToolchain,
      weightBudget: 'automatic',
      plugins: [relative('.', plugin)],
    });
    const { name, identity } = readPassport(path);
    expect(addon.opened).toEqual([
      {
        inferenceLibrary: sampleToolchain.libraries.inference,
        pluginLibrary: null,
        pluginPaths: [plugin],
        planPath: path,
        label: `${name} ${identity.digest.slice(0, 12)}`,
        device: 0,
        allowHostCode: false,
        weightBudget: 'automatic',
        verbose: false,
      },
    ]);
    expect(session.backend).toBe('TensorRT-RTX 1.7.1.116 (Fake 89)');
    expect(session.facts).toMatchObject({ passport: true, planPath: path, gpu: { computeCapability: 89 } });
    expect(session.inputs).toMatchObject([
      { name: 'x', dtype: 'float32', shape: [null, 3], hostValues: false },
    ]);
    expect(session.inputs[0]?.profiles).toHaveLength(2);
  });

  const changed = (change: (plan: Buffer) => Buffer): string => {
    const path = engine();
    writeFileSync(path, change(readFileSync(path)));
    return path;
  };

  it.each<[string, () => string, string, RegExp]>([
    ['a file that is not there', () => join(folder, 'none.engine'), 'TF_FILE_NOT_FOUND', /none\.engine/],
    [
      'text',
      () => changed(() => Buffer.from('not a plan '.repeat(400))),
      'TF_PLAN_INVALID',
      /not a TensorRT/,
    ],
    [
      'a plan that is cut short',
      () => changed((plan) => plan.subarray(0, 2000)),
      'TF_PLAN_INVALID',
      /cut short/,
    ],
    [
      'a header that is cut short',
      () => changed((plan) => plan.subarray(0, 20)),
      'TF_PLAN_INVALID',
      /cut short/,
    ],
    [
      'a plan that grew',
      () => changed((plan) => Buffer.concat([plan, plan])),
      'TF_ENGINE_SIZE_MISMATCH',
      /8192 bytes/,
    ],
    [
      'one bit that changed',
      () =>
        changed((plan) => {
          plan[3000]! ^= 1;
          return plan;
        }),
      'TF_ENGINE_DIGEST_MISMATCH',
      /SHA-256/,
    ],
    [
      'metadata of an exporter in front',
      () =>
        changed((plan) => {
          const json = Buffer.from(JSON.stringify({ description: 'Ultralytics YOLO', stride: 32 }));
          const length = Buffer.alloc(4);
          length.writeUInt32LE(json.length);
          return Buffer.concat([length, json, plan]);
        }),
      'TF_PLAN_FOREIGN_HEADER',
      /Ultralytics metadata.*end the process/,
    ],
  ])('%s is rejected and never reaches the library', async (_, path, code, message) => {
    for (const requirePassport of code.startsWith('TF_ENGINE') ? [true] : [true, false]) {
      const error = await refusal(path(), { requirePassport });
      expect(error).toMatchObject({ code, opened: 0 });
      expect(error.message).toMatch(message);
    }
  });

  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 'auto' as 'automatic', '4G' as 'automatic'])(
    'a weight budget of %s is rejected and never reaches the library',
    async (weightBudget) => {
      expect(await refusal(engine(), { weightBudget })).toMatchObject({
        code: 'TF_SIZE_INVALID',
        opened: 0,
      });
    },
  );

  it('requires a passport, unless requested otherwise, and then states that there is none', async () => {
    const path = engine();
    rmSync(`${path}.passport.json`);
    expect(await refusal(path)).toMatchObject({ code: 'TF_PASSPORT_MISSING', opened: 0 });
    const said: string[] = [];
    await using session = await openEngineSession(path, {
      addon: new FakeAddon(doubling),
      toolchain: sampleToolchain,
      requirePassport: false,
      emit: (event) => event.type === 'log' && said.push(event.message),
    });
    expect(session.facts.passport).toBe(false);
    expect(said).toEqual([expect.stringContaining('has no passport')]);
  });

  it.each<[string, Partial<typeof sampleToolchain>, boolean, string | null]>([
    ['the version that built it', {}, false, null],
    ['another product', { product: 'tensorrt' }, false, 'TF_ENGINE_VERSION_MISMATCH'],
    ['an older version', { version: '1.6.0.50' }, true, 'TF_ENGINE_VERSION_MISMATCH'],
    [
      'a newer one, which only compatible plans load in',
      { version: '1.9.0.1' },
      false,
      'TF_ENGINE_VERSION_MISMATCH',
    ],
    [
      'a newer one, though the passport says it is not compatible',
      { version: '1.9.0.1' },
      true,
      'TF_ENGINE_VERSION_MISMATCH',
    ],
  ])('is matched with the library: %s', async (_, change, allowHostCode, code) => {
    const toolchain = { ...sampleToolchain, ...change };
    const attempt = { toolchain, allowHostCode };
    if (code === null) {
      const addon = new FakeAddon(doubling);
      await using _session = await openEngineSession(engine(), { addon, ...attempt });
      expect(addon.opened).toHaveLength(1);
    } else expect(await refusal(engine(), attempt)).toMatchObject({ code, opened: 0 });
  });

  it.each([
    ['tensorrt', '10.6.0.26', 'TF_ENGINE_VERSION_MISMATCH'],
    ['tensorrt-rtx', '1.7.1.116', null],
  ] as const)('an engine of %s from another processor: %s', async (product, version, code) => {
    const path = engine();
    const plan = samplePlan();
    if (product === 'tensorrt') {
      plan.write('ftrt', 0, 'latin1');
      plan.set([10, 6, 0, 26], 24);
    }
    const arch = thisPlatform.arch === 'x86_64' ? 'aarch64' : 'x86_64';
    const identity = sampleIdentity();
    const target = { ...identity.target, product, version, arch } as const;
    writeFileSync(path, plan);
    writeFileSync(passportPath(path), JSON.stringify(samplePassport(plan, { ...identity, target })));
    const toolchain = { ...sampleToolchain, product, version };
    if (code !== null) return expect(await refusal(path, { toolchain })).toMatchObject({ code, opened: 0 });
    // It may load: whoever loads it finds out.
    const addon = new FakeAddon(doubling);
    await using _session = await openEngineSession(path, { addon, toolchain });
    expect(addon.opened).toHaveLength(1);
  });

  it('a plan that may be compatible loads in a newer library only where its code may run', async () => {
    const path = engine();
    rmSync(`${path}.passport.json`);
    // tensorrt-rtx has no version-compatible plans.
    const plan = samplePlan();
    plan.write('ftrt', 0, 'latin1');
    plan.set([10, 6, 0, 26], 24);
    writeFileSync(path, plan);
    const toolchain = { ...sampleToolchain, product: 'tensorrt' as const, version: '10.9.0.34' };
    const options = { toolchain, requirePassport: false };
    const error = await refusal(path, options);
    expect(error).toMatchObject({ code: 'TF_ENGINE_VERSION_MISMATCH', opened: 0 });
    expect(error.remedy).toContain('--allow-host-code');
    const addon = new FakeAddon(doubling);
    await using _session = await openEngineSession(path, { addon, ...options, allowHostCode: true });
    expect(addon.opened[0]?.allowHostCode).toBe(true);
  });

  it('a machine without the GPU is reported before anything is loaded', async () => {
    const none = new FakeAddon(doubling);
    none.gpuList = [];
    none.reason = 'The CUDA driver shows no GPU (CUDA_VISIBLE_DEVICES is empty).';
    const error = await refusal(engine(), {}, none);
    expect(error).toMatchObject({ code: 'TF_GPU_UNAVAILABLE', opened: 0 });
    expect(error.message).toContain('CUDA_VISIBLE_DEVICES is empty');
    const other = await refusal(engine(), { device: 3 });
    expect(other.message).toContain('there is no GPU 3 here: 0 is Fake 89');
  });

  it.each([
    ['another architecture', 90, 'none', true],
    ['a newer one, for which it was built wide enough', 90, 'ampere-plus', false],
    ['an older one than wide enough', 75, 'ampere-plus', true],
    ['a Jetson, which wide enough does not reach', 87, 'ampere-plus', true],
  ] as const)('the GPU must be one it was built for: %s', async (_, here, hardwareCompatibility, refused) => {
    const plan = samplePlan(made);
    const path = engine(plan);
    const identity = sampleIdentity();
    const passport = samplePassport(plan, {
      ...identity,
      recipe: { ...identity.recipe, hardwareCompatibility },
    });
    writeFileSync(`${path}.passport.json`, JSON.stringify(passport));
    const addon = new FakeAddon(doubling);
    addon.gpuList[0]!.computeCapability = here;
    if (refused) {
      const error = await refusal(path, {}, addon);
      expect(error).toMatchObject({ code: 'TF_ENGINE_GPU_MISMATCH', opened: 0 });
      expect(error.message).toContain('sm_89 (Ada Lovelace');
    } else {
      await using _session = await openEngineSession(path, { addon, toolchain: sampleToolchain });
      expect(addon.opened).toHaveLength(1);
    }
  });

  it('plug-ins that are missing are named with what to do', async () => {
    expect(await refusal(engine(), { plugins: [join(folder, 'gone.so')] })).toMatchObject({
      code: 'TF_FILE_NOT_FOUND',
      opened: 0,
    });
    const plan = samplePlan(made);
    const path = engine(plan);
    const identity = sampleIdentity();
    const recipe = { ...identity.recipe, pluginDigests: ['b'.repeat(64)] };
    writeFileSync(`${path}.passport.json`, JSON.stringify(samplePassport(plan, { ...identity, recipe })));
    expect((await refusal(path)).remedy).toContain('--plugin FILE');
    const addon = new FakeAddon(doubling);
    addon.failures.set('open', new TrtforgeError('TF_PLAN_LOAD_FAILED', 'Cannot find plugin: Custom'));
    const error = await refusal(engine(), {}, addon);
    expect(error).toMatchObject({ code: 'TF_PLAN_LOAD_FAILED', opened: 1 });
    expect(error.remedy).toContain('--plugin FILE');
  });

  it('a plan that the library runs only with permission states how to grant it', async () => {
    const addon = new FakeAddon(doubling);
    const words = 'The library reports: Cannot deserialize engine with lean runtime';
    addon.failures.set('open', new TrtforgeError('TF_PLAN_LOAD_FAILED', words));
    expect((await refusal(engine(), {}, addon)).remedy).toContain('--allow-host-code');
  });

  it.each(['TF_GPU_MEMORY', 'TF_LIBRARY_LOAD_FAILED', 'TF_PLAN_LOAD_FAILED'] as const)(
    '%s of the library comes through as it is',
    async (code) => {
      const addon = new FakeAddon(doubling);
      addon.failures.set('open', new TrtforgeError(code, 'the words of the library'));
      expect(await refusal(engine(), {}, addon)).toMatchObject({ code, message: 'the words of the library' });
    },
  );

  it('an engine with a tensor that cannot cross is closed again', async () => {
    const odd = new FakeAddon({ ...doubling, tensors: [tensor('x', 'input', [1, 8], { format: 4 })] });
    const error = await refusal(engine(), {}, odd);
    expect(error).toMatchObject({ code: 'TF_SESSION_BINDING' });
    expect(odd.log).toEqual(['close engine']);
  });

  it('an abort while it loads is TF_CANCELLED', async () => {
    const stopping = new AbortController();
    stopping.abort();
    expect(await refusal(engine(), { signal: stopping.signal })).toMatchObject({
      code: 'TF_CANCELLED',
      opened: 0,
    });
  });
});

describe('where signatures are required', () => {
  afterEach(() => vi.unstubAllEnvs());
  const ours = makeKeys(join(folder, 'ours.pem'));
  const theirs = makeKeys(join(folder, 'theirs.pem'));
  const sign = (path: string, key: string) => {
    const passport = samplePassport(readFileSync(path));
    writeFileSync(signaturePath(path), JSON.stringify(signDocument(passport, readPrivateKey(key))));
    return path;
  };
  const wishes = { requireSignature: true, trustKeys: [ours.publicKey] };
  const variables = { TRTFORGE_REQUIRE_SIGNATURE: '1', TRTFORGE_TRUSTED_KEYS: ours.publicKey };
  const ways: readonly [string, LoadOptions][] = [
    ['options', wishes],
    ['the environment', { environment: { ...process.env, ...variables } }],
  ];
  const without = (path: string) => {
    rmSync(`${path}.passport.json`);
    return path;
  };

  describe.each(ways)('by %s', (_by, options) => {
    it.each<[string, (path: string) => string]>([
      ['unsigned', (path) => path],
      ['signed by another', (path) => sign(path, theirs.privateKey)],
      ['without a passport', (path) => without(sign(path, ours.privateKey))],
    ])('an engine that is %s never reaches the library', async (_what, arrange) => {
      for (const requirePassport of [true, false])
        expect(await refusal(arrange(engine()), { ...options, requirePassport })).toMatchObject({
          code: 'TF_SIGNATURE_INVALID',
          opened: 0,
        });
    });

    it('the library gets the bytes that were checked, whatever becomes of the file', async () => {
      const path = sign(engine(), ours.privateKey);
      const checked = readFileSync(path);
      const temporary = mkdtempSync(join(folder, 'tmp-'));
      vi.stubEnv('TMPDIR', temporary);
      const addon = new FakeAddon(doubling);
      const given: Buffer[] = [];
      const open = addon.openEngine.bind(addon);
      addon.openEngine = (request) => {
        writeFileSync(path, samplePlan(7));
        given.push(readFileSync(request.planPath));
        return open(request);
      };
      await using session = await openEngineSession(path, {
        addon,
        toolchain: sampleToolchain,
        ...(options as object),
      });
      expect(given).toEqual([checked]);
      expect(session.facts.planPath).toBe(path);
      // Nothing of the copy is left, and nobody can open it again.
      expect(() => readFileSync(addon.opened[0]?.planPath ?? '')).toThrow();
      expect(readdirSync(temporary)).toEqual([]);
    });
  });

  it('no trusted key is wrong usage', async () => {
    expect(await refusal(engine(), { requireSignature: true })).toMatchObject({
      code: 'TF_USAGE',
      opened: 0,
    });
  });
});
