import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { type CommandRunner, runCommand, withLoaderPath } from '../../base/process/command.js';
import { compareVersions, majorOf, versionOfCode } from '../../behaviour/versions.js';
import { TrtforgeError } from '../../errors.js';
import { withLibraries } from './environment.js';
import type { Host } from './places.js';
import type { Toolchain } from './toolchain.js';

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

/**
 * The trtexec that belongs to a library: the one in its own tree; for a library on the loader path the one on PATH or in NVIDIA's usual
 * place, because that is the library it would load. Another installation's trtexec is never lent.
 */
export function trtexecBeside(
  product: Toolchain['product'],
  folder: string,
  isOnLoaderPath: boolean,
  host: Host,
): string | null {
  const binary = product === 'tensorrt' ? 'trtexec' : 'tensorrt_rtx';
  // Beside `lib` or `targets/<triplet>/lib`; the `bin` beside a system folder holds every program, so it reports nothing about this library.
  const tree = /\/targets\/[^/]+\/lib$/.test(folder) ? '../../../bin' : '../bin';
  const isSystem = /^\/(usr\/)?lib/.test(folder);
  const own = isSystem ? [] : [join(folder, tree, binary), join(folder, 'bin', binary)];
  const candidates = [...own, ...(isOnLoaderPath ? programPlaces(binary, host) : [])];
  const found = candidates.find((path) => existsSync(path));
  return found === undefined ? null : realpathSync(found);
}

/** The trtexec to run, and the version whose words it takes and whose banner it must print. */
export interface TrtexecProgram {
  readonly path: string;
  readonly version: string;
}

/** The trtexec of a toolchain; for one that came without, the file that `TRTEXEC` names (its banner must agree all the same). Throws TF_TRTEXEC_NOT_FOUND. */
export function trtexecOf(toolchain: Toolchain, environment: NodeJS.ProcessEnv): string {
  const path = toolchain.trtexec ?? environment.TRTEXEC;
  if (path !== undefined && path !== '') return path;
  throw new TrtforgeError(
    'TF_TRTEXEC_NOT_FOUND',
    `The toolchain ${toolchain.product} ${toolchain.version} (${toolchain.foundBy}) has no trtexec.`,
  );
}

/**
 * The trtexec that measures with a toolchain. A lean or dispatch runtime comes without one, so it takes one of its major that is not newer than itself:
 * a library keeps what an older program of its major calls, and a newer one would call what is not there yet.
 * Errors: TF_TRTEXEC_NOT_FOUND; TF_TRTEXEC_VERSION, for a full TensorRT only when the program runs.
 */
export async function trtexecToMeasure(
  toolchain: Toolchain,
  environment: NodeJS.ProcessEnv,
): Promise<TrtexecProgram> {
  const path = trtexecOf(toolchain, environment);
  const { flavour = 'full', version: library } = toolchain;
  if (flavour === 'full') return { path, version: library };
  const version = await trtexecVersion(path, runCommand, withLibraries(toolchain, environment));
  if (version !== null && majorOf(version) === majorOf(library) && !isNewer(version, library))
    return { path, version };
  throw new TrtforgeError(
    'TF_TRTEXEC_VERSION',
    version === null
      ? `${path} --help prints no version.`
      : `${path} is version ${version}, and the ${flavour} runtime is ${library}.`,
    {
      remedy: `Name in TRTEXEC a trtexec of TensorRT ${majorOf(library)} that is not newer than ${library}, or another runtime with --toolchain.`,
      details: { found: version, expected: library },
    },
  );
}

/** By the parts that both have: 8.6 prints no build number. */
function isNewer(program: string, library: string): boolean {
  const parts = Math.min(program.split('.').length, library.split('.').length);
  const cut = (version: string) => version.split('.').slice(0, parts).join('.');
  return compareVersions(cut(program), cut(library)) > 0;
}
