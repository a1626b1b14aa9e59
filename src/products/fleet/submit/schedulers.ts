import { type CommandOutcome, runCommand } from '../../../base/process/command.js';
import type { CommandContext } from '../../../cli/command.js';
import type { FleetPlan, FleetStatus } from '../plan-schema.js';
import { jobsAnnotation, planLabel } from './kubernetes.js';
import { planName } from './submission.js';

/** Where a job is, and in the scheduler's words why it waits, its state, or how it ended. */
interface Task {
  readonly node: string | null;
  readonly reason: string;
}

/** What schedulers report of a plan's jobs, by their index. */
export interface Scheduled {
  readonly jobs: ReadonlyMap<number, Task & { readonly state: 'queued' | 'running' }>;
  /** What a scheduler still knows of tasks that ended; such a job may be among the others again. */
  readonly ended: ReadonlyMap<number, Task>;
  readonly asked: FleetStatus['schedulers'];
}

type Note = (index: number, state: 'queued' | 'running' | 'ended', task: Task) => void;

/** How long a scheduler has to answer. */
const ANSWER_MS = 10_000;

/** Asks the schedulers that targets of a plan name. One whose program is missing, fails or hangs was not asked, and why; never rejects. */
export async function scheduledJobs(
  plan: Pick<FleetPlan, 'id' | 'targets'> & { readonly jobs: { readonly length: number } },
  { environment }: Pick<CommandContext, 'environment'>,
): Promise<Scheduled> {
  const count = plan.jobs.length;
  const jobs = new Map<number, Task & { readonly state: 'queued' | 'running' }>();
  const ended = new Map<number, Task>();
  const note: Note = (index, state, task) => {
    if (state === 'ended') ended.set(index, task);
    // Of a job that was sent twice the task at work counts.
    else if (jobs.get(index)?.state !== 'running') jobs.set(index, { state, ...task });
  };
  const asked: Scheduled['asked'] = [];
  const ask = async (program: string, ...args: readonly string[]) => {
    const ran = await runCommand(program, args, { timeoutMs: ANSWER_MS, environment });
    const why = failureOf(ran);
    return { answer: why === null ? ran.stdout : '', why: why && `${program} ${why}` };
  };
  const wheres = Object.values(plan.targets).flatMap(({ where }) => (where === 'local' ? [] : [where]));
  if (wheres.some(({ slurm }) => slurm !== undefined)) {
    const name = `--name=${planName(plan.id)}`;
    const [queue, past] = await Promise.all([
      ask('squeue', '--noheader', '--array', name, '--format=%i|%T|%N|%r'),
      // Fails where a cluster keeps no accounts: then only the store knows what has ended.
      ask('sacct', '-n', '-P', '-X', '-S', 'now-30days', name, '-o', 'JobID,State,NodeList,ExitCode'),
    ]);
    asked.push({ name: 'slurm', why: queue.why });
    noteSlurm(past.answer, count, (index, state, task) => state === 'ended' && note(index, state, task));
    noteSlurm(queue.answer, count, note);
  }
  const clusters = wheres.flatMap(({ kubernetes }) => kubernetes ?? []);
  for (const namespace of new Set(clusters.map((cluster) => cluster.namespace))) {
    const place = namespace === undefined ? [] : [`--namespace=${namespace}`];
    const selector = `--selector=${planLabel}=${plan.id}`;
    const listed = await ask('kubectl', 'get', 'jobs,pods', selector, '--output=json', ...place);
    asked.push({ name: 'kubernetes', why: listed.why });
    noteKubernetes(listed.answer, count, note);
  }
  return { jobs, ended, asked };
}

/** Why a scheduler's program gave no answer, as what follows its name and its last line; null where it did. */
export function failureOf({ outcome, exitCode, stderr }: CommandOutcome): string | null {
  if (exitCode === 0) return null;
  const ended = `ended with exit code ${exitCode}: ${stderr.trim().split('\n').at(-1) || 'it printed nothing'}`;
  const whys = { absent: 'is not installed here', 'timed-out': 'does not answer', failed: 'does not start' };
  return outcome === 'ended' ? ended : whys[outcome];
}

const WAITING = /^(?:PENDING|REQUEUE|RESV_DEL_HOLD|SPECIAL_EXIT)/;
const PAST = /^(?:BOOT_FAIL|CANCELLED|DEADLINE|FAILED|NODE_FAIL|OUT_OF_MEMORY|PREEMPTED|REVOKED|TIMEOUT)/;

/** Rows of an array's task, its state, its node, and why it waits or `exit code:signal`. */
function noteSlurm(answer: string, count: number, note: Note): void {
  for (const row of answer.split('\n')) {
    const [id = '', word = '', node, more = ''] = row.trim().split('|');
    // Of what was completed the store decides.
    if (word === 'COMPLETED') continue;
    const state = PAST.test(word) ? 'ended' : WAITING.test(word) ? 'queued' : 'running';
    const waits = more === 'None' ? word : more;
    const reason = { ended: `${word}, exit code ${more}`, queued: waits, running: word }[state];
    // 3 of `12_3`; 3, 5, 6 and 7 of `12_[3,5-7%2]`.
    for (const index of indicesIn(/^\d+_\[?([\d,-]+)/.exec(id)?.[1], count))
      note(index, state, { node: (state !== 'queued' && node) || null, reason });
  }
}

/** The numbers below `count` of `0-2,5`, as Slurm and Kubernetes write them. */
const indicesIn = (text: string | undefined, count: number): readonly number[] =>
  (text ?? '').split(',').flatMap((part) => {
    const [, from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(part) ?? [];
    if (from === undefined) return [];
    const length = Math.min(Number(to), count - 1) - Number(from) + 1;
    return Array.from({ length: Math.max(0, length) }, (_, at) => Number(from) + at);
  });

/** Jobs, whose tasks wait until they have a pod, and pods. */
function noteKubernetes(answer: string, count: number, note: Note): void {
  let list: unknown;
  try {
    list = JSON.parse(answer);
  } catch {
    return;
  }
  for (const item of listAt(list, 'items')) {
    const annotation = (name: string) => textAt(item, 'metadata', 'annotations', name);
    const status = (...path: readonly string[]) => textAt(item, 'status', ...path);
    const condition = (type: string, is: string) =>
      listAt(item, 'status', 'conditions').find(
        (each) => textAt(each, 'type') === type && textAt(each, 'status') === is,
      );
    const jobs = indicesIn(annotation(jobsAnnotation), count);
    if (textAt(item, 'kind') === 'Job') {
      if (condition('Complete', 'True') ?? condition('Failed', 'True')) continue;
      const lists = [status('completedIndexes'), status('failedIndexes')];
      const over = new Set(lists.flatMap((each) => indicesIn(each, jobs.length)));
      jobs.forEach((index, at) => {
        if (!over.has(at)) note(index, 'queued', { node: null, reason: 'no pod yet' });
      });
      continue;
    }
    const index = jobs[Number(annotation('batch.kubernetes.io/job-completion-index') || Number.NaN)];
    if (index === undefined) continue;
    const container = (...path: readonly string[]) => status('containerStatuses', '0', 'state', ...path);
    const exitCode = container('terminated', 'exitCode');
    const word =
      container('terminated', 'reason') ||
      container('waiting', 'reason') ||
      textAt(condition('PodScheduled', 'False'), 'reason') ||
      status('phase');
    const states = { Succeeded: 'ended', Failed: 'ended', Pending: 'queued' } as const;
    const reason = exitCode === '' ? word : `${word}, exit code ${exitCode}`;
    const node = textAt(item, 'spec', 'nodeName') || null;
    note(index, states[status('phase') as keyof typeof states] ?? 'running', { node, reason });
  }
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
