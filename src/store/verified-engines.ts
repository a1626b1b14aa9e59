import { type Passport, passportPath } from '../engine/passport-file.js';
import { FileMemo, type FileStamp, stampOf } from '../system/file-memo.js';

/**
 * Engines that were found sound, remembered while neither plan nor passport changes: a hit then reads neither again.
 * `verify` throws what `verifyEngine` throws.
 */
export class VerifiedEngines {
  readonly #memo: FileMemo<Passport>;

  constructor(memoFolder: string) {
    this.#memo = new FileMemo<Passport>(memoFolder, isPassport);
  }

  async verify(planPath: string): Promise<Passport> {
    const known = this.#memo.recall(planPath);
    if (known !== undefined) return known;
    const stamps = [planPath, passportPath(planPath)].map(stampOf);
    const { verifyEngine } = await import('../engine/verify-engine.js');
    const passport = verifyEngine(planPath);
    this.#memo.remember(
      planPath,
      stamps.filter((stamp): stamp is FileStamp => stamp !== undefined),
      passport,
    );
    return passport;
  }
}

/** What is remembered was a whole passport when it was written; this only tells entries of another kind apart. */
const isPassport = (value: unknown): value is Passport =>
  typeof value === 'object' && value !== null && 'schema' in value && value.schema === 'trtforge.passport/1';
