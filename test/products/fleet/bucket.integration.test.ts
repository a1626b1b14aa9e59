import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { sha256 } from '../../../src/base/files/digest.js';
import { lookUp } from '../../../src/engines/store/lookup.js';
import { openStores } from '../../../src/engines/store/open-stores.js';
import { FleetStore } from '../../../src/products/fleet/fleet-store.js';
import { sampleIdentity, samplePassport, samplePlan } from '../../support/sample-engine.js';
import { trtforge } from '../../support/trtforge.js';

interface Kept {
  readonly body: Buffer;
  readonly sha256?: string;
}

/** A bucket in memory. */
const bucket = new Map<string, Kept>();
const asked: string[] = [];

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url = '', headers } = request;
  const { pathname, searchParams } = new URL(url, 'http://localhost');
  const key = decodeURIComponent(pathname).replace(/^\/team\/?/, '');
  asked.push(`${method} ${key}`);
  if (key === '') {
    const prefix = searchParams.get('prefix') ?? '';
    const contents = [...bucket].filter(([name]) => name.startsWith(prefix));
    const items = contents.map(
      ([name, { body }]) =>
        `<Contents><Key>${name}</Key><Size>${body.length}</Size><LastModified>2026-11-28T12:00:00.000Z</LastModified></Contents>`,
    );
    response.end(`<ListBucketResult><IsTruncated>false</IsTruncated>${items.join('')}</ListBucketResult>`);
    return;
  }
  if (method === 'PUT') {
    const digest = headers['x-amz-meta-trtforge-sha256'] as string | undefined;
    bucket.set(key, { body: await buffer(request), ...(digest && { sha256: digest }) });
    return void response.end();
  }
  const kept = bucket.get(key);
  if (kept === undefined) return void response.writeHead(404).end();
  const digest = kept.sha256 === undefined ? {} : { 'x-amz-meta-trtforge-sha256': kept.sha256 };
  response.writeHead(200, { 'content-length': kept.body.length, etag: `"${sha256(kept.body)}"`, ...digest });
  response.end(method === 'HEAD' ? undefined : kept.body);
}

const server = createServer(answer);
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
afterAll(() => server.close());
const place = `http://127.0.0.1:${(server.address() as AddressInfo).port}/team/engines`;
const environment = { ARTIFACTS_ACCESS_KEY: 'a'.repeat(8), ARTIFACTS_SECRET_KEY: 'b'.repeat(12) };

const wanted = sampleIdentity();
const plan = samplePlan();
const passport = samplePassport(plan, wanted);
const { digest } = passport.identity;
const object = `engines/sample/${passport.name}`;

beforeEach(() => {
  bucket.clear();
  asked.length = 0;
  const entry = { schema: 'trtforge.remote-entry/1', key: `sample/${passport.name}`, passport };
  bucket.set(`engines/.by-identity/${digest.slice(0, 2)}/${digest}.json`, {
    body: Buffer.from(JSON.stringify(entry)),
  });
  bucket.set(`engines/.by-model/${wanted.model.slice(0, 2)}/${wanted.model}/${digest}`, {
    body: Buffer.alloc(0),
  });
  bucket.set(object, { body: plan, sha256: sha256(plan) });
});

async function found() {
  const fleet = await FleetStore.open(place, environment);
  const { remote, close } = await openStores({ remote: place }, environment);
  try {
    return { held: await fleet.find(wanted), looked: await lookUp(remote!, wanted) };
  } finally {
    fleet.close();
    close();
  }
}

test('a bucket has an engine whose object is that of its passport', async () => {
  const { held, looked } = await found();
  expect(held).toEqual({ passport, rule: 'exact' });
  expect(looked.found).toBe(true);
  expect(asked).not.toContain(`GET /${object}`);
});

test.each<[string, Kept | undefined]>([
  ['was deleted', undefined],
  ['has another size', { body: Buffer.from('garbage'), sha256: sha256(plan) }],
  ['has another digest', { body: samplePlan(3), sha256: sha256(samplePlan(3)) }],
  ['has no digest', { body: samplePlan(3) }],
])('one whose object %s it has not, for a fleet and for a build', async (_what, kept) => {
  if (kept === undefined) bucket.delete(object);
  else bucket.set(object, kept);
  const { held, looked } = await found();
  expect(held).toEqual({ passport: null, why: expect.objectContaining({ code: 'TF_REMOTE_DAMAGED' }) });
  expect(looked).toMatchObject({ found: false, code: 'TF_REMOTE_DAMAGED' });
});

test('a bucket is signed, verified and searched by the command line', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-bucket-'));
  const [key, other] = [join(folder, 'key.pem'), join(folder, 'other.pem')];
  const local = { ...environment, TENSORRT_CACHE_DIR: join(folder, 'store'), XDG_CACHE_HOME: folder };
  const run = async (...line: readonly string[]) => {
    const { exitCode, json } = await trtforge([...line, '--json'], local);
    return { exitCode, answer: json() };
  };
  try {
    for (const each of [key, other]) await trtforge(['cache', 'keygen', '-o', each]);
    const [inventory, at] = [join(folder, 'machines.yaml'), ['--remote', place]];
    writeFileSync(inventory, 'machines: { l4: { gpu: L4, tensorrt-rtx: 1.7.1.116 } }');
    const trusting = (each: string) => ['--require-signature', '--trust-key', `${each}.pub`];
    const verified = async (each: string) => {
      const { exitCode, answer } = await run('cache', 'verify', ...at, ...trusting(each));
      return [exitCode, answer.verified];
    };
    expect(await verified(key)).toEqual([1, 0]);
    const { answer } = await run('cache', 'sign', ...at, '--sign-key', key);
    expect(answer).toMatchObject({ exitCode: 0, signed: [{ identity: digest }] });
    expect(await verified(key)).toEqual([0, 1]);
    expect(await verified(other)).toEqual([1, 0]);
    const which = await run('which', 'sample', '--on', inventory, ...at);
    expect(which.answer).toMatchObject({
      exitCode: 0,
      machines: [{ best: `${place}/sample/${passport.name}` }],
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
