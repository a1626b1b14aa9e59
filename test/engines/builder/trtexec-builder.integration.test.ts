import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BuildOptions } from '../../../src/engines/builder/options.js';
import { readPassport } from '../../../src/engines/identity/passport.js';
import { forge } from '../../../src/forge/forge.js';
import { buildOrLoad } from '../../../src/quality/known-answer/build-or-load.js';
import type { FoundToolchain } from '../../../src/tensorrt/toolchain/find.js';
import { fakeTrtexec } from '../../fakes/trtexec.js';
import { writeSampleModel } from '../../support/sample-engine.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-builder-'));
const environment = { ...process.env, XDG_CACHE_HOME: join(folder, 'cache') };
let model: string;
beforeAll(async () => {
  model = await writeSampleModel(join(folder, 'sample.onnx'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const toolchain = (): FoundToolchain => ({
  name: 'tensorrt-10.6.0.26',
  product: 'tensorrt',
  version: '10.6.0.26',
  libraries: { inference: '/nowhere/libnvinfer.so.10', parser: '/nowhere/parser.so.10', plugins: null },
  trtexec: fakeTrtexec(folder, { version: '10.6' }),
  foundBy: 'the test',
  folder: '/nowhere',
  flavour: 'full',
  alsoFoundBy: [],
  parserVersion: null,
  cudaMajor: 12,
  builderResources: [],
});

const wishes = (): BuildOptions => ({
  model,
  target: 'tensorrt:sm_90',
  toolchain: toolchain(),
  profiles: ['x:1x64/8x64/32x64'],
  builder: 'trtexec',
  store: join(folder, 'store'),
  remote: false,
});

describe('--builder trtexec', () => {
  test('the passport states who built, and names no file', async () => {
    const { engine, source, passport } = await buildOrLoad(wishes(), { environment });
    expect(source).toBe('built');
    expect(passport.built).toMatchObject({ builder: 'trtexec', libraryVersion: '10.6.0.26' });
    expect(passport.plan).toMatchObject({ bytes: 4096, layers: null });
    expect(readPassport(engine)).toEqual(passport);
    expect(JSON.stringify(passport)).not.toContain(folder);
  });

  test('its log is kept in the cache folder', () => {
    const logs = join(folder, 'cache', 'trtforge', 'build_logs');
    const [name = ''] = readdirSync(logs);
    expect(readFileSync(join(logs, name), 'utf8')).toContain('&&&& PASSED');
  });

  test('an engine that one builder built serves who asks for the other: the identity is the same', async () => {
    const native = await buildOrLoad({ ...wishes(), builder: 'native' }, { environment });
    expect(native.source).toBe('local');
    expect(native.passport.built.builder).toBe('trtexec');
  });

  test('forge keeps the log beside its own', async () => {
    const root = join(folder, 'run');
    const result = await forge(
      { ...wishes(), store: false, runRoot: root, skip: ['verify'] },
      { environment },
    );
    expect(result.error).toBeNull();
    expect(result.build?.passport).toMatchObject({ built: { builder: 'trtexec' } });
    expect(readdirSync(join(root, 'logs')).some((name) => /^sample_\d{8}_\d{6}_\d+\.log$/.test(name))).toBe(
      true,
    );
  });
});
