import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { CommandRunner } from '../../base/process/command.js';
import { withLoaderPath } from '../../base/process/command.js';
import { versionOfCode } from '../../behaviour/versions.js';
import type { Host } from './places.js';

/** trtexec of a full TensorRT maps some gigabytes before its first line on a cold disk. */
const TIMEOUT_MS = 20_000;

/** Version in a banner: `&&&& RUNNING TensorRT.trtexec [TensorRT v101600] [b11] # …`; the build number only since 10. */
export function trtexecVersionIn(output: string): string | null {
  const match = /&&&& RUNNING \S+ \[TensorRT v(\d+)\](?: \[b(\d+)\])?/.exec(output);
  if (match?.[1] === undefined) return null;
  const version = versionOfCode(Number(match[1]));
  return match[2] === undefined ? version : `${version}.${match[2]}`;
}

/** Asks a trtexec for its version by its help, which needs no GPU. Null where it does not start, hangs or reports none. */
export async function trtexecVersion(
  path: string,
  run: CommandRunner,
  environment: NodeJS.ProcessEnv,
  libraryFolder: string | null = null,
): Promise<string | null> {
  const env = withLoaderPath(environment, libraryFolder === null ? [] : [libraryFolder]);
  const { stdout, stderr } = await run(path, ['--help'], { timeoutMs: TIMEOUT_MS, environment: env });
  return trtexecVersionIn(stdout) ?? trtexecVersionIn(stderr);
}

/** Programs of a name (`trtexec`, `tensorrt_rtx`) on PATH and in NVIDIA's usual places, links followed, each once. */
export function programPlaces(
  name: string,
  { environment, root }: Pick<Host, 'environment' | 'root'>,
): readonly string[] {
  const folders = [
    ...(environment.PATH ?? '').split(':').filter((folder) => folder.startsWith('/')),
    `${root}/usr/src/tensorrt/bin`,
    `${root}/opt/tensorrt/bin`,
    `${root}/workspace/tensorrt/bin`,
  ];
  const present = folders.map((folder) => join(folder, name)).filter((path) => existsSync(path));
  return [...new Set(present.map((path) => realpathSync(path)))];
}
