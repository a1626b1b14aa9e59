import { z } from 'zod';
import { type CommandOutcome, type CommandRunner, runCommand } from '../../base/process/command.js';
import type { FleetPlan } from './plan-schema.js';
import { jobsAnnotation, planLabel } from './submit/kubernetes.js';
import { planName } from './submit/submission.js';

/** What a scheduler reports of a job. */
export interface ScheduledJob {
  readonly state: 'queued' | 'running' | 'ended';
  readonly node: string | null;
  /** In the scheduler's words: why it waits, or how it ended. */
  readonly reason: string | null;
  /** Of one that ended, where the scheduler has it. */
  readonly exitCode: number | null;
}

export interface SchedulerReport {
  /** By the plan's index; a job that no scheduler names is not in it. */
  readonly jobs: ReadonlyMap<number, ScheduledJob>;
  /** The schedulers of the plan that did not answer. */
  readonly notAsked: readonly { readonly scheduler: 'slurm' | 'kubernetes'; readonly why: string }[];
}

type Entry = readonly [index: number, job: ScheduledJob];

/** How long a scheduler has to answer. */
const ANSWER_MS = 10_000;

/** What the schedulers that targets of a plan name report of its jobs. A program that is missing, fails or hangs was not asked; never rejects. */
export async function askSchedulers(
  { id, targets, jobs }: Pick<FleetPlan, 'id' | 'targets'> & { readonly jobs: { readonly length: number } },
  environment: NodeJS.ProcessEnv,
  run: CommandRunner = runCommand,
): Promise<SchedulerReport> {
  const ask = async (program: string, ...args: readonly string[]) => {
    const ran = await run(program, args, { timeoutMs: ANSWER_MS, environment });
    const why = failureOf(ran);
    return { answer: why === null ? ran.stdout : '', why: why && `${program} ${why}` };
  };
  const entries: Entry[] = [];
  const notAsked: SchedulerReport['notAsked'][number][] = [];
  const wheres = Object.values(targets).flatMap(({ where }) => (where === 'local' ? [] : [where]));
  if (wheres.some(({ slurm }) => slurm !== undefined)) {
    const name = `--name=${planName(id)}`;
    const [queue, past] = await Promise.all([
      ask('squeue', '--noheader', '--array', name, '--format=%i|%T|%N|%r'),
      // Fails where a cluster keeps no accounts: then only the store knows what has ended.
      ask('sacct', '-n', '-P', '-X', '-S', 'now-30days', name, '-o', 'JobID,State,NodeList,ExitCode'),
    ]);
    if (queue.why !== null) notAsked.push({ scheduler: 'slurm', why: queue.why });
    const ended = slurmJobs(past.answer, jobs.length).filter(([, { state }]) => state === 'ended');
    entries.push(...ended, ...slurmJobs(queue.answer, jobs.length));
  }
  const clusters = wheres.flatMap(({ kubernetes }) => kubernetes ?? []);
  for (const namespace of new Set(clusters.map((cluster) => cluster.namespace))) {
    const place = namespace === undefined ? [] : [`--namespace=${namespace}`];
    const selector = `--selector=${planLabel}=${id}`;
    const listed = await ask('kubectl', 'get', 'jobs,pods', selector, '--output=json', ...place);
    if (listed.why !== null) notAsked.push({ scheduler: 'kubernetes', why: listed.why });
    entries.push(...kubernetesJobs(listed.answer, jobs.length));
  }
  // A job that was sent again counts by its later state.
  const order = ['ended', 'queued', 'running'];
  entries.sort(([, a], [, b]) => order.indexOf(a.state) - order.indexOf(b.state));
  return { jobs: new Map(entries), notAsked };
}

/** Why a scheduler's program gave no answer, as what follows its name; null where it did. */
export function failureOf({ outcome, exitCode, stderr }: CommandOutcome): string | null {
  if (exitCode === 0) return null;
  const ended = `ended with exit code ${exitCode}: ${stderr.trim() || 'it printed nothing'}`;
  const whys = { absent: 'is not installed here', 'timed-out': 'does not answer', failed: 'does not start' };
  return outcome === 'ended' ? ended : whys[outcome];
}

const WAITING = /^(?:PENDING|REQUEUE|RESV_DEL_HOLD|SPECIAL_EXIT)/;
const PAST =
  /^(?:BOOT_FAIL|CANCELLED|COMPLETED|DEADLINE|FAILED|NODE_FAIL|OUT_OF_MEMORY|PREEMPTED|REVOKED|TIMEOUT)/;

/** Rows of an array's task, its state, its node, and why it waits or `exit code:signal`. */
const slurmJobs = (answer: string, count: number): readonly Entry[] =>
  answer.split('\n').flatMap((row) => {
    const [id = '', word = '', node, note = ''] = row.trim().split('|');
    const state = PAST.test(word) ? 'ended' : WAITING.test(word) ? 'queued' : 'running';
    const exit = /^(\d{1,3}):\d+$/.exec(note)?.[1];
    const job: ScheduledJob = {
      state,
      node: (state !== 'queued' && node) || null,
      reason: { ended: word, queued: note || null, running: null }[state],
      exitCode: exit === undefined ? null : Number(exit),
    };
    // 3 of `12_3`; 3, 5, 6 and 7 of `12_[3,5-7%2]`.
    return indicesIn(/^\d+_\[?([\d,-]+)/.exec(id)?.[1], count).map((index) => [index, job] as const);
  });

/** The numbers below `count` of `0-2,5`, as Slurm and Kubernetes write them. */
const indicesIn = (text: string | undefined, count: number): readonly number[] =>
  (text ?? '').split(',').flatMap((part) => {
    const [, from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(part) ?? [];
    if (from === undefined) return [];
    const length = Math.min(Number(to), count - 1) - Number(from) + 1;
    return Array.from({ length: Math.max(0, length) }, (_, at) => Number(from) + at);
  });

const text = z.string().optional();
const condition = z.object({ type: text, status: text, reason: text });
const container = z.object({
  state: z.object({
    waiting: z.object({ reason: text }).optional(),
    terminated: z.object({ exitCode: z.int(), reason: text }).optional(),
  }),
});

/** Of a Job or a pod, what is read here; an item of another form is passed over. */
const itemSchema = z.object({
  kind: z.enum(['Job', 'Pod']),
  metadata: z.object({ annotations: z.record(z.string(), z.string()) }),
  spec: z.object({ nodeName: text }).default({}),
  status: z.object({
    phase: text,
    completedIndexes: text,
    failedIndexes: text,
    conditions: z.array(condition).default([]),
    containerStatuses: z.array(container).default([]),
  }),
});

function kubernetesJobs(answer: string, count: number): readonly Entry[] {
  let list: unknown;
  try {
    list = JSON.parse(answer);
  } catch {
    return [];
  }
  const { data } = z.object({ items: z.array(z.unknown()) }).safeParse(list);
  return (data?.items ?? []).flatMap((item) => {
    const parsed = itemSchema.safeParse(item).data;
    return parsed === undefined ? [] : jobsOfItem(parsed, count);
  });
}

/** What a Job goes on with and has made no pod for waits; a pod is one job. */
function jobsOfItem({ kind, metadata, spec, status }: z.infer<typeof itemSchema>, count: number): Entry[] {
  const { phase, conditions, containerStatuses, completedIndexes, failedIndexes } = status;
  const jobs = indicesIn(metadata.annotations[jobsAnnotation], count);
  const isTrue = (type: string) => conditions.some((each) => each.type === type && each.status === 'True');
  if (kind === 'Job') {
    if (isTrue('Complete') || isTrue('Failed')) return [];
    const over = new Set([completedIndexes, failedIndexes].flatMap((list) => indicesIn(list, jobs.length)));
    const job = { state: 'queued', node: null, reason: null, exitCode: null } as const;
    return jobs.filter((_, at) => !over.has(at)).map((index) => [index, job]);
  }
  const index = jobs[Number(metadata.annotations['batch.kubernetes.io/job-completion-index'] ?? Number.NaN)];
  if (index === undefined) return [];
  const { waiting, terminated } = containerStatuses[0]?.state ?? {};
  const unscheduled = conditions.find(({ type, status: is }) => type === 'PodScheduled' && is === 'False');
  const isOver = phase === 'Succeeded' || phase === 'Failed';
  const job: ScheduledJob = {
    state: isOver ? 'ended' : phase === 'Pending' ? 'queued' : 'running',
    node: spec.nodeName ?? null,
    reason: terminated?.reason ?? waiting?.reason ?? unscheduled?.reason ?? null,
    exitCode: terminated?.exitCode ?? null,
  };
  return [[index, job]];
}
