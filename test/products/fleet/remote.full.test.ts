import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CreateBucketCommand } from '@aws-sdk/client-s3';
import { afterAll, expect, test } from 'vitest';
import type { FleetPlan, FleetStatus, FleetWork } from '../../../src/products/fleet/plan-schema.js';
import { startMinio } from '../../support/minio.js';
import { describeWith, found } from '../../support/needs.js';
import { writeSampleModel } from '../../support/sample-engine.js';

const main = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'trtforge-fleet-remote-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A process of its own, as a task of a cluster is. */
function task(words: readonly string[], env: NodeJS.ProcessEnv) {
  const child = spawn(process.execPath, [main, 'fleet', ...words, '--json'], { cwd: root, env });
  let out = '';
  child.stdout.on('data', (text) => {
    out += String(text);
  });
  return {
    child,
    ended: new Promise<{ status: number | null; json: unknown }>((resolve) =>
      child.on('close', (status) => resolve({ status, json: out === '' ? null : JSON.parse(out) })),
    ),
  };
}

describeWith('minio', 'a fleet whose store is a bucket', (binary) => {
  test.skipIf(found('toolchain') === undefined)(
    'has one build of what two machines need at once, clocks apart, and of what one of them was killed at',
    async () => {
      await using minio = await startMinio(binary);
      await minio.client.send(new CreateBucketCommand({ Bucket: 'fleet' }));
      const env = { ...process.env, ...minio.environment, CUDA_VISIBLE_DEVICES: '' };
      const run = async (...words: readonly string[]) => (await task(words, env).ended).json;
      await writeSampleModel(join(root, 'sample.onnx'));
      writeFileSync(
        join(root, 'engines.yaml'),
        `store: ${minio.endpoint}/fleet/team\ntargets: { ada: { target: 'tensorrt-rtx:sm_89' } }\nmodels: [{ model: sample.onnx, batch: 1/4/8 }, { model: sample.onnx, batch: 2 }]\n`,
      );
      const { address } = (await run('plan', 'engines.yaml')) as FleetPlan & { address: string };
      expect(address).toBe(`${minio.endpoint}/fleet/team/fleet/${address.slice(-37)}`);
      // The clock of the second machine is 50 minutes ahead.
      const skew = join(root, 'skew.mjs');
      writeFileSync(
        skew,
        'const own = Date; const now = () => own.now() + 3_000_000; globalThis.Date = class extends own { constructor(...given) { super(...(given.length === 0 ? [now()] : given)); } static now() { return now(); } };',
      );
      const ahead = { ...env, NODE_OPTIONS: `--import=${skew}` };
      const both = [env, ahead].map((own) => task(['work', address, '--jobs', '0'], own).ended);
      const did = (await Promise.all(both)).map(({ json }) => (json as FleetWork).jobs[0]?.did);
      expect(did.sort()).toEqual(['built', 'there']);
      const killed = task(['work', address, '--jobs', '1'], env);
      setTimeout(() => killed.child.kill('SIGKILL'), 1200);
      await killed.ended;
      const again = await task(['work', address], env).ended;
      expect(again.status).toBe(0);
      const status = (await run('status', address)) as FleetStatus;
      expect(status).toMatchObject({ outcome: 'pass', jobs: [{ state: 'have' }, { state: 'have' }] });
    },
  );
});
