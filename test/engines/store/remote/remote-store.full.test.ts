import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand, HeadObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { identityDigest } from '../../../../src/engines/identity/identity.js';
import { whyCache } from '../../../../src/engines/store/cache.js';
import { remoteAddress } from '../../../../src/engines/store/remote/address.js';
import { RemoteStore } from '../../../../src/engines/store/remote/remote-store.js';
import { openS3 } from '../../../../src/engines/store/remote/s3-objects.js';
import { noTrust } from '../../../../src/engines/store/trust.js';
import { ignoreEvents, type WorkEvent } from '../../../../src/events.js';
import { type Minio, startMinio } from '../../../support/minio.js';
import { describeWith } from '../../../support/needs.js';
import { sampleIdentity, samplePassport, samplePlan } from '../../../support/sample-engine.js';

const options = { emit: ignoreEvents, signal: undefined };

describeWith('minio', 'a store in a bucket', (binary) => {
  let minio: Minio;
  let folder: string;
  let store: RemoteStore;
  let cases = 0;
  let bucket = '';

  beforeAll(async () => {
    minio = await startMinio(binary);
  });
  afterAll(() => minio[Symbol.asyncDispose]());

  beforeEach(async () => {
    bucket = `case-${++cases}`;
    await minio.client.send(new CreateBucketCommand({ Bucket: bucket }));
    folder = mkdtempSync(join(tmpdir(), 'trtforge-remote-'));
    store = await open();
    return () => {
      store.close();
      rmSync(folder, { recursive: true, force: true });
    };
  });

  const open = async () => {
    const address = remoteAddress(`${minio.endpoint}/${bucket}`, minio.environment);
    if (address === null) throw new Error('no address');
    return new RemoteStore(await openS3(address), address.prefix);
  };
  const put = (key: string, body: string | Uint8Array) =>
    minio.client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body }));

  /** An engine of the model `letter`, uploaded. */
  async function uploaded(letter = 'a', bytes = 4096) {
    const plan = samplePlan(letter.charCodeAt(0), bytes);
    const passport = samplePassport(plan, sampleIdentity(letter.repeat(64)));
    const planPath = join(folder, `${letter}.plan`);
    writeFileSync(planPath, plan);
    const engine = await store.upload(planPath, passport, null, options);
    return { plan, passport, engine, identity: passport.identity.digest };
  }

  test('an engine that was uploaded is found, and what comes back is what was kept', async () => {
    const { plan, passport, identity } = await uploaded();
    const answer = await store.get(identity);
    if (!answer.found) throw new Error(answer.reason);
    expect(answer.engine.passport).toEqual(passport);
    await store.download(answer.engine, join(folder, 'back.plan'), options);
    expect(readFileSync(join(folder, 'back.plan')).equals(plan)).toBe(true);
  });

  test('why it does not serve: what differs from an engine of the model, or that it has none of it', async () => {
    const { passport } = await uploaded();
    const stores = { store: null, layers: [], remote: store, trust: noTrust, maxBytes: null };
    const named = { name: 'sample', version: null };
    const { recipe, ...rest } = sampleIdentity();
    const { why } = await whyCache(stores, { ...rest, recipe: { ...recipe, maxAuxStreams: 3 } }, named);
    expect(why).toMatchObject([
      { from: 'remote', nearest: { name: passport.name }, differences: [{ field: 'recipe.maxAuxStreams' }] },
    ]);
    const other = await whyCache(stores, sampleIdentity('c'.repeat(64)), named);
    expect(other.why).toEqual([
      {
        from: 'remote',
        code: null,
        reason: `${store.place} has no usable engine of this model`,
        nearest: null,
        differences: [],
      },
    ]);
  });

  test('it lies under its readable name, with identity and digest in the metadata and the passport beside it', async () => {
    const { passport, identity } = await uploaded();
    const key = `engines/sample/${passport.name}`;
    const { Metadata } = await minio.client.send(new HeadObjectCommand({ Bucket: bucket, Key: key }));
    expect(Metadata).toMatchObject({
      'trtforge-identity': identity,
      'trtforge-sha256': passport.plan.sha256,
    });
    await minio.client.send(new HeadObjectCommand({ Bucket: bucket, Key: `${key}.passport.json` }));
  });

  test('engines of several parts travel in parallel and state how far they are', async () => {
    const bytes = 40 << 20;
    const { plan, engine } = await uploaded('b', bytes);
    const events: WorkEvent[] = [];
    await store.download(engine, join(folder, 'back.plan'), {
      ...options,
      emit: (event) => events.push(event),
    });
    expect(readFileSync(join(folder, 'back.plan')).equals(plan)).toBe(true);
    expect(events.at(-1)).toMatchObject({ type: 'progress', phase: 'download', done: bytes, total: bytes });
    expect(events).toHaveLength(3);
  });

  test('two engines of one readable name do not touch each other', async () => {
    const [plan, other] = [samplePlan(1), samplePlan(2)];
    const first = samplePassport(plan, sampleIdentity('a'.repeat(64)));
    const document = {
      ...sampleIdentity('a'.repeat(64)),
      recipe: { ...first.identity.document.recipe, maxAuxStreams: 0 },
    };
    const second = { ...samplePassport(other, document), name: first.name };
    for (const [bytes, passport] of [
      [plan, first],
      [other, second],
    ] as const) {
      writeFileSync(join(folder, 'p'), bytes);
      await store.upload(join(folder, 'p'), passport, null, options);
    }
    for (const [bytes, passport] of [
      [plan, first],
      [other, second],
    ] as const) {
      const answer = await store.get(passport.identity.digest);
      if (!answer.found) throw new Error(answer.reason);
      await store.download(answer.engine, join(folder, 'back'), options);
      expect(readFileSync(join(folder, 'back')).equals(bytes)).toBe(true);
    }
  });

  test('what is not there is a plain miss', async () => {
    expect(await store.get('f'.repeat(64))).toMatchObject({ found: false, code: null });
  });

  test.each([
    ['text', 'no JSON at all', 'TF_REMOTE_DAMAGED'],
    ['a key that climbs', { key: '../../etc/passwd', passport: {} }, 'TF_REMOTE_DAMAGED'],
    ['a key with a folder too many', { key: 'a/b/c', passport: {} }, 'TF_REMOTE_DAMAGED'],
    [
      'a passport that is none',
      { key: 'a/b', passport: { schema: 'trtforge.passport/1' } },
      'TF_PASSPORT_INVALID',
    ],
    [
      'a passport of another engine',
      { key: 'a/b', passport: samplePassport(samplePlan()) },
      'TF_REMOTE_DAMAGED',
    ],
  ])('an index entry that holds %s is a miss with a reason', async (_what, content, code) => {
    const identity = 'e'.repeat(64);
    await put(
      `engines/.by-identity/ee/${identity}.json`,
      typeof content === 'string' ? content : JSON.stringify(content),
    );
    expect(await store.get(identity)).toMatchObject({ found: false, code });
  });

  test.each([
    [
      'other bytes of the same size',
      (plan: Buffer) => samplePlan(99, plan.length),
      false,
      /nothing for a SHA/,
    ],
    ['the same with the metadata', (plan: Buffer) => samplePlan(99, plan.length), true, /SHA-256/],
    ['fewer bytes', (plan: Buffer) => plan.subarray(0, 100), true, /100 bytes, its passport states 4096/],
  ])(
    '%s under the key of an engine are rejected, and nothing of them stays',
    async (_what, damage, isMarked, why) => {
      const { plan, engine } = await uploaded();
      const Metadata: Record<string, string> = isMarked
        ? { 'trtforge-sha256': engine.passport.plan.sha256 }
        : {};
      await minio.client.send(
        new PutObjectCommand({ Bucket: bucket, Key: engine.key, Body: damage(plan), Metadata }),
      );
      const target = join(folder, 'back.plan');
      await expect(store.download(engine, target, options)).rejects.toMatchObject({
        code: 'TF_REMOTE_DAMAGED',
        message: expect.stringMatching(why),
      });
      expect(() => readFileSync(target)).toThrow(/ENOENT/);
    },
  );

  test('an engine is removed with its passport and its entry', async () => {
    const { identity, engine } = await uploaded();
    expect(await store.remove(identity)).toBe(true);
    expect(await store.remove(identity)).toBe(false);
    expect(await store.identities()).toEqual([]);
    await expect(
      minio.client.send(new HeadObjectCommand({ Bucket: bucket, Key: engine.key })),
    ).rejects.toThrow();
  });

  test('every identity is listed', async () => {
    const kept = [await uploaded('a'), await uploaded('b')].map(({ identity }) => identity);
    expect((await store.identities()).toSorted()).toEqual(kept.toSorted());
    expect(kept).toContain(identityDigest(sampleIdentity('a'.repeat(64))));
  });
});
