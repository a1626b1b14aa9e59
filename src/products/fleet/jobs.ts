import { canonicalJson, sha256 } from '../../base/files/digest.js';
import { chooseTarget, resolveBuild } from '../../engines/builder/resolve-build.js';
import { engineNameOf, formatEngineName } from '../../engines/identity/engine-name.js';
import { type IdentityDocument, identityDigest } from '../../engines/identity/identity.js';
import { parseTarget, platformFaults } from '../../engines/identity/target.js';
import { platformOfEngine } from '../../engines/plan/loads.js';
import { inParallel } from '../../engines/store/remote/objects.js';
import { plainMiss } from '../../engines/store/why.js';
import { TrtforgeError } from '../../errors.js';
import type { Work } from '../../events.js';
import { loadPolicy } from '../../quality/gate/policy.js';
import { declaredToolchain } from '../../tensorrt/toolchain/find.js';
import type { EnginesFile } from './engines-file.js';
import type { FleetStore } from './fleet-store.js';
import { buildsOf, healedOptions, inFolder, type ModelReaders } from './model-options.js';
import type { FleetJob, FleetPlan } from './plan-schema.js';
import { hasPassed, recordOf } from './work-record.js';

/** The identity's document of a job. */
export const documentOf = ({ model, recipe, target }: Decided): IdentityDocument => ({
  schema: 'trtforge.identity/1',
  model: model.digest,
  recipe,
  target,
});

/**
 * Decides every engine of a fleet and looks which of them the store has; builds nothing. A target that names its TensorRT is decided by that version alone, so
 * a plan is the same on every machine. Throws what `resolveBuild` throws, with the entry and the target before it.
 */
export async function decideFleet(
  { store: place, folder, targets, entries }: EnginesFile,
  store: FleetStore,
  readers: ModelReaders,
  work: Work,
): Promise<FleetPlan> {
  const chosen = new Map<string, ReturnType<typeof targetOf>>();
  const chosenFor = (name: string) => {
    const known = chosen.get(name) ?? targetOf(targets[name]!.target, work);
    chosen.set(name, known);
    return known;
  };
  const jobs = new Map<string, Decided>();
  for (const { path, isBundle, options: written, targets: names, gate, where } of entries) {
    const { options, healed } = await located(where, () =>
      healedOptions({ path, isBundle, options: written }, folder, readers, work),
    );
    const parts = await located(where, () => buildsOf({ path, isBundle, options }, folder, readers, work));
    const asked = gate === null ? null : { path: gate, digest: policyDigest(inFolder(folder, gate)) };
    for (const on of names)
      for (const { component, request } of parts) {
        const { identity, model } = await located(`${where}, target ${on}`, async () =>
          resolveBuild({ ...request, ...(await chosenFor(on)) }, work),
        );
        const job = {
          identity: identityDigest(identity),
          name: formatEngineName(engineNameOf(identity, model.name, model.version)),
          model: { digest: identity.model, path, component },
          options: { ...options },
          ...(healed && { healed }),
          recipe: identity.recipe,
          target: identity.target,
          on,
          gate: asked,
        };
        addJob(jobs, job, where, work);
      }
  }
  const decided = [...jobs.values()];
  const states = await inParallel(decided, AT_ONCE, work.signal, (job) => stateOf(job, store, work));
  const plan = {
    store: place,
    folder,
    targets,
    jobs: decided.map((job, index) => ({ index, ...job, ...states[index]! })),
  };
  return { schema: 'trtforge.fleet-plan/1', id: planId(plan), made: new Date().toISOString(), ...plan };
}

/** The decisions of a plan about an engine. */
type Decided = Omit<FleetJob, 'index' | 'state' | 'why'>;

/** Adds a job, unless one before it has its engine. Throws TF_FLEET_INVALID where that has another policy. */
function addJob(jobs: Map<string, Decided>, job: Decided, where: string, work: Work): void {
  const { identity, on, gate } = job;
  const earlier = jobs.get(identity);
  if (earlier === undefined) {
    jobs.set(identity, job);
    return;
  }
  if (earlier.gate?.digest !== gate?.digest)
    throw new TrtforgeError(
      'TF_FLEET_INVALID',
      `${where}, target ${on}: an entry before it has the same engine with another policy.`,
    );
  const message = `${where}: the target ${on} has the engine of ${earlier.on}, which is built there alone.`;
  if (earlier.on !== on) work.emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
}

/** 128 bits of the digest of all that decides what tasks do: whoever has a plan's address has its content. */
export function planId({ store, folder, targets, jobs }: Omit<FleetPlan, 'schema' | 'id' | 'made'>): string {
  const decided = jobs.map(({ index: _, state: __, why: ___, ...job }) => job);
  return sha256(canonicalJson({ store, folder, targets, decided })).slice(0, 32);
}

/** The target, with the TensorRT that it names or else that of this machine. */
async function targetOf(text: string, { environment }: Work) {
  const { named, ...target } = parseTarget(text);
  if (named !== undefined) return { target, toolchain: declaredToolchain(target.product, named) };
  return { target, toolchain: (await chooseTarget({ target }, environment)).toolchain };
}

async function located<T>(where: string, decide: () => Promise<T>): Promise<T> {
  try {
    return await decide();
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
    throw new TrtforgeError(error.code, `${where}: ${error.message}`, { remedy: error.remedy, cause: error });
  }
}

/** Whether an engine is there, and counts: with a policy only what has passed that very policy does. */
async function stateOf(
  job: Decided,
  store: FleetStore,
  { signal }: Work,
): Promise<Pick<FleetJob, 'state' | 'why'>> {
  const held = await store.find(documentOf(job), signal);
  if (held.passport === null) return { state: 'missing', why: held.why };
  const { record, fault } = await recordOf(job.identity, store);
  if (hasPassed(job, record, held.passport.built.ms)) return { state: 'have', why: null };
  const reason = `the engine is there and has not passed ${job.gate?.path} as it is now`;
  return { state: 'missing', why: plainMiss('gate', null, fault === null ? reason : `${reason}; ${fault}`) };
}

/** Number of jobs looked up at once: each has a record in memory. */
export const AT_ONCE = 8;

/** The plan with the states looked up again. */
export async function lookedUp(plan: FleetPlan, store: FleetStore, work: Work): Promise<FleetPlan> {
  const states = await inParallel(plan.jobs, AT_ONCE, work.signal, (job) => stateOf(job, store, work));
  for (const { recipe, target } of plan.jobs)
    for (const { message, remedy } of platformFaults(target, platformOfEngine({ recipe, target })))
      work.emit({ type: 'log', source: 'trtforge', severity: 'warning', message: `${message} ${remedy}` });
  return { ...plan, jobs: plan.jobs.map((job, index) => ({ ...job, ...states[index]! })) };
}

/** Of all that a policy asks, what it extends included. Throws TF_GATE_POLICY_INVALID, TF_FILE_NOT_FOUND. */
export function policyDigest(path: string): string {
  const { path: _, ...asked } = loadPolicy(path);
  return sha256(canonicalJson(asked));
}
