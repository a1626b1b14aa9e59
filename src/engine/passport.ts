import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { systemErrorCode, TrtforgeError } from '../errors.js';
import { publishFile } from '../system/publish.js';
import { identityDigest, identityDocumentSchema, sha256Schema } from './identity.js';

const networkTensorSchema = z.object({
  name: z.string(),
  dtype: z.string(),
  shape: z.array(z.int().nonnegative().nullable()),
});

/** The JSON beside a plan. Holds no path, no host and no user name: passports travel with engines. */
export const passportSchema = z.object({
  schema: z.literal('trtforge.passport/1'),
  /** Identity in full; `digest` is the SHA-256 of `document` in canonical form. */
  identity: z.object({ digest: sha256Schema, document: identityDocumentSchema }),
  /** Readable name of the engine: a plain file name, since stores make links of it. */
  name: z.string().regex(/^[A-Za-z0-9_+][A-Za-z0-9._+~-]{0,250}$/),
  model: z.object({
    name: z.string(),
    /** What the user called this version of the model; null when nothing was said. */
    version: z.string().nullable(),
    /** Bytes of the model file and its external files. */
    bytes: z.int().nonnegative(),
  }),
  plan: z.object({
    sha256: sha256Schema,
    bytes: z.int().positive(),
    /** Layers of the network as the library parsed it. */
    layers: z.int().nonnegative(),
    inputs: z.array(networkTensorSchema),
    outputs: z.array(networkTensorSchema),
  }),
  built: z.object({
    /** `trtforge 0.1.0` */
    by: z.string(),
    /** Version the library itself reported. */
    libraryVersion: z.string(),
    /** How the toolchain was found, without its path. */
    toolchain: z.string(),
    /** UTC, ISO 8601. */
    at: z.string(),
    ms: z.number().nonnegative(),
    /** Time of the conversion before it; null when the model was built as it is. */
    conversionMs: z.number().nonnegative().nullable(),
    peakMemoryBytes: z.int().nonnegative().nullable(),
    timingCache: z.enum(['none', 'new', 'hit', 'rejected']),
    os: z.string(),
    node: z.string(),
    /** Recorded, not keyed; null on a machine without. */
    gpu: z.string().nullable(),
    driver: z.string().nullable(),
  }),
  warnings: z.array(z.string()),
});
export type Passport = z.infer<typeof passportSchema>;

/** Real passports are a few KiB; nothing larger is read. */
const LARGEST_PASSPORT = 16 << 20;

/** Where the passport of an engine lies: beside it. */
export const passportPath = (planPath: string): string => `${planPath}.passport.json`;

/** Reads the passport of an engine. Throws TF_PASSPORT_MISSING, TF_PASSPORT_INVALID, TF_FILE_UNREADABLE. */
export function readPassport(planPath: string): Passport {
  const path = passportPath(planPath);
  return parsePassport(readText(path, planPath), path);
}

/** Publishes a passport beside its plan; always the last step, because a plan without passport is never believed. */
export function writePassport(planPath: string, passport: Passport): void {
  publishFile(passportPath(planPath), `${JSON.stringify(passport, null, 2)}\n`);
}

/** Reads a passport's text; `path` is for messages. Throws TF_PASSPORT_INVALID. */
export function parsePassport(text: string, path: string): Passport {
  const parsed = passportSchema.safeParse(parseJson(text, path));
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const place = issue?.path.join('.') ?? '';
    throw invalid(path, `${place === '' ? 'it' : place} ${issue?.message ?? 'is wrong'}`.slice(0, 200));
  }
  const { digest, document } = parsed.data.identity;
  if (identityDigest(document) !== digest) {
    throw invalid(path, 'its identity digest does not fit the model, recipe and target it names');
  }
  return parsed.data;
}

function readText(path: string, planPath: string): string {
  try {
    if (statSync(path).size > LARGEST_PASSPORT) throw invalid(path, 'it is larger than any passport');
    return readFileSync(path, 'utf8');
  } catch (cause) {
    if (cause instanceof TrtforgeError) throw cause;
    if (systemErrorCode(cause) === 'ENOENT') {
      throw new TrtforgeError('TF_PASSPORT_MISSING', `${planPath} has no passport (${path}).`, { cause });
    }
    throw new TrtforgeError('TF_FILE_UNREADABLE', `${path} cannot be read (${systemErrorCode(cause)}).`, {
      cause,
    });
  }
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw invalid(path, 'it is not JSON', cause);
  }
}

const invalid = (path: string, why: string, cause?: unknown) =>
  new TrtforgeError('TF_PASSPORT_INVALID', `${path} is not a passport: ${why}.`, { cause });
