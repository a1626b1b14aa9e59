import { z } from 'zod';
import { runCommand } from '../../../base/process/command.js';
import { isRemoteAddress } from '../../../engines/store/remote/address.js';
import type { Work } from '../../../events.js';
import { kubernetes } from './kubernetes.js';
import { local } from './local.js';
import { type Answered, type Asked, failureOf, type Scheduler, type Task } from './scheduler.js';
import { slurm } from './slurm.js';
import { ssh } from './ssh.js';

/** Every scheduler, by its key in `where`; another is a file and a line here. */
export const schedulers = { slurm, kubernetes, local, ssh };

export type WhereKind = keyof typeof schedulers;

const kinds = Object.keys(schedulers) as readonly WhereKind[];
const { local: _, ...asked } = schedulers;
const names = Object.keys(asked);
const ONE = `must be local, or one of ${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;

type Options = { readonly [K in keyof typeof asked]?: z.ZodOptional<(typeof asked)[K]['schema']> };
const options = Object.fromEntries(
  Object.entries(asked).map(([name, { schema }]) => [name, schema.optional()]),
) as Required<Options>;

/** Where a target is built: `local`, or one scheduler and what it is asked for. */
export const whereSchema = z.union(
  [local.schema, z.strictObject(options).refine((where) => Object.keys(where).length === 1, ONE)],
  // Of a mapping its own fault is named.
  { error: ({ input }) => (typeof input === 'object' && input !== null ? undefined : ONE) },
);

export type Where = z.infer<typeof whereSchema>;

export const kindSchema = z.enum(kinds);

export const kindOfWhere = (where: Where): WhereKind =>
  where === 'local' ? where : kinds.find((kind) => kind in where)!;

/** Who builds there, and what it is asked for. */
export function schedulerAt(where: Where): { readonly by: Scheduler<unknown>; readonly as: unknown } {
  const kind = kindOfWhere(where);
  return { by: schedulers[kind], as: where === 'local' || kind === 'local' ? where : where[kind] };
}

/** Reasons why the tasks of a plan cannot reach its store, as far as known: a pod sees no folder but those of its volumes. */
export const unseenStore = (
  store: string,
  targets: Readonly<Record<string, { readonly where: Where }>>,
): readonly string[] =>
  Object.entries(targets).flatMap(([name, { where }]) => {
    const { by, as } = schedulerAt(where);
    const blind = isRemoteAddress(store) ? undefined : by.blind?.(as);
    return blind === undefined
      ? []
      : [
          `The ${blind.who} of the target ${name} do not see the store ${store}, which is a folder here: ${blind.remedy}, or use a bucket.`,
        ];
  });

/** The schedulers' reports about a plan's jobs, by their index. */
export interface Scheduled {
  readonly jobs: ReadonlyMap<number, Task & { readonly state: 'queued' | 'running' }>;
  /** Ended tasks that a scheduler still reports; such a job may be among the others again. */
  readonly ended: ReadonlyMap<number, Task>;
  readonly asked: readonly Answered[];
}

/** The time limit for a scheduler's answer. */
const ANSWER_MS = 10_000;

/** Asks the schedulers that targets of a plan name. One whose program is missing, fails or hangs was not asked, and why; never rejects. */
export async function scheduledJobs(
  plan: {
    readonly id: string;
    readonly targets: Readonly<Record<string, { readonly where: Where }>>;
    readonly jobs: { readonly length: number };
  },
  { environment }: Pick<Work, 'environment'>,
): Promise<Scheduled> {
  const jobs = new Map<number, Task & { readonly state: 'queued' | 'running' }>();
  const ended = new Map<number, Task>();
  const asking: Asked = {
    plan: plan.id,
    count: plan.jobs.length,
    note: (index, state, task) => {
      if (state === 'ended') ended.set(index, task);
      // Of a job that was sent twice the task at work counts.
      else if (jobs.get(index)?.state !== 'running') jobs.set(index, { state, ...task });
    },
    ask: async (program, ...args) => {
      const ran = await runCommand(program, args, { timeoutMs: ANSWER_MS, environment });
      const why = failureOf(ran);
      return { answer: why === null ? ran.stdout : '', why: why && `${program} ${why}` };
    },
  };
  const wheres = Object.values(plan.targets).map(({ where }) => schedulerAt(where));
  const asked: Answered[] = [];
  for (const by of new Set(wheres.map((each) => each.by))) {
    const of = wheres.filter((each) => each.by === by).map(({ as }) => as);
    asked.push(...((await by.jobs?.(of, asking)) ?? []));
  }
  return { jobs, ended, asked };
}
