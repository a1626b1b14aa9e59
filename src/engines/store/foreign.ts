import { constants, copyFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { sha256OfFile } from '../../base/files/digest.js';
import { ownEntries, readJson } from '../../base/files/files.js';
import { makeFolder, pathBelow } from '../../base/files/folders.js';
import { moveInto, publishFile, writeFailed } from '../../base/files/publish.js';
import { TrtforgeError } from '../../errors.js';
import { readPlanHeader } from '../plan/header.js';
import { readNameHints } from './engine-name-schemes.js';
import type { ForeignEngine } from './foreign-schema.js';
import { createPending } from './pending.js';

const RECORD = 'foreign.json';
const LARGEST_RECORD = 1 << 20;

/**
 * Engines of a store that came without a passport, by the SHA-256 of the file: `foreign/3f2a…/NAME` and `foreign.json`. They are kept, listed,
 * verified and exported, and never serve a build: without a passport nothing states what they compute.
 */
export class ForeignEngines {
  readonly #place: string;

  constructor(storePlace: string) {
    this.#place = storePlace;
  }

  /**
   * Copies an engine here. The same bytes are kept once, under the name they came with first; `droppedName` is another that they came with now.
   * Throws TF_PLAN_INVALID, TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_WRITE_FAILED.
   */
  keep(path: string): { readonly record: ForeignEngine; readonly droppedName: string | null } {
    const name = plainName(basename(path));
    const found = describeForeign(path, name);
    const folder = this.#folder(found.sha256);
    const earlier = plainName(earlierName(join(folder, RECORD)) ?? name);
    const record = earlier === name ? found : describeForeign(path, earlier);
    const pending = createPending(pathBelow(this.#place, 'pending'));
    try {
      makeFolder(folder);
      copyFileSync(path, pending.planPath, constants.COPYFILE_FICLONE);
      moveInto(pending.planPath, join(folder, record.name));
      // The record comes last: an engine without one is not listed.
      publishFile(join(folder, RECORD), `${JSON.stringify(record, null, 2)}\n`);
      return { record, droppedName: earlier === name ? null : name };
    } catch (cause) {
      throw cause instanceof TrtforgeError ? cause : writeFailed(folder, cause);
    } finally {
      pending.remove();
    }
  }

  /** Every foreign engine whose record can be read, with its path. */
  async list(): Promise<readonly { readonly path: string; readonly record: ForeignEngine }[]> {
    const entries = ownEntries(join(this.#place, 'foreign'), 'folders', /^[0-9a-f]{64}$/);
    if (entries.length === 0) return [];
    const { foreignSchema } = await import('./foreign-schema.js');
    return entries.flatMap(({ path: folder }) => {
      const record = foreignSchema.safeParse(readJson(join(folder, RECORD), LARGEST_RECORD));
      if (!record.success || record.data.sha256 !== basename(folder)) return [];
      return [{ path: join(folder, record.data.name), record: record.data }];
    });
  }

  #folder(sha256: string): string {
    return pathBelow(this.#place, 'foreign', sha256);
  }
}

/** The problem of a foreign engine; null when it has the bytes it came with. */
export function foreignProblem(
  path: string,
  record: ForeignEngine,
): { readonly code: string; readonly reason: string } | null {
  try {
    const actual = sha256OfFile(path);
    if (actual === record.sha256) return null;
    return {
      code: 'TF_ENGINE_DIGEST_MISMATCH',
      reason: `${path} has the SHA-256 ${actual.slice(0, 16)}…, it came with ${record.sha256.slice(0, 16)}….`,
    };
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    return { code: error.code, reason: error.message };
  }
}

function describeForeign(path: string, name: string): ForeignEngine {
  const { product, version, fileBytes, foreignHeader } = readPlanHeader(path);
  const { oddities, ...hints } = readNameHints(name);
  const claimed = hints.trtVersion;
  return {
    schema: 'trtforge.foreign/1',
    name,
    sha256: sha256OfFile(path),
    bytes: fileBytes,
    product,
    version,
    hints,
    oddities: [
      ...oddities,
      ...(claimed !== null && version !== null && !version.startsWith(claimed)
        ? [`The name states TensorRT ${claimed}, the plan's header ${version}.`]
        : []),
      ...(foreignHeader === null
        ? []
        : ['Other bytes precede the plan; `trtforge engine strip-header` removes them.']),
    ],
    importedAt: new Date().toISOString(),
  };
}

/** A file name that is safe everywhere: names come from buckets and archives. */
const plainName = (name: string): string =>
  name
    .replace(/[^A-Za-z0-9._+~-]+/g, '-')
    .replace(/^[^A-Za-z0-9_+]+/, '')
    .slice(0, 200) || 'engine.plan';

function earlierName(recordPath: string): string | undefined {
  const record = readJson(recordPath, LARGEST_RECORD);
  return typeof record === 'object' && record !== null && 'name' in record && typeof record.name === 'string'
    ? record.name
    : undefined;
}
