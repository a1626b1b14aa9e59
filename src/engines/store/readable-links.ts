import { existsSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { makeFolder, oddPart } from '../../base/files/folders.js';
import { systemErrorCode } from '../../errors.js';
import { longerName, modelFolder, passportPath } from '../identity/engine-name.js';
import type { Passport } from '../identity/passport.js';

/** Readable names of a store's engines: links in `by-name/MODEL/`, for people. Where links cannot be made the store works without. */
export class ReadableLinks {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** The link that leads to a plan; undefined when there is none. */
  find(passport: Passport, planPath: string): string | undefined {
    return this.#candidates(passport).find((path) => targetOf(path) === relative(dirname(path), planPath));
  }

  add(passport: Passport, planPath: string): void {
    if (this.find(passport, planPath) !== undefined) return;
    for (const path of this.#candidates(passport)) {
      try {
        makeFolder(dirname(path));
        link(planPath, path);
        link(passportPath(planPath), passportPath(path));
        return;
      } catch (error) {
        if (systemErrorCode(error) !== 'EEXIST') return;
      }
    }
  }

  remove(passport: Passport, planPath: string): void {
    const path = this.find(passport, planPath);
    if (path === undefined) return;
    rmSync(passportPath(path), { force: true });
    rmSync(path, { force: true });
  }

  /**
   * The two names an engine may have: its readable one, or with the start of its identity where another engine has that name already. None
   * where the way there leads out of the store.
   */
  #candidates({ name, identity }: Passport): readonly string[] {
    const folder = join(this.#root, modelFolder(name));
    if (oddPart(dirname(this.#root), [basename(this.#root), modelFolder(name)]) !== undefined) return [];
    return [join(folder, name), join(folder, longerName(name, identity.digest))];
  }
}

/** Throws EEXIST when the name leads to something; a link to nothing is replaced. */
function link(target: string, path: string): void {
  if (targetOf(path) !== undefined && !existsSync(path)) rmSync(path, { force: true });
  symlinkSync(relative(dirname(path), target), path);
}

function targetOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
