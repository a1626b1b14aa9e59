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

/** Whether `version` is `since` or newer, and older than `until`; null for no end. */
export const isWithin = (
  version: string,
  { since, until }: { readonly since: string; readonly until: string | null },
): boolean => compareVersions(version, since) >= 0 && (until === null || compareVersions(version, until) < 0);

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

export const majorOf = (version: string): number => parts(version)[0] ?? 0;

function parts(version: string): readonly number[] {
  return version.split('.').map(Number);
}
