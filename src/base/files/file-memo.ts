import { statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { sha256 } from './digest.js';
import { readJson } from './files.js';
import { isPrivate, makePrivate } from './folders.js';
import { publishFile } from './publish.js';

/**
 * A file's content cannot have changed while none of these have: any write moves ctime, also one that sets mtime back.
 * Numbers as text, because JSON numbers do not hold nanoseconds.
 */
export interface FileStamp {
  readonly path: string;
  readonly size: string;
  readonly mtimeNs: string;
  readonly ctimeNs: string;
  readonly inode: string;
}

/**
 * A second write can share the time stamp of the first within one tick of the file system's clock, so a file younger than that is not
 * remembered. A tick is at most 10 ms where stamps have fractions of a second, up to 2 s where they have none (FAT, old network file systems).
 */
const FINE_TICK_MS = 50;
const COARSE_TICK_MS = 2000;

/** The stamp of a file as it is now; undefined when it is not there. */
export function stampOf(path: string): FileStamp | undefined {
  try {
    const { size, mtimeNs, ctimeNs, ino } = statSync(path, { bigint: true });
    return {
      path: resolve(path),
      size: String(size),
      mtimeNs: String(mtimeNs),
      ctimeNs: String(ctimeNs),
      inode: String(ino),
    };
  } catch {
    return undefined;
  }
}

const KEYS = ['path', 'size', 'mtimeNs', 'ctimeNs', 'inode'] as const satisfies readonly (keyof FileStamp)[];

/** Anything larger was written by somebody else. */
const LARGEST_ENTRY = 16 << 20;

/** True when each file is what it was when it was stamped. */
export const unchanged = (stamps: readonly FileStamp[]): boolean =>
  stamps.every((stamp) => {
    const now = stampOf(stamp.path);
    return now !== undefined && KEYS.every((key) => stamp[key] === now[key]);
  });

/**
 * Remembers what was worked out from files, in a folder, until one of the files changes. One small JSON file per subject, published
 * atomically, so any number of processes share it. Only an aid: a folder that cannot be written or a damaged entry means working it out again.
 * What stands there is taken for true, so a folder that another user owns or may write in is not used.
 */
export class FileMemo<T> {
  readonly #folder: string;
  readonly #isValue: (value: unknown) => value is T;

  constructor(folder: string, isValue: (value: unknown) => value is T) {
    this.#folder = folder;
    this.#isValue = isValue;
  }

  /**
   * Returns the remembered value of `subject` (a path), provided that none of the files has changed since, and that they are `only` where those are
   * known; `onFile` gets the paths that were read for it.
   */
  recall(
    subject: string,
    { only, onFile = () => {} }: { only?: readonly string[]; onFile?: (path: string) => void } = {},
  ): T | undefined {
    const file = this.#fileOf(subject);
    const entry = isPrivate(file, this.#folder) ? readJson(file, LARGEST_ENTRY) : undefined;
    if (!isEntry(entry) || !this.#isValue(entry.value)) return undefined;
    const stamped = entry.files.map(({ path }) => path);
    const known = (only ?? stamped).map((path) => resolve(path));
    const isWhole = known.length === stamped.length && known.every((path) => stamped.includes(path));
    if (!isWhole || !stamped.includes(resolve(subject)) || !unchanged(entry.files)) return undefined;
    for (const path of stamped) onFile(path);
    return entry.value;
  }

  /** Remembers a value worked out from files whose stamps were taken before they were read. */
  remember(subject: string, files: readonly FileStamp[], value: T): void {
    if (files.some(isTooYoung) || !unchanged(files)) return;
    const file = this.#fileOf(subject);
    try {
      for (const folder of [this.#folder, dirname(file)]) makePrivate(folder);
      publishFile(file, JSON.stringify({ files, value }));
    } catch {
      // A read-only cache folder costs time, not correctness.
    }
  }

  #fileOf(subject: string): string {
    const key = sha256(resolve(subject));
    return join(this.#folder, key.slice(0, 2), `${key}.json`);
  }
}

function isTooYoung({ ctimeNs }: FileStamp): boolean {
  const changed = BigInt(ctimeNs);
  const tick = changed % 1_000_000_000n === 0n ? COARSE_TICK_MS : FINE_TICK_MS;
  return Date.now() - Number(changed / 1_000_000n) < tick;
}

function isEntry(entry: unknown): entry is { readonly files: readonly FileStamp[]; readonly value: unknown } {
  return (
    typeof entry === 'object' &&
    entry !== null &&
    'value' in entry &&
    'files' in entry &&
    Array.isArray(entry.files) &&
    entry.files.length > 0 &&
    entry.files.every(
      (file: unknown) =>
        typeof file === 'object' &&
        file !== null &&
        KEYS.every((key) => typeof (file as Partial<FileStamp>)[key] === 'string'),
    )
  );
}
