import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { sha256 } from '../../../src/base/files/digest.js';
import { lookUp } from '../../../src/engines/store/lookup.js';
import { openStores } from '../../../src/engines/store/open-stores.js';
import { FleetStore } from '../../../src/products/fleet/fleet-store.js';
import { sampleIdentity, samplePassport, samplePlan } from '../../support/sample-engine.js';

interface Kept {
  readonly body: Buffer;
  readonly sha256?: string;
}

/** A bucket in memory, to read from. */
const bucket = new Map<string, Kept>();
const asked: string[] = [];

function answer({ method, url = '' }: IncomingMessage, response: ServerResponse): void {
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
