import { lutimesSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { sha256 } from '../../base/files/digest.js';
import { listFolder, lstatIfThere, readJson } from '../../base/files/files.js';
import { pathBelow } from '../../base/files/folders.js';
import { isRecord } from '../../base/files/json.js';
import { publishFile } from '../../base/files/publish.js';
import { passportPath } from '../identity/engine-name.js';
import type { EngineSummary } from './store.js';

/** Goes up when a summary gets another form. */
const VERSION = 'trtforge.store-index/1';

/** A million engines have less. */
const LARGEST_INDEX = 1 << 29;

/** Clock ticks of file systems: a younger entry may change again without a trace, and what was read of it is not kept. */
const FINE_TICK_MS = 50;
const COARSE_TICK_MS = 2000;

/** One of the 256 folders of a store: what it held when it had this stamp. */
interface Shard {
  readonly stamp: string;
  readonly engines: readonly EngineSummary[];
}

interface IndexFile {
  readonly version: string;
  readonly shards: Readonly<Record<string, Shard>>;
}

/**
 * The index of a store, made without reading every passport: summaries kept per folder of `by-identity/`, valid while the folder's times are what
 * they were. Adding and removing an engine moves them; a caller that changes one in place calls `changed`. Only a cache: it lies outside the store,
 * may be deleted, and each folder that does not fit is read again.
 */
export class StoreIndex {
  readonly #root: string;
  readonly #file: string;
  readonly #read: (identity: string) => Promise<EngineSummary>;

  /** `root` holds the shards; `read` gives the summary of one engine. */
  constructor(root: string, memoFolder: string, read: (identity: string) => Promise<EngineSummary>) {
    this.#root = root;
    this.#file = join(memoFolder, `${sha256(resolve(root))}.json`);
    this.#read = read;
  }

  /** Every engine, in no order. */
  async engines(): Promise<readonly EngineSummary[]> {
    const known = readIndex(this.#file);
    const shards: Record<string, Shard> = {};
    let isNew = false;
    for (const name of listFolder(pathBelow(dirname(this.#root), basename(this.#root)))) {
      if (!/^[0-9a-f]{2}$/.test(name)) continue;
      const stamp = stampOf(join(this.#root, name));
      const before = known[name];
      if (stamp !== '' && before?.stamp === stamp) {
        shards[name] = before;
        continue;
      }
      shards[name] = { stamp, engines: await this.#readShard(name) };
      isNew = true;
    }
    if (isNew || Object.keys(known).length !== Object.keys(shards).length) this.#write(shards);
    return Object.values(shards).flatMap(({ engines }) => engines);
  }

  /** Forgets an engine that was changed in place. */
  changed(identity: string): void {
    const now = new Date();
    try {
      lutimesSync(join(this.#root, identity.slice(0, 2)), now, now);
    } catch {
      // The folder is gone: then its engines are, too.
    }
  }

  async #readShard(name: string): Promise<readonly EngineSummary[]> {
    const shard = join(this.#root, name);
    const engines: EngineSummary[] = [];
    // An entry that is not a folder has no engines; it is listed with a problem, under its own name.
    const entries = lstatIfThere(shard)?.isDirectory() === false ? [name] : listFolder(shard);
    for (const entry of entries)
      if (entry === name || isIdentity(entry)) engines.push(await this.#read(entry));
    return engines;
  }

  #write(shards: Readonly<Record<string, Shard>>): void {
    const content: IndexFile = { version: VERSION, shards };
    try {
      publishFile(this.#file, JSON.stringify(content));
    } catch {
      // A read-only cache folder costs time, not correctness.
    }
  }
}

/** Of a shard and the passports in it, which others may have replaced. Empty where one may still change within one tick of the clock, and for a folder that is gone. */
function stampOf(folder: string): string {
  const stats = lstatIfThere(folder);
  if (stats?.isDirectory() !== true) return '';
  const passports = listFolder(folder).flatMap(
    (name) => lstatIfThere(passportPath(join(folder, name, 'engine.plan'))) ?? [],
  );
  const all = [stats, ...passports];
  const mayChange = all.some(({ ctimeNs }) => {
    const tick = ctimeNs % 1_000_000_000n === 0n ? COARSE_TICK_MS : FINE_TICK_MS;
    return Date.now() - Number(ctimeNs / 1_000_000n) < tick;
  });
  return mayChange ? '' : all.map(({ mtimeNs, ctimeNs, ino }) => `${mtimeNs} ${ctimeNs} ${ino}`).join();
}

/** Nothing when the file is not there or is not an index: it is made again then. */
function readIndex(path: string): Readonly<Record<string, Shard>> {
  const content = readJson(path, LARGEST_INDEX);
  return isIndex(content) ? content.shards : {};
}

const isIdentity = (name: string): boolean => /^[0-9a-f]{64}$/.test(name);

const isIndex = (content: unknown): content is IndexFile =>
  isRecord(content) &&
  content.version === VERSION &&
  isRecord(content.shards) &&
  Object.values(content.shards).every(
    (shard) =>
      isRecord(shard) &&
      typeof shard.stamp === 'string' &&
      Array.isArray(shard.engines) &&
      shard.engines.every((engine) => isRecord(engine) && typeof engine.identity === 'string'),
  );
