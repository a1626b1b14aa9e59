import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { sha256 } from '../../../src/base/files/digest.js';
import type { BuildOptions } from '../../../src/engines/builder/options.js';
import { passportPath } from '../../../src/engines/identity/engine-name.js';
import { verifyEngine } from '../../../src/engines/plan/verify-engine.js';
import { verifyCache } from '../../../src/engines/store/cache.js';
import { openLocalStore } from '../../../src/engines/store/open-stores.js';
import { makeKeys, signEngines } from '../../../src/engines/store/sign-engines.js';
import {
  openTrust,
  parseSignature,
  readTrustedKeys,
  signaturePath,
} from '../../../src/engines/store/trust.js';
import { TrtforgeError } from '../../../src/errors.js';
import { buildOrLoad } from '../../../src/quality/known-answer/build-or-load.js';
import { countingBuilder } from '../../fakes/builder.js';
import { mutations } from '../../support/mutations.js';
import { sampleToolchain, writeSampleModel } from '../../support/sample-engine.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-trust-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const ours = makeKeys(join(root, 'ours.pem'));
const theirs = makeKeys(join(root, 'theirs.pem'));
const model = await writeSampleModel(join(root, 'sample.onnx'));
const quiet = { emit: () => {}, signal: undefined };

const OPENSSL = 'openssl';
const place = () => mkdtempSync(join(root, 'store-'));
const obtain = (store: string, wishes: Partial<BuildOptions>, build = countingBuilder().build) =>
  buildOrLoad(
    {
      model,
      target: 'tensorrt-rtx:sm_89',
      toolchain: sampleToolchain,
      knownAnswer: false,
      profiles: ['x:1x64/8x64/32x64'],
      store,
      ...wishes,
    },
    { build, environment: { XDG_CACHE_HOME: join(root, 'xdg') } },
  );
const required = { requireSignature: true, trustKeys: [ours.publicKey] };

describe('keys', () => {
  test('the private half is its owner’s alone, the public one fits it, and neither is ever written over', () => {
    expect(statSync(ours.privateKey).mode & 0o777).toBe(0o600);
    expect([...readTrustedKeys([ours.publicKey]).keys()]).toEqual([ours.keyId]);
    expect(() => makeKeys(ours.privateKey)).toThrow(/never written over/);
  });

  test.each([
    ['none is trusted', { requireSignature: true }, 'TF_USAGE'],
    ['a trusted key is not there', { trustKeys: [join(root, 'nothing.pub')] }, 'TF_FILE_NOT_FOUND'],
    ['the model is given as a key', { trustKeys: [model] }, 'TF_KEY_INVALID'],
    ['a public key is to sign', { signKey: ours.publicKey }, 'TF_KEY_INVALID'],
  ])('%s: rejected before any work', async (_what, wishes, code) => {
    const { build, count } = countingBuilder();
    await expect(obtain(place(), wishes, build)).rejects.toMatchObject({ code });
    expect(count()).toBe(0);
  });

  test('come from the environment as well', () => {
    const environment = {
      TRTFORGE_TRUSTED_KEYS: `${ours.publicKey}:${theirs.publicKey}`,
      TRTFORGE_REQUIRE_SIGNATURE: '1',
    };
    const trust = openTrust({}, environment);
    expect([trust.required, [...trust.keys.keys()]]).toEqual([true, [ours.keyId, theirs.keyId]]);
    expect(openTrust({}, { TRTFORGE_SIGNING_KEY: ours.privateKey }).keys.has(ours.keyId)).toBe(true);
  });
});

describe('a store whose engines must be signed', () => {
  test('loads what a trusted key signed', async () => {
    const store = place();
    await obtain(store, { signKey: ours.privateKey });
    expect(await obtain(store, required)).toMatchObject({ source: 'local', warnings: [] });
  });

  const signed = async (store: string, key = ours.privateKey) =>
    (await obtain(store, { signKey: key })).engine;
  test.each<[string, (store: string) => Promise<unknown>, RegExp]>([
    ['is not signed', (store) => obtain(store, {}), /it is not signed/],
    ['was signed by another', (store) => signed(store, theirs.privateKey), /not trusted here/],
    [
      'has a passport that was altered afterwards',
      async (store) => {
        const path = passportPath(await signed(store));
        writeFileSync(path, readFileSync(path, 'utf8').replace('"ms": 1', '"ms": 2'));
      },
      /does not fit its content/,
    ],
    [
      'has the signature of another engine',
      async (store) => {
        const other = await buildOrLoad(
          {
            model,
            target: 'tensorrt-rtx:sm_120',
            toolchain: sampleToolchain,
            knownAnswer: false,
            profiles: ['x:1x64/8x64/32x64'],
            store: place(),
            signKey: ours.privateKey,
          },
          { build: countingBuilder().build, environment: { XDG_CACHE_HOME: join(root, 'xdg') } },
        );
        writeFileSync(signaturePath(await signed(store)), readFileSync(signaturePath(other.engine)));
      },
      /does not fit its content/,
    ],
    [
      'has something else for a signature',
      async (store) => writeFileSync(signaturePath(await signed(store)), '{}'),
      /is not the signature of an engine/,
    ],
  ])('does not load one that %s: it is built again', async (_what, arrange, why) => {
    const store = place();
    await arrange(store);
    const { build, count } = countingBuilder();
    const again = await obtain(store, { ...required, signKey: ours.privateKey }, build);
    expect(again).toMatchObject({ source: 'built', why: [{ code: 'TF_SIGNATURE_INVALID' }] });
    expect(again.why[0]?.reason).toMatch(why);
    expect(count()).toBe(1);
    expect(await obtain(store, required)).toMatchObject({ source: 'local' });
  });

  test.each([{}, { store: false, output: join(root, 'own.engine') }] as const)(
    'builds nothing that it would not load again: %o',
    async (wishes) => {
      const { build, count } = countingBuilder();
      const error = await obtain(place(), { ...required, ...wishes }, build).catch((each) => each);
      expect([error.code, count()]).toEqual(['TF_STORE_UNWRITABLE', 0]);
      // The remedy.
      expect(error.remedy).toContain('TRTFORGE_SIGNING_KEY');
      const signs = { ...required, ...wishes, signKey: ours.privateKey };
      expect(await obtain(place(), signs, build)).toMatchObject({ source: 'built', warnings: [] });
    },
  );

  test('is made of an old one by sign; verify names what is not signed', async () => {
    const store = place();
    const { engine } = await obtain(store, {});
    const trust = openTrust({ ...required, signKey: ours.privateKey }, {});
    const opened = openLocalStore(store, { XDG_CACHE_HOME: join(root, 'xdg') }, trust);
    const before = await verifyCache(opened, { trust });
    expect(before).toMatchObject({ exitCode: 1, engines: [{ problem: { code: 'TF_SIGNATURE_INVALID' } }] });
    if (trust.signingKey === null) throw new Error('no key');
    expect((await signEngines(opened, ['sample'], trust.signingKey, quiet)).signed).toHaveLength(1);
    expect(await verifyCache(opened, { trust })).toMatchObject({ exitCode: 0, verified: 1 });
    expect((await opened.list())[0]?.signedBy).toBe(ours.keyId);
    expect(await obtain(store, required)).toMatchObject({ source: 'local', engine });
    await expect(signEngines(opened, ['sample', 'nothing'], trust.signingKey, quiet)).rejects.toThrow(
      /"nothing"/,
    );
  });

  test('a copy elsewhere has the signature beside it', async () => {
    const output = join(place(), 'mine.engine');
    const { passport } = await obtain(place(), { signKey: ours.privateKey, output });
    const signature = await parseSignature(readFileSync(signaturePath(output), 'utf8'), output);
    expect(signature.keyId).toBe(ours.keyId);
    expect(passport.built.by).not.toContain('key');
  });
});

/** Maps a plan and dirties the page, then changes a byte when it is told to: no time of the file moves any more. */
const MAPPED = `
import mmap, os, sys
m = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 0)
m[-9] = m[-9]
print('mapped', flush=True)
sys.stdin.readline()
m[-9] = m[-9] ^ 255
print('changed', flush=True)
sys.stdin.readline()
`;
const hasPython = spawnSync('python3', ['--version']).status === 0;

describe('what was verified before', () => {
  test.skipIf(!hasPython)(
    'does not vouch for a plan that is written through a mapping where signatures are required',
    async () => {
      const store = place();
      const { engine } = await obtain(store, { signKey: ours.privateKey });
      const attacker = spawn('python3', ['-c', MAPPED, engine], { stdio: ['pipe', 'pipe', 'inherit'] });
      try {
        await once(attacker.stdout, 'data');
        await new Promise((resolve) => setTimeout(resolve, 100));
        expect(await obtain(store, required)).toMatchObject({ source: 'local' });
        attacker.stdin.write('\n');
        await once(attacker.stdout, 'data');
        const output = join(place(), 'out.engine');
        const again = await obtain(store, { ...required, signKey: ours.privateKey, output });
        expect(again).toMatchObject({ source: 'built', why: [{ code: 'TF_ENGINE_DIGEST_MISMATCH' }] });
        expect(verifyEngine(output).plan).toEqual(again.passport.plan);
      } finally {
        attacker.kill();
      }
    },
  );

  /** Where this file's stores remember an engine. */
  const memoOf = (engine: string) => {
    const cache = join(root, 'xdg', 'trtforge');
    const [folder = ''] = readdirSync(cache).filter((name) => /^verified-engines-\d+$/.test(name));
    const key = sha256(engine);
    return { folder: join(cache, folder), entry: join(cache, folder, key.slice(0, 2), `${key}.json`) };
  };
  const swapped = async (store: string) => {
    const { engine, passport } = await obtain(store, { signKey: ours.privateKey });
    await new Promise((resolve) => setTimeout(resolve, 80));
    await obtain(store, {});
    return { engine, passport, ...memoOf(engine) };
  };

  test.each<[string, (engine: string) => readonly object[]]>([
    ['without stamps', () => [{ path: '/' }]],
    ['of other files', (engine) => [statOf(dirname(engine))]],
    ['of the plan alone', (engine) => [statOf(engine)]],
    ['of more files', (engine) => [engine, passportPath(engine), '/'].map(statOf)],
  ])('an entry %s is worth nothing', async (_what, files) => {
    const store = place();
    const { engine, passport, entry } = await swapped(store);
    const bytes = readFileSync(engine);
    bytes[3000] = (bytes[3000] ?? 0) ^ 1;
    writeFileSync(engine, bytes);
    mkdirSync(dirname(entry), { recursive: true });
    writeFileSync(entry, JSON.stringify({ files: files(engine), value: passport }));
    for (const wishes of [{}, required])
      expect(await obtain(store, { ...wishes, signKey: ours.privateKey })).toMatchObject({
        why: wishes === required ? [] : [{ code: 'TF_ENGINE_DIGEST_MISMATCH' }],
      });
  });

  test('a memo that others may write is not asked', async () => {
    const store = place();
    const { engine, passport, folder, entry } = await swapped(store);
    const forged = { ...passport, warnings: ['forged'] };
    const files = [engine, passportPath(engine)].map(statOf);
    writeFileSync(entry, JSON.stringify({ files, value: forged }));
    expect((await obtain(store, {})).passport.warnings).toEqual(['forged']);
    for (const open of [folder, dirname(entry)]) {
      chmodSync(open, 0o777);
      expect((await obtain(store, {})).passport.warnings).toEqual([]);
      chmodSync(open, 0o755);
      writeFileSync(entry, JSON.stringify({ files, value: forged }));
    }
    expect((await obtain(store, required)).passport.warnings).toEqual([]);
  });
});

/** A whole stamp, as it is now. */
const statOf = (path: string) => {
  const { size, mtimeNs, ctimeNs, ino } = statSync(path, { bigint: true });
  return { path, size: `${size}`, mtimeNs: `${mtimeNs}`, ctimeNs: `${ctimeNs}`, inode: `${ino}` };
};

test('a signature file is read as a whole or rejected, whatever is in it', async () => {
  const store = place();
  const { engine } = await obtain(store, { signKey: ours.privateKey });
  const bytes = readFileSync(signaturePath(engine));
  for (const damaged of mutations(bytes, 500)) {
    const error = await parseSignature(Buffer.from(damaged).toString('latin1'), 'x').then(
      () => undefined,
      (reason) => reason,
    );
    if (error !== undefined) expect(error).toBeInstanceOf(TrtforgeError);
  }
});

test('OpenSSL checks the keys and reads the same key id', () => {
  const read = spawnSync(OPENSSL, ['pkey', '-in', ours.privateKey, '-pubout'], { encoding: 'utf8' });
  if (read.error) return;
  expect(read.stdout).toBe(readFileSync(ours.publicKey, 'utf8'));
});
