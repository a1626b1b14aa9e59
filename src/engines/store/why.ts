import { TrtforgeError } from '../../errors.js';
import { ignoreEvents } from '../../events.js';
import { engineNameOf, formatEngineName } from '../identity/engine-name.js';
import { type IdentityDocument, identityDigest } from '../identity/identity.js';
import type { Passport } from '../identity/passport.js';
import { mayServe } from './compatibility.js';
import type { LocalStore } from './local.js';
import { lookUp, lookUpLocally, type Miss, plainMiss, withNearest } from './lookup.js';
import type { EngineStores } from './open-stores.js';
import type { RemoteStore } from './remote/remote-store.js';
import type { CacheWhy } from './result.js';

/** Others of the model that the rules are shown for. */
const MOST_SHOWN = 20;

/** Whether a build would find an engine, where, by which rule, and why each source before it would not serve. Builds and fetches nothing. */
export async function whyCache(
  stores: EngineStores,
  wanted: IdentityDocument,
  model: { readonly name: string; readonly version: string | null },
  signal?: AbortSignal,
): Promise<CacheWhy> {
  const others = new Map<string, Passport>();
  for (const store of [...(stores.store === null ? [] : [stores.store]), ...stores.layers])
    for (const passport of await passportsOfModel(store, wanted))
      others.set(passport.identity.digest, passport);
  const { hit, why } = await lookUpLocally(stores, { identity: wanted, model }, ignoreEvents);
  let served = hit && { engine: hit.engine.planPath, rule: hit.rule, from: hit.from };
  if (stores.remote !== null && served === undefined) {
    const answer = await askRemote(stores.remote, wanted, others, signal);
    if ('rule' in answer) served = { ...answer, from: 'remote' };
    else why.push(answer);
  }
  if (stores.noRemote != null) why.push(plainMiss('remote', null, stores.noRemote));
  const identity = identityDigest(wanted);
  others.delete(identity);
  return {
    schema: 'trtforge.cache-why/1',
    store: stores.store?.place ?? stores.remote?.place ?? 'none',
    identity,
    name: formatEngineName(engineNameOf(wanted, model.name, model.version)),
    engine: served?.engine ?? null,
    from: served?.from ?? null,
    rule: served?.rule ?? null,
    refits: null,
    others: [...others.values()].slice(0, MOST_SHOWN).map((passport) => ({
      identity: passport.identity.digest,
      name: passport.name,
      ...mayServe(wanted, passport.identity.document),
    })),
    why: why.map((miss) => ({ ...miss, differences: [...miss.differences] })),
  };
}

async function askRemote(
  remote: RemoteStore,
  wanted: IdentityDocument,
  others: Map<string, Passport>,
  signal: AbortSignal | undefined,
): Promise<{ readonly engine: string; readonly rule: string } | Miss> {
  try {
    const answer = await lookUp(remote, wanted, signal);
    if (answer.found) return { engine: answer.engine.key, rule: answer.rule };
    const same = (await remote.ofModel(wanted.model, signal)).map(({ engine }) => engine.passport);
    for (const passport of same) others.set(passport.identity.digest, passport);
    const isNone = answer.code === null && same.length === 0;
    const reason = isNone ? `${remote.place} has no usable engine of this model` : answer.reason;
    return withNearest(plainMiss('remote', answer.code, reason), wanted, same);
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
    return plainMiss('remote', error.code, `${error.message} ${error.remedy}`);
  }
}

async function passportsOfModel(
  store: LocalStore,
  { model }: IdentityDocument,
): Promise<readonly Passport[]> {
  const engines = (await store.ofModel(model)).slice(0, MOST_SHOWN);
  const passports = await Promise.all(engines.map(({ identity }) => store.passport(identity)));
  return passports.filter((passport) => passport !== undefined);
}
