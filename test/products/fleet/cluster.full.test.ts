import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { CreateBucketCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, expect, test } from 'vitest';
import { runCommand } from '../../../src/base/process/command.js';
import type { FleetPlan, FleetStatus } from '../../../src/products/fleet/plan-schema.js';
import type { FleetSubmit } from '../../../src/products/fleet/submit/result.js';
import { type Minio, startMinio } from '../../support/minio.js';
import { describeWith, found } from '../../support/needs.js';
import { writeSampleModel } from '../../support/sample-engine.js';
import { startSlurm } from '../../support/slurm.js';
import { fakePrograms } from './sample-plan.js';

const main = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'trtforge-fleet-cluster-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Keys of a bucket below a prefix. */
async function keys({ client }: Minio, prefix = ''): Promise<readonly string[]> {
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: 'fleet', Prefix: prefix }));
  return Contents.flatMap(({ Key }) => Key ?? []);
}

/** Until something holds; a test that waits in vain ends by its limit. */
async function until<T>(look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  for (;;) {
    const seen = await look();
    if (seen !== undefined) return seen;
    await sleep(50);
  }
}

describeWith('slurm', 'a cluster of an L4 and an A10 whose store is a bucket', () => {
  const minioBinary = found('minio');

  test.skipIf(minioBinary === undefined || found('toolchain') === undefined)(
    'builds twelve engines, one at a time on each GPU, although one task is requeued and another killed',
    async () => {
      await using minio = await startMinio(minioBinary!);
      await minio.client.send(new CreateBucketCommand({ Bucket: 'fleet' }));
      await using slurm = await startSlurm();
      const log = join(root, 'tasks.log');
      const stub = `'${process.execPath}' '${main}' "$@" &
echo "$SLURM_ARRAY_TASK_ID $SLURMD_NODENAME begin $!" >> '${log}'
wait $!; status=$?
echo "$SLURM_ARRAY_TASK_ID $SLURMD_NODENAME end $status" >> '${log}'
exit $status`;
      const environment = {
        ...fakePrograms(join(root, 'bin'), { trtforge: stub }),
        ...minio.environment,
        SLURM_CONF: slurm.environment.SLURM_CONF,
        CUDA_VISIBLE_DEVICES: '',
      };
      mkdirSync(join(root, 'models'));
      const models = Array.from({ length: 6 }, (_, index) => `m${index}.onnx`);
      for (const [index, name] of models.entries())
        await writeSampleModel(join(root, 'models', name), { scale: 0.01 + index / 100 });
      const where = (constraint: string) =>
        `where: { slurm: { constraint: ${constraint}, environment: [ARTIFACTS_ACCESS_KEY, ARTIFACTS_SECRET_KEY] } }`;
      const file = join(root, 'models', 'engines.yaml');
      writeFileSync(
        file,
        `store: ${minio.endpoint}/fleet/team
targets:
  l4: { target: 'tensorrt-rtx:sm_89', ${where('sm_89')} }
  a10: { target: 'tensorrt-rtx:sm_86', ${where('sm_86')} }
models:
${models.map((name) => `  - { model: ${name}, batch: 1/4/8, precision: fp16 }`).join('\n')}
`,
      );
      const run = async <T>(...words: readonly string[]): Promise<T & { readonly exitCode: number }> => {
        const line = [main, 'fleet', ...words, '--json'];
        const ran = await runCommand(process.execPath, line, { timeoutMs: 600_000, environment });
        return JSON.parse(ran.stdout) as T & { readonly exitCode: number };
      };
      const { jobs } = await run<FleetPlan>('plan', file);
      const sent = await run<FleetSubmit>('submit', file);
      expect(sent.targets.map(({ where: kind, indices }) => [kind, indices.length])).toEqual([
        ['slurm', 6],
        ['slurm', 6],
      ]);
      // A build holds the lease of its identity.
      const building = (on: string) =>
        until(async () => {
          const leases = await keys(minio, 'team/.leases/');
          return jobs.find((job) => job.on === on && leases.some((key) => key.includes(job.identity)));
        });
      const requeued = await building('l4');
      const task = `${sent.targets[0]!.job}_${requeued.index}`;
      slurm.run('scontrol', 'requeue', task);
      const killed = await building('a10');
      const begun = readFileSync(log, 'utf8')
        .split('\n')
        .map((line) => line.split(' '));
      const pid = Number(begun.findLast(([index]) => index === String(killed.index))?.[3]);
      process.kill(pid, 'SIGKILL');
      // Slurm lets a requeued task wait for two minutes.
      await until(() => {
        slurm.run('scontrol', 'update', `jobid=${task}`, 'starttime=now');
        return true;
      });
      await slurm.untilIdle();
      const between = await run<FleetStatus>('status', file);
      expect(between.jobs.filter(({ state }) => state === 'have').length).toBeGreaterThanOrEqual(11);
      await run('submit', file);
      await slurm.untilIdle();
      const status = await run<FleetStatus>('status', file);
      expect(status).toMatchObject({ exitCode: 0, outcome: 'pass' });
      expect(status.jobs.map(({ state }) => state)).toEqual(Array(12).fill('have'));
      const engines = (await keys(minio, 'team/')).filter((key) => key.endsWith('.engine'));
      expect(engines).toHaveLength(12);
      expect(await keys(minio, 'team/.leases/')).toEqual([]);
      expect((await run<FleetSubmit>('submit', file)).targets.map(({ indices }) => indices)).toEqual([
        [],
        [],
      ]);
      // Of a node's tasks one runs at a time: what begins before another has ended follows the task that was taken away.
      const rows = readFileSync(log, 'utf8')
        .trim()
        .split('\n')
        .map((line) => line.split(' '));
      for (const node of ['l4a', 'a10a']) {
        const own = rows.filter(([, at]) => at === node).map(([, , what]) => what);
        const open = own.filter((what, at) => what === 'begin' && own[at + 1] === 'begin').length;
        expect(open).toBeLessThanOrEqual(1);
      }
    },
  );
});
