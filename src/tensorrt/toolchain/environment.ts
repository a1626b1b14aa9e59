import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { withLoaderPath } from '../../base/process/command.js';
import { TrtforgeError } from '../../errors.js';
import { isSet } from './places.js';
import type { Toolchain } from './toolchain.js';

/** TensorRT loads its builder resources by bare name: the loader must know the folder before the process starts. */
export function withLibraries({ libraries }: Toolchain, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const folders = new Set(
    [libraries.inference, libraries.parser, libraries.plugins].flatMap((path) =>
      path === null ? [] : [dirname(path)],
    ),
  );
  return withLoaderPath(env, [...folders]);
}

/**
 * The environment of a process that builds: the libraries' folders, and glibc set to ask the kernel for huge pages, since a builder touches
 * gigabytes once. Measured: 3 to 15 % of a build (docs/evidence/h200.md). A tunable that the user set is kept.
 * https://sourceware.org/glibc/manual/latest/html_node/Memory-Allocation-Tunables.html
 */
export function builderEnvironment(toolchain: Toolchain, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { GLIBC_TUNABLES: tunables = '' } = env;
  const found = withLibraries(toolchain, env);
  if (tunables.includes('glibc.malloc.hugetlb=')) return found;
  return {
    ...found,
    GLIBC_TUNABLES: [tunables, 'glibc.malloc.hugetlb=1'].filter((each) => each !== '').join(':'),
  };
}

/** The recorder of API calls of TensorRT since 10.13.3 and of TensorRT-RTX, in archives and NVIDIA's Debian packages; pip's packages of libraries lack it. */
const RECORDER = 'libtensorrt_shim.so';

/**
 * The toolchain and environment of a process that builds. Where `TRT_SHIM_OUTPUT_JSON_FILE` names a file for a capture of the API, the recorder stands in for the
 * inference library, which it loads itself; it writes its files before the library builds, and when the process ends in order. Throws TF_LIBRARY_LOAD_FAILED where there is no recorder.
 * https://docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/capture-replay.html
 */
export function recordedBuilder<T extends Toolchain>(
  toolchain: T,
  env: NodeJS.ProcessEnv,
): { readonly toolchain: T; readonly env: NodeJS.ProcessEnv } {
  const { inference } = toolchain.libraries;
  if (!isSet(env[CAPTURE_FILE]) || isSet(env.TRT_SHIM_NVINFER_LIB_NAME))
    return { toolchain, env: builderEnvironment(toolchain, env) };
  const searched = [dirname(inference), ...(env.LD_LIBRARY_PATH ?? '').split(':').filter(isSet)];
  const recorder = searched.map((folder) => join(folder, RECORDER)).find((path) => existsSync(path));
  if (recorder === undefined)
    throw new TrtforgeError(
      'TF_LIBRARY_LOAD_FAILED',
      `${toolchain.product} ${toolchain.version} has no ${RECORDER} to capture its API with: it is neither in ${dirname(inference)} nor in a folder of LD_LIBRARY_PATH.`,
      {
        remedy: `Add the folder with ${RECORDER} of the same version to LD_LIBRARY_PATH; NVIDIA's archives and libnvinfer-dev of newer versions have it.`,
      },
    );
  const recording = {
    ...env,
    TRT_SHIM_NVINFER_LIB_NAME: inference,
    TRT_SHIM_FLUSH_ON_BUILD: '1',
  };
  return {
    toolchain: { ...toolchain, libraries: { ...toolchain.libraries, inference: recorder } },
    env: builderEnvironment(toolchain, recording),
  };
}

/** Names the file of a capture; a second one with the weights lies beside it. */
export const CAPTURE_FILE = 'TRT_SHIM_OUTPUT_JSON_FILE';
