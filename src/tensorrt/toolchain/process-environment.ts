import { dirname } from 'node:path';
import { withLoaderPath } from '../../base/process/command.js';
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
