import { inParallel } from '../../engines/store/remote/objects.js';
import { ExitCode } from '../../errors.js';
import { type WorkContext, workOf } from '../../events.js';
import { missLines } from '../../report/sentences.js';
import { packageVersion } from '../../version.js';
import { AT_ONCE, documentOf } from './jobs.js';
import { type FleetOptions, withFleet } from './plan.js';
import type { FleetJob, FleetStatus, WorkRecord } from './plan-schema.js';
import { type Scheduled, scheduledJobs } from './schedulers/where.js';
import { type LastWork, recordOf } from './work-record.js';

type JobStatus = FleetStatus['jobs'][number];

/**
 * The state of every engine of a fleet, by the store, its records and the schedulers' reports. Throws TF_FLEET_INVALID, TF_SIGNATURE_INVALID, and TF_REMOTE_… where the store does not answer.
 *
 * ```ts
 * const status = await fleetStatus({ fleet: 'engines.yaml' });
 * use(status.outcome);
 * ```
 */
export async function fleetStatus(options: FleetOptions, context?: WorkContext): Promise<FleetStatus> {
  const work = workOf(context);
  return withFleet(options, work, {}, async ({ plan, address, store }) => {
    const scheduled = await scheduledJobs(plan, work);
    const jobs = await inParallel(plan.jobs, AT_ONCE, work.signal, async (job): Promise<JobStatus> => {
      const held = await store.find(documentOf(job), work.signal);
      const { record, fault } = await recordOf(job.identity, store);
      const { index, name, identity, model, recipe, on } = job;
      return {
        index,
        name,
        identity,
        model: model.component === null ? model.path : `${model.path}: ${model.component}`,
        precision: recipe.precision,
        on,
        ...standingOf(job, { record, fault }, scheduled),
        bytes: held.passport?.plan.bytes ?? null,
        buildMs: held.passport?.built.ms ?? null,
        builtAt: held.passport?.built.at ?? null,
        check: record?.check ?? null,
        gate: isOfOtherPolicy(job, record) ? null : (record?.gate?.outcome ?? null),
        gpu: record?.gpu ?? null,
      };
    });
    const has = (...states: readonly JobStatus['state'][]) =>
      jobs.some(({ state }) => states.includes(state));
    const isDecided = !has('missing', 'queued', 'running', 'undecided');
    return {
      schema: 'trtforge.fleet-status/1',
      version: packageVersion(),
      plan: plan.id,
      address,
      at: new Date().toISOString(),
      outcome: has('failed', 'refused') ? 'fail' : isDecided ? 'pass' : 'inconclusive',
      jobs,
      schedulers: [...scheduled.asked],
    };
  });
}

/** Whether a record was judged by another policy than that of the plan. */
const isOfOtherPolicy = ({ gate }: FleetJob, record: WorkRecord | null): boolean =>
  record !== null && record.gate !== null && record.gate.policy !== gate?.digest;

/** The engine in the store decides, then a task at work, then a record; that of a machine that could not does not count. */
function standingOf(
  job: FleetJob,
  { record, fault }: LastWork,
  { jobs, ended }: Scheduled,
): Pick<JobStatus, 'state' | 'why' | 'node'> {
  const { state, why } = job;
  const node = record?.node ?? null;
  // The reason of a policy names it already.
  const faults = fault === null || why?.from === 'gate' ? [] : [fault];
  if (state === 'have') return { state, why: faults, node };
  const task = jobs.get(job.index);
  if (task !== undefined) return { state: task.state, why: [task.reason], node: task.node };
  const last = ended.get(job.index);
  if (record === null && last !== undefined)
    return { state: 'failed', why: [last.reason, ...faults], node: last.node };
  if (record === null || record.exitCode === 0 || (isOfOtherPolicy(job, record) && record.check !== 'fail'))
    return { state, why: [...faults, ...(why === null ? [] : missLines(why))], node };
  if (record.exitCode === ExitCode.machineCannot) return { state, why: record.reasons, node };
  const left = record.did === 'refused' ? 'refused' : 'failed';
  return { state: record.exitCode === 4 ? 'undecided' : left, why: record.reasons, node };
}
