import { join } from 'node:path';
import { TrtforgeError } from '../../errors.js';
import type { EventListener } from '../../events.js';
import type { CacheExport } from '../store/cache-result.js';
import { isCalled, nothingCalled } from '../store/engine-query.js';
import { ForeignEngines } from '../store/foreign.js';
import type { LocalStore } from '../store/local.js';
import { openRemoteStore } from '../store/open-stores.js';
import type { StoredEngine } from '../store/store.js';
import { writeExport } from './exporter.js';
import { type ForeignFiles, folderExporter } from './folder.js';

interface ExportOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly emit: EventListener;
  readonly signal: AbortSignal | undefined;
}

/**
 * Copies engines of a store with their passports and signatures into a folder or a bucket (`s3://…`). `names` are starts of identities or parts of
 * readable names; none means all. Every plan is checked first. Engines without a passport go into folders only.
 * Throws TF_USAGE when no engine has a name, TF_WRITE_FAILED, TF_REMOTE_*, and what is wrong with a plan.
 */
export async function exportEngines(
  store: LocalStore,
  to: string,
  names: readonly string[],
  options: ExportOptions,
): Promise<CacheExport> {
  const { engines, foreign } = await choose(store, names);
  const isRemote = /^[a-z0-9]+:\/\//.test(to);
  const exporter = folderExporter(isRemote ? [] : foreign);
  if (isRemote) await intoBucket(to, engines, options);
  else await writeExport(exporter, engines, to, store.trust);
  const bytesOf = new Map(foreign.map(({ path, record }) => [path, record]));
  const exported = [...exporter.files(engines)].map((file) => {
    const path = isRemote ? file.path : join(to, file.path);
    if ('engine' in file) {
      const { identity, passport } = file.engine;
      return { identity, name: passport.name, path, bytes: passport.plan.bytes };
    }
    const record = 'copyOf' in file ? bytesOf.get(file.copyOf) : undefined;
    return { identity: '', name: record?.name ?? '', path, bytes: record?.bytes ?? 0 };
  });
  const bytes = exported.reduce((sum, engine) => sum + engine.bytes, 0);
  return { schema: 'trtforge.cache-export/1', store: store.place, to, engines: exported, bytes };
}

async function choose(
  store: LocalStore,
  names: readonly string[],
): Promise<{ readonly engines: readonly StoredEngine[]; readonly foreign: ForeignFiles }> {
  const listed = await store.list();
  const foreign = await new ForeignEngines(store.place).list();
  const wanted = new Set<string>();
  const wantedForeign = new Set<ForeignFiles[number]>();
  for (const name of names.length === 0 ? [''] : names) {
    const fitting = listed.filter((engine) => isCalled(name, engine.identity, engine.name ?? ''));
    const fittingForeign = foreign.filter(({ record }) => isCalled(name, record.sha256, record.name));
    if (fitting.length === 0 && fittingForeign.length === 0 && name !== '')
      throw nothingCalled(store.place, name);
    for (const { identity } of fitting) wanted.add(identity);
    for (const each of fittingForeign) wantedForeign.add(each);
  }
  const engines: StoredEngine[] = [];
  for (const identity of wanted) {
    const answer = await store.get(identity);
    if (!answer.found) throw new TrtforgeError(answer.code ?? 'TF_PASSPORT_MISSING', answer.reason);
    engines.push(answer.engine);
  }
  return { engines, foreign: foreign.filter((each) => wantedForeign.has(each)) };
}

async function intoBucket(
  uri: string,
  engines: readonly StoredEngine[],
  { environment, emit, signal }: ExportOptions,
): Promise<void> {
  const remote = await openRemoteStore(uri, environment);
  try {
    for (const { planPath, passport, signature } of engines)
      await remote?.upload(planPath, passport, signature, { emit, signal });
  } finally {
    remote?.close();
  }
}
