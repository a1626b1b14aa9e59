import { hostname } from 'node:os';
import { visibleGpus } from '../../addon/gpus.js';
import { closing } from '../../base/files/byte-source.js';
import { removeIfAllowed } from '../../base/files/files.js';
import { makeScratch } from '../../base/files/folders.js';
import * as is from '../../base/options/kinds.js';
import { type OptionsOf, optional } from '../../base/options/option.js';
import { splitAtCommas } from '../../base/options/readers.js';
import { plural } from '../../base/text/quantity.js';
import { obtainEngine } from '../../engines/builder/obtain-engine.js';
import type { AnswerMaker, ResolvedBuild } from '../../engines/builder/options.js';
import { resolveBuild } from '../../engines/builder/resolve-build.js';
import { differencesOf } from '../../engines/identity/identity.js';
import type { Passport } from '../../engines/identity/passport.js';
import { parseTarget, platformText, thisPlatform } from '../../engines/identity/target.js';
import { openStores } from '../../engines/store/open-stores.js';
import { type ErrorCode, ExitCode, TrtforgeError } from '../../errors.js';
import { inPhase, type Work, type WorkContext, workOf } from '../../events.js';
import { answerMaker } from '../../quality/known-answer/build-or-load.js';
import { isDeclared } from '../../tensorrt/toolchain/find.js';
import { asBuilt, storeOptions } from './fleet-store.js';
import { documentOf, policyDigest } from './jobs.js';
import { buildsOf, foreignIn, inFolder, type ModelBuild, targetHere } from './model-options.js';
import { type Fleet, fleetOptions, withFleet } from './plan.js';
import type { FleetJob, FleetPlan, FleetWork, WorkRecord } from './plan-schema.js';
import { type BuiltEngine, ownBuild, type Proven, proveEngine } from './prove.js';
import { hasPassed, keepRecord, recordKey, recordOf } from './work-record.js';

type Outcome = Pick<WorkRecord, 'did' | 'engine' | 'check' | 'gate'> & {
  readonly reasons: readonly string[];
};

export const worst = (codes: readonly ExitCode[]): ExitCode =>
  [ExitCode.internal, ExitCode.badInput, ExitCode.machineCannot, ExitCode.failed, ExitCode.inconclusive].find(
    (code) => codes.includes(code),
  ) ?? ExitCode.pass;

export const workOptions = {
  ...fleetOptions,
  /** Indices of the plan; default: all of its jobs. What the store has ends at once. */
  jobs: optional(is.list<number>(), {
    flags: '--jobs <list>',
    describe: 'indices of the plan, 0,3,7 (default: all; what the store has ends at once)',
    parse: (text) => splitAtCommas(text).map(is.whole(0).parse),
  }),
  /** Only the job at this place of the list, as an Indexed Job counts. */
  index: optional(is.whole(0), {
    flags: '--index <number>',
    describe: 'work the job at this place of the list alone, as an Indexed Job counts (default: all of them)',
    env: 'JOB_COMPLETION_INDEX',
  }),
  /** Where models lie, whatever the planning machine called it (default: the working folder). */
  folder: optional(is.text),
};

export interface WorkOptions extends OptionsOf<typeof workOptions> {}

/**
 * Works jobs of a plan on this machine: builds, proves and keeps what the store lacks. Throws TF_USAGE for an index that the plan lacks, TF_CANCELLED, and what opening the
 * store throws; a job's failure is in its record.
 *
 * ```ts
 * const worked = await workFleet({ fleet: 's3://team/engines/fleet/3f2a90c1b7de5c0f4a8e1d6b92c07f35.json', jobs: [0, 3] });
 * use(worked.exitCode);
 * ```
 */
export async function workFleet(options: WorkOptions, context?: WorkContext): Promise<FleetWork> {
  const { jobs, index, folder = process.cwd() } = options;
  const work = workOf(context);
  return withFleet(options, work, { asPlanned: true }, async (fleet) => {
    const plan = { ...fleet.plan, folder };
    const listed = listedJobs(plan, jobs);
    const chosen = index === undefined ? listed : listed.slice(index, index + 1);
    if (chosen.length === 0 && index !== undefined)
      throw new TrtforgeError('TF_USAGE', `There is no job ${index} among ${plural(listed.length, 'job')}.`);
    return workOn({ ...fleet, plan }, chosen, work);
  });
}

/** Without a list all: a user who may write to the store could have edited a plan's states, which its ID does not cover. Throws TF_USAGE for an index that the plan lacks. */
function listedJobs({ jobs }: FleetPlan, indices: readonly number[] | undefined): readonly FleetJob[] {
  if (indices === undefined) return jobs;
  return indices.map((index) => {
    const job = jobs[index];
    if (job === undefined)
      throw new TrtforgeError(
        'TF_USAGE',
        `The plan has ${plural(jobs.length, 'job')}, and none has the index ${index}.`,
      );
    return job;
  });
}

/**
 * Works jobs one after the other: what is there ends at once; else the engine is built under the store's lease, proves itself, passes its policy and is kept. Each leaves a
 * record in the store. A job's failure is its record's; throws TF_CANCELLED, and what writing a record throws.
 */
export async function workOn(fleet: Fleet, jobs: readonly FleetJob[], work: Work): Promise<FleetWork> {
  const records: WorkRecord[] = [];
  for (const [at, job] of jobs.entries()) {
    const one = () => workOnJob(fleet, job, work);
    const found = ({ did }: WorkRecord) => `${did} ${job.name}`;
    records.push(await inPhase(`${at + 1} of ${jobs.length}`, work.emit, one, job.name, found));
  }
  return {
    schema: 'trtforge.fleet-work/1',
    plan: fleet.plan.id,
    jobs: records,
    exitCode: worst(records.map(({ exitCode }) => exitCode)),
  };
}

async function workOnJob(fleet: Fleet, job: FleetJob, work: Work): Promise<WorkRecord> {
  const started = performance.now();
  const record = (outcome: Outcome, code: ErrorCode | null, exitCode: ExitCode): WorkRecord => ({
    schema: 'trtforge.fleet-record/1',
    identity: job.identity,
    name: job.name,
    plan: fleet.plan.id,
    index: job.index,
    ...outcome,
    reasons: [...outcome.reasons],
    code,
    exitCode,
    node: nodeOf(work),
    gpu: visibleGpus().gpus[0]?.name ?? null,
    at: new Date().toISOString(),
    ms: performance.now() - started,
  });
  const proven: Partial<Proven> = {};
  try {
    const earlier = await standing(fleet, job, work);
    // The record of an earlier task stays: this one found nothing new.
    if (earlier !== null) return record(earlier, null, ExitCode.pass);
    const done = record(await make(fleet, job, work, proven), null, ExitCode.pass);
    await keepRecord(done, fleet.store);
    return done;
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
    const isRefused = error.code === 'TF_FLEET_REFUSED' || error.code === 'TF_FLEET_UNDECIDED';
    const failed = record(
      {
        did: isRefused ? 'refused' : 'failed',
        engine: null,
        check: proven.check?.outcome ?? null,
        gate: proven.gate ?? null,
        // Of what did not pass the message repeats the reasons.
        reasons: [...(isRefused ? [] : [`${error.message} ${error.remedy}`]), ...(proven.reasons ?? [])],
      },
      error.code,
      error.exitCode,
    );
    await keepRecord(failed, fleet.store);
    return failed;
  }
}

/** The known outcome of an engine that is there and counts; null where there is work to do. */
async function standing({ store }: Fleet, job: FleetJob, { signal }: Work): Promise<Outcome | null> {
  store.forget();
  const held = await store.find(documentOf(job), signal);
  if (held.passport === null) return null;
  const { record } = await recordOf(job.identity, store);
  if (!hasPassed(job, record, held.passport.built.ms)) return null;
  return {
    did: 'there',
    engine: engineOf(held.passport),
    check: record?.check ?? null,
    gate: record?.gate ?? null,
    reasons: [],
  };
}

/** Builds, or takes from the store what has not passed its policy yet. `proven` is filled as far as it came. */
async function make(fleet: Fleet, job: FleetJob, work: Work, proven: Partial<Proven>): Promise<Outcome> {
  const { plan, store } = fleet;
  // Before the work of minutes.
  store.assertMayWrite(recordKey(job.identity));
  const { build, samples } = await resolvedHere(fleet, job, work);
  const policy = policyHere(plan, job);
  const scratch = makeScratch('fleet');
  try {
    const prove = async (engine: BuiltEngine) => {
      const { afterFailure } = fleet.readers;
      const subject = { engine, build, samples, afterFailure };
      const result = await proveEngine(subject, { policy, scratch, work });
      Object.assign(proven, result);
      rejectUnproven(job, result);
    };
    return await closing(
      await openStores(storeOptions(store.place, scratch), work.environment),
      async (stores) => {
        const seams = { ...work, answer: provenAnswer(prove) };
        const { engine, passport, source, warnings } = await obtainEngine(ownBuild(build), stores, seams);
        if (source !== 'built') await prove({ planPath: engine, passport, isOwn: false });
        const kept = await keptPassport(store, job, warnings, work);
        return {
          did: source === 'built' ? 'built' : 'there',
          engine: engineOf(kept),
          check: proven.check?.outcome ?? null,
          gate: proven.gate ?? null,
          reasons: proven.reasons ?? [],
        };
      },
    );
  } finally {
    removeIfAllowed(scratch);
  }
}

/** A job's policy, by its path here; null without one. Throws TF_FLEET_CHANGED where it is another now. */
function policyHere({ folder }: FleetPlan, { gate }: FleetJob): FleetJob['gate'] {
  if (gate === null) return null;
  const policy = { ...gate, path: inFolder(folder, gate.path) };
  if (policyDigest(policy.path) === policy.digest) return policy;
  throw new TrtforgeError('TF_FLEET_CHANGED', `${policy.path} is not the policy of the plan.`);
}

/** Throws TF_FLEET_REFUSED for an engine that failed, TF_FLEET_UNDECIDED where its policy does not decide. */
function rejectUnproven({ name }: FleetJob, { check, gate, reasons }: Proven): void {
  const isFailed = check.outcome === 'fail' || gate?.outcome === 'fail';
  if (!isFailed && gate?.outcome !== 'inconclusive') return;
  throw new TrtforgeError(
    isFailed ? 'TF_FLEET_REFUSED' : 'TF_FLEET_UNDECIDED',
    `${name} was built and is not kept: ${reasons.join('; ')}`,
  );
}

/** Makes known answers, and lets an engine prove itself with its own before it is kept. */
function provenAnswer(prove: (engine: BuiltEngine) => Promise<void>): AnswerMaker {
  const whole = answerMaker(true)!;
  return async (made, engine, within) => {
    const answered = await whole(made, engine, within);
    const { planPath, passport, isFound } = engine;
    const { answer: knownAnswer = passport.knownAnswer, wrong = null } =
      typeof answered === 'string' ? {} : answered;
    // An engine that was found is proven when it is obtained, unless it failed already.
    if (isFound && wrong === null) return answered;
    await prove({ planPath, passport: { ...passport, knownAnswer }, isOwn: !isFound });
    return answered;
  };
}

/** The passport of a job's engine as the store has it now. Throws TF_STORE_UNWRITABLE where it has none. */
async function keptPassport(
  store: Fleet['store'],
  job: FleetJob,
  warnings: readonly string[],
  { signal }: Work,
): Promise<Passport> {
  store.forget();
  const held = await store.find(documentOf(job), signal);
  if (held.passport !== null) return held.passport;
  throw new TrtforgeError(
    'TF_STORE_UNWRITABLE',
    `${store.place} did not keep ${job.name}: ${[...warnings, held.why.reason].join(' ')}`,
    { remedy: 'Give the task the right to write there.' },
  );
}

/** Throws TF_FLEET_INVALID for what a plan of the store may not ask of this machine. */
export function assertVouched(
  { plan, isOwn, isSigned }: Pick<Fleet, 'plan' | 'isOwn' | 'isSigned'>,
  job: FleetJob,
): void {
  const foreign = isOwn || isSigned ? null : foreignIn(job, plan.folder);
  if (foreign === null) return;
  throw new TrtforgeError('TF_FLEET_INVALID', `${job.name} ${foreign}, and no trusted key signed the plan.`, {
    remedy:
      'Keep its files below the folder, or sign the plan (docs/fleet.md, A store that others may write).',
  });
}

/** The build as this machine would make it. Throws TF_TOOLCHAIN_NOT_FOUND, TF_TARGET_UNAVAILABLE on the wrong machine, TF_FLEET_CHANGED where the model is another, TF_FLEET_INVALID. */
export async function resolvedHere(
  fleet: Fleet,
  job: FleetJob,
  work: Work,
): Promise<{ readonly build: ResolvedBuild } & Pick<ModelBuild, 'samples'>> {
  assertVouched(fleet, job);
  const { folder, targets } = fleet.plan;
  const { path, component } = job.model;
  const source = { path, isBundle: component !== null, options: job.options };
  const parts = await buildsOf(source, folder, fleet.readers, work);
  const part = parts.find((each) => each.component === component);
  if (part === undefined)
    throw new TrtforgeError('TF_FLEET_CHANGED', `${path} has no component ${component} any more.`);
  const { os, arch } = job.target;
  const here = await targetHere({ ...parseTarget(targets[job.on]!.target), os, arch }, work);
  const build = await resolveBuild({ ...part.request, ...here }, work);
  if (isDeclared(build.toolchain))
    throw new TrtforgeError(
      'TF_TOOLCHAIN_NOT_FOUND',
      `The node ${nodeOf(work)} (${platformText(thisPlatform)}) lacks ${build.toolchain.product} ${build.toolchain.version} for ${platformText(job.target)}, which ${job.name} is built with.`,
      {
        remedy: `Let the target ${job.on} run where it is: in a container of that version, or on other nodes.`,
      },
    );
  const planned = asBuilt(documentOf(job), { identity: { digest: '', document: build.identity } });
  const differences = [...differencesOf(planned, build.identity)];
  if (differences.length === 0) return { build, samples: part.samples };
  const [{ field, a, b }] = differences as [(typeof differences)[number]];
  const isMachine = differences.every((each) => each.field.startsWith('target.'));
  throw new TrtforgeError(
    isMachine ? 'TF_TARGET_UNAVAILABLE' : 'TF_FLEET_CHANGED',
    `${job.name} is not what would be built here: ${field} is ${JSON.stringify(b)}, and ${JSON.stringify(a)} is planned.`,
  );
}

const nodeOf = ({ environment }: Work): string => environment.SLURMD_NODENAME || hostname();

const engineOf = ({ identity, name, plan, built }: Passport): NonNullable<WorkRecord['engine']> => ({
  identity: identity.digest,
  name,
  bytes: plan.bytes,
  buildMs: built.ms,
});
