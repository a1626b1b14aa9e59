import { statSync } from 'node:fs';
import { join } from 'node:path';
import { TrtforgeError } from '../errors.js';
import { readText } from '../system/read-text.js';
import { type ForgeResult, forgeResultSchema } from './result.js';

/** The result's name in a run root. */
export const RESULT_FILE = 'report.json';

/** No report comes near this; reading something bigger as JSON would take the machine's memory. */
const LARGEST_BYTES = 256 << 20;

/** Reads the result of a run from its run root or from the `report.json` itself. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_REPORT_INVALID. */
export function readResult(path: string): ForgeResult {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  const file = isFolder ? join(path, RESULT_FILE) : path;
  return parseResult(readText(file, LARGEST_BYTES, 'TF_REPORT_INVALID'), path);
}

/** Checks the text of a `report.json`; `path` is for the message. Errors: TF_REPORT_INVALID. */
export function parseResult(text: string, path: string): ForgeResult {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new TrtforgeError('TF_REPORT_INVALID', `${path} is not JSON.`, { cause });
  }
  const checked = forgeResultSchema.safeParse(json);
  if (checked.success) return checked.data;
  const issue = checked.error.issues[0];
  const where = issue?.path.map(String).join('.') || 'the document';
  throw new TrtforgeError(
    'TF_REPORT_INVALID',
    `${path} is not a result of forge: ${where}: ${issue?.message}.`,
    {
      cause: checked.error,
    },
  );
}
