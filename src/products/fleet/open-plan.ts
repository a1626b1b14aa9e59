import { existsSync } from 'node:fs';
import { faultText } from '../../base/text/schema-error.js';
import type { CommandContext } from '../../cli/command.js';
import { isRemoteAddress } from '../../engines/store/remote/address.js';
import { TrtforgeError } from '../../errors.js';
import { readEnginesFile } from './engines-file.js';
import { FleetStore, notHere } from './fleet-store.js';
import { lookedUp, planFleet } from './plan.js';
import { type FleetPlan, fleetPlanSchema } from './plan-schema.js';

/** A plan and the store it is about. */
export interface Fleet {
  readonly plan: FleetPlan;
  /** Of the plan's document. */
  readonly address: string;
  readonly store: FleetStore;
}

/**
 * Does work with a fleet: of an engines file, planned anew and with `keep` kept in its store; or of a plan's address (`STORE/fleet/ID.json`), with the states of now unless
 * `asPlanned`. Throws TF_FLEET_INVALID and what opening the store and planning throw.
 */
export async function withFleet<T>(
  given: string,
  context: CommandContext,
  how: { readonly keep?: boolean; readonly asPlanned?: boolean },
  work: (fleet: Fleet) => Promise<T>,
): Promise<T> {
  const [, place, id] = /^(.+?)\/+fleet\/([0-9a-f]{12})\.json$/.exec(given) ?? [];
  const file = place === undefined ? readEnginesFile(given) : null;
  const store = await FleetStore.open(file?.store ?? place!, context.environment);
  try {
    const plan = file === null ? await readPlan(given, id!, store) : await planFleet(file, store, context);
    const address = store.address(`${plan.id}.json`);
    if (how.keep === true && file !== null) await store.write(`${plan.id}.json`, plan);
    const now = file === null && how.asPlanned !== true ? await lookedUp(plan, store, context) : plan;
    return await work({ plan: now, address, store });
  } finally {
    store.close();
  }
}

async function readPlan(address: string, id: string, store: FleetStore): Promise<FleetPlan> {
  const text = await store.read(`${id}.json`);
  const invalid = (why: string) => new TrtforgeError('TF_FLEET_INVALID', `${address} ${why}.`);
  if (text === undefined && !isRemoteAddress(store.place) && !existsSync(store.place))
    throw notHere(store.place, 'there is no such folder.');
  if (text === undefined) throw invalid('is not there');
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw invalid('is not a whole plan: it is not JSON');
  }
  const parsed = fleetPlanSchema.safeParse(content);
  if (!parsed.success) throw invalid(`is not a plan: ${faultText(parsed.error)}`);
  if (parsed.data.id !== id) throw invalid(`is the plan ${parsed.data.id}`);
  return parsed.data;
}
