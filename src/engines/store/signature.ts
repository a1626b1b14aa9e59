import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign as signBytes,
  verify as verifyBytes,
} from 'node:crypto';
import { canonicalJson, sha256 } from '../../base/files/digest.js';
import { readText } from '../../base/files/files.js';
import { TrtforgeError } from '../../errors.js';
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
export function checkSignature(
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
