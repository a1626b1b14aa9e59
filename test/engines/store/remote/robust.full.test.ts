import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { CreateBucketCommand, ListMultipartUploadsCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Passport } from '../../../../src/engines/identity/passport.js';
import { listCache } from '../../../../src/engines/store/cache.js';
import { importEngines } from '../../../../src/engines/store/import-engines.js';
import { LocalStore } from '../../../../src/engines/store/local.js';
import { openRemoteStore } from '../../../../src/engines/store/open-stores.js';
import { ledgerPath } from '../../../../src/engines/store/partial-downloads.js';
import { remoteAddress } from '../../../../src/engines/store/remote/address.js';
import { RemoteLeases } from '../../../../src/engines/store/remote/remote-lease.js';
import { RemoteStore } from '../../../../src/engines/store/remote/remote-store.js';
import { openS3 } from '../../../../src/engines/store/remote/s3-objects.js';
import { makeKeys } from '../../../../src/engines/store/sign-engines.js';
import { noTrust, openTrust } from '../../../../src/engines/store/trust.js';
import { TrtforgeError } from '../../../../src/errors.js';
import { ignoreEvents } from '../../../../src/events.js';
import { buildOrLoad } from '../../../../src/quality/known-answer/build-or-load.js';
import { countingBuilder } from '../../../fakes/builder.js';
import { type FaultyProxy, startFaultyProxy } from '../../../fakes/faulty-proxy.js';
import { type Minio, startMinio } from '../../../support/minio.js';
import { mutations } from '../../../support/mutations.js';
import { describeWith } from '../../../support/needs.js';
import {
  largePlan,
  sampleIdentity,
  samplePassport,
  samplePlan,
  sampleToolchain,
  writeSampleModel,
} from '../../../support/sample-engine.js';

const quiet = { emit: ignoreEvents, signal: undefined };
const MIB = 1 << 20;
const UNSHARE = 'unshare';

describeWith('minio', 'a bucket in bad company', (binary) => {
  let minio: Minio;
  let proxy: FaultyProxy;
  let root: string;
  let folder: string;
  let bucket = '';
  let store: RemoteStore;
  let cases = 0;

  beforeAll(async () => {
    minio = await startMinio(binary);
    proxy = await startFaultyProxy(minio.port);
    root = mkdtempSync(join(tmpdir(), 'trtforge-robust-'));
  });
  afterAll(async () => {
    await proxy[Symbol.asyncDispose]();
    await minio[Symbol.asyncDispose]();
    rmSync(root, { recursive: true, force: true });
  });
  beforeEach(async () => {
    bucket = `robust-${++cases}`;
    folder = mkdtempSync(join(root, 'case-'));
    proxy.faults = () => null;
    await minio.client.send(new CreateBucketCommand({ Bucket: bucket }));
    store = await open();
    return () => store.close();
  });

  const objects = async (endpoint = proxy.endpoint) => {
    const address = remoteAddress(`${endpoint}/${bucket}`, minio.environment);
    if (address === null) throw new Error('no address');
    return openS3(address);
  };
  const open = async (options = {}) => new RemoteStore(await objects(), 'engines', options);
  const put = (key: string, body: string | Uint8Array) =>
    minio.client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body }));

  function sample(letter = 'a', bytes = 4096): { path: string; plan: Buffer; passport: Passport } {
    const plan = largePlan(letter.charCodeAt(0), bytes);
    const path = join(folder, `${letter}.plan`);
    writeFileSync(path, plan);
    return { path, plan, passport: samplePassport(plan, sampleIdentity(letter.repeat(64))) };
  }
  const machine = (name: string, build = countingBuilder().build, more = {}) =>
    buildOrLoad(
      {
        model: join(root, 'sample.onnx'),
        target: 'tensorrt-rtx:sm_89',
        toolchain: sampleToolchain,
        knownAnswer: false,
        profiles: ['x:1x64/8x64/32x64'],
        store: join(folder, name),
        remote: `${proxy.endpoint}/${bucket}`,
        ...more,
      },
      { build, environment: { XDG_CACHE_HOME: join(root, 'xdg'), ...minio.environment } },
    );

  test('a server that ignores conditions is found out, and every machine builds for itself', async () => {
    proxy.faults = () => ({ conditions: 'ignored' });
    const leases = new RemoteLeases(await objects(), 'leases/');
    expect([await leases.conditional(), await leases.conditional()]).toEqual([false, false]);
    expect(proxy.requests.filter((line) => line.startsWith('PUT') && line.includes('probe'))).toHaveLength(2);
    await writeSampleModel(join(root, 'sample.onnx'));
    const { build, count } = countingBuilder();
    const all = await Promise.all(['a', 'b', 'c'].map((name) => machine(name, build)));
    expect(all.every(({ warnings }) => warnings.length === 0)).toBe(true);
    expect(count()).toBeGreaterThanOrEqual(1);
    expect(await machine('d', build)).toMatchObject({ source: 'remote' });
  });

  test('an upload that ends in 200 with an error inside is not an engine', async () => {
    const { path, passport } = sample('b', 20 * MIB);
    proxy.faults = ({ method, query }) =>
      method === 'POST' && query.includes('uploadId') ? { answer: 200, name: 'InternalError' } : null;
    await expect(store.upload(path, passport, null, quiet)).rejects.toMatchObject({
      code: 'TF_REMOTE_UNREACHABLE',
    });
    expect(await store.get(passport.identity.digest)).toMatchObject({ found: false, code: null });
  });

  test('a file that changes while it is uploaded is not put there', async () => {
    const { path, passport } = sample('b', 40 * MIB);
    const emit = () => writeFileSync(path, largePlan(9, 40 * MIB));
    await expect(store.upload(path, passport, null, { emit, signal: undefined })).rejects.toMatchObject({
      code: 'TF_FILE_UNREADABLE',
    });
    const { Uploads = [] } = await minio.client.send(new ListMultipartUploadsCommand({ Bucket: bucket }));
    expect(Uploads).toEqual([]);
    expect(await store.get(passport.identity.digest)).toMatchObject({ found: false, code: null });
  });

  test('what a killed download has is gone on with by the next process', async () => {
    const { path, plan, passport } = sample('b', 100 * MIB);
    await store.upload(path, passport, null, quiet);
    const local = new LocalStore(join(folder, 'engines'), join(folder, 'memo'));
    // As a process leaves it that is killed in the middle: a pending folder whose owner is dead.
    const pending = local.pending();
    const stopping = new AbortController();
    const answer = await store.get(passport.identity.digest);
    if (!answer.found) throw new Error(answer.reason);
    const stopped = store.download(answer.engine, pending.planPath, {
      emit: () => stopping.abort(),
      signal: stopping.signal,
    });
    await expect(stopped).rejects.toMatchObject({ code: 'TF_CANCELLED' });
    const owner = join(pending.folder, 'owner.json');
    writeFileSync(owner, readFileSync(owner, 'utf8').replace(/"pid":\d+/, `"pid":${2 ** 22 + 1}`));
    const next = local.pending();
    expect(existsSync(pending.folder)).toBe(false);
    next.takeUp(passport.plan.sha256);
    const { parts } = JSON.parse(readFileSync(ledgerPath(next.planPath), 'utf8')) as { parts: number[] };
    expect(parts.length).toBeGreaterThan(0);
    const before = proxy.requests.length;
    await store.download(answer.engine, next.planPath, quiet);
    const requests = proxy.requests.slice(before).filter((line) => /^GET .*engine$/.test(line));
    expect(requests.length).toBeLessThanOrEqual(7 - parts.length);
    expect(readFileSync(next.planPath).equals(plan)).toBe(true);
    expect(readdirSync(join(local.place, 'partial'))).toEqual([]);
  });

  test('what a killed download has but never reached the disk is fetched again', async () => {
    const { path, plan, passport } = sample('b', 40 * MIB);
    const engine = await store.upload(path, passport, null, quiet);
    const target = join(folder, 'back.plan');
    const facts = await (await objects()).head(engine.key);
    writeFileSync(target, Buffer.alloc(40 * MIB));
    const { sha256, bytes } = passport.plan;
    writeFileSync(ledgerPath(target), JSON.stringify({ sha256, bytes, etag: facts?.etag, parts: [0, 1] }));
    await store.download(engine, target, quiet);
    expect(readFileSync(target).equals(plan)).toBe(true);
  });

  test('whatever a ledger holds, what comes back is the engine', async () => {
    const { path, plan, passport } = sample();
    const engine = await store.upload(path, passport, null, quiet);
    const target = join(folder, 'back.plan');
    const { sha256, bytes } = passport.plan;
    const whole = Buffer.from(JSON.stringify({ sha256, bytes, etag: '"x"', parts: [0] }));
    for (const damaged of mutations(whole, 25)) {
      writeFileSync(ledgerPath(target), damaged);
      await store.download(engine, target, quiet);
      expect(readFileSync(target).equals(plan)).toBe(true);
    }
  });

  test('an entry, a passport and a signature of any form are a miss or an engine, never more', async () => {
    const keys = makeKeys(join(folder, 'key.pem'));
    const trust = openTrust({ signKey: keys.privateKey, requireSignature: true }, {});
    const signing = await open({ trust });
    const { path, passport } = sample();
    const { signatureFor } = await import('../../../../src/engines/store/trust.js');
    await signing.upload(path, passport, signatureFor(trust, passport), quiet);
    const { digest } = passport.identity;
    const key = `engines/.by-identity/${digest.slice(0, 2)}/${digest}.json`;
    const whole = (await (await objects()).read(key))?.body ?? Buffer.alloc(0);
    expect(await signing.get(digest)).toMatchObject({ found: true });
    for (const damaged of mutations(whole, 60)) {
      await put(key, damaged);
      const answer = await signing.get(digest);
      if (answer.found) expect(answer.engine.passport).toEqual(passport);
      else expect(answer.code).not.toBeNull();
    }
    signing.close();
  });

  test('an entry too large to be one is not read', async () => {
    const identity = 'e'.repeat(64);
    await put(`engines/.by-identity/ee/${identity}.json`, Buffer.alloc(20 * MIB, 32));
    expect(await store.get(identity)).toMatchObject({ found: false, code: 'TF_REMOTE_DAMAGED' });
  });

  test('a bucket full of other things is listed without them, and imported by name', async () => {
    const { path, passport } = sample();
    await store.upload(path, passport, null, quiet);
    await put('engines/.by-identity/zz/readme.txt', 'x');
    await put('engines/.by-identity/ff/../../../etc/passwd.json', 'x').catch(() => {});
    await put(`engines/.by-identity/ff/${'f'.repeat(64)}.json`, '{}');
    await put('engines/arcface/arcface_r100-fp16-sm75.plan', samplePlan(3));
    await put('engines/notes.txt', 'x');
    const list = await listCache(store);
    expect(list.engines.map(({ identity, problem }) => [identity[0], problem?.code])).toEqual([
      [passport.identity.digest[0], undefined],
      ['f', 'TF_REMOTE_DAMAGED'],
    ]);
    const local = new LocalStore(join(folder, 'engines'), join(folder, 'memo'));
    const taken = await importEngines(local, [`${proxy.endpoint}/${bucket}`], {
      ...quiet,
      trust: noTrust,
      environment: minio.environment,
    });
    expect(taken.engines.map(({ identity }) => identity)).toEqual([passport.identity.digest]);
    expect(taken.rejected).toMatchObject([
      { from: expect.stringContaining('arcface_r100-fp16-sm75.plan'), code: 'TF_PASSPORT_MISSING' },
    ]);
  });

  test('a signature travels with the engine, and where one is required an unsigned engine is built again', async () => {
    const keys = makeKeys(join(folder, 'key.pem'));
    await writeSampleModel(join(root, 'sample.onnx'));
    await machine('unsigned');
    const required = { requireSignature: true, trustKeys: [keys.publicKey] };
    const signed = { ...required, signKey: keys.privateKey };
    expect(await machine('a', undefined, signed)).toMatchObject({
      source: 'built',
      why: [{ from: 'local' }, { from: 'remote', code: 'TF_SIGNATURE_INVALID' }],
    });
    expect(await machine('b', undefined, required)).toMatchObject({ source: 'remote' });
    expect(await machine('b', undefined, required)).toMatchObject({ source: 'local' });
  });

  test('an engine for several GPUs serves a machine that needs one of them, from the bucket as well', async () => {
    await writeSampleModel(join(root, 'sample.onnx'));
    await machine('a', undefined, { target: 'tensorrt-rtx:sm_89,sm_120' });
    expect(await machine('b')).toMatchObject({ source: 'remote', rule: 'several-gpus' });
    expect(await machine('b')).toMatchObject({ source: 'local', rule: 'several-gpus' });
    expect(await machine('b', undefined, { target: 'tensorrt-rtx:sm_86' })).toMatchObject({
      source: 'built',
      rule: 'exact',
    });
  });

  test('a name that cannot be resolved, and a server of another protocol, are different errors', async () => {
    const ask = async (address: string) => {
      const remote = await openRemoteStore(address, minio.environment);
      const error = await remote?.get('a'.repeat(64)).catch((reason: unknown) => reason);
      remote?.close();
      if (!(error instanceof TrtforgeError)) throw new Error('an error was expected');
      return error;
    };
    expect((await ask(`http://no-such-host.invalid:9000/${bucket}`)).message).toMatch(/cannot be resolved/);
    const plain = await ask(`https://127.0.0.1:${minio.port}/${bucket}`);
    expect([plain.code, plain.remedy]).toEqual(['TF_REMOTE_UNREACHABLE', expect.stringContaining('http://')]);
  });

  test('no secret is in anything that is written or printed', async () => {
    await writeSampleModel(join(root, 'sample.onnx'));
    const keys = makeKeys(join(folder, 'key.pem'));
    const said: unknown[] = [];
    const results = await Promise.all(
      [{}, { remote: `${proxy.endpoint}/no-such-bucket` }].map((more, index) =>
        buildOrLoad(
          {
            model: join(root, 'sample.onnx'),
            target: 'tensorrt-rtx:sm_89',
            toolchain: sampleToolchain,
            knownAnswer: false,
            profiles: ['x:1x64/8x64/32x64'],
            store: join(folder, `secret-${index}`),
            remote: `${proxy.endpoint}/${bucket}`,
            signKey: keys.privateKey,
            ...more,
          },
          {
            build: countingBuilder().build,
            emit: (event) => said.push(event),
            environment: { XDG_CACHE_HOME: join(folder, 'xdg'), ...minio.environment },
          },
        ),
      ),
    );
    const wrong = { ...minio.environment, ARTIFACTS_ACCESS_KEY: 'someone-else' };
    const remote = await openRemoteStore(`${proxy.endpoint}/${bucket}`, wrong);
    const denied = await remote?.get('a'.repeat(64)).catch((reason: unknown) => reason);
    remote?.close();
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.endsWith('.pem'))
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'));
    const everything = [
      JSON.stringify([results, said]),
      JSON.stringify(denied),
      inspect(denied, { depth: 30 }),
      ...files,
    ].join('\n');
    const secrets = [
      minio.environment.ARTIFACTS_SECRET_KEY,
      minio.environment.ARTIFACTS_ACCESS_KEY,
      ...readFileSync(keys.privateKey, 'utf8')
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith('-')),
    ];
    for (const secret of secrets) expect(everything.includes(secret)).toBe(false);
  });

  const mayMount = spawnSync(UNSHARE, ['-m', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()]).status === 0;
  test.skipIf(!mayMount)(
    'a disk that fills up during a download is reported, and nothing of the download is reused',
    async () => {
      const { path, passport } = sample('b', 40 * MIB);
      await store.upload(path, passport, null, quiet);
      const small = join(folder, 'small');
      mkdirSync(small);
      const dist = new URL('../../../../dist/engines/store/', import.meta.url).href;
      const script = `
      const { openRemoteStore } = await import('${dist}open-stores.js');
      const remote = await openRemoteStore(process.argv[1]);
      const answer = await remote.get(process.argv[2]);
      const { readdirSync } = await import('node:fs');
      await remote.download(answer.engine, process.argv[3] + '/x.plan', { emit() {} }).then(
        () => console.log('whole'), (error) => console.log(error.code, error.message, readdirSync(process.argv[3])));
      remote.close();`;
      const command = `mount -t tmpfs -o size=20m tmpfs '${small}' && exec "$@"`;
      const words = [`${proxy.endpoint}/${bucket}`, passport.identity.digest, small];
      const child = spawn(
        UNSHARE,
        ['-m', 'sh', '-c', command, 'sh', process.execPath, '--input-type=module', '-e', script, ...words],
        { env: { ...process.env, ...minio.environment }, stdio: ['ignore', 'pipe', 'inherit'] },
      );
      const said = await child.stdout.toArray();
      expect(Buffer.concat(said).toString()).toMatch(/TF_WRITE_FAILED .*the disk is full/);
    },
  );
});
