import { readText, removeIfThere } from '../../base/files/files.js';
import { parseJson } from '../../base/files/json.js';
import { publishFile, writeFailed } from '../../base/files/publish.js';
import { TrtforgeError } from '../../errors.js';
import { signaturePath } from './signature.js';
import type { EngineSignature } from './signature-schema.js';

/** Real ones have 200 bytes. */
const LARGEST = 4096;

/** The signature beside a plan; null when there is none. Throws TF_SIGNATURE_INVALID for a file that is not a signature. */
export async function readSignature(planPath: string): Promise<EngineSignature | null> {
  const path = signaturePath(planPath);
  let text: string;
  try {
    text = readText(path, LARGEST, 'TF_SIGNATURE_INVALID');
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
    parseJson(text, LARGEST, () => invalid(path)),
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
