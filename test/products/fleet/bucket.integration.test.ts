import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { sha256 } from '../../../src/base/files/digest.js';
import { lookUp } from '../../../src/engines/store/lookup.js';
import { openStores } from '../../../src/engines/store/open-stores.js';
import { FleetStore } from '../../../src/products/fleet/fleet-store.js';
import { type Kept, startBucket } from '../../fakes/bucket.js';
import { sampleIdentity, samplePassport, samplePlan } from '../../support/sample-engine.js';
import { trtforge } from '../../support/trtforge.js';

const bucket = await startBucket();
afterAll(() => bucket.close());
const { objects, asked, place, environment } = bucket;

const wanted = sampleIdentity();
const plan = samplePlan();
const passport = samplePassport(plan, wanted);
const { digest } = passport.identity;
const object = `engines/sample/${passport.name}`;

beforeEach(() => {
  objects.clear();
  asked.length = 0;
  const entry = { schema: 'trtforge.remote-entry/1', key: `sample/${passport.name}`, passport };
  objects.set(`engines/.by-identity/${digest.slice(0, 2)}/${digest}.json`, {
    body: Buffer.from(JSON.stringify(entry)),
  });
  objects.set(`engines/.by-model/${wanted.model.slice(0, 2)}/${wanted.model}/${digest}`, {
    body: Buffer.alloc(0),
  });
  objects.set(object, { body: plan, sha256: sha256(plan) });
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
  if (kept === undefined) objects.delete(object);
  else objects.set(object, kept);
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
