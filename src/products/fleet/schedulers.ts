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

function kubernetesJobs(answer: string, count: number): readonly Entry[] {
  let list: unknown;
  try {
    list = JSON.parse(answer);
  } catch {
    return [];
  }
  return listAt(list, 'items').flatMap((item): readonly Entry[] => {
    const annotation = (name: string) => textAt(item, 'metadata', 'annotations', name);
    const status = (...path: readonly string[]) => textAt(item, 'status', ...path);
    const condition = (type: string, is: string) =>
      listAt(item, 'status', 'conditions').find(
        (each) => textAt(each, 'type') === type && textAt(each, 'status') === is,
      );
    const jobs = indicesIn(annotation(jobsAnnotation), count);
    if (textAt(item, 'kind') === 'Job') {
      if (condition('Complete', 'True') ?? condition('Failed', 'True')) return [];
      // What it goes on with waits, where no pod is made for it.
      const lists = [status('completedIndexes'), status('failedIndexes')];
      const over = new Set(lists.flatMap((each) => indicesIn(each, jobs.length)));
      const job = { state: 'queued', node: null, reason: null, exitCode: null } as const;
      return jobs.filter((_, at) => !over.has(at)).map((index) => [index, job]);
    }
    const index = jobs[Number(annotation('batch.kubernetes.io/job-completion-index') || Number.NaN)];
    if (index === undefined) return [];
    const container = (...path: readonly string[]) => status('containerStatuses', '0', 'state', ...path);
    const exitCode = container('terminated', 'exitCode');
    const reasons = [
      container('terminated', 'reason'),
      container('waiting', 'reason'),
      textAt(condition('PodScheduled', 'False'), 'reason'),
    ];
    const states = { Succeeded: 'ended', Failed: 'ended', Pending: 'queued' } as const;
    const job: ScheduledJob = {
      state: states[status('phase') as keyof typeof states] ?? 'running',
      node: textAt(item, 'spec', 'nodeName') || null,
      reason: reasons.find((reason) => reason !== '') ?? null,
      exitCode: exitCode === '' ? null : Number(exitCode),
    };
    return [[index, job]];
  });
}

const valueAt = (value: unknown, path: readonly string[]): unknown =>
  path.reduce(
    (inner, key) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, key) : null),
    value,
  );

/** The text or number at a place, empty where there is none. */
function textAt(value: unknown, ...path: readonly string[]): string {
  const found = valueAt(value, path);
  return typeof found === 'string' || typeof found === 'number' ? String(found) : '';
}

function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = valueAt(value, path);
  return Array.isArray(found) ? found : [];
}
