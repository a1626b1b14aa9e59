import { oneLine, type SlurmWhere } from '../where.js';
import { planName, quoted, type Submission } from './submission.js';

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
