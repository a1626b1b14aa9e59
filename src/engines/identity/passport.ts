import { readText } from '../../base/files/files.js';
import { parseJson } from '../../base/files/json.js';
import { faultText } from '../../base/text/schema-error.js';
import { TrtforgeError } from '../../errors.js';
import { identityDigest } from './identity.js';
import { type Passport, passportPath } from './passport-file.js';
import { passportSchema } from './passport-schema.js';

export { type Passport, passportPath };

/** Real passports are a few KiB; one of hundreds of inputs and ten profiles has 1 MiB. What is wrong with a value takes ten times its memory. */
const LARGEST_PASSPORT = 2 << 20;

/** Reads the passport of an engine. Throws TF_PASSPORT_MISSING, TF_PASSPORT_INVALID, TF_FILE_UNREADABLE. */
export function readPassport(planPath: string): Passport {
  const path = passportPath(planPath);
  try {
    return parsePassport(readText(path, LARGEST_PASSPORT, 'TF_PASSPORT_INVALID'), path);
  } catch (cause) {
    if (!(cause instanceof TrtforgeError) || cause.code !== 'TF_FILE_NOT_FOUND') throw cause;
    throw new TrtforgeError('TF_PASSPORT_MISSING', `${planPath} has no passport (${path}).`, { cause });
  }
}

/** Reads a passport's text; `path` is for messages. Throws TF_PASSPORT_INVALID. */
export function parsePassport(text: string, path: string): Passport {
  const json = parseJson(text, LARGEST_PASSPORT, (why, cause) => invalid(path, why, cause));
  const parsed = passportSchema.safeParse(json);
  if (!parsed.success) throw invalid(path, faultText(parsed.error));
  const { digest, document } = parsed.data.identity;
  if (identityDigest(document) !== digest) {
    throw invalid(path, 'its identity digest does not fit the model, recipe and target it names');
  }
  return parsed.data;
}

const invalid = (path: string, why: string, cause?: unknown) =>
  new TrtforgeError('TF_PASSPORT_INVALID', `${path} is not a passport: ${why}.`, { cause });
