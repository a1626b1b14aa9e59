import { z } from 'zod';
import {
  type Asked,
  count,
  enqueue,
  indicesIn,
  line,
  oneLine,
  planName,
  quoted,
  type Scheduler,
  type Submission,
} from './scheduler.js';

/** The script's options for Slurm. */
const slurmSchema = z.strictObject({
  constraint: line.optional(),
  gres: line.default('gpu:1'),
  partition: line.optional(),
  account: line.optional(),
  time: line.optional(),
  /** With trtforge in it; for Pyxis. */
  image: line.optional(),
  /** Beside the plan's folder: `/data:/data`; for Pyxis. */
  mounts: z.array(line).default([]),
  'at-once': count.optional(),
  /** More of what `#SBATCH` takes, one argument each. */
  options: z.array(line.regex(/^--[a-z][a-z-]*(=|$)/, 'must be written as --name=value')).default([]),
  /** Names of variables that tasks get from where they are submitted, beside PATH and HOME. */
  environment: z.array(z.string().regex(/^[A-Za-z_]\w*$/, 'must be the name of a variable')).default([]),
});

export type SlurmWhere = z.infer<typeof slurmSchema>;

/** Tasks of an array, sent by sbatch and listed by squeue and sacct. */
export const slurm: Scheduler<SlurmWhere> = {
  schema: slurmSchema,
  option: { flags: '--slurm', describe: 'only the targets that Slurm builds' },
  script: (submission, where) => ({ ending: 'sbatch', content: slurmScript(submission, where) }),
  submit: enqueue('sbatch', '--parsable'),
  jobs: async (_wheres, { plan, count: jobs, ask, note }) => {
    const name = `--name=${planName(plan)}`;
    const [queue, past] = await Promise.all([
      ask('squeue', '--noheader', '--array', name, '--format=%i|%T|%N|%r'),
      // Fails where a cluster keeps no accounts: then only the store knows what has ended.
      ask('sacct', '-n', '-P', '-X', '-S', 'now-30days', name, '-o', 'JobID,State,NodeList,ExitCode'),
    ]);
    noteSlurm(past.answer, jobs, (index, state, task) => state === 'ended' && note(index, state, task));
    noteSlurm(queue.answer, jobs, note);
    return [{ name: 'slurm', why: queue.why }];
  },
};

/**
 * The batch script of one target: an array whose indices are those of the plan, one GPU a task. A task that is requeued starts again and ends at once where its engine
 * is in the store meanwhile.
 */
export function slurmScript({ plan, address, target, jobs }: Submission, where: SlurmWhere): string {
  const { image, mounts, options, environment } = where;
  const atOnce = where['at-once'];
  const folder = oneLine('The folder of the plan', plan.folder);
  const container =
    image === undefined
      ? []
      : [
          `--container-image=${image}`,
          `--container-mounts=${[`${folder}:${folder}`, ...mounts].join(',')}`,
          `--container-workdir=${folder}`,
        ];
  const words = [
    '--requeue',
    '--signal=B:TERM@60',
    '--open-mode=append',
    `--output=%x-${target}-%A_%a.log`,
    ...(['constraint', 'gres', 'partition', 'account', 'time'] as const).flatMap((key) =>
      where[key] === undefined ? [] : [`--${key}=${where[key]}`],
    ),
    ...container,
    // The last of equal options counts: a user's replaces what stands before it, and none of what submitting again relies on.
    ...options,
    `--job-name=${planName(plan.id)}`,
    `--array=${jobs.join(',')}${atOnce === undefined ? '' : `%${atOnce}`}`,
    `--export=${['PATH', 'HOME', ...environment].join(',')}`,
    `--chdir=${folder}`,
  ];
  return `#!/bin/bash
${words.map((word) => `#SBATCH ${sbatchWord(word)}`).join('\n')}
echo "node $SLURMD_NODENAME, job \${SLURM_ARRAY_TASK_ID} of the plan ${plan.id}, restarts \${SLURM_RESTART_COUNT:-0}"
exec trtforge fleet work ${quoted('The address of the plan', address)} --jobs "$SLURM_ARRAY_TASK_ID" --index 0
`;
}

/** As sbatch reads a word of its lines (`_get_argument` in src/sbatch/opt.c): quotes group, a backslash escapes, and an open # begins a comment. */
const sbatchWord = (word: string): string =>
  /^[\w./:=@%+,-]+$/.test(word) ? word : `"${word.replaceAll(/["'\\#]/g, '\\$&')}"`;

const WAITING = /^(?:PENDING|REQUEUE|RESV_DEL_HOLD|SPECIAL_EXIT)/;
const PAST = /^(?:BOOT_FAIL|CANCELLED|DEADLINE|FAILED|NODE_FAIL|OUT_OF_MEMORY|PREEMPTED|REVOKED|TIMEOUT)/;

/** Rows of an array's task, its state, its node, and why it waits or `exit code:signal`. */
function noteSlurm(answer: string, count: number, note: Asked['note']): void {
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
