import { z } from 'zod';
import type { GpuList } from '../../addon/addon.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import type { OpenContext } from '../../engines/runtime/back-end.js';
import { listCache } from '../../engines/store/cache-listing.js';
import type { LocalStore } from '../../engines/store/local.js';
import { TrtforgeError } from '../../errors.js';
import { worst } from '../verify/outcome.js';
import { outcomeSchema } from '../verify/result.js';
import { placeFinder } from './at-load.js';
import { type CheckOptions, checkEngine } from './check-engine.js';
import { type CheckedPlace, recallCheck } from './checked.js';

export const cacheCheckSchema = z.object({
  schema: z.literal('trtforge.cache-check/1'),
  store: z.string(),
  engines: z.array(
    z.object({
      name: z.string(),
      identity: z.string(),
      /** null: the engine is not for this machine, or has no known answer. */
      outcome: outcomeSchema.nullable(),
      /** Whether that was found by an earlier check on this GPU with this driver and library. */
      isKnown: z.boolean(),
      reason: z.string().nullable(),
      ms: z.number(),
    }),
  ),
  outcome: outcomeSchema,
  reasons: z.array(z.string()),
});
export type CacheCheck = z.infer<typeof cacheCheckSchema>;
type Row = CacheCheck['engines'][number];

export interface StoreCheckOptions extends Pick<CheckOptions, 'device' | keyof OpenContext> {
  /** Parts of names or starts of identities; default: all. */
  readonly names?: readonly string[];
}

/** Checks every engine of a store that runs here and has a known answer, and that was not checked on this GPU with this driver and library. */
export async function checkStore(store: LocalStore, options: StoreCheckOptions = {}): Promise<CacheCheck> {
  const { emit, signal } = options;
  const engines: Row[] = [];
  const candidates = await enginesOf(store, options.names, signal);
  const find = placeFinder(options);
  for (const [done, { name, identity, planPath }] of candidates.entries()) {
    throwIfCancelled(signal, `checking the engines of ${store.place}`);
    emit?.({ type: 'progress', phase: 'check', done, total: candidates.length, detail: name });
    engines.push({ name, identity, ...(await checkOne(planPath, await find(planPath), options)) });
  }
  const bad = engines.filter(({ outcome }) => outcome !== null && outcome !== 'pass');
  return {
    schema: 'trtforge.cache-check/1',
    store: store.place,
    engines,
    outcome: worst(['pass', ...engines.flatMap(({ outcome }) => outcome ?? [])]),
    reasons: bad.map(({ name, reason }) => `${name}: ${reason}`),
  };
}

async function checkOne(
  planPath: string,
  place: CheckedPlace | undefined,
  { environment = process.env, device, emit, signal }: StoreCheckOptions,
): Promise<Omit<Row, 'name' | 'identity'>> {
  const row = { isKnown: false, ms: 0, outcome: null };
  if (place === undefined) return { ...row, reason: 'it does not run on this machine' };
  const known = recallCheck(place, environment);
  if (known !== undefined)
    return { ...row, isKnown: true, outcome: known.outcome, reason: known.reasons[0] ?? null };
  const started = performance.now();
  try {
    const { outcome, reasons } = await checkEngine(planPath, { environment, device, emit, signal });
    return { ...row, outcome, reason: reasons[0] ?? null, ms: performance.now() - started };
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
    return { ...row, outcome: 'inconclusive', reason: `${error.message} (${error.code})` };
  }
}

/** The engines of a store that have a known answer. */
async function enginesOf(store: LocalStore, names: readonly string[] = [], signal?: AbortSignal) {
  const { engines } = await listCache(store, names, signal);
  const passports = await Promise.all(
    engines.map(async ({ identity, name, problem }) => {
      if (name === null || problem !== null) return [];
      const passport = await store.passport(identity);
      const isAnswered = passport?.knownAnswer !== undefined;
      return isAnswered ? [{ name, identity, planPath: store.planPath(identity) }] : [];
    }),
  );
  return passports.flat();
}

/** Names of the engines of a store that run here, have a known answer, and were not checked on this GPU with this driver and library. */
export async function uncheckedEngines(
  store: LocalStore,
  environment: NodeJS.ProcessEnv,
  gpus: Pick<GpuList, 'gpus' | 'driverVersion'>,
): Promise<readonly string[]> {
  const find = placeFinder({ environment }, gpus);
  const unchecked: string[] = [];
  for (const { name, planPath } of await enginesOf(store)) {
    const place = await find(planPath);
    if (place !== undefined && recallCheck(place, environment) === undefined) unchecked.push(name);
  }
  return unchecked;
}
