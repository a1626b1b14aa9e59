import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand, ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { remoteAddress } from '../../../../src/engines/store/remote/address.js';
import { type RemoteEngine, RemoteStore } from '../../../../src/engines/store/remote/remote-store.js';
import { openS3 } from '../../../../src/engines/store/remote/s3-objects.js';
import { ignoreEvents } from '../../../../src/events.js';
import { type FaultyProxy, startFaultyProxy } from '../../../fakes/faulty-proxy.js';
import { type Minio, startMinio } from '../../../support/minio.js';
import { describeWith } from '../../../support/needs.js';
import { sampleIdentity, samplePassport, samplePlan } from '../../../support/sample-engine.js';

const options = { emit: ignoreEvents, signal: undefined };
const BYTES = 20 << 20;
const PART = 16 << 20;

describeWith('minio', 'a network that fails', (binary) => {
  let minio: Minio;
  let proxy: FaultyProxy;
  let folder: string;
  let store: RemoteStore;
  let engine: RemoteEngine;
  const plan = samplePlan(7, BYTES);
  const passport = samplePassport(plan, sampleIdentity('c'.repeat(64)));
  const identity = passport.identity.digest;

  beforeAll(async () => {
    minio = await startMinio(binary);
    proxy = await startFaultyProxy(minio.port);
    folder = mkdtempSync(join(tmpdir(), 'trtforge-faults-'));
    await minio.client.send(new CreateBucketCommand({ Bucket: 'team' }));
    const address = remoteAddress(`${proxy.endpoint}/team`, minio.environment);
    if (address === null) throw new Error('no address');
    store = new RemoteStore(await openS3(address), address.prefix);
    writeFileSync(join(folder, 'engine.plan'), plan);
    engine = await store.upload(join(folder, 'engine.plan'), passport, null, options);
  });
  afterAll(async () => {
    store.close();
    await proxy[Symbol.asyncDispose]();
    await minio[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(() => {
    rmSync(target(), { force: true });
    rmSync(`${target()}.parts`, { force: true });
    proxy.faults = () => null;
  });

  const target = () => join(folder, 'back.plan');
  const download = () => store.download(engine, target(), options);
  const isPlan =
    (path: string, method = 'GET') =>
    (seen: { method: string; path: string }) =>
      seen.method === method && seen.path.endsWith(path);
  const planRead = isPlan('.engine');

  test('a download whose connection is cut again and again arrives whole', async () => {
    let cuts = 0;
    proxy.faults = (seen) => (planRead(seen) && ++cuts <= 5 ? { cutAfter: 3 << 20 } : null);
    await download();
    expect(readFileSync(target()).equals(plan)).toBe(true);
    expect(cuts).toBeGreaterThan(5);
  });

  test('a download that was stopped goes on where it was', async () => {
    let last = false;
    proxy.faults = (seen) => {
      if (!planRead(seen) || !last) return null;
      return { answer: 403, name: 'AccessDenied' };
    };
    const stopping = new AbortController();
    const emit = () => {
      last = true;
      stopping.abort();
    };
    await expect(store.download(engine, target(), { emit, signal: stopping.signal })).rejects.toMatchObject({
      code: 'TF_CANCELLED',
    });
    expect(existsSync(`${target()}.parts`)).toBe(true);
    proxy.faults = () => null;
    const before = proxy.requests.length;
    await download();
    expect(readFileSync(target()).equals(plan)).toBe(true);
    expect(proxy.requests.slice(before).filter((line) => /^GET .*engine$/.test(line))).toHaveLength(1);
  });

  test('a byte that changed on the way is found, and nothing of the engine is kept', async () => {
    proxy.faults = (seen) => (planRead(seen) ? { flipByte: 1000 } : null);
    await expect(download()).rejects.toMatchObject({ code: 'TF_REMOTE_DAMAGED' });
    expect(existsSync(target())).toBe(false);
  });

  test('a slow server is waited for', async () => {
    proxy.faults = (seen) => (planRead(seen) ? { slowMs: 3 } : null);
    await download();
    expect(readFileSync(target()).equals(plan)).toBe(true);
  });

  test.each([
    [503, 'SlowDown'],
    [500, 'InternalError'],
  ])('a burst of %i %s is sat out', async (answer, name) => {
    let left = 2;
    proxy.faults = () => (left-- > 0 ? { answer, name } : null);
    expect(await store.get(identity)).toMatchObject({ found: true });
  });

  test.each([
    [
      'the server breaks for good',
      { answer: 503, name: 'SlowDown' },
      'TF_REMOTE_UNREACHABLE',
      /overloaded or broken/,
    ],
    ['the clocks differ', { answer: 403, name: 'RequestTimeTooSkewed' }, 'TF_REMOTE_DENIED', /clock/],
    ['the region is another', { answer: 301, name: 'PermanentRedirect' }, 'TF_REMOTE_DENIED', /region/],
    [
      'the key is unknown',
      { answer: 403, name: 'InvalidAccessKeyId' },
      'TF_REMOTE_DENIED',
      /does not know this access key/,
    ],
    ['the secret is wrong', { answer: 403, name: 'SignatureDoesNotMatch' }, 'TF_REMOTE_DENIED', /secret key/],
    ['the token is old', { answer: 400, name: 'ExpiredToken' }, 'TF_REMOTE_DENIED', /expired/],
    ['reading is not allowed', { answer: 403, name: 'AccessDenied' }, 'TF_REMOTE_DENIED', /may not do this/],
    [
      'the bucket is gone',
      { answer: 404, name: 'NoSuchBucket' },
      'TF_REMOTE_BUCKET_MISSING',
      /bucket does not exist/,
    ],
    ['every connection is cut', { hangUp: true }, 'TF_REMOTE_UNREACHABLE', /cut/],
  ] as const)('%s: each has its own remedy', async (_what, fault, code, why) => {
    proxy.faults = () => fault;
    const error = await store.get(identity).then(
      () => undefined,
      (reason) => reason,
    );
    expect(error).toMatchObject({ code, message: expect.stringMatching(why) });
    expect(error.remedy).not.toBe('');
  });

  test('an upload that breaks off leaves no part behind on the server, and no engine', async () => {
    const other = samplePassport(plan, sampleIdentity('d'.repeat(64)));
    proxy.faults = ({ method, path }) =>
      method === 'PUT' && path.endsWith('.engine') ? { answer: 403, name: 'AccessDenied' } : null;
    await expect(store.upload(join(folder, 'engine.plan'), other, null, options)).rejects.toMatchObject({
      code: 'TF_REMOTE_DENIED',
    });
    const { Uploads = [] } = await minio.client.send(new ListMultipartUploadsCommand({ Bucket: 'team' }));
    expect(Uploads).toEqual([]);
    expect(await store.get(other.identity.digest)).toMatchObject({ found: false, code: null });
  });

  test('an object that is shorter than its passport states is rejected before it is fetched', async () => {
    const wrong = { ...engine, passport: { ...passport, plan: { ...passport.plan, bytes: PART } } };
    await expect(store.download(wrong, target(), options)).rejects.toMatchObject({
      code: 'TF_REMOTE_DAMAGED',
    });
  });
});
