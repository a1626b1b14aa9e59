import { createPublicKey, type KeyObject } from 'node:crypto';
import { delimiter } from 'node:path';
import { FileMemo, type FileStamp, stampOf } from '../../base/files/file-memo.js';
import * as is from '../../base/options/kinds.js';
import { type OptionsOf, optional } from '../../base/options/option.js';
import { TrtforgeError } from '../../errors.js';
import { passportPath } from '../identity/engine-name.js';
import type { Passport } from '../identity/passport.js';
import { checkSignature, keyIdOf, readPrivateKey, readTrustedKeys, signDocument } from './signature.js';
import { readSignature } from './signature-file.js';
import type { EngineSignature, Signable } from './signature-schema.js';

/** Which keys sign engines that are used, and which key signs those that are built. */
export interface Trust {
  /** An engine without a fitting signature of a trusted key is a miss. */
  readonly required: boolean;
  /** Public keys by their ids. */
  readonly keys: ReadonlyMap<string, KeyObject>;
  readonly signingKey: KeyObject | null;
}

export const noTrust: Trust = { required: false, keys: new Map(), signingKey: null };

/** Whose engines are trusted. What nobody passes is left to the environment. */
export const trustOptions = {
  /** Reject engines that no trusted key signed (default: off). */
  requireSignature: optional(is.flag, {
    flags: '--require-signature',
    trust: true,
    describe: 'load engines only that a trusted key signed',
    env: 'TRTFORGE_REQUIRE_SIGNATURE',
    make: (isSet: boolean) => isSet || undefined,
  }),
  /** Paths of Ed25519 public keys in PEM form (default: `TRTFORGE_TRUSTED_KEYS`, several separated by `:`). */
  trustKeys: optional(is.list<string>(), {
    flags: '--trust-key <file>',
    trust: true,
    describe:
      'a public key whose signatures are trusted; repeat it for more (default: TRTFORGE_TRUSTED_KEYS)',
    repeat: true,
  }),
};

/** And who signs. */
export const signatureOptions = {
  ...trustOptions,
  /** Path of the Ed25519 private key that signs what is built (default: `TRTFORGE_SIGNING_KEY`). Its own engines are trusted. */
  signKey: optional(is.text, {
    flags: '--sign-key <file>',
    trust: true,
    describe: 'the private key that signs engines built here (default: TRTFORGE_SIGNING_KEY)',
  }),
};

type TrustOptions = OptionsOf<typeof signatureOptions>;

/** Whether an engine has to be signed, and what counts of it covered by its signature. */
export const isSignatureRequired = (
  { requireSignature }: TrustOptions,
  { TRTFORGE_REQUIRE_SIGNATURE }: NodeJS.ProcessEnv,
): boolean => requireSignature ?? /^(1|true|yes|on)$/i.test(TRTFORGE_REQUIRE_SIGNATURE ?? '');

/** Reads the keys. Throws TF_USAGE when signatures are required and no key is given, TF_FILE_NOT_FOUND, TF_KEY_INVALID. */
export function openTrust(requested: TrustOptions, environment: NodeJS.ProcessEnv): Trust {
  const { TRTFORGE_TRUSTED_KEYS, TRTFORGE_SIGNING_KEY } = environment;
  const listed = requested.trustKeys?.length ? requested.trustKeys : splitPaths(TRTFORGE_TRUSTED_KEYS ?? '');
  const path = requested.signKey || TRTFORGE_SIGNING_KEY || null;
  const signingKey = path === null ? null : readPrivateKey(path);
  const keys = new Map(readTrustedKeys(listed));
  if (signingKey !== null) {
    const own = createPublicKey(signingKey);
    keys.set(keyIdOf(own), own);
  }
  const required = isSignatureRequired(requested, environment);
  if (required && keys.size === 0) {
    throw new TrtforgeError('TF_USAGE', 'Signatures are required, but no key is trusted.', {
      remedy:
        'Name public keys in TRTFORGE_TRUSTED_KEYS, or with --trust-key FILE (builds: `trust-key` in the configuration file).',
    });
  }
  return { required, keys, signingKey };
}

/** Before what is made for `place`: where signatures are required, this machine has to have a key. Throws TF_STORE_UNWRITABLE. */
export function assertSigns({ required, signingKey }: Trust, place: string): void {
  if (!required || signingKey !== null) return;
  throw new TrtforgeError(
    'TF_STORE_UNWRITABLE',
    `Signatures are required, and this machine has no key to sign with: what it writes to ${place} would not count.`,
    {
      remedy:
        'Set TRTFORGE_SIGNING_KEY to its private key (`trtforge cache keygen -o team.pem` makes a pair).',
    },
  );
}

/** Paths separated by `:` (Windows: `;`), as in PATH. */
export const splitPaths = (text: string): readonly string[] => text.split(delimiter).filter(Boolean);

/**
 * Checks an engine's passport, the description of a timing cache or a document of a fleet against what is trusted. A signature of a known key must fit even where none is required: what was
 * changed after signing is always rejected. Returns whether a trusted key signed it. Throws TF_SIGNATURE_INVALID.
 */
export function checkTrust(
  trust: Trust,
  name: string,
  document: Signable,
  signature: EngineSignature | null,
): boolean {
  const isKnown = signature !== null && trust.keys.has(signature.keyId);
  if (trust.required || isKnown) checkSignature(name, document, signature, trust.keys);
  return isKnown;
}

/** An engine that agrees with its passport, and its signature with what is trusted. */
interface TrustedEngine {
  readonly passport: Passport;
  readonly signature: EngineSignature | null;
}

/**
 * Checks an engine against its passport, signature, what is trusted and the expected identity; `bytesPath` is a copy of the plan that is checked instead. What
 * costs little comes first. Throws TF_SIGNATURE_INVALID and what `verifyEngine` throws.
 */
export async function verifyTrusted(
  trust: Trust,
  planPath: string,
  bytesPath: string = planPath,
  identity?: string,
): Promise<TrustedEngine> {
  const [{ readPassport }, { checkPlan }] = await Promise.all([
    import('../identity/passport.js'),
    import('../plan/verify-engine.js'),
  ]);
  const passport = readPassport(planPath, identity);
  const signature = await readSignature(planPath);
  checkTrust(trust, planPath, passport, signature);
  await checkPlan(planPath, passport, bytesPath);
  return { passport, signature };
}

/**
 * Engines that were verified, remembered while neither plan nor passport changes: a hit then reads neither again. Where signatures are
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

/** Rejects only entries of another kind: a remembered value was a complete passport when it was written. */
const isPassport = (value: unknown): value is Passport =>
  typeof value === 'object' && value !== null && 'schema' in value && value.schema === 'trtforge.passport/1';

/** The signature of this machine's key; null without one. */
export const signatureFor = ({ signingKey }: Trust, document: Signable): EngineSignature | null =>
  signingKey === null ? null : signDocument(document, signingKey);
