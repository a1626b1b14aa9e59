import { constants, copyFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { removeIfAllowed } from '../../base/files/files.js';
import { isBelow, makeFolder } from '../../base/files/folders.js';
import { besidePath, moveInto, publishFile, writeFailed } from '../../base/files/publish.js';
import { assertMayReplace } from '../../base/files/user-files.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { isCalled, longerName, modelFolder } from '../identity/engine-name.js';
import type { LocalStore } from '../store/local.js';
import { nothingCalled } from '../store/lookup.js';
import { openRemoteStore } from '../store/open-stores.js';
import { copyEngine, moveEngine } from '../store/publish-engine.js';
import { isRemoteAddress } from '../store/remote/address.js';
import type { CacheExport } from '../store/result.js';
import type { StoredEngine } from '../store/store.js';
import type { Trust } from '../store/trust.js';

/** One file of an export. `path` is relative to the place the export goes to, with `/`. */
export type ExportedFile =
  /** The plan with its passport and signature beside it, published in the order that leaves no mixture after a kill. */
  | { readonly path: string; readonly engine: StoredEngine }
  /** A copy of a file; the plan alone where another program finds it by a fixed name. */
  | { readonly path: string; readonly copyOf: string }
  | { readonly path: string; readonly text: string }
  | { readonly path: string; readonly bytes: Uint8Array };

/**
 * The layout in which a program expects engines: which files there are for stored engines, and nothing else. Settings of a layout are parameters of
 * the function that makes it (`triton({ maxBatch: 8 })`). Reading, copying and publishing is the work of `writeExport`.
 */
export interface Exporter {
  /** As `cache export --as` names it: `folder`, `triton`. */
  readonly id: string;
  files(engines: readonly StoredEngine[]): Iterable<ExportedFile>;
}

interface ExportOptions {
  readonly trust: Trust;
  /** The plans are the caller's and go: they are moved where that is possible, not copied. */
  readonly move?: boolean;
}

/**
 * Writes what an exporter names below `folder`, file by file in its order: name last what makes the others visible; returns the list. Copies are reflinks
 * where the file system can. Where signatures are required, the copy of an engine is checked, not the store's file.
 * Throws TF_WRITE_FAILED, TF_OUTPUT_IS_INPUT, TF_ENGINE_*; TF_INTERNAL for a path that leads out of the folder or is named twice.
 */
export async function writeExport(
  exporter: Exporter,
  engines: readonly StoredEngine[],
  folder: string,
  { trust, move = false }: ExportOptions,
): Promise<readonly ExportedFile[]> {
  const files = [...exporter.files(engines)];
  const taken = new Set<string>();
  for (const { path } of files) {
    if (normalize(path) !== path || !isBelow(folder, path) || taken.has(path))
      throw new TrtforgeError(
        'TF_INTERNAL',
        `The exporter ${exporter.id} names ${path}, which is outside of the folder or named twice.`,
      );
    taken.add(path);
  }
  for (const file of files) {
    const target = join(folder, file.path);
    if ('engine' in file)
      await (move ? moveEngine(file.engine, target) : copyEngine(file.engine, target, trust));
    else if ('copyOf' in file) copyWhole(file.copyOf, target);
    else publishFile(target, 'text' in file ? file.text : file.bytes);
  }
  return files;
}

function copyWhole(source: string, target: string): void {
  const pending = besidePath(target);
  try {
    makeFolder(dirname(target));
    copyFileSync(source, pending, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    assertMayReplace(target, pending);
    moveInto(pending, target);
  } catch (cause) {
    throw writeFailed(target, cause);
  } finally {
    removeIfAllowed(pending);
  }
}

/** `MODEL/NAME.engine` with passports and signatures, as `cache import` reads them. */
export const folderExporter: Exporter = {
  id: 'folder',
  files: (engines) => named(engines, (name) => `${modelFolder(name)}/`),
};

/** `NAME.engine` side by side, with passports and signatures: the engines of a run root. */
export const flatExporter: Exporter = { id: 'flat', files: (engines) => named(engines, () => '') };

function* named(
  engines: readonly StoredEngine[],
  folderOf: (name: string) => string,
): Generator<ExportedFile> {
  const taken = new Set<string>();
  for (const engine of engines) {
    const { name, identity } = engine.passport;
    const unique = taken.has(name) ? longerName(name, identity.digest) : name;
    taken.add(name);
    yield { path: `${folderOf(name)}${unique}`, engine };
  }
}

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
