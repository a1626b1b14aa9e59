import { z } from 'zod';
import type { GpuList } from '../../addon/addon.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import type { EngineSessionOptions } from '../../engines/runtime/tensorrt/options.js';
import { listCache } from '../../engines/store/cache.js';
import type { LocalStore } from '../../engines/store/local.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { worst } from '../verify/outcome.js';
import { outcomeSchema } from '../verify/result.js';
import { hasAnswerBeside } from './answer.js';
import { placeFinder } from './at-load.js';
import { type CheckedPlace, checkAndRemember, recallCheck } from './past-checks.js';
import { recordLine } from './proof.js';

export const unansweredSchema = z.object({ name: z.string(), identity: z.string(), record: z.string() });
export type Unanswered = z.infer<typeof unansweredSchema>;

export const cacheCheckSchema = z.object({
  schema: z.literal('trtforge.cache-check/1'),
  store: z.string(),
  engines: z.array(
    z.object({
      name: z.string(),
      identity: z.string(),
      /** null: the engine is not for this machine. */
      outcome: outcomeSchema.nullable(),
      /** Whether that was found by an earlier check on this GPU with this driver and library. */
      isKnown: z.boolean(),
      reason: z.string().nullable(),
      ms: z.number(),
    }),
  ),
  /** Engines that have no known answer, and the line that records one of their model. Absent in results of versions before. */
  unanswered: z.array(unansweredSchema).optional(),
  outcome: outcomeSchema,
  reasons: z.array(z.string()),
});
export type CacheCheck = z.infer<typeof cacheCheckSchema>;
type Row = CacheCheck['engines'][number];

interface StoreCheckOptions extends Pick<EngineSessionOptions, 'device'>, WorkContext {
  /** Parts of names or starts of identities; default: all. */
  readonly names?: readonly string[];
}

/**
 * Checks every engine of a store that runs here and has a known answer, and that was not checked on this GPU with this driver and library. One whose files are damaged,
 * replaced or not signed as the store's trust requires fails before anything of it is recalled or run. Inconclusive where nothing was proven.
 */
export async function checkStore(store: LocalStore, options: StoreCheckOptions = {}): Promise<CacheCheck> {
  const { emit, signal } = options;
  const engines: Row[] = [];
  const { candidates, unanswered } = await enginesOf(store, options.names, signal);
  const find = placeFinder(options);
  for (const [done, { name, identity }] of candidates.entries()) {
    throwIfCancelled(signal, `checking the engines of ${store.place}`);
    emit?.({ type: 'progress', phase: 'check', done, total: candidates.length, detail: name });
    const held = await store.get(identity);
    const found = held.found
      ? await checkOne(held.engine.planPath, await find(held.engine.planPath), options)
      : { outcome: 'fail' as const, isKnown: false, reason: held.reason, ms: 0 };
    engines.push({ name, identity, ...found });
  }
  const outcomes = engines.flatMap(({ outcome }) => outcome ?? []);
  const none = outcomes.length === 0 ? [`Nothing of ${store.place} was proven on this machine.`] : [];
  const bad = engines.filter(({ outcome }) => outcome !== null && outcome !== 'pass');
  return {
    schema: 'trtforge.cache-check/1',
    store: store.place,
    engines,
    unanswered,
    outcome: outcomes.length === 0 ? 'inconclusive' : worst(outcomes),
    reasons: [...bad.map(({ name, reason }) => `${name}: ${reason}`), ...none],
  };
}

async function checkOne(
  planPath: string,
  place: CheckedPlace | undefined,
  options: StoreCheckOptions,
): Promise<Omit<Row, 'name' | 'identity'>> {
  const row = { isKnown: false, ms: 0, outcome: null };
  if (place === undefined) return { ...row, reason: 'it does not run on this machine' };
  const known = recallCheck(place, options.environment ?? process.env);
  if (known !== undefined)
    return { ...row, isKnown: true, outcome: known.outcome, reason: known.reasons[0] ?? null };
  const started = performance.now();
  try {
    const { outcome, reasons } = await checkAndRemember(planPath, options);
    return { ...row, outcome, reason: reasons[0] ?? null, ms: performance.now() - started };
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
    return { ...row, outcome: 'inconclusive', reason: `${error.message} (${error.code})` };
  }
}

/** The engines of a store, with a known answer and without. */
async function enginesOf(store: LocalStore, names: readonly string[] = [], signal?: AbortSignal) {
  const { engines } = await listCache(store, names, signal);
  const candidates: { readonly name: string; readonly identity: string; readonly planPath: string }[] = [];
  const unanswered: Unanswered[] = [];
  for (const { identity, name: known } of engines) {
    const passport = await store.passport(identity);
    const planPath = store.planPath(identity);
    const name = known ?? identity;
    // An engine that cannot be read fails where it is checked.
    const hasAnswer =
      passport?.knownAnswer !== undefined || (!store.trust.required && hasAnswerBeside(planPath));
    if (passport === undefined || hasAnswer) candidates.push({ name, identity, planPath });
    else
      unanswered.push({
        name,
        identity,
        record: recordLine(planPath, passport.model.name, store.trust.required),
      });
  }
  return { candidates, unanswered };
}

/** Of the engines of a store that run here and have a known answer, the names of those that were not checked on this GPU with this driver and library; and those that have none. */
export async function unprovenEngines(
  store: LocalStore,
  environment: NodeJS.ProcessEnv,
  gpus: Pick<GpuList, 'gpus' | 'driverVersion'>,
) {
  const find = placeFinder({ environment }, gpus);
  const unchecked: string[] = [];
  const { candidates, unanswered } = await enginesOf(store);
  for (const { name, planPath } of gpus.gpus.length === 0 ? [] : candidates) {
    const place = await find(planPath);
    if (place !== undefined && recallCheck(place, environment) === undefined) unchecked.push(name);
  }
  return { unchecked, unanswered };
}
