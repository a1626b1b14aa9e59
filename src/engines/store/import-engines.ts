import { constants, copyFileSync, mkdtempSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { listFolder, removeIfAllowed, statIfThere } from '../../base/files/files.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { engineExtensions } from '../identity/engine-name.js';
import type { LocalStore } from './local.js';
import { isRemoteAddress } from './remote/address.js';
import { fetchBucket, listBucket } from './remote/fetch-bucket.js';
import type { CacheImport } from './result.js';
import { type Trust, verifyTrusted } from './trust.js';

interface ImportOptions extends WorkContext {
  readonly trust: Trust;
}

/** Folders deeper than this are not searched. */
const DEEPEST = 12;

const isEngine = (name: string): boolean =>
  engineExtensions.some((extension) => name.endsWith(`.${extension}`));

interface FoundEngine {
  /** A path, or the key in a bucket. */
  readonly path: string;
  /** null in a bucket. */
  readonly bytes: number | null;
}

/** The engines that a source has: itself, those below a folder, those in a bucket. Throws TF_FILE_NOT_FOUND, TF_REMOTE_*. */
export async function enginesIn(
  source: string,
  environment: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<readonly FoundEngine[]> {
  if (!isRemoteAddress(source)) return filesIn(source);
  const keys = await listBucket(source, { environment, signal });
  return keys.filter((key) => isEngine(basename(key))).map((path) => ({ path, bytes: null }));
}

function filesIn(source: string): readonly FoundEngine[] {
  const stats = statIfThere(source);
  if (stats === undefined) throw new TrtforgeError('TF_FILE_NOT_FOUND', `${source} does not exist.`);
  return stats.isDirectory() ? filesBelow(source, 0) : [{ path: source, bytes: stats.size }];
}

function filesBelow(folder: string, depth: number): readonly FoundEngine[] {
  if (depth > DEEPEST) return [];
  return [...listFolder(folder)].sort().flatMap((name) => {
    const path = join(folder, name);
    const stats = statIfThere(path);
    if (stats?.isDirectory()) return filesBelow(path, depth + 1);
    return stats?.isFile() && isEngine(name) ? [{ path, bytes: stats.size }] : [];
  });
}

/**
 * Brings engines from elsewhere into a store: files, folders, `s3://…` and the like. With a valid passport an engine serves builds
 * from then on. What cannot be used, for one without a passport, is named and left.
 * Throws TF_FILE_NOT_FOUND for a source that is not there, TF_REMOTE_*, TF_WRITE_FAILED, TF_CANCELLED.
 */
export async function importEngines(
  store: LocalStore,
  sources: readonly string[],
  options: ImportOptions,
): Promise<CacheImport> {
  const taking = new Import(store, options);
  for (const source of sources) await taking.source(source);
  return taking.result();
}

class Import {
  readonly #engines: CacheImport['engines'] = [];
  readonly #rejected: CacheImport['rejected'] = [];

  constructor(
    private readonly store: LocalStore,
    private readonly options: ImportOptions,
  ) {}

  result(): CacheImport {
    return {
      schema: 'trtforge.cache-import/1',
      store: this.store.place,
      engines: this.#engines,
      rejected: this.#rejected,
      exitCode: this.#rejected.length === 0 ? 0 : 1,
    };
  }

  async source(source: string): Promise<void> {
    if (isRemoteAddress(source)) return this.#bucket(source);
    for (const { path } of filesIn(source)) await this.#file(path, path);
  }

  /** One engine after another, so that a large bucket does not have to fit on the disk twice. */
  async #bucket(uri: string): Promise<void> {
    const take = async (path: string, key: string) => {
      await this.#file(path, `${uri} ${key}`);
      removeIfAllowed(dirname(path));
    };
    // Beside the store, on its file system.
    const pending = this.store.pending();
    try {
      const folder = mkdtempSync(join(pending.folder, 'import-'));
      await fetchBucket(uri, folder, { ...this.options, isEngine, take });
    } finally {
      pending.remove();
    }
  }

  async #file(path: string, shown: string): Promise<void> {
    const pending = this.store.pending();
    try {
      copyFileSync(path, pending.planPath, constants.COPYFILE_FICLONE);
      // The copy is checked: it is what the store will hold.
      const { passport, signature } = await verifyTrusted(this.options.trust, path, pending.planPath);
      const { identity } = await this.store.put(pending.planPath, passport, signature);
      this.#engines.push({ from: shown, identity, name: passport.name });
    } catch (error) {
      if (!(error instanceof TrtforgeError) || ['TF_WRITE_FAILED', 'TF_CANCELLED'].includes(error.code))
        throw error;
      this.#rejected.push({ from: shown, code: error.code, reason: error.message });
    } finally {
      pending.remove();
    }
  }
}
