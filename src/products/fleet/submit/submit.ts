import { join, resolve } from 'node:path';
import { sha256 } from '../../../base/files/digest.js';
import { publishFile } from '../../../base/files/publish.js';
import * as is from '../../../base/options/kinds.js';
import { type OptionsOf, optional } from '../../../base/options/option.js';
import { withoutSecrets } from '../../../base/text/shell-line.js';
import { isRemoteAddress } from '../../../engines/store/remote/address.js';
import { ExitCode, TrtforgeError } from '../../../errors.js';
import { type Work, type WorkContext, workOf } from '../../../events.js';
import { type Fleet, fleetOptions, withFleet } from '../plan.js';
import { workRecordSchema } from '../plan-schema.js';
import type { Done, Script, Submission } from '../schedulers/scheduler.js';
import {
  kindOfWhere,
  type Scheduled,
  scheduledJobs,
  schedulerAt,
  unseenStore,
  type Where,
  type WhereKind,
} from '../schedulers/where.js';
import { assertVouched, resolvedHere, workOn, worst } from '../work.js';
import type { FleetSubmit, SubmittedTarget } from './result.js';

/** The jobs that go to one place. */
export interface Sending {
  readonly target: string;
  /** With all that is asked there: host, image, account. */
  readonly where: Where;
  /** Indices of the plan; none: every job is there or with its scheduler. */
  readonly jobs: readonly number[];
  /** Where its models lie. */
  readonly folder: string;
}

export const submitOptions = {
  ...fleetOptions,
  /** Only the targets that this scheduler builds. */
  kind: optional(is.word<WhereKind>()),
  /** Where every target goes; default: where the engines file has each. */
  instead: optional(is.either(is.text, is.object()) as is.Kind<Where>),
  /** The folder that gets scripts and manifests, of which none is sent then. */
  output: optional(is.text, {
    flags: '-o, --output <folder>',
    describe: 'write scripts and manifests there, and send nothing',
    writes: true,
  }),
  /** Asked before work is sent where a plan states that was read by its address and that no trusted key signed. */
  confirm: optional(is.callback<(sending: readonly Sending[]) => Promise<boolean>>()),
};

export interface SubmitOptions extends OptionsOf<typeof submitOptions> {}

/**
 * Sends what neither the store has nor a scheduler still has. Throws TF_USAGE (also where `confirm` is needed and does not agree), TF_SCHEDULER_FAILED, TF_CANCELLED, and what
 * planning a fleet and working on it throw.
 *
 * ```ts
 * const submitted = await submitFleet({ fleet: 'engines.yaml', output: 'manifests' });
 * use(submitted.targets.map(({ manifest }) => manifest));
 * ```
 */
export async function submitFleet(options: SubmitOptions, context?: WorkContext): Promise<FleetSubmit> {
  const work = workOf(context);
  const { output, confirm } = options;
  return withFleet(options, work, { keep: true }, async (fleet) => {
    const { batches, asked } = await decide(fleet, options, work);
    const full = batches.filter(({ jobs }) => jobs.length > 0);
    const isAsked = output === undefined && full.length > 0 && !fleet.isOwn && !fleet.isSigned;
    if (isAsked && (await confirm?.(full.map(sendingOf))) !== true)
      throw new TrtforgeError(
        'TF_USAGE',
        'No trusted key signed the plan, and sending it was not confirmed.',
        {
          remedy: 'Pass `confirm`, or sign the plan (docs/fleet.md, A store that others may write).',
        },
      );
    const done = output === undefined ? await send(full, fleet, work) : new Map<string, Done>();
    const written = output === undefined ? new Map<string, string>() : write(full, output);
    return {
      schema: 'trtforge.fleet-submit/1',
      plan: fleet.plan.id,
      address: withoutSecrets(fleet.address),
      targets: batches.map(({ target, where, jobs, skipped }) => {
        const { job = null, did = null } = done.get(target) ?? {};
        const manifest = written.get(target) ?? null;
        return { target, where: kindOfWhere(where), job, indices: [...jobs], manifest, did, skipped };
      }),
      schedulers: [...asked],
      exitCode: worst([...done.values()].map(({ exitCode = ExitCode.pass }) => exitCode)),
    };
  });
}

/** Decides what `submitFleet` would send, and where; sends nothing. Throws what it throws before that. */
export async function planSubmit(
  options: SubmitOptions,
  context?: WorkContext,
): Promise<{ readonly address: string; readonly sending: readonly Sending[] }> {
  const work = workOf(context);
  return withFleet(options, work, {}, async (fleet) => {
    const { batches } = await decide(fleet, options, work);
    return { address: withoutSecrets(fleet.address), sending: batches.map(sendingOf) };
  });
}

const sendingOf = ({ target, where, jobs, plan: { folder } }: Batch): Sending => ({
  target,
  where,
  jobs,
  folder,
});

/** One target as it is decided. */
interface Batch extends Submission {
  readonly where: Where;
  readonly skipped: SubmittedTarget['skipped'];
  readonly script: Script;
}

async function decide(
  fleet: Fleet,
  { kind, instead, output }: SubmitOptions,
  work: Work,
): Promise<{ readonly batches: readonly Batch[]; readonly asked: Scheduled['asked'] }> {
  const { plan, address: given } = fleet;
  const meant = Object.entries(plan.targets).filter(([, { where }]) =>
    [undefined, kindOfWhere(where)].includes(kind),
  );
  if (meant.length === 0)
    throw new TrtforgeError('TF_USAGE', `No target of the plan is built by ${kind}.`, {
      remedy: `Write where: { ${kind}: … } at a target of the engines file, or leave out --${kind}.`,
    });
  const targets = Object.fromEntries(
    meant.map(([name, entry]) => [name, { ...entry, where: instead ?? entry.where }]),
  );
  for (const message of unseenStore(plan.store, targets))
    work.emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
  // A script that is only written is the same each time, whatever is under way.
  const scheduled = await scheduledJobs({ ...plan, targets: output === undefined ? targets : {} }, work);
  // A relative path would be another file in the plan's folder.
  const address = isRemoteAddress(given) ? given : resolve(given);
  const decided = meant.map(([target, entry]): Batch => {
    const own = plan.jobs.filter(({ on }) => on === target);
    const skipped = own.flatMap(({ index, state }): Batch['skipped'] => {
      const why = state === 'have' ? 'there' : scheduled.jobs.get(index)?.state;
      return why === undefined ? [] : [{ index, why }];
    });
    const left = own.filter(({ index }) => skipped.every((each) => each.index !== index));
    const jobs = left.map(({ index }) => index);
    const where = instead ?? entry.where;
    const attempt = output === undefined ? Date.now().toString(36) : sha256(jobs.join(',')).slice(0, 8);
    const submission = { plan, address, target, builds: entry.target, jobs, attempt };
    const { by, as } = schedulerAt(where);
    return { ...submission, where, skipped, script: by.script(submission, as) };
  });
  // Rejects jobs that tasks would reject, which read the plan by its address; elsewhere its folder may not be there.
  for (const { where, jobs } of decided)
    if (where !== 'local' && fleet.isOwn)
      for (const index of jobs) assertVouched({ ...fleet, isOwn: false }, plan.jobs[index]!);
  const batches: Batch[] = [];
  for (const batch of decided)
    if (instead !== 'local' || (await isBuiltHere(batch, fleet, work))) batches.push(batch);
  if (batches.length === 0)
    throw new TrtforgeError('TF_TARGET_UNAVAILABLE', 'This machine builds for no target of the plan.', {
      remedy: 'Submit without --local: each target is then built where its `where` states.',
    });
  return { batches, asked: scheduled.asked };
}

/** Whether this machine can build a target, by the first of its jobs; else a warning states why. Other faults are their jobs'. */
async function isBuiltHere({ target, jobs: [first] }: Batch, fleet: Fleet, work: Work): Promise<boolean> {
  try {
    if (first !== undefined) await resolvedHere(fleet, fleet.plan.jobs[first]!, work);
    return true;
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    if (error.exitCode !== ExitCode.machineCannot) return true;
    const message = `${target} is left out: ${error.message}`;
    work.emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
    return false;
  }
}

/** The path of each target's script. */
function write(batches: readonly Batch[], folder: string): ReadonlyMap<string, string> {
  const written = new Map<string, string>();
  for (const { target, script } of batches) {
    const path = join(folder, `${target}.${script.ending}`);
    publishFile(path, script.content);
    written.set(target, path);
  }
  return written;
}

/** Hands batches to queues; then works those of machines, one after the other on each. Rejects once no work goes on. */
async function send(batches: readonly Batch[], fleet: Fleet, work: Work): Promise<ReadonlyMap<string, Done>> {
  const done = new Map<string, Done>();
  const submit = async (batch: Batch) => {
    const handed = { ...batch, work: () => workHere(batch, fleet, work) };
    done.set(batch.target, await schedulerAt(batch.where).by.submit(handed, work));
  };
  const places = new Map<string, Promise<unknown>>();
  const worked: (readonly [place: string, batch: Batch])[] = [];
  for (const batch of batches) {
    const { by, as } = schedulerAt(batch.where);
    const place = by.machine?.(as);
    if (place === undefined) await submit(batch);
    else worked.push([place, batch]);
  }
  for (const [place, batch] of worked)
    places.set(
      place,
      (places.get(place) ?? Promise.resolve()).then(() => submit(batch)),
    );
  for (const end of await Promise.allSettled(places.values()))
    if (end.status === 'rejected') throw end.reason;
  return done;
}

async function workHere({ jobs }: Batch, fleet: Fleet, work: Work): Promise<Done> {
  const listed = fleet.plan.jobs.filter(({ index }) => jobs.includes(index));
  const worked = await workOn(fleet, listed, work);
  for (const { exitCode, name, did, reasons } of worked.jobs.filter((each) => each.exitCode !== 0)) {
    const message = `${name} ${did}, exit code ${exitCode}: ${reasons.join(' ')}`;
    work.emit({ type: 'log', source: 'trtforge', severity: 'error', message });
  }
  const count = (word: string) => worked.jobs.filter(({ did }) => did === word).length;
  const sums = workRecordSchema.shape.did.options.flatMap((word) =>
    count(word) === 0 ? [] : [`${count(word)} ${word}`],
  );
  return { exitCode: worked.exitCode, did: sums.join(', ') };
}
