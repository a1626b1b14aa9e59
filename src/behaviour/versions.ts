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

/** A container whose TensorRT a public page states. */
interface Container {
  readonly image: 'tritonserver' | 'tensorrt';
  readonly tag: string;
  readonly tensorrt: string;
  readonly source: string;
  readonly date: string;
}

const server = 'https://github.com/triton-inference-server/server/issues';
const notes = 'https://docs.nvidia.com/deeplearning/sdk/inference-release-notes';
const twcc =
  'https://docs.twcloud.ai/en/docs/concepts-tutorials/twcc/ccs/concepts/images/triton-inference-server/';

/**
 * Containers whose TensorRT a page states, as many parts as it has: `tritonserver`, or `tensorrt` of the same month, which Triton's follows in most months (server#3904;
 * not in 23.05). The date is that of the source, or where it has none the month of the container. Tags with `trtllm` are not here: they have no TensorRT back end.
 * Most are missing, so that "unknown" is an answer; NVIDIA's whole table is https://docs.nvidia.com/deeplearning/frameworks/support-matrix/.
 */
const containers = [
  ['20.10-py3', '7.2.1', '2020-10', `${notes}/rel_20-10.html`],
  ['20.12-py3', '7.2.2', '2020-12', `${notes}/rel_20-12.html`],
  ['21.08-py3', '8.0.1.6', '2021-09-16', twcc],
  ['21.11-py3', '8.0.3.4', '2022-05-18', twcc],
  ['22.02-py3', '8.2.3', '2022-05-18', twcc],
  ['22.04-py3', '8.2.4.2', '2022-05-12', 'https://github.com/pytorch/TensorRT/issues/1059'],
  ['22.05-py3', '8.2.5.1', '2022-06-21', twcc],
  ['22.08-py3', '8.4.2.4', '2022-09-30', twcc],
  ['22.11-py3', '8.5.1', '2024-07-19', twcc],
  ['23.05-py3', '8.6.1.2', '2023-06-21', `${server}/5975`],
  ['24.02-py3', '8.6.3', '2024-03-08', `${server}/6959`],
  ['24.05-py3', '10.0.1.6', '2024-06-25', `${server}/7374`],
  ['26.02-py3', '10.15.1', '2026-03-24', 'https://github.com/NVIDIA/Model-Optimizer/pull/1112', 'tensorrt'],
  ['26.06-py3', '11.0.0.114', '2026-09-15', 'https://github.com/apache/beam/issues/33078', 'tensorrt'],
].map(
  ([tag, tensorrt, date, source, image = 'tritonserver']) =>
    ({ image, tag, tensorrt, date, source }) as Container,
);

/** The containers that a page gives this TensorRT, the newest last. */
export const containersOf = (version: string): readonly Container[] =>
  containers.filter(({ tensorrt }) => sameTensorrt(tensorrt, version));

/** DeepStream's, for GPUs that are not Jetsons (https://docs.nvidia.com/metropolis/deepstream/release-notes/index.html). */
const deepstreams = [{ image: 'deepstream', tag: '9.0', tensorrt: '10.14.1.48' }];

/** The TensorRT of a container: `nvcr.io/nvidia/tritonserver:24.05-py3`, `tritonserver:24.05`, `deepstream:9.0-triton-multiarch`; undefined: unknown. */
export function tensorrtIn(container: string): string | undefined {
  const [, image, tag = ''] = /(?:^|\/)([\w-]+):([\w.-]+)$/.exec(container.trim()) ?? [];
  const usual = image === 'deepstream' ? tag.replace(/-.*/, '') : tag.replace(/^\d+\.\d+$/, '$&-py3');
  return [...containers, ...deepstreams].find((row) => row.image === image && row.tag === usual)?.tensorrt;
}

/** Whether two versions agree in the parts that both have; the build number of a plan's header is modulo 256. */
export function sameTensorrt(a: string, b: string): boolean {
  const folded = (version: string) =>
    version
      .split('.')
      .map((part, at) => (at === 3 ? Number(part) % 256 : part))
      .join('.');
  return agree(folded(a), folded(b));
}
