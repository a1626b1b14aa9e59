import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readText } from '../base/files/read-text.js';
import { statIfThere } from '../base/files/stat.js';
import { faultText } from '../base/text/schema-error.js';
import { TrtforgeError } from '../errors.js';
import { REPORT_FILE as BUNDLE_REPORT_FILE } from '../products/bundle/build-report.js';
import { type BundleReport, bundleReportSchema } from '../products/bundle/report-schema.js';
import { type ForgeResult, forgeResultSchema } from './result.js';

/** The result's name in a run root. */
export const RESULT_FILE = 'report.json';

/** No report comes near this; reading something bigger as JSON would take the machine's memory. */
const LARGEST_BYTES = 256 << 20;

/**
 * Reads the result of a run: of a model from its run root or the `report.json` in it, of a bundle from its folder or the `build_report.json` in it. A folder
 * that has both is taken for a run root. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_REPORT_INVALID.
 */
export function readResult(path: string): ForgeResult | BundleReport {
  const isFolder = statIfThere(path)?.isDirectory() === true;
  const names = [RESULT_FILE, BUNDLE_REPORT_FILE];
  const file = isFolder
    ? join(path, names.find((name) => existsSync(join(path, name))) ?? RESULT_FILE)
    : path;
  return parseResult(readText(file, LARGEST_BYTES, 'TF_REPORT_INVALID'), path);
}

/** Checks the text of a `report.json` or a `build_report.json`; `path` is for the message. Errors: TF_REPORT_INVALID. */
export function parseResult(text: string, path: string): ForgeResult | BundleReport {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new TrtforgeError('TF_REPORT_INVALID', `${path} is not JSON.`, { cause });
  }
  const isBundle =
    typeof json === 'object' && json !== null && 'schema' in json && json.schema === 'trtforge.bundle/1';
  const checked = (isBundle ? bundleReportSchema : forgeResultSchema).safeParse(json);
  if (checked.success) return checked.data;
  throw new TrtforgeError(
    'TF_REPORT_INVALID',
    `${path} is not a result of ${isBundle ? 'forge --meta' : 'forge'}: ${faultText(checked.error)}.`,
    {
      cause: checked.error,
    },
  );
}
