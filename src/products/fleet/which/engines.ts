import { existsSync } from 'node:fs';
import { closing, openFile } from '../../../base/files/byte-source.js';
import { cacheFolder } from '../../../base/files/folders.js';
import type { CommandContext } from '../../../cli/command.js';
import { readModelContent } from '../../../engines/identity/model-content.js';
import type { Passport } from '../../../engines/identity/passport.js';
import { wrappedPlanIn } from '../../../engines/plan/context-model.js';
import { isEngineFile } from '../../../engines/plan/header.js';
import { inspectEngine } from '../../../engines/plan/inspect.js';
import type { ModelContext } from '../../../engines/plan/model-beside.js';
import { isCalled, nothingCalled } from '../../../engines/store/engine-query.js';
import type { EngineStores } from '../../../engines/store/open-stores.js';
import type { EngineSource, EngineSummary } from '../../../engines/store/store.js';
import { type Trust, verifyTrusted } from '../../../engines/store/trust.js';
import { TrtforgeError } from '../../../errors.js';
import type { Candidate, Found } from './which.js';

/** The engine of a file, also of an ONNX file around one, the stored engines of an ONNX model, or those that are called so. Throws TF_PLAN_INVALID, TF_REMOTE_*, TF_USAGE (nothing is called so), and what reading a model throws. */
export async function findEngines(
  query: string,
  stores: EngineStores,
  context: Pick<CommandContext, 'emit' | 'signal' | 'environment'>,
): Promise<Found> {
  const { emit, signal, environment } = context;
  const isFile = existsSync(query);
  if (isFile && (isEngineFile(query) || closing(openFile(query), wrappedPlanIn) !== null))
    return { query, model: null, engines: [await ofFile(query, stores.trust, context)] };
  const isModel = isFile || /\.onnx$/i.test(query);
  const reading = { emit, signal, cacheFolder: cacheFolder(environment) };
  const content = isModel ? await readModelContent(query, reading) : undefined;
  const model = content?.digest ?? null;
  const isMeant = (each: EngineSummary) =>
    model === null ? isCalled(query, each.identity, each.name ?? '') : each.model === model;
  const found = new Map<string, Candidate>();
  const places = [stores.store, ...stores.layers, stores.remote].filter((place) => place !== null);
  for (const place of places)
    for (const each of (await place.list(signal)).filter(isMeant).sort(newestFirst))
      if (found.get(each.identity)?.passport == null)
        found.set(each.identity, await ofStore(place, each, signal));
  if (model === null && found.size === 0)
    throw nothingCalled(places.map(({ place }) => place).join(', '), query);
  return { query, model, content, engines: [...found.values()] };
}

const newestFirst = (a: EngineSummary, b: EngineSummary): number =>
  (b.builtAt ?? '').localeCompare(a.builtAt ?? '');

async function ofFile(engine: string, trust: Trust, context: ModelContext): Promise<Candidate> {
  try {
    // As before every load: another engine in its place is one that no machine loads.
    if (trust.required) await verifyTrusted(trust, engine);
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    const header = { found: false, code: error.code, reason: error.message } as const;
    return { engine, name: engine, identity: null, header, passport: null, warning: null };
  }
  const header = await inspectEngine(engine, [], context);
  const isItsOwn = header.findings.every(({ severity }) => severity !== 'error');
  const passport = (isItsOwn && header.passport?.content) || null;
  const warning = header.findings.map(({ message }) => message).join(' ') || null;
  const { name = engine, identity } = passport ?? {};
  return { engine, name, identity: identity?.digest ?? null, header, passport, warning };
}

/** Checked as before every load: digest, header, signature. Of a bucket, its entry alone: no plan is fetched. */
async function ofStore(
  store: EngineSource<{ readonly passport: Passport; readonly planPath?: string; readonly key?: string }> & {
    readonly prefix?: string;
  },
  { identity, name }: EngineSummary,
  signal: AbortSignal,
): Promise<Candidate> {
  const answer = await store.get(identity, signal);
  const { passport = null, planPath, key } = answer.found ? answer.engine : {};
  const engine = planPath ?? `${store.place}/${key?.slice(store.prefix?.length) ?? identity}`;
  const header = answer.found ? answer.engine.passport.identity.document.target : answer;
  return { engine, name: name ?? identity, identity, header, passport, warning: null };
}
