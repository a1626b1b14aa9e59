import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import type { Product } from '../../../src/cli/command.js';
import { runProgram } from '../../../src/cli/program/program.js';
import { releaseUse } from '../../../src/engines/store/claims/in-use.js';
import { LocalStore } from '../../../src/engines/store/local.js';
import {
  cacheExportSchema,
  cacheGcSchema,
  cacheImportSchema,
  cacheKeygenSchema,
  cacheListSchema,
  cacheSignSchema,
  cacheVerifySchema,
} from '../../../src/engines/store/result.js';
import { recordedConsole } from '../../fakes/console.js';
import { minimal } from '../../support/minimal.js';
import { sampleIdentity, samplePassport, samplePlan } from '../../support/sample-engine.js';
import { program, trtforge } from '../../support/trtforge.js';

const main = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'trtforge-cache-command-'));
const home = process.cwd();
afterAll(() => {
  process.chdir(home);
  rmSync(root, { recursive: true, force: true });
});

let folder = root;
let store = root;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
  store = join(folder, 'engines');
});

/** Runs `trtforge cache …` in the case's folder. */
async function cache(words: readonly string[], environment: NodeJS.ProcessEnv = {}) {
  process.chdir(folder);
  const { exitCode, out, err } = await trtforge(['cache', ...words], {
    PATH: process.env.PATH,
    NO_COLOR: '1',
    XDG_CACHE_HOME: join(folder, 'xdg'),
    TENSORRT_CACHE_DIR: store,
    ...environment,
  });
  return { status: exitCode, stdout: out, stderr: err };
}

/** The same, its answer as JSON; the exit code in it is the process's own. */
async function answer(words: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<unknown> {
  const { status, stdout } = await cache([...words, '--json'], environment);
  const said = JSON.parse(stdout) as { readonly exitCode: number; readonly ok: boolean };
  expect([said.exitCode, said.ok]).toEqual([status, status === 0]);
  return said;
}

test.each([
  ['ls'],
  ['verify'],
  ['check'],
  ['gc', '--max-size', '1G'],
  ['gc', '--max-size', '1G', '--dry-run'],
  ['clear'],
  ['export', 'to'],
])('cache %s: a store that no build has made yet is empty, and a warning names it', async (...words) => {
  const named = await cache([...words, '--cache-dir', join(folder, 'misspelt')]);
  expect([0, 4]).toContain(named.status);
  expect(named.stderr).toContain(join(folder, 'misspelt'));
  const usual = await cache(words);
  expect(usual.status).toBe(named.status);
  expect(usual.stderr).toContain(store);
  expect(existsSync(join(folder, 'misspelt')) || existsSync(store)).toBe(false);
});

/** Writes an engine with its passport as somebody else would hand it over. */
function writeEngine(letter: string, place = join(folder, 'from'), bytes = 4096): string {
  const plan = samplePlan(letter.charCodeAt(0), bytes);
  const passport = samplePassport(plan, sampleIdentity(letter.repeat(64)));
  const path = join(place, passport.name);
  mkdirSync(place, { recursive: true });
  writeFileSync(path, plan);
  writeFileSync(`${path}.passport.json`, JSON.stringify(passport));
  return path;
}

const local = () => new LocalStore(store, join(folder, 'memo'));

/** Keeps engines by letter, the first used longest ago. */
async function fill(...letters: readonly string[]): Promise<void> {
  for (const [index, letter] of letters.entries()) {
    const plan = samplePlan(letter.charCodeAt(0));
    const pending = local().pending();
    writeFileSync(pending.planPath, plan);
    const passport = samplePassport(plan, sampleIdentity(letter.repeat(64)));
    const { planPath } = await local().put(pending.planPath, passport);
    pending.remove();
    releaseUse(planPath);
    const then = new Date(Date.now() - (letters.length - index) * 3_600_000);
    utimesSync(join(dirname(planPath), 'used'), then, then);
  }
}

/** Letters of the engines in the store. */
const listed = async () => (await local().list()).map(({ model }) => model?.[0]).sort();

const firstPlan = (): string => {
  const plans = readdirSync(store, { recursive: true }).map(String);
  return join(store, plans.find((name) => name.endsWith('engine.plan')) ?? '');
};

const refusals = (
  cases: readonly (readonly [what: string, words: readonly string[], code: string, status?: number])[],
) =>
  test.each(cases.map(([what, words, code, status = 2]) => ({ what, words, code, status })))(
    '$what ends with $code',
    async ({ words, code, status }) => {
      await fill('a');
      const { stdout, stderr, ...end } = await cache([...words, '--json']);
      expect(end.status).toBe(status);
      expect(JSON.parse(stdout)).toMatchObject({
        ok: false,
        exitCode: status,
        error: { code, message: expect.any(String), remedy: expect.stringMatching(/\w/) },
      });
      expect(stderr).toContain(code);
      expect(await listed()).toEqual(['a']);
    },
  );

describe('trtforge cache import', async () => {
  test('takes files and folders, reports what each became, and rejects what does not fit its passport', async () => {
    const good = writeEngine('a');
    const damaged = writeEngine('b', join(folder, 'folder'));
    writeFileSync(damaged, samplePlan(1));
    writeFileSync(join(folder, 'folder', 'yolo-fp16-sm86.plan'), samplePlan(3));
    const result = cacheImportSchema.parse(await answer(['import', good, 'folder']));
    expect(result).toMatchObject({
      store,
      engines: [{ from: good, name: expect.stringContaining('sample_aaaaaaaa') }],
      rejected: [
        { code: 'TF_ENGINE_DIGEST_MISMATCH', reason: expect.stringContaining('bbbbbbbb') },
        { code: 'TF_PASSPORT_MISSING', from: expect.stringContaining('yolo-fp16-sm86.plan') },
      ],
      exitCode: 1,
    });
    expect(await listed()).toEqual(['a']);
  });

  test('prints the same as text', async () => {
    writeEngine('a');
    writeFileSync(join(folder, 'from', 'yolo-fp16-sm86.plan'), samplePlan(3));
    const { status, stdout } = await cache(['import', 'from']);
    expect(status).toBe(1);
    expect(stdout).toMatch(/kept +sample_aaaaaaaa_\S+ +from\//);
    expect(stdout).toMatch(/rejected +from\/yolo-fp16-sm86\.plan +TF_PASSPORT_MISSING/);
    expect(stdout).toContain(`1 engine now in ${store}`);
  });

  test('counts an engine that came twice once', async () => {
    const [own, copy] = [writeEngine('c', join(folder, 'one')), writeEngine('c', join(folder, 'two'))];
    expect((await cache(['import', own, copy])).stdout).toContain('1 engine now in ');
  });

  test('with --require-signature takes only what a trusted key signed', async () => {
    const pair = cacheKeygenSchema.parse(await answer(['keygen', '-o', 'team.pem']));
    await fill('a', 'b');
    await answer(['sign', 'aaaaaaaa', '--sign-key', 'team.pem']);
    expect((await cache(['export', 'out'])).status).toBe(0);
    const elsewhere = { TENSORRT_CACHE_DIR: join(folder, 'elsewhere') };
    const words = ['import', 'out', '--require-signature', '--trust-key', pair.publicKey];
    expect(await answer(words, elsewhere)).toMatchObject({
      engines: [{ name: expect.stringContaining('aaaaaaaa') }],
      rejected: [{ code: 'TF_SIGNATURE_INVALID' }],
      exitCode: 1,
    });
  });

  refusals([
    ['no source', ['import'], 'TF_USAGE'],
    ['a source that is not there', ['import', 'nothing'], 'TF_FILE_NOT_FOUND'],
    ['an address that is none', ['import', 'ftp://host/bucket'], 'TF_REMOTE_ADDRESS_INVALID'],
    ['a signature asked for without a key', ['import', 'from', '--require-signature'], 'TF_USAGE'],
    ['an option it does not have', ['import', 'from', '--sign-key', 'x'], 'TF_USAGE'],
  ]);
});

describe('trtforge cache export', async () => {
  test('into a folder, from where another store takes them', async () => {
    const to = 'out';
    await fill('a', 'b');
    const result = cacheExportSchema.parse(await answer(['export', to]));
    expect(result).toMatchObject({ store, to, bytes: 2 * 4096 });
    expect(result.engines.map(({ bytes }) => bytes)).toEqual([4096, 4096]);
    const elsewhere = { TENSORRT_CACHE_DIR: join(folder, 'elsewhere') };
    expect(cacheImportSchema.parse(await answer(['import', to], elsewhere))).toMatchObject({ rejected: [] });
    expect(cacheVerifySchema.parse(await answer(['verify'], elsewhere))).toMatchObject({ verified: 2 });
  });

  test('in another layout, side by side or as a product brings it', async () => {
    await fill('a');
    expect(await answer(['export', 'out', '--as', 'flat'])).toMatchObject({
      engines: [{ path: expect.stringMatching(/^out\/sample_aaaaaaaa_[^/]+$/), bytes: 4096 }],
    });
    const { console, out } = recordedConsole({ TENSORRT_CACHE_DIR: store }, false);
    const deploy: Product = { name: 'deploy', verbs: [], exporters: async () => [minimal] };
    const args = ['cache', 'export', 'models', '--as', 'minimal', '--json'];
    expect(await runProgram({ ...program, products: [...program.products, deploy] }, args, console)).toBe(0);
    expect(JSON.parse(out())).toMatchObject({
      engines: [{ name: expect.stringMatching(/^sample_/), path: 'models/sample/1/model.plan', bytes: 4096 }],
      bytes: 4096,
    });
    expect(readFileSync(join(folder, 'models', 'sample', 'config.pbtxt'), 'utf8')).toContain('tensorrt_plan');
  });

  test('of those that are named, as text', async () => {
    await fill('a', 'b');
    const { status, stdout } = await cache(['export', 'out', 'bbbbbbbb']);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^out\/sample\/sample_bbbbbbbb_\S+ +4\.00 KiB\n1 engine, 4\.00 KiB, to out\n?$/);
    expect(readdirSync(join(folder, 'out', 'sample'))).toHaveLength(2);
  });

  refusals([
    ['no place', ['export'], 'TF_USAGE'],
    ['a name that no engine has', ['export', 'out', 'resnet'], 'TF_USAGE'],
    ['an address that is none', ['export', 's3://-'], 'TF_REMOTE_ADDRESS_INVALID'],
    ['a layout that there is not', ['export', 'out', '--as', 'minimal'], 'TF_USAGE'],
    ['a layout for a bucket', ['export', 's3://team/engines', '--as', 'flat'], 'TF_USAGE'],
    ['a place that cannot be a folder', ['export', main], 'TF_WRITE_FAILED', 3],
  ]);

  test('never hands out an engine that was changed, and all others', async () => {
    await fill('a');
    writeFileSync(firstPlan(), samplePlan(9));
    const rejected = [{ code: 'TF_ENGINE_DIGEST_MISMATCH' }];
    expect(await answer(['export', 'out'])).toMatchObject({ engines: [], rejected, exitCode: 1 });
    expect(existsSync(join(folder, 'out'))).toBe(false);
    await fill('b');
    expect(await answer(['export', 'out'])).toMatchObject({
      engines: [{ name: expect.stringMatching(/^sample_bbbbbbbb_/) }],
      rejected,
      exitCode: 1,
    });
    const { status, stdout } = await cache(['export', 'again']);
    expect([status, stdout]).toEqual([1, expect.stringContaining('TF_ENGINE_DIGEST_MISMATCH')]);
  });

  test('ls names an engine of another size than its passport states, without reading it', async () => {
    await fill('a');
    expect(await answer(['ls'])).toMatchObject({ engines: [{ problem: null }], exitCode: 0 });
    writeFileSync(firstPlan(), 'short');
    const problem = { code: 'TF_ENGINE_SIZE_MISMATCH' };
    expect(await answer(['ls'])).toMatchObject({ engines: [{ problem }], exitCode: 1 });
    rmSync(firstPlan());
    expect(await answer(['ls'])).toMatchObject({ engines: [{ problem: { code: 'TF_FILE_NOT_FOUND' } }] });
  });
});

describe('trtforge cache keygen', async () => {
  test('makes a pair, the private half for its owner alone', async () => {
    const pair = cacheKeygenSchema.parse(await answer(['keygen', '-o', 'team.pem']));
    expect(pair).toMatchObject({
      privateKey: join(folder, 'team.pem'),
      publicKey: join(folder, 'team.pem.pub'),
      keyId: expect.stringMatching(/^[0-9a-f]{16}$/),
    });
    expect(statSync(pair.privateKey).mode & 0o777).toBe(0o600);
    expect(readFileSync(pair.privateKey, 'utf8')).toMatch(/^-----BEGIN PRIVATE KEY-----/);
    expect(JSON.stringify(pair)).not.toContain('BEGIN');
  });

  test('has a name of its own, states what each half is for, and writes over nothing', async () => {
    const { status, stdout } = await cache(['keygen']);
    expect(status).toBe(0);
    expect(stdout).toMatch(/private +\S+trtforge-signing\.pem .*keep it secret/);
    expect(stdout).toMatch(/public +\S+trtforge-signing\.pem\.pub .*may be published/);
    const before = readFileSync(join(folder, 'trtforge-signing.pem'));
    expect(await answer(['keygen'])).toMatchObject({ exitCode: 2, error: { code: 'TF_USAGE' } });
    expect(readFileSync(join(folder, 'trtforge-signing.pem')).equals(before)).toBe(true);
  });

  test('makes the folder they go to, and reports where none can be', async () => {
    const pair = cacheKeygenSchema.parse(await answer(['keygen', '-o', 'keys/of/team.pem']));
    expect(statSync(pair.privateKey).mode & 0o777).toBe(0o600);
    expect(await answer(['keygen', '-o', 'keys/of/team.pem/mine.pem'])).toMatchObject({
      error: {
        code: 'TF_WRITE_FAILED',
        message: expect.stringContaining('a file is where its folder should be'),
      },
    });
  });
});

describe('trtforge cache sign', async () => {
  test('signs those that are named, and ls prints by which key', async () => {
    const { keyId } = cacheKeygenSchema.parse(await answer(['keygen', '-o', 'team.pem']));
    await fill('a', 'b');
    const signed = cacheSignSchema.parse(await answer(['sign', 'aaaaaaaa', '--sign-key', 'team.pem']));
    expect(signed).toMatchObject({ store, keyId, signed: [{ name: expect.stringContaining('aaaaaaaa') }] });
    const { engines } = cacheListSchema.parse(await answer(['ls']));
    expect(engines.map(({ signedBy }) => signedBy).sort()).toEqual([keyId, null]);
    expect((await cache(['ls'])).stdout).toContain(`  ${keyId.slice(0, 8)}  `);
    const named = async (...names: readonly string[]) =>
      cacheListSchema.parse(await answer(['ls', ...names])).engines.length;
    expect([
      await named('sample*sm_89'),
      await named('aaaaaaaa', 'bbbbbbbb'),
      await named('sm_89*sample'),
    ]).toEqual([2, 2, 0]);
  });

  test('takes the key from the environment, and signs all when none is named', async () => {
    await answer(['keygen', '-o', 'team.pem']);
    await fill('a', 'b');
    const { status, stdout } = await cache(['sign'], { TRTFORGE_SIGNING_KEY: join(folder, 'team.pem') });
    expect(status).toBe(0);
    expect(stdout).toMatch(/2 engines signed with the key [0-9a-f]{16}, in /);
  });

  refusals([
    ['no key', ['sign'], 'TF_USAGE'],
    ['a key that is not there', ['sign', '--sign-key', 'none.pem'], 'TF_FILE_NOT_FOUND'],
    ['a file that is no key', ['sign', '--sign-key', main], 'TF_KEY_INVALID'],
  ]);

  test('a name that no engine has ends with TF_USAGE', async () => {
    await answer(['keygen', '-o', 'team.pem']);
    await fill('a');
    expect(await answer(['sign', 'resnet', '--sign-key', 'team.pem'])).toMatchObject({
      exitCode: 2,
      error: { code: 'TF_USAGE', message: expect.stringContaining('resnet') },
    });
  });
});

describe('trtforge cache verify', async () => {
  test('ends with 0 when everything is verified, and with 1 naming what is damaged', async () => {
    await fill('a', 'b');
    expect(cacheVerifySchema.parse(await answer(['verify']))).toMatchObject({ verified: 2, exitCode: 0 });
    writeFileSync(firstPlan(), samplePlan(1));
    const result = cacheVerifySchema.parse(await answer(['verify']));
    expect(result).toMatchObject({ verified: 1, exitCode: 1 });
    expect(result.engines.map(({ problem }) => problem?.code ?? null).sort()).toEqual([
      'TF_ENGINE_DIGEST_MISMATCH',
      null,
    ]);
    const { status, stdout } = await cache(['verify']);
    expect(status).toBe(1);
    expect(stdout).toMatch(/bad +sample_\S+ +TF_ENGINE_DIGEST_MISMATCH/);
    expect(stdout).toContain(`1 of 2 engines verified, in ${store}`);
  });

  test.each(['verify', 'check'])(
    '%s ends with 4 for a store of no engine: nothing was proven',
    async (verb) => {
      expect(await cache([verb, '--cache-dir', 'not-there'])).toMatchObject({ status: 4 });
      expect(existsSync('not-there')).toBe(false);
    },
  );

  test('with --require-signature what is not signed is rejected', async () => {
    const { publicKey } = cacheKeygenSchema.parse(await answer(['keygen', '-o', 'team.pem']));
    await fill('a', 'b');
    await answer(['sign', 'aaaaaaaa', '--sign-key', 'team.pem']);
    const words = ['verify', '--require-signature', '--trust-key', publicKey];
    expect(await answer(words)).toMatchObject({ verified: 1, exitCode: 1 });
    await answer(['sign', '--sign-key', 'team.pem']);
    expect(await answer(words)).toMatchObject({ verified: 2, exitCode: 0 });
  });

  refusals([
    ['a signature asked for without a key', ['verify', '--require-signature'], 'TF_USAGE'],
    ['a key that is none', ['verify', '--trust-key', main], 'TF_KEY_INVALID'],
    ['an engine that it does not take', ['verify', 'sample'], 'TF_USAGE'],
    ['a bucket that nothing names', ['verify', '--remote', 'default'], 'TF_REMOTE_ADDRESS_INVALID'],
  ]);
});

describe('trtforge cache gc', async () => {
  test('takes what was used longest ago, until the rest fits', async () => {
    await fill('a', 'b', 'c');
    const result = cacheGcSchema.parse(await answer(['gc', '--max-size', '8K']));
    expect(result).toMatchObject({ maxBytes: 8192, bytesBefore: 3 * 4096, bytesAfter: 8192, excessBytes: 0 });
    expect(result.removed).toHaveLength(1);
    expect(await listed()).toEqual(['b', 'c']);
  });

  test('takes its limit from the environment, and prints what went', async () => {
    await fill('a', 'b');
    const { status, stdout } = await cache(['gc'], { TENSORRT_CACHE_MAX_SIZE: '4K' });
    expect(status).toBe(0);
    expect(stdout).toMatch(/^1 engine removed, 8\.00 KiB before and 4\.00 KiB now, in /);
  });

  test('never takes what a living process uses, and reports that the store stays over its limit', async () => {
    await fill('a');
    const script = `const { markInUse } = await import(process.argv[1]); markInUse(process.argv[2]);
      const { spawnSync } = await import('node:child_process');
      process.stdout.write(spawnSync(process.execPath, process.argv.slice(3), { encoding: 'utf8' }).stdout);`;
    const module = new URL('../../../dist/engines/store/claims/in-use.js', import.meta.url).href;
    const words = [main, 'cache', 'gc', '--max-size', '1K', '--cache-dir', store];
    const { stdout } = spawnSync(
      process.execPath,
      ['--input-type=module', '-e', script, module, firstPlan(), ...words],
      { encoding: 'utf8', env: { ...process.env, NO_COLOR: '1', XDG_CACHE_HOME: join(folder, 'xdg') } },
    );
    expect(stdout).toContain('0 engines removed');
    expect(stdout).toMatch(/3\.00 KiB over 1\.00 KiB: what is left is in use/);
    expect(await listed()).toEqual(['a']);
  });

  refusals([
    ['no limit', ['gc'], 'TF_USAGE'],
    ['a limit that is no size', ['gc', '--max-size', '5X'], 'TF_SIZE_INVALID'],
    ['a limit below nothing', ['gc', '--max-size', '-1G'], 'TF_SIZE_INVALID'],
    ['an argument that it does not take', ['gc', 'sample', '--max-size', '1G'], 'TF_USAGE'],
  ]);
});
