import { readText } from '../../base/files/files.js';
import { parseJson } from '../../base/files/json.js';
import { faultText } from '../../base/text/schema-error.js';
import { TrtforgeError } from '../../errors.js';
import { identityDigest } from './identity.js';
import { identitiesOf, type Passport, passportPath } from './passport-file.js';
import { passportSchema } from './passport-schema.js';

export { type Passport, passportPath };

/** Real passports are a few KiB; one of hundreds of inputs and ten profiles has 1 MiB. What is wrong with a value takes ten times its memory. */
const LARGEST_PASSPORT = 2 << 20;

/**
 * Reads the passport of an engine, which has to be of the identities that it should have (`identitiesOf`). Throws TF_PASSPORT_MISSING, TF_PASSPORT_INVALID,
 * TF_FILE_UNREADABLE.
 */
export function readPassport(planPath: string, expected?: string): Passport {
  const path = passportPath(planPath);
  try {
    const passport = parsePassport(readText(path, LARGEST_PASSPORT, 'TF_PASSPORT_INVALID'), path);
    const { digest } = passport.identity;
    const other = identitiesOf(planPath, expected).find((identity) => identity !== digest);
    if (other === undefined) return passport;
    throw new TrtforgeError('TF_PASSPORT_INVALID', `${path} is the passport of ${digest}, not of ${other}.`, {
      remedy:
        'Use the engine of that identity; `trtforge cache verify` names those that are in the place of another.',
      details: { expected: other, actual: digest },
    });
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
