import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Minio, startMinio } from '../../../support/minio.js';
import { describeWith } from '../../../support/needs.js';
import { type Answer, Scene } from '../processes.js';

const sourceOf = (answer: Answer) => ('source' in answer ? answer.source : JSON.stringify(answer));

describeWith('minio', 'processes on machines that share a bucket', (binary) => {
  let minio: Minio;
  let root: string;
  beforeAll(async () => {
    minio = await startMinio(binary);
    root = mkdtempSync(join(tmpdir(), 'trtforge-far-'));
  });
  afterAll(async () => {
    await minio[Symbol.asyncDispose]();
    rmSync(root, { recursive: true, force: true });
  });

  /** Machines are stores of their own; a lease that stood still for so long is lost. */
  async function machines(bucket: string, expiryMs: number) {
    await minio.client.send(new CreateBucketCommand({ Bucket: bucket }));
    const scene = new Scene(root);
    const leaseTiming = { heartbeatMs: 300, expiryMs };
    const on = (name: string) => ({
      store: join(scene.folder, name),
      bucket: { address: `${minio.endpoint}/${bucket}`, leaseTiming },
      env: { ...minio.environment },
    });
    const leases = async () => {
      const { Contents = [] } = await minio.client.send(new ListObjectsV2Command({ Bucket: bucket }));
      return Contents.filter(({ Key = '' }) => Key.includes('.leases/'));
    };
    return { scene, on, leases };
  }

  test('ten of them build once, and the others load it', async () => {
    const { scene, on, leases } = await machines('ten', 60_000);
    const all = Array.from({ length: 10 }, (_, index) => scene.run({ ...on(`m${index}`), buildMs: 1500 }));
    const sources = (await Promise.all(all)).map(sourceOf).sort();
    expect(sources).toEqual(['built', ...Array(9).fill('remote')]);
    expect(scene.builds()).toBe(1);
    expect(await leases()).toEqual([]);
  });

  test('a builder that is killed is succeeded by one of those who wait', async () => {
    const { scene, on, leases } = await machines('killed', 10_000);
    const doomed = await scene.startHanging(on('doomed'));
    const waiting = ['a', 'b', 'c'].map((name) => scene.start({ ...on(name), buildMs: 300 }));
    await new Promise((resolve) => setTimeout(resolve, 12_000));
    // A heart that beats keeps its lease beyond the time of expiry.
    expect(scene.builds()).toBe(1);
    doomed.child.kill('SIGKILL');
    await doomed.answer;
    const answers = await Promise.all(waiting.map(({ answer }) => answer));
    expect(answers.map(sourceOf).sort()).toEqual(['built', 'remote', 'remote']);
    expect(scene.builds()).toBe(2);
    expect(await leases()).toEqual([]);
  });
});
