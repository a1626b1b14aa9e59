import { join } from 'node:path';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import type { CacheExport } from '../store/cache-result.js';
import type { LocalStore } from '../store/local.js';
import { isCalled, nothingCalled } from '../store/lookup.js';
import { openRemoteStore } from '../store/open-stores.js';
import { isRemoteAddress } from '../store/remote/address.js';
import type { StoredEngine } from '../store/store.js';
import { type Exporter, folderExporter, writeExport } from './exporter.js';

interface CacheExportOptions extends WorkContext {
  /** Default: the folder that `cache import` reads. A bucket has its own layout. */
  readonly exporter?: Exporter;
}

/**
 * Writes engines of a store below a folder in an exporter's layout, or with passports and signatures into a bucket (`s3://…`), which has its own. `names`
 * are starts of identities or parts of readable names; none means all. Every plan is checked first, and what is wrong with one is in `rejected`.
 * Throws TF_USAGE when no engine has a name, TF_WRITE_FAILED, TF_REMOTE_*.
 */
export async function exportEngines(
  store: LocalStore,
  to: string,
  names: readonly string[],
  options: CacheExportOptions,
): Promise<CacheExport> {
  const { exporter = folderExporter } = options;
  const { engines, bad } = await chooseEngines(store, names);
  const rejected = bad.map(({ identity, error: { code, message } }) => ({ identity, code, reason: message }));
  const exported = isRemoteAddress(to)
    ? await intoBucket(to, engines, options)
    : (await writeExport(exporter, engines, to, { trust: store.trust })).flatMap((file) => {
        const plan = 'engine' in file ? file.engine.planPath : 'copyOf' in file ? file.copyOf : undefined;
        const engine = engines.find(({ planPath }) => planPath === plan);
        return engine === undefined ? [] : [{ ...entryOf(engine), path: join(to, file.path) }];
      });
  const bytes = exported.reduce((sum, engine) => sum + engine.bytes, 0);
  const exitCode = rejected.length === 0 ? 0 : 1;
  return {
    schema: 'trtforge.cache-export/1',
    store: store.place,
    to,
    engines: exported,
    rejected,
    bytes,
    exitCode,
  };
}

const entryOf = ({ identity, passport }: StoredEngine) => ({
  identity,
  name: passport.name,
  bytes: passport.plan.bytes,
});

/** Engines of a store by parts of names or starts of identities, each checked; those that fail are `bad`. Throws TF_USAGE when no engine has a name. */
export async function chooseEngines(
  store: LocalStore,
  names: readonly string[],
): Promise<{
  readonly engines: readonly StoredEngine[];
  readonly bad: readonly { readonly identity: string; readonly error: TrtforgeError }[];
}> {
  const listed = await store.list();
  const wanted = new Set<string>();
  for (const name of names.length === 0 ? [''] : names) {
    const fitting = listed.filter((engine) => isCalled(name, engine.identity, engine.name ?? ''));
    if (fitting.length === 0 && name !== '') throw nothingCalled(store.place, name);
    for (const { identity } of fitting) wanted.add(identity);
  }
  const engines: StoredEngine[] = [];
  const bad: { readonly identity: string; readonly error: TrtforgeError }[] = [];
  for (const identity of wanted) {
    const answer = await store.get(identity);
    if (answer.found) engines.push(answer.engine);
    else
      bad.push({
        identity,
        error: new TrtforgeError(answer.code ?? 'TF_PASSPORT_MISSING', answer.reason),
      });
  }
  return { engines, bad };
}

async function intoBucket(
  uri: string,
  engines: readonly StoredEngine[],
  work: WorkContext,
): Promise<CacheExport['engines']> {
  const remote = await openRemoteStore(uri, work.environment);
  const exported: CacheExport['engines'] = [];
  try {
    for (const engine of engines) {
      const uploaded = await remote?.upload(engine.planPath, engine.passport, engine.signature, work);
      if (uploaded !== undefined) exported.push({ ...entryOf(engine), path: uploaded.key });
    }
    return exported;
  } finally {
    remote?.close();
  }
}
