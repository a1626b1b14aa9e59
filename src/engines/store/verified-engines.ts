import { FileMemo, type FileStamp, stampOf } from '../../base/files/file-memo.js';
import { type Passport, passportPath } from '../identity/passport-file.js';
import { readSignature } from './signature-file.js';
import { checkTrust, type Trust, type TrustedEngine, verifyTrusted } from './trust.js';

/**
 * Engines that were found sound, remembered while neither plan nor passport changes: a hit then reads neither again. Where signatures are
 * required nothing is remembered: a plan can be written through a mapping without its times changing, and nobody signed the memo.
 */
export class VerifiedEngines {
  readonly #memo: FileMemo<Passport>;

  constructor(memoFolder: string) {
    this.#memo = new FileMemo<Passport>(memoFolder, isPassport);
  }

  /** Throws what `verifyTrusted` throws. */
  async verify(planPath: string, trust: Trust): Promise<TrustedEngine> {
    if (trust.required) return verifyTrusted(trust, planPath);
    const files = [planPath, passportPath(planPath)];
    const known = this.#memo.recall(planPath, { only: files });
    if (known !== undefined) {
      const signature = await readSignature(planPath);
      checkTrust(trust, planPath, known, signature);
      return { passport: known, signature };
    }
    const stamps = files.map(stampOf);
    const engine = await verifyTrusted(trust, planPath);
    this.#memo.remember(
      planPath,
      stamps.filter((stamp): stamp is FileStamp => stamp !== undefined),
      engine.passport,
    );
    return engine;
  }
}

/** What is remembered was a whole passport when it was written; this only tells entries of another kind apart. */
const isPassport = (value: unknown): value is Passport =>
  typeof value === 'object' && value !== null && 'schema' in value && value.schema === 'trtforge.passport/1';
