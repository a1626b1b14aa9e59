import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { scheduledJobs } from '../../../src/products/fleet/schedulers/where.js';
import { mutations } from '../../support/mutations.js';
import { runs } from '../../support/runs.js';
import { fakePrograms, samplePlan } from './sample-plan.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-schedulers-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folder = root;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
});

const targets = {
  l4: { target: 'tensorrt@10.13.3.9:sm_89', where: { slurm: {} }, jobs: 8 },
  h100: { target: 'tensorrt@10.13.3.9:sm_90', where: { kubernetes: { image: 'i' } }, jobs: 4 },
};
const plan = samplePlan(targets);
const NONE = 'exit 1';

/** What is known where these programs answer so; those that are not named fail. */
const known = (scripts: Readonly<Record<string, string>>) =>
  scheduledJobs(plan, {
    environment: fakePrograms(folder, { squeue: NONE, sacct: NONE, kubectl: NONE, ...scripts }),
  });

/** A script that prints a text. */
function printing(text: string): string {
  writeFileSync(join(folder, 'answer'), text);
  return `cat '${join(folder, 'answer')}'`;
}

describe('Slurm', () => {
  test.each<[string, readonly number[]]>([
    ['12_3', [3]],
    ['12_[3,5-7%2]', [3, 5, 6, 7]],
    ['12_[0-1]', [0, 1]],
    ['12_[6-99999999]', [6, 7, 8, 9, 10, 11]],
    ['12', []],
    ['12_[]', []],
    ['12_[7-3]', []],
  ])('a task %s is of the jobs %j', async (id, indices) => {
    const { jobs } = await known({ squeue: printing(`${id}|PENDING||Resources\n`) });
    expect([...jobs.keys()]).toEqual(indices);
  });

  test.each([
    ['12_3|PENDING||Resources', { state: 'queued', node: null, reason: 'Resources' }],
    ['12_3|PENDING||None', { state: 'queued', node: null, reason: 'PENDING' }],
    ['12_3|RUNNING|l4a|None', { state: 'running', node: 'l4a', reason: 'RUNNING' }],
    ['12_3|COMPLETING|l4a|None', { state: 'running', node: 'l4a', reason: 'COMPLETING' }],
    ['12_3|REQUEUED|l4a|BeginTime', { state: 'queued', node: null, reason: 'BeginTime' }],
    ['12_3|FAILED|l4a|NonZeroExitCode', undefined],
  ])('%s', async (row, task) => {
    const { jobs } = await known({ squeue: printing(`${row}\n`) });
    expect(jobs.get(3)).toEqual(task);
  });

  test('of a job that was sent twice the task at work counts', async () => {
    const { jobs } = await known({ squeue: printing('13_3|RUNNING|l4a|None\n14_3|PENDING||Priority\n') });
    expect(jobs.get(3)?.state).toBe('running');
  });

  test('the accounts have what ended', async () => {
    const rows =
      '12_3|OUT_OF_MEMORY|l4a|0:125\n12_4|FAILED|l4a|2:0\n12_5|RUNNING|l4a|0:0\n12_6|CANCELLED by 0||0:0\n';
    const { ended, jobs } = await known({ squeue: 'exit 0', sacct: printing(rows) });
    expect([...ended]).toEqual([
      [3, { node: 'l4a', reason: 'OUT_OF_MEMORY, exit code 0:125' }],
      [4, { node: 'l4a', reason: 'FAILED, exit code 2:0' }],
      [6, { node: null, reason: 'CANCELLED by 0, exit code 0:0' }],
    ]);
    expect(jobs.size).toBe(0);
  });
});

const annotations = (jobs: string, index?: number) => ({
  'trtforge.fleet/jobs': jobs,
  ...(index === undefined ? {} : { 'batch.kubernetes.io/job-completion-index': String(index) }),
});
const job = (status: object) => ({
  kind: 'Job',
  metadata: { annotations: annotations('8,9,11') },
  spec: {},
  status,
});
const pod = (index: number, status: object, nodeName?: string) => ({
  kind: 'Pod',
  metadata: { annotations: annotations('8,9,11', index) },
  spec: { nodeName },
  status,
});
const state = (of: object) => ({ containerStatuses: [{ name: 'build', state: of }] });
const items = [
  job({ active: 1, completedIndexes: '0', conditions: [{ type: 'Suspended', status: 'False' }] }),
  pod(0, { phase: 'Succeeded', ...state({ terminated: { exitCode: 0, reason: 'Completed' } }) }, 'gpu-1'),
  pod(1, { phase: 'Failed', ...state({ terminated: { exitCode: 137, reason: 'OOMKilled' } }) }, 'gpu-1'),
  pod(1, { phase: 'Running', ...state({ running: { startedAt: 'x' } }) }, 'gpu-2'),
];

describe('Kubernetes', () => {
  const listed = (...list: readonly unknown[]) =>
    known({ kubectl: printing(JSON.stringify({ items: list })) });

  test('a Job that goes on has what is not over, each by its pod where it has one', async () => {
    const { jobs, ended } = await listed(...items);
    expect(jobs.get(8)).toBeUndefined();
    expect(jobs.get(9)).toEqual({ state: 'running', node: 'gpu-2', reason: 'Running' });
    expect(jobs.get(11)).toMatchObject({ state: 'queued', node: null });
    expect(ended.get(9)).toEqual({ node: 'gpu-1', reason: 'OOMKilled, exit code 137' });
  });

  test.each(['Complete', 'Failed'])('a Job that is %s has none', async (type) => {
    const { jobs } = await listed(job({ completedIndexes: '0', conditions: [{ type, status: 'True' }] }));
    expect(jobs.size).toBe(0);
  });

  test.each([
    [{ phase: 'Pending', ...state({ waiting: { reason: 'ImagePullBackOff' } }) }, 'ImagePullBackOff'],
    [
      { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] },
      'Unschedulable',
    ],
    [{ phase: 'Pending' }, 'Pending'],
  ])('a pod waits: %j', async (status, reason) => {
    expect((await listed(pod(2, status))).jobs.get(11)).toEqual({ state: 'queued', node: null, reason });
  });
});

describe('not asked', () => {
  test('is what is not installed', async () => {
    const { jobs, asked } = await scheduledJobs(plan, { environment: { PATH: folder } });
    expect(jobs.size).toBe(0);
    expect(asked).toMatchObject([
      { name: 'slurm', why: expect.stringContaining('squeue') },
      { name: 'kubernetes', why: expect.stringContaining('kubectl') },
    ]);
  });

  test('is what fails, with its words', async () => {
    const { asked } = await known({ squeue: 'echo no controller >&2; exit 1', kubectl: 'echo "{}"' });
    expect(asked).toMatchObject([
      { name: 'slurm', why: expect.stringContaining('no controller') },
      { name: 'kubernetes', why: null },
    ]);
  });

  test('is what no target is built by', async () => {
    const local = samplePlan({ here: { ...targets.l4, where: 'local' } });
    expect((await scheduledJobs(local, { environment: { PATH: folder } })).asked).toEqual([]);
  });
});

test('each namespace of Kubernetes is asked once', async () => {
  const where = (namespace: string) => ({ kubernetes: { image: 'i', namespace } });
  const two = samplePlan({
    a: { ...targets.h100, where: where('ml') },
    b: { ...targets.h100, where: where('ml') },
    c: { ...targets.h100, where: where('other') },
  });
  const { asked } = await scheduledJobs(two, { environment: fakePrograms(folder, { kubectl: 'echo "{}"' }) });
  expect(asked.length).toBe(2);
});

describe('any answer is read or passed over', () => {
  const { l4, h100 } = targets;
  test.each([
    ['squeue', '12_[3,5-7%2]|PENDING||Resources\n12_4|RUNNING|l4a|None\n', { l4 }],
    ['sacct', '12_3|FAILED|l4a|2:0\n12_4|COMPLETED|l4a|0:0\n', { l4 }],
    ['kubectl', JSON.stringify({ items }), { l4: { ...l4, where: 'local' }, h100 }],
  ] as const)('%s', async (program, answer, of) => {
    const file = join(folder, 'mutated');
    const answering = { squeue: NONE, sacct: NONE, kubectl: NONE, [program]: `exec cat '${file}'` };
    const environment = fakePrograms(folder, answering);
    const asked = samplePlan(of);
    for (const bytes of mutations(Buffer.from(answer), runs(300))) {
      writeFileSync(file, bytes);
      const { jobs, ended } = await scheduledJobs(asked, { environment });
      for (const index of [...jobs.keys(), ...ended.keys()]) expect(asked.jobs[index]?.index).toBe(index);
    }
  });
});
