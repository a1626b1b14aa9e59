import { TrtforgeError } from '../../../errors.js';
import { parsePassport } from '../../identity/passport.js';
import type { Passport } from '../../identity/passport-file.js';
import { signatureOf } from '../signature-file.js';
import type { EngineSignature } from '../signature-schema.js';

/** An engine that the bucket has: where its plan is, and the passport it must agree with. */
export interface RemoteEngine {
  readonly key: string;
  readonly passport: Passport;
  readonly signature: EngineSignature | null;
}

/** What the index of a bucket keeps of an engine; `key` is below the store's prefix. */
export const remoteEntry = ({ key, passport, signature }: RemoteEngine) => ({
  schema: 'trtforge.remote-entry/1',
  key,
  passport,
  ...(signature === null ? {} : { signature }),
});

/**
 * An entry is somebody else's bytes: its key must be a name in a folder, its passport must be one of this identity.
 * `path` and `place` say where it was read. Throws TF_REMOTE_DAMAGED, TF_PASSPORT_INVALID, TF_SIGNATURE_INVALID.
 */
export async function parseRemoteEntry(
  text: string,
  identity: string,
  { path, place }: { readonly path: string; readonly place: string },
): Promise<RemoteEngine> {
  const { key, passport, signature } = parseJson(text, path);
  if (typeof key !== 'string' || !/^[\w+][\w.+~-]*\/[\w+][\w.+~-]*$/.test(key)) {
    throw new TrtforgeError('TF_REMOTE_DAMAGED', `${path} at ${place} names no engine of this store.`);
  }
  const parsed = parsePassport(JSON.stringify(passport ?? null), path);
  if (parsed.identity.digest !== identity) {
    throw new TrtforgeError('TF_REMOTE_DAMAGED', `${path} at ${place} is about ${parsed.identity.digest}.`);
  }
  return {
    key,
    passport: parsed,
    signature: signature === undefined ? null : await signatureOf(signature, path),
  };
}

function parseJson(text: string, path: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Readonly<Record<string, unknown>>;
  } catch {
    // Told below, as for JSON that is no object.
  }
  throw new TrtforgeError('TF_REMOTE_DAMAGED', `${path} is not JSON.`);
}
