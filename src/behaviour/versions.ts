import { TrtforgeError } from '../errors.js';

/** Versions as TensorRT writes them: `major.minor.patch.build`, later parts absent where nobody reports them. */

/** `getInferLibVersion` and the trtexec banner: 8.x is major*1000 + minor*100 + patch, later (and TensorRT-RTX) major*10000 + minor*100 + patch. */
export function versionOfCode(code: number): string {
  const major = code < 10000 ? Math.floor(code / 1000) : Math.floor(code / 10000);
  const rest = code < 10000 ? code % 1000 : code % 10000;
  return `${major}.${Math.floor(rest / 100)}.${rest % 100}`;
}

/** Negative when `a` is older than `b`; a missing part counts as older. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [parts(a), parts(b)];
  for (let at = 0; at < Math.max(left.length, right.length); at++) {
    const difference = (left[at] ?? -1) - (right[at] ?? -1);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** From which version on something holds, and the first version where it no longer does; null for no end. */
export interface Range {
  readonly since: string;
  readonly until: string | null;
}

/** The oldest TensorRT, and the oldest trtexec, that is served at all. */
const FIRST = '8.6';
export const always: Range = { since: FIRST, until: null };
export const since = (version: string): Range => ({ since: version, until: null });
export const before = (version: string, from = FIRST): Range => ({ since: from, until: version });

export const isWithin = (version: string, { since: first, until }: Range): boolean =>
  compareVersions(version, first) >= 0 && (until === null || compareVersions(version, until) < 0);

/** A range for a sentence: `10.4 and newer`, `8.6 to 10.x`, `10.13 to 11.1`, `10.x`. */
export function rangeText({ since: first, until }: Range, open = 'and newer'): string {
  if (until === null) return `${first} ${open}`;
  const [major = 0, minor = 0] = parts(until);
  const last = minor === 0 ? `${major - 1}.x` : `${major}.${minor - 1}`;
  return last === first || last === `${first}.x` ? last : `${first} to ${last}`;
}

/** Whether `version` is `wanted` or one of its line: 10.6.0.26 is in 10, 10.6 and 10.6.0, not in 10.60. */
export function isInLine(version: string, wanted: string): boolean {
  const [have, want] = [parts(version), parts(wanted)];
  return want.every((part, at) => have[at] === part);
}

/** Whether two versions agree in the parts that both have: 10.6.0 agrees with 10.6.0.26. */
export function agree(a: string, b: string): boolean {
  const [left, right] = [parts(a), parts(b)];
  return left.every((part, at) => right[at] === undefined || right[at] === part);
}

export function isVersion(text: string): boolean {
  return /^\d+(\.\d+){0,3}$/.test(text);
}

/** Reads a version of TensorRT as far as it is known. */
export function parseVersion(text: string): string {
  if (isVersion(text)) return text;
  throw new TrtforgeError('TF_USAGE', `"${text}" is not a version.`, { remedy: 'Write 10.13 or 10.13.3.9.' });
}

export const majorOf = (version: string): number => parts(version)[0] ?? 0;

function parts(version: string): readonly number[] {
  return version.split('.').map(Number);
}
