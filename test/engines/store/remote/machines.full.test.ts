import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CreateBucketCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { BuildOptions } from '../../../../src/engines/builder/options.js';
import { remoteAddress } from '../../../../src/engines/store/remote/address.js';
import { RemoteLeases } from '../../../../src/engines/store/remote/remote-lease.js';
import { openS3 } from '../../../../src/engines/store/remote/s3-objects.js';
import { buildOrLoad } from '../../../../src/quality/known-answer/build-or-load.js';
import { countingBuilder } from '../../../fakes/builder.js';
import { type FaultyProxy, startFaultyProxy } from '../../../fakes/faulty-proxy.js';
import { type Minio, startMinio } from '../../../support/minio.js';
import { describeWith } from '../../../support/needs.js';
import { sampleToolchain, writeSampleModel } from '../../../support/sample-engine.js';

describeWith('minio', 'machines that share a bucket', (binary) => {
  let minio: Minio;
  let proxy: FaultyProxy;
  let folder: string;
  let model: string;
  let bucket = '';
  let cases = 0;

  beforeAll(async () => {
    minio = await startMinio(binary);
    proxy = await startFaultyProxy(minio.port);
    folder = mkdtempSync(join(tmpdir(), 'trtforge-machines-'));
    model = await writeSampleModel(join(folder, 'sample.onnx'));
  });
  afterAll(async () => {
    await proxy[Symbol.asyncDispose]();
    await minio[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(async () => {
    bucket = `machines-${++cases}`;
    proxy.faults = () => null;
    await minio.client.send(new CreateBucketCommand({ Bucket: bucket }));
  });

  /** A machine is a cache folder of its own. */
  const onMachine = (
    machine: string,
    build = countingBuilder().build,
    more: Partial<BuildOptions> = {},
    endpoint = minio.endpoint,
    environment: Readonly<Record<string, string>> = {},
  ) =>
    buildOrLoad(
      {
        model,
        target: 'tensorrt-rtx:sm_89',
        toolchain: sampleToolchain,
        knownAnswer: false,
        profiles: ['x:1x64/8x64/32x64'],
        store: join(folder, bucket, machine),
        remote: `${endpoint}/${bucket}`,
        ...more,
      },
      { build, environment: { XDG_CACHE_HOME: join(folder, 'xdg'), ...minio.environment, ...environment } },
    );
  const keys = async () => {
    const { Contents = [] } = await minio.client.send(new ListObjectsV2Command({ Bucket: bucket }));
    return Contents.map(({ Key = '' }) => Key);
  };

  test('what one machine built, another loads, and then has itself', async () => {
    const { build, count } = countingBuilder();
    expect(await onMachine('a', build)).toMatchObject({ source: 'built', warnings: [] });
    const second = await onMachine('b', build);
    expect(second).toMatchObject({ source: 'remote', why: [{ from: 'local', code: null }] });
    expect(await onMachine('b', build)).toMatchObject({ source: 'local', why: [] });
    expect(count()).toBe(1);
  });

  test('an engine that a machine has goes to the bucket that it names, once', async () => {
    const { build, count } = countingBuilder();
    await onMachine('a', build, { remote: false });
    expect(await keys()).toEqual([]);
    const second = await onMachine('a', build);
    expect(second).toMatchObject({ source: 'local', warnings: [] });
    expect(second.timings.uploadMs).toBeGreaterThan(0);
    const stored = await minio.client.send(new ListObjectsV2Command({ Bucket: bucket }));
    await onMachine('a', build);
    const after = await minio.client.send(new ListObjectsV2Command({ Bucket: bucket }));
    expect(after.Contents).toEqual(stored.Contents);
    expect(await onMachine('b', build)).toMatchObject({ source: 'remote' });
    expect(count()).toBe(1);
  });

  test('an engine that a machine has does not go to a bucket that its environment names', async () => {
    const { build } = countingBuilder();
    await onMachine('a', build, { remote: false });
    const environment = { ARTIFACTS_BUCKET: bucket, ARTIFACTS_ENDPOINT: minio.endpoint };
    const again = await onMachine('a', build, { remote: undefined }, minio.endpoint, environment);
    expect(again).toMatchObject({ source: 'local', timings: { uploadMs: 0 } });
    expect(await keys()).toEqual([]);
  });

  test('a bucket that does not answer is a warning of an engine that is here', async () => {
    const { build } = countingBuilder();
    await onMachine('a', build, { remote: false });
    const lost = await onMachine('a', build, { remote: `http://127.0.0.1:9/${bucket}` });
    expect(lost).toMatchObject({ source: 'local', warnings: [expect.any(String)] });
  });

  test('ten machines that ask at once build once', async () => {
    const { build: quick, count } = countingBuilder();
    const build: typeof quick = async (...request) => {
      await sleep(400);
      return quick(...request);
    };
    const machines = Array.from({ length: 10 }, (_, index) => onMachine(`m${index}`, build));
    const sources = (await Promise.all(machines)).map(({ source }) => source);
    expect(sources.filter((source) => source === 'built')).toHaveLength(1);
    expect(sources.filter((source) => source === 'remote')).toHaveLength(9);
    expect(count()).toBe(1);
    expect((await keys()).filter((key) => key.includes('.leases/'))).toEqual([]);
  });

  test('--force-rebuild builds although the bucket has the engine, and replaces it there', async () => {
    await onMachine('a');
    const { build, count } = countingBuilder();
    expect(await onMachine('b', build, { forceRebuild: true })).toMatchObject({ source: 'built' });
    expect(count()).toBe(1);
  });

  test('a server that is down costs seconds and a warning, never the build', async () => {
    proxy.faults = () => ({ hangUp: true });
    const built = await onMachine('a', countingBuilder().build, {}, proxy.endpoint);
    expect(built).toMatchObject({ source: 'built', warnings: [expect.stringContaining(proxy.endpoint)] });
    expect(built.why).toEqual([
      expect.objectContaining({ from: 'local', code: null }),
      expect.objectContaining({
        from: 'remote',
        code: 'TF_REMOTE_UNREACHABLE',
        reason: expect.stringContaining(proxy.endpoint),
      }),
    ]);
  });

  test('credentials that may read only: the engine is built and kept here, and the rejected upload is reported', async () => {
    proxy.faults = ({ method }) => (method === 'PUT' ? { answer: 403, name: 'AccessDenied' } : null);
    const built = await onMachine('a', countingBuilder().build, {}, proxy.endpoint);
    expect(built).toMatchObject({ source: 'built', warnings: [expect.stringMatching(/not uploaded to/)] });
    expect(built.why.map(({ from, code }) => [from, code])).toEqual([
      ['local', null],
      ['remote', null],
    ]);
  });

  test('a damaged engine in the bucket is built again and mended there', async () => {
    await onMachine('a');
    proxy.faults = ({ method, path }) =>
      method === 'GET' && path.endsWith('.engine') ? { flipByte: 2000 } : null;
    const { build, count } = countingBuilder();
    const built = await onMachine('b', build, {}, proxy.endpoint);
    expect(built).toMatchObject({
      source: 'built',
      why: [{}, { from: 'remote', code: 'TF_REMOTE_DAMAGED' }],
    });
    expect(count()).toBe(1);
    expect(await onMachine('c', build)).toMatchObject({ source: 'remote' });
  });

  test('the environment names the bucket; --remote none and --no-cache leave it alone', async () => {
    const environment = {
      ...minio.environment,
      ARTIFACTS_ENDPOINT: minio.endpoint,
      ARTIFACTS_BUCKET: bucket,
    };
    const wishes = {
      model,
      target: 'tensorrt-rtx:sm_89',
      toolchain: sampleToolchain,
      knownAnswer: false,
      profiles: ['x:1x64/8x64/32x64'],
    };
    const { build } = countingBuilder();
    const run = (more: Partial<BuildOptions>) =>
      buildOrLoad({ ...wishes, store: join(folder, bucket, 'e'), ...more }, { build, environment });
    await run({ remote: false });
    await run({ store: false, output: join(folder, bucket, 'x.engine') });
    expect(await keys()).toEqual([]);
    await run({ forceRebuild: true });
    expect(await keys()).toHaveLength(4);
  });

  const leases = async (timing = { heartbeatMs: 50, expiryMs: 400 }) => {
    const address = remoteAddress(`${minio.endpoint}/${bucket}`, minio.environment);
    if (address === null) throw new Error('no address');
    return new RemoteLeases(await openS3(address), 'leases/', timing);
  };

  test('a lease has one holder while it is renewed, and another after it was released', async () => {
    const [one, two] = [await leases(), await leases()];
    const held = await one.tryAcquire('x');
    const beat = async () => {
      const { Contents = [] } = await minio.client.send(new ListObjectsV2Command({ Bucket: bucket }));
      return Contents.map(({ ETag }) => ETag).join();
    };
    for (let look = 0; look < 4; look++) {
      expect(await two.tryAcquire('x')).toMatchObject({
        lease: null,
        holder: expect.stringContaining(`${process.pid}`),
      });
      const seen = await beat();
      await expect.poll(beat).not.toBe(seen);
    }
    await held.lease?.release();
    const next = await two.tryAcquire('x');
    expect(next.lease).not.toBeNull();
    await next.lease?.release();
    expect(await keys()).toEqual([]);
  });

  test('of twenty who ask at once, one gets the lease', async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => leases()));
    const attempts = await Promise.all(all.map((each) => each.tryAcquire('x')));
    const won = attempts.flatMap(({ lease }) => lease ?? []);
    expect(won).toHaveLength(1);
    await won[0]?.release();
  });

  test('a holder that died is succeeded once its lease stood still, by one', async () => {
    const dead = await leases({ heartbeatMs: 1e9, expiryMs: 400 });
    await dead.tryAcquire('x');
    const waiting = await Promise.all(Array.from({ length: 5 }, () => leases()));
    const all = () => Promise.all(waiting.map((each) => each.tryAcquire('x')));
    expect((await all()).filter(({ lease }) => lease !== null)).toHaveLength(0);
    await sleep(600);
    expect((await all()).filter(({ lease }) => lease !== null)).toHaveLength(1);
  });

  test('whether the server keeps conditions is found out once', async () => {
    const here = await leases();
    expect(await here.conditional()).toBe(true);
    expect(await keys()).toEqual([]);
  });
});
