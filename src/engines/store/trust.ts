import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign as signBytes,
  verify as verifyBytes,
} from 'node:crypto';
import { canonicalJson, sha256 } from '../../base/files/digest.js';
import { FileMemo, type FileStamp, stampOf } from '../../base/files/file-memo.js';
import { readText, removeIfThere } from '../../base/files/files.js';
import { splitPaths } from '../../base/files/folders.js';
import { parseJson } from '../../base/files/json.js';
import { publishFile, writeFailed } from '../../base/files/publish.js';
import * as is from '../../base/options/kinds.js';
import { type OptionsOf, optional } from '../../base/options/option.js';
import { TrtforgeError } from '../../errors.js';
import { passportPath } from '../identity/engine-name.js';
import type { Passport } from '../identity/passport.js';
import type { EngineSignature, Signable } from './signature-schema.js';

/** Ahead of what is signed, so that a signature made for something else with the same key never fits a document of ours. */
const CONTEXT = 'trtforge.signature/1\n';

/** Real ones have 120 bytes. */
const LARGEST_KEY = 1 << 16;

/** Where the signature of an engine lies: beside its plan. */
export const signaturePath = (planPath: string): string => `${planPath}.signature.json`;

/** A new Ed25519 pair as PEM text: PKCS #8 and SPKI (RFC 8410), as OpenSSL reads and writes them. */
export function generateKeys(): {
  readonly privateKey: string;
  readonly publicKey: string;
  readonly keyId: string;
} {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return {
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    keyId: keyIdOf(publicKey),
  };
}

/** Signs a document; a passport's SHA-256 of the plan signs that with it. Throws TF_KEY_INVALID. */
export function signDocument(document: Signable, privateKey: KeyObject): EngineSignature {
  const publicKey = createPublicKey(privateKey);
  return {
    schema: 'trtforge.signature/1',
    algorithm: 'ed25519',
    keyId: keyIdOf(publicKey),
    signature: signBytes(null, signedBytes(document), privateKey).toString('base64'),
  };
}

/** The key among those trusted that signed this document. Throws TF_SIGNATURE_INVALID: missing, of a key that is not trusted, or not fitting. */
function checkSignature(
  name: string,
  document: Signable,
  signature: EngineSignature | null,
  trusted: ReadonlyMap<string, KeyObject>,
): string {
  if (signature === null) throw unsigned(name, 'it is not signed');
  const key = trusted.get(signature.keyId);
  if (key === undefined)
    throw unsigned(name, `it is signed with the key ${signature.keyId}, which is not trusted here`);
  const fits = verifyBytes(null, signedBytes(document), key, Buffer.from(signature.signature, 'base64'));
  if (!fits) throw unsigned(name, `the signature of the key ${signature.keyId} does not fit its content`);
  return signature.keyId;
}

/** Reads an Ed25519 private key. Throws TF_FILE_NOT_FOUND, TF_KEY_INVALID. */
export const readPrivateKey = (path: string): KeyObject => readKey(path, createPrivateKey);

/** Reads Ed25519 public keys by their ids. Throws TF_FILE_NOT_FOUND, TF_KEY_INVALID. */
export function readTrustedKeys(paths: readonly string[]): ReadonlyMap<string, KeyObject> {
  const keys = paths.map((path) => readKey(path, createPublicKey));
  return new Map(keys.map((key) => [keyIdOf(key), key]));
}

/** The first 16 hex digits of the SHA-256 of the public key's DER form. */
export const keyIdOf = (publicKey: KeyObject): string =>
  sha256(publicKey.export({ type: 'spki', format: 'der' })).slice(0, 16);

const signedBytes = (document: Signable): Buffer => Buffer.from(CONTEXT + canonicalJson(document));

function readKey(path: string, parse: (pem: string) => KeyObject): KeyObject {
  const text = readText(path, LARGEST_KEY, 'TF_KEY_INVALID');
  try {
    const key = parse(text);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // Reported below, without the text: it may be a secret.
  }
  throw new TrtforgeError(
    'TF_KEY_INVALID',
    `${path} is not an Ed25519 key in PEM form of the kind that is needed.`,
  );
}

const unsigned = (name: string, why: string): TrtforgeError =>
  new TrtforgeError('TF_SIGNATURE_INVALID', `${name} is rejected: ${why}.`);

/** Real ones have 200 bytes. */
const LARGEST_SIGNATURE = 4096;

/** The signature beside a plan; null when there is none. Throws TF_SIGNATURE_INVALID for a file that is not a signature. */
export async function readSignature(planPath: string): Promise<EngineSignature | null> {
  const path = signaturePath(planPath);
  let text: string;
  try {
    text = readText(path, LARGEST_SIGNATURE, 'TF_SIGNATURE_INVALID');
  } catch (error) {
    if (error instanceof TrtforgeError && error.code === 'TF_FILE_NOT_FOUND') return null;
    throw new TrtforgeError('TF_SIGNATURE_INVALID', `The signature ${path} cannot be read.`, {
      cause: error,
    });
  }
  return parseSignature(text, path);
}

/** Reads a signature's text; `path` is for messages. Throws TF_SIGNATURE_INVALID. */
export async function parseSignature(text: string, path: string): Promise<EngineSignature> {
  return await signatureOf(
    parseJson(text, LARGEST_SIGNATURE, () => invalid(path)),
    path,
  );
}

/** The same of a value that was read as part of something larger. */
export async function signatureOf(value: unknown, path: string): Promise<EngineSignature> {
  const { engineSignatureSchema } = await import('./signature-schema.js');
  const parsed = engineSignatureSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw invalid(path);
}

/** Writes or, with null, removes the signature beside a plan. Throws TF_WRITE_FAILED. */
export function writeSignature(planPath: string, signature: EngineSignature | null): void {
  const path = signaturePath(planPath);
  if (signature !== null) {
    publishFile(path, signatureText(signature));
    return;
  }
  try {
    removeIfThere(path);
  } catch (cause) {
    throw writeFailed(path, cause);
  }
}

const signatureText = (signature: EngineSignature): string => `${JSON.stringify(signature, null, 2)}\n`;

const invalid = (path: string): TrtforgeError =>
  new TrtforgeError('TF_SIGNATURE_INVALID', `${path} is not the signature of an engine.`);

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
