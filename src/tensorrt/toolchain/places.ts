import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { lstatIfThere, namesIn } from '../../base/files/files.js';
import { cacheFolder } from '../../base/files/folders.js';
import type { CommandRunner } from '../../base/process/command.js';
import { type Processor, processorOf } from '../../behaviour/facts.js';
import type { Toolchain } from './toolchain.js';

/** Where trtforge keeps the toolchains it installed: `$TRTFORGE_TOOLCHAINS` or `toolchains` in its cache folder. */
export function toolchainsFolder(environment: NodeJS.ProcessEnv = process.env): string {
  return environment.TRTFORGE_TOOLCHAINS || join(cacheFolder(environment), 'toolchains');
}

/** The folder of a release. Those that older versions of trtforge made, all for x86-64, have no processor in their names. */
export function toolchainFolder(
  parent: string,
  { product, version }: Pick<Toolchain, 'product' | 'version'>,
  processor: Processor,
): string {
  const old = join(parent, `${product}-${version}`);
  return processor === 'x86_64' && existsSync(old) ? old : `${old}-${processor}`;
}

/** The processor of such a folder. */
const processorIn = (name: string): string => /-(x86_64|aarch64)$/.exec(name)?.[1] ?? 'x86_64';

/** Stands in every folder that an installation finished; a folder without it is not trusted. */
export const MANIFEST_NAME = 'toolchain.json';

/** The host that searches look at. The real one is `thisMachine`; tests pass a folder as the root of a machine of their own. */
export interface Host {
  readonly environment: NodeJS.ProcessEnv;
  /** The prefix of every absolute path of the system: `` for the real machine. */
  readonly root: string;
  readonly home: string;
  readonly workingFolder: string;
  /** As Node spells it: `x64`, `arm64`. */
  readonly architecture: string;
  readonly run: CommandRunner;
}

/** A folder that may hold TensorRT libraries, and how we came to it. */
export interface SearchedPlace {
  readonly folder: string;
  readonly foundBy: string;
}

/** Debian's names of platforms; SBSA and JetPack have the second. */
const TRIPLETS = ['x86_64-linux-gnu', 'aarch64-linux-gnu'];
const LIBRARY_SUBFOLDERS = ['', 'lib', 'lib64', ...TRIPLETS.map((triplet) => `targets/${triplet}/lib`)];
/** Variables that name an installation's folder, in the order in which they are trusted. */
const HOME_VARIABLES = ['TENSORRT_HOME', 'TENSORRT_RTX_HOME', 'TENSORRT_ROOT', 'TRT_HOME', 'TensorRT_ROOT'];
const PIP_FOLDERS = [
  'tensorrt_libs',
  'tensorrt_rtx_libs',
  'tensorrt_lean_libs',
  'tensorrt_dispatch_libs',
  'tensorrt',
];
const COMMAND_TIMEOUT_MS = 5000;

/** Every place where TensorRT may be, the most deliberate first: a variable, the loader path, trtforge's own, containers, packages, archives, Python. */
export async function places(host: Host): Promise<readonly SearchedPlace[]> {
  return [
    ...variablePlaces(host),
    ...loaderPathPlaces(host),
    ...ownPlaces(host),
    ...(await loaderCachePlaces(host)),
    ...systemPlaces(host),
    ...archivePlaces(host),
    ...condaPlaces(host),
    ...packagesIn(pythonPrefixes(host), 'pip package'),
  ];
}

/**
 * The places in a folder that the user names: an installation, unpacked archives, the environments of venv and Pixi. The working folder is never
 * looked at unless it is named: a user who unpacks a foreign repository there does not run the libraries in it.
 */
export const placesIn = (folder: string, foundBy: string): readonly SearchedPlace[] => [
  ...installationPlaces(folder, foundBy),
  ...archivesIn(folder, foundBy),
  ...environmentsIn(folder).flatMap((prefix) => [
    { folder: join(prefix, 'lib'), foundBy },
    ...packagesIn([prefix], foundBy),
  ]),
];

/** The folders of an installation that may hold its libraries, itself among them. */
const installationPlaces = (home: string, foundBy: string): readonly SearchedPlace[] =>
  LIBRARY_SUBFOLDERS.map((sub) => ({ folder: join(home, sub), foundBy }));

function variablePlaces({ environment }: Host): readonly SearchedPlace[] {
  return HOME_VARIABLES.flatMap((variable) => {
    const home = environment[variable];
    return home ? installationPlaces(home, variable) : [];
  });
}

function loaderPathPlaces({ environment }: Host): readonly SearchedPlace[] {
  return (environment.LD_LIBRARY_PATH ?? '')
    .split(':')
    .filter((folder) => folder.startsWith('/'))
    .map((folder) => ({ folder, foundBy: 'loader path (LD_LIBRARY_PATH)' }));
}

/** A folder that machines share has toolchains for processors of others, too. */
function ownPlaces({ environment, architecture }: Host): readonly SearchedPlace[] {
  const folder = toolchainsFolder(environment);
  return folders(folder)
    .filter((name) => processorIn(name) === processorOf(architecture))
    .filter((name) => !name.startsWith('.') && namesIn(join(folder, name)).includes(MANIFEST_NAME))
    .map((name) => ({ folder: join(folder, name, 'tensorrt_rtx_libs'), foundBy: 'installed by trtforge' }));
}

/** What `ldconfig -p` said of which file, by who runs it: asking it takes longer than all other places together. */
const asked = new WeakMap<CommandRunner, { readonly cache: string; readonly stdout: string }>();

/** Folders in which the loader's cache knows a TensorRT library. */
async function loaderCachePlaces({ run, root }: Host): Promise<readonly SearchedPlace[]> {
  const stats = lstatIfThere(join(root, '/etc/ld.so.cache'));
  const cache = stats && `${root} ${stats.mtimeNs} ${stats.ctimeNs} ${stats.ino}`;
  let known = asked.get(run);
  if (known === undefined || cache === undefined || known.cache !== cache) {
    const ldconfig = await run(join(root, '/sbin/ldconfig'), ['-p'], { timeoutMs: COMMAND_TIMEOUT_MS });
    known = { cache: cache ?? '', stdout: ldconfig.stdout };
    if (ldconfig.exitCode === 0) asked.set(run, known);
  }
  const found = known.stdout.matchAll(
    /^\s*lib(?:nvinfer(?:_lean|_dispatch)?|tensorrt_rtx)\.so\S* .*=> (\S+)\/[^/\s]+$/gm,
  );
  return [...new Set([...found].map((match) => match[1] ?? ''))].map((folder) => ({
    folder,
    foundBy: isPackageFolder(folder) ? 'Debian package' : 'loader path (ldconfig)',
  }));
}

const isPackageFolder = (folder: string): boolean =>
  TRIPLETS.some((triplet) => folder === `/usr/lib/${triplet}`);

function systemPlaces({ root }: Host): readonly SearchedPlace[] {
  const at = (foundBy: string, ...names: readonly string[]) =>
    names.map((name) => ({ folder: root + name, foundBy }));
  return [
    ...at('NGC container', '/opt/tensorrt/lib', '/workspace/tensorrt/lib', '/usr/local/tensorrt/lib'),
    ...at('NGC container', ...TRIPLETS.map((triplet) => `/usr/local/tensorrt/targets/${triplet}/lib`)),
    ...at('Debian package', ...TRIPLETS.map((triplet) => `/usr/lib/${triplet}`)),
    ...at('system library folder', '/usr/lib64', '/usr/local/lib', '/usr/local/cuda/lib64'),
  ];
}

/** NVIDIA's archives unpack to `TensorRT-10.6.0.26` or `TensorRT-RTX-1.7.1.116`. */
function archivePlaces({ root, home }: Host): readonly SearchedPlace[] {
  return [`${root}/opt`, `${root}/usr/local`, `${root}/usr/src`, home].flatMap((parent) =>
    archivesIn(parent, 'archive (tar)'),
  );
}

const archivesIn = (parent: string, foundBy: string): readonly SearchedPlace[] =>
  folders(parent)
    .filter((name) => /^tensorrt-(rtx-)?\d/i.test(name))
    .flatMap((name) => installationPlaces(join(parent, name), foundBy));

const environmentsIn = (folder: string): readonly string[] => {
  const pixi = join(folder, '.pixi', 'envs');
  return [join(folder, '.venv'), ...folders(pixi).map((name) => join(pixi, name))];
};

/** An active environment is named by the user: `pixi shell` and `conda activate` set CONDA_PREFIX. */
function condaPlaces({ environment }: Host): readonly SearchedPlace[] {
  const { CONDA_PREFIX } = environment;
  return CONDA_PREFIX ? [{ folder: join(CONDA_PREFIX, 'lib'), foundBy: 'conda package' }] : [];
}

const packagesIn = (prefixes: readonly string[], foundBy: string): readonly SearchedPlace[] =>
  sitePackagesOf(prefixes).flatMap((site) =>
    PIP_FOLDERS.map((name) => ({ folder: join(site, name), foundBy })),
  );

/** The package folders of Pythons that are active or usual: venv, conda and Pixi, pyenv, the user's and the system's. */
export const sitePackages = (host: Host): readonly string[] => sitePackagesOf(pythonPrefixes(host));

function pythonPrefixes({ environment, root, home }: Host): readonly string[] {
  const { VIRTUAL_ENV, CONDA_PREFIX, PYENV_ROOT } = environment;
  const pyenv = join(PYENV_ROOT || join(home, '.pyenv'), 'versions');
  return [
    ...[VIRTUAL_ENV, CONDA_PREFIX].filter(isSet),
    ...folders(pyenv).map((name) => join(pyenv, name)),
    join(home, '.local'),
    `${root}/usr/local`,
    `${root}/usr`,
  ];
}

function sitePackagesOf(prefixes: readonly string[]): readonly string[] {
  return [...new Set(prefixes)].flatMap((prefix) =>
    folders(join(prefix, 'lib'))
      .filter((name) => /^python3(\.\d+)?$/.test(name))
      .flatMap((name) => [
        join(prefix, 'lib', name, 'site-packages'),
        join(prefix, 'lib', name, 'dist-packages'),
      ]),
  );
}

export const isSet = (text: string | undefined): text is string => text !== undefined && text !== '';

function folders(parent: string): readonly string[] {
  try {
    return readdirSync(parent, { withFileTypes: true })
      .filter((item) => item.isDirectory() || item.isSymbolicLink())
      .map((item) => item.name)
      .sort();
  } catch {
    return [];
  }
}
