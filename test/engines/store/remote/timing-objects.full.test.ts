import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sha256 } from '../../../../src/base/files/digest.js';
import { remoteAddress } from '../../../../src/engines/store/remote/address.js';
import { TimingObjects } from '../../../../src/engines/store/remote/remote-store.js';
import { openS3 } from '../../../../src/engines/store/remote/s3-objects.js';
import { TimingCaches, type TimingScope } from '../../../../src/engines/store/timing-caches.js';
import { TimingFolder, timingName } from '../../../../src/engines/store/timing-folder.js';
import { noTrust } from '../../../../src/engines/store/trust.js';
import { type Minio, startMinio } from '../../../support/minio.js';
import { describeWith } from '../../../support/needs.js';
import { largePlan, sampleIdentity } from '../../../support/sample-engine.js';

describeWith('minio', 'timing caches of a bucket', (binary) => {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-timing-objects-'));
  const at = (name: string) => join(folder, name);
  const target = { ...sampleIdentity().target, product: 'tensorrt' as const, version: '10.6.0.26' };
  const scope: TimingScope = { target, gpu: 'NVIDIA L4', driverBranch: '580' };
  /** More than one part of an upload. */
  const content = largePlan(1, 20 << 20);
  let minio: Minio;
  let remote: TimingObjects;

  beforeAll(async () => {
    minio = await startMinio(binary);
    await minio.client.send(new CreateBucketCommand({ Bucket: 'timing' }));
    const address = remoteAddress(`${minio.endpoint}/timing`, minio.environment)!;
    remote = new TimingObjects(await openS3(address), `${address.prefix}/`);
    writeFileSync(at('left.timing'), content);
  });
  afterAll(async () => {
    await minio[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Those of a machine with a store of its own. */
  const machine = (name: string) =>
    new TimingCaches({ scope, folder, local: new TimingFolder(at(name)), remote, trust: noTrust, work: {} });
  const names = async () => (await remote.list()).map(({ name }) => name).sort();

  test('one of several parts is put, listed, taken by another machine, and replaced', async () => {
    const first = machine('a');
    expect(await first.take()).toEqual([]);
    await first.keep(at('left.timing'), []);
    const [name = '', description] = await names();
    expect(name).toBe(timingName(name.split('/')[0]!, sha256(content)));
    expect(description).toBe(`${name}.json`);
    const second = machine('b');
    const taken = await second.take();
    expect(taken.map((path) => readFileSync(path).equals(content))).toEqual([true]);
    writeFileSync(at('merged.timing'), 'more');
    await second.keep(at('merged.timing'), taken);
    expect((await names()).map((each) => each.includes(sha256('more')))).toEqual([true, true]);
    expect([...first.warnings, ...second.warnings]).toEqual([]);
  });

  test('one that is rejected is gone from it; what is not there is no error', async () => {
    const caches = machine('c');
    await caches.reject(await caches.take());
    expect(await names()).toEqual([]);
    await remote.remove('tensorrt-10_sm_90_x/none.timing');
    expect(await remote.text('tensorrt-10_sm_90_x/none.timing')).toBeUndefined();
    const facts = { bytes: 4, sha256: sha256('more') };
    expect(await remote.fetch('tensorrt-10_sm_90_x/none.timing', facts, at('none'), {})).toBe(false);
    expect([existsSync(at('none')), caches.warnings]).toEqual([false, []]);
  });
});
