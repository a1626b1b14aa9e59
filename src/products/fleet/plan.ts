import { existsSync } from 'node:fs';
import { z } from 'zod';
import * as is from '../../base/options/kinds.js';
import { needed, type OptionsOf } from '../../base/options/option.js';
import { faultText } from '../../base/text/schema-error.js';
import { isRemoteAddress } from '../../engines/store/remote/address.js';
import { TrtforgeError } from '../../errors.js';
import { type Work, type WorkContext, workOf } from '../../events.js';
import { readEnginesFile } from './engines-file.js';
import { FleetStore, LARGEST_PLAN, notHere, unreadableHere } from './fleet-store.js';
import { decideFleet, lookedUp, planId } from './jobs.js';
import { type ModelReaders, readerOptions } from './model-options.js';
import { type FleetJob, type FleetPlan, fleetPlanSchema, jobSchema } from './plan-schema.js';
import { unseenStore } from './schedulers/where.js';

/** A fleet, and who reads its models. */
export const fleetOptions = {
  /** An engines file, or the address of a plan (`STORE/fleet/ID.json`). */
  fleet: needed(is.text),
  ...readerOptions,
};

export interface FleetOptions extends OptionsOf<typeof fleetOptions> {}

/** A plan and the store it is about. */
export interface Fleet {
  readonly plan: FleetPlan;
  /** Of the plan's document. */
  readonly address: string;
  /** Whether it is that of an engines file of the caller; what was only read may be anyone's who may write to the store. */
  readonly isOwn: boolean;
  /** Whether a trusted key signed its document. */
  readonly isSigned: boolean;
  readonly store: FleetStore;
  readonly readers: ModelReaders;
}

/**
 * Decides every engine of a fleet, looks which of them the store has, and keeps the plan in its store; builds nothing. Throws TF_FLEET_INVALID, and what opening the store and
 * reading the models throw.
 *
 * ```ts
 * const plan = await planFleet({ fleet: 'engines.yaml' });
 * use(plan.jobs.filter(({ state }) => state === 'missing'));
 * ```
 */
export async function planFleet(
  options: FleetOptions,
  context?: WorkContext,
): Promise<FleetPlan & { readonly address: string }> {
  const work = workOf(context);
  return withFleet(options, work, { keep: true }, async ({ plan, address }) => {
    for (const message of unseenStore(plan.store, plan.targets))
      work.emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
    return { ...plan, address };
  });
}

/**
 * Does work with a fleet: of an engines file, planned anew and with `keep` kept in its store; or of a plan's address (`STORE/fleet/ID.json`), with the states of now unless
 * `asPlanned`. Throws TF_FLEET_INVALID and what opening the store and planning throw.
 */
export async function withFleet<T>(
  { fleet: given, ...readers }: FleetOptions,
  work: Work,
  how: { readonly keep?: boolean; readonly asPlanned?: boolean },
  use: (fleet: Fleet) => Promise<T>,
): Promise<T> {
  const [, place, id] = /^(.+?)\/+fleet\/([0-9a-f]{12}|[0-9a-f]{32})\.json$/.exec(given) ?? [];
  const file = place === undefined ? readEnginesFile(given) : null;
  const store = await FleetStore.open(file?.store ?? place!, work.environment);
  try {
    if (file !== null) {
      const plan = await decideFleet(file, store, readers, work);
      const isSigned = await keepPlan(plan, store, how, work);
      const address = store.address(keyOf(plan.id));
      return await use({ plan, address, isOwn: true, isSigned, store, readers });
    }
    const { plan, isSigned } = await readPlan(id!, store);
    const now = how.asPlanned === true ? plan : await lookedUp(plan, store, work);
    const address = store.address(keyOf(plan.id));
    return await use({ plan: now, address, isOwn: false, isSigned, store, readers });
  } finally {
    store.close();
  }
}

const keyOf = (id: string): string => `${id}.json`;

/** With `keep` writes a plan; returns whether its document is signed. What is there already is the same but for its states: it stays where it cannot be written again, and where a signature would be lost. */
async function keepPlan(
  plan: FleetPlan,
  store: FleetStore,
  { keep = false }: { readonly keep?: boolean },
  { emit }: Work,
): Promise<boolean> {
  const there = await readPlan(plan.id, store).catch((error) => {
    if (error instanceof TrtforgeError) return null;
    throw error;
  });
  if (!keep || (there?.isSigned === true && !store.signs)) return store.signs || there?.isSigned === true;
  try {
    await store.write(keyOf(plan.id), plan, LARGEST_PLAN);
    return store.signs;
  } catch (error) {
    if (there === null || !(error instanceof TrtforgeError)) throw error;
    const message = `${error.message} The plan is there already, with the states of ${there.plan.made}.`;
    emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
    return there.isSigned;
  }
}

/** The only way to a plan's document: it counts if its ID is that of its content and, where signatures are required, a trusted key signed it. Throws TF_FLEET_INVALID, TF_SIGNATURE_INVALID, TF_STORE_UNWRITABLE, TF_REMOTE_…. */
async function readPlan(id: string, store: FleetStore): Promise<Pick<Fleet, 'plan' | 'isSigned'>> {
  const address = store.address(keyOf(id));
  const invalid = (why: string) => new TrtforgeError('TF_FLEET_INVALID', `${address} ${why}.`);
  if (id.length < 32) throw invalid('is a plan of an earlier version, whose ID does not cover its content');
  const read = await store
    .read(keyOf(id), looseSchema, LARGEST_PLAN)
    .catch((error) => unreadableHere(store.place, error));
  if (read === undefined && !isRemoteAddress(store.place) && !existsSync(store.place))
    throw notHere(store.place, 'there is no such folder.');
  if (read === undefined) throw invalid('is not there');
  const jobs = read.document.jobs.map((job, index): FleetJob => {
    const parsed = jobSchema.safeParse(job);
    if (parsed.data?.index === index) return parsed.data;
    throw invalid(`has no job ${index}: ${parsed.error ? faultText(parsed.error) : 'it has another index'}`);
  });
  const plan = { ...read.document, jobs };
  if (plan.id !== id || planId(plan) !== id)
    throw invalid(`was changed: its content is that of the plan ${planId(plan)}`);
  return { plan, isSigned: read.isSigned };
}

/** Of jobs the first fault is enough: a list of all of them would take gigabytes. */
const looseSchema = fleetPlanSchema.extend({ jobs: z.array(z.unknown()) });
