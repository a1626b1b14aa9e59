import { constants, copyFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { tarEnd, tarHeader, tarPadding } from '../../base/archive/tar.js';
import { openFile } from '../../base/files/byte-source.js';
import { makeFolder } from '../../base/files/folders.js';
import { beginFile, copyPart, type PendingFile, writeFailed } from '../../base/files/publish.js';
import { TrtforgeError } from '../../errors.js';
import type { EventListener } from '../../events.js';
import { type Passport, passportPath } from '../identity/passport-file.js';
import type { CacheExport } from './cache-result.js';
import { copyEngine } from './copy-engine.js';
import { isCalled, nothingCalled } from './engine-query.js';
import { ForeignEngines } from './foreign.js';
import type { LocalStore } from './local.js';
import { openRemoteStore } from './open-stores.js';
import { passportText } from './publish-engine.js';
import { longerName, modelFolder } from './readable-links.js';
import { signaturePath } from './signature.js';
import { signatureText } from './signature-file.js';
import type { StoredEngine } from './store.js';

interface ExportOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly emit: EventListener;
  readonly signal: AbortSignal | undefined;
}

/** An engine and the name it gets elsewhere: `resnet50/resnet50_….engine`. */
interface Exported {
  readonly path: string;
  readonly engine: StoredEngine;
}

/**
 * Takes engines out of a store with their passports and signatures: into a folder, a `.tar`, or a bucket (`s3://…`). `names` are starts of identities
 * or parts of readable names; none means all. Every plan is checked first.
 * Throws TF_USAGE when a name fits nothing, TF_WRITE_FAILED, TF_REMOTE_*, and what is wrong with a plan.
 */
export async function exportEngines(
  store: LocalStore,
  to: string,
  names: readonly string[],
  options: ExportOptions,
): Promise<CacheExport> {
  const chosen = await choose(store, names);
  const isRemote = /^[a-z0-9]+:\/\//.test(to);
  if (isRemote) await intoBucket(to, chosen, options);
  else if (to.endsWith('.tar')) intoArchive(to, chosen);
  else for (const { path, engine } of chosen) await copyEngine(engine, join(to, path), store.trust);
  const foreign = isRemote ? [] : await exportForeign(store, to, names);
  const engines = chosen.map(({ path, engine: { identity, passport } }) => ({
    identity,
    name: passport.name,
    path: isRemote || to.endsWith('.tar') ? path : join(to, path),
    bytes: passport.plan.bytes,
  }));
  const all = [...engines, ...foreign];
  const bytes = all.reduce((sum, engine) => sum + engine.bytes, 0);
  return { schema: 'trtforge.cache-export/1', store: store.place, to, engines: all, bytes };
}

async function choose(store: LocalStore, names: readonly string[]): Promise<readonly Exported[]> {
  const listed = await store.list();
  const wanted = new Set<string>();
  const foreign = await new ForeignEngines(store.place).list();
  for (const name of names.length === 0 ? [''] : names) {
    const fitting = listed.filter((engine) => isCalled(name, engine.identity, engine.name ?? ''));
    const isForeign = foreign.some(({ record }) => isCalled(name, record.sha256, record.name));
    if (fitting.length === 0 && !isForeign && name !== '') throw nothingCalled(store.place, name);
    for (const { identity } of fitting) wanted.add(identity);
  }
  const chosen: Exported[] = [];
  const taken = new Set<string>();
  for (const identity of wanted) {
    const answer = await store.get(identity);
    if (!answer.found) throw new TrtforgeError(answer.code ?? 'TF_PASSPORT_MISSING', answer.reason);
    const path = freePath(answer.engine.passport, taken);
    taken.add(path);
    chosen.push({ path, engine: answer.engine });
  }
  return chosen;
}

function freePath({ name, identity }: Passport, taken: ReadonlySet<string>): string {
  const path = `${modelFolder(name)}/${name}`;
  return taken.has(path) ? `${modelFolder(name)}/${longerName(name, identity.digest)}` : path;
}

async function intoBucket(
  uri: string,
  chosen: readonly Exported[],
  { environment, emit, signal }: ExportOptions,
): Promise<void> {
  const remote = await openRemoteStore(uri, environment);
  try {
    for (const { engine } of chosen)
      await remote?.upload(engine.planPath, engine.passport, engine.signature, { emit, signal });
  } finally {
    remote?.close();
  }
}

function intoArchive(to: string, chosen: readonly Exported[]): void {
  const archive = beginFile(to);
  try {
    for (const { path, engine } of chosen) {
      const { planPath, passport, signature } = engine;
      const at = new Date(passport.built.at);
      addFile(archive, path, planPath, at);
      addBytes(archive, passportPath(path), Buffer.from(passportText(passport)), at);
      if (signature !== null)
        addBytes(archive, signaturePath(path), Buffer.from(signatureText(signature)), at);
    }
    archive.write(tarEnd());
    archive.publish();
  } catch (error) {
    archive.discard();
    throw error;
  }
}

function addFile(archive: PendingFile, name: string, path: string, at: Date): void {
  const source = openFile(path);
  try {
    archive.write(tarHeader(name, source.size, at));
    copyPart(source, 0, source.size, archive);
    archive.write(tarPadding(source.size));
  } finally {
    source.close();
  }
}

function addBytes(archive: PendingFile, name: string, bytes: Uint8Array, at: Date): void {
  archive.write(tarHeader(name, bytes.length, at));
  archive.write(bytes);
  archive.write(tarPadding(bytes.length));
}

/** Engines without a passport go as they came; archives and buckets hold only those with one. */
async function exportForeign(
  store: LocalStore,
  to: string,
  names: readonly string[],
): Promise<CacheExport['engines']> {
  if (to.endsWith('.tar')) return [];
  const engines: CacheExport['engines'] = [];
  for (const { path, record } of await new ForeignEngines(store.place).list()) {
    if (names.length > 0 && !names.some((name) => isCalled(name, record.sha256, record.name))) continue;
    const target = join(to, 'foreign', record.sha256.slice(0, 12), record.name);
    try {
      makeFolder(dirname(target));
      copyFileSync(path, target, constants.COPYFILE_FICLONE);
    } catch (cause) {
      throw writeFailed(target, cause);
    }
    engines.push({ identity: '', name: record.name, path: target, bytes: record.bytes });
  }
  return engines;
}
