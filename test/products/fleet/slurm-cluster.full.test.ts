import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../../../src/base/process/command.js';
import type { Submission } from '../../../src/products/fleet/schedulers/scheduler.js';
import { type SlurmWhere, slurmScript } from '../../../src/products/fleet/schedulers/slurm.js';
import { scheduledJobs, whereSchema } from '../../../src/products/fleet/schedulers/where.js';
import { describeWith } from '../../support/needs.js';
import { type Slurm, startSlurm } from '../../support/slurm.js';
import { fakePrograms, samplePlan, submission } from './sample-plan.js';

describeWith('slurm', 'a real Slurm of an L4 and an A10', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-cluster-'));
  let slurm: Slurm;
  beforeAll(async () => {
    slurm = await startSlurm();
  });
  afterAll(async () => {
    await slurm?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const where = (asked: Record<string, unknown>): SlurmWhere => {
    const parsed = whereSchema.parse({ slurm: asked });
    if (parsed === 'local' || parsed.slurm === undefined) throw new Error('not of Slurm');
    return parsed.slurm;
  };

  /** Hands a script to sbatch as `fleet submit` does; `trtforge` notes where and when it runs. */
  async function submitted(id: string, more: Partial<Submission>, asked: Record<string, unknown>) {
    const place = join(folder, `models of ${id}, "a" $(b) #c`);
    mkdirSync(place, { recursive: true });
    const log = join(folder, `${id}.log`);
    const stub = `echo "$SLURM_ARRAY_TASK_ID $SLURMD_NODENAME begin $CUDA_VISIBLE_DEVICES $PWD|$*" >> '${log}'
sleep 1
echo "$SLURM_ARRAY_TASK_ID $SLURMD_NODENAME end" >> '${log}'`;
    const environment = {
      ...fakePrograms(join(folder, id), { trtforge: stub }),
      SLURM_CONF: slurm.environment.SLURM_CONF,
    };
    const script = slurmScript(submission({ plan: { id, folder: place }, ...more }), where(asked));
    const sent = await runCommand('sbatch', ['--parsable'], {
      timeoutMs: 30_000,
      environment,
      input: script,
    });
    expect(sent.stderr).toBe('');
    return { place, environment, lines: () => readFileSync(log, 'utf8').trim().split('\n') };
  }

  test('runs each task on a node of its target, one at a time for each GPU', async () => {
    const l4 = await submitted(
      'aaaaaaaaaaaa',
      { jobs: [0, 2, 5] },
      { constraint: 'sm_89', gres: 'gpu:l4:1' },
    );
    const a10 = await submitted('bbbbbbbbbbbb', { jobs: [1, 3] }, { constraint: 'sm_86' });
    await slurm.untilIdle();
    for (const [{ lines, place }, node, indices] of [
      [l4, 'l4a', ['0', '2', '5']],
      [a10, 'a10a', ['1', '3']],
    ] as const) {
      const rows = lines().map((line) => line.split(' '));
      expect(rows.map(([, at]) => at)).toEqual(rows.map(() => node));
      // No task begins before the one before it ends.
      expect(rows.map(([, , what]) => what)).toEqual(indices.flatMap(() => ['begin', 'end']));
      expect(
        rows
          .filter(([, , what]) => what === 'begin')
          .map(([index]) => index)
          .sort(),
      ).toEqual(indices);
      expect(lines()[0]).toContain(` 0 ${place}|fleet work /store/fleet/0123456789ab.json --jobs `);
      expect(readdirSync(place).filter((name) => name.endsWith('.log')).length).toBe(indices.length);
    }
  });

  test('what it has of a plan is known by index', async () => {
    const id = 'c'.repeat(32);
    const target = { target: 'tensorrt@10.13.3.9:sm_89', where: { slurm: {} }, jobs: 8 };
    const asked = { constraint: 'sm_89', options: ['--hold'] };
    const { environment } = await submitted(id, { jobs: [1, 4, 5, 6], target: 'l4' }, asked);
    const known = () => scheduledJobs(samplePlan({ l4: target }, { id }), { environment });
    const { jobs, asked: answers } = await known();
    expect(answers).toEqual([{ name: 'slurm', why: null }]);
    expect([...jobs.keys()].sort()).toEqual([1, 4, 5, 6]);
    expect([...jobs.values()].map(({ state }) => state)).toEqual(Array(4).fill('queued'));
    slurm.run('scontrol', 'release', `jobname=trtforge-${id}`);
    await expect
      .poll(async () => [...(await known()).jobs.values()].find(({ state }) => state === 'running')?.node)
      .toBe('l4a');
    await slurm.untilIdle();
    expect((await known()).jobs.size).toBe(0);
  });
});
