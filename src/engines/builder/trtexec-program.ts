import { runCommand } from '../../base/process/command.js';
import { compareVersions, majorOf } from '../../behaviour/versions.js';
import { TrtforgeError } from '../../errors.js';
import { withLibraries } from '../../tensorrt/toolchain/places.js';
import type { Toolchain } from '../../tensorrt/toolchain/toolchain.js';
import { trtexecVersion } from '../../tensorrt/toolchain/trtexec.js';

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
