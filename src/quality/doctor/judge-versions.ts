import { agree, majorOf } from '../../behaviour/versions.js';
import type { DebianPackage } from '../../tensorrt/toolchain/installed-packages.js';
import type { DoctorFacts } from './doctor-facts.js';
import { type Finding, findingsOf } from './finding.js';
import type { ListedToolchain } from './toolchain-list.js';

const versions = findingsOf('versions');

/** An engine loads only in the exact version that built it (unless built version-compatible), so mixes fail late and oddly. */
const ONE_VERSION =
  'Use one version for building and running: an engine loads only in the version that built it.';

/** Names every mix of TensorRT versions that builder, runtime and host package could meet in. */
export function judgeVersions(facts: DoctorFacts): readonly Finding[] {
  const full = (facts.toolchains?.toolchains ?? []).filter(
    ({ product, flavour }) => product === 'tensorrt' && flavour === 'full',
  );
  const onLoaderPath = full.filter(isOnLoaderPath);
  return [
    ...severalOnLoaderPath(onLoaderPath),
    ...otherParser(full),
    ...otherTrtexec(facts.trtexecs ?? [], full, onLoaderPath),
    ...otherPackages(facts.debianPackages ?? [], onLoaderPath),
    ...otherBindings(facts, onLoaderPath),
    ...containerNote(facts, full),
  ];
}

const LOADER_WAYS = /loader path|Debian package|NGC container/;

const isOnLoaderPath = ({ foundBy, alsoFoundBy }: ListedToolchain): boolean =>
  [foundBy, ...alsoFoundBy].some((way) => LOADER_WAYS.test(way));

function severalOnLoaderPath(onLoaderPath: readonly ListedToolchain[]): readonly Finding[] {
  const found = [...new Set(onLoaderPath.map(({ version }) => version))];
  if (found.length < 2) return [];
  const where = onLoaderPath.map(({ version, folder }) => `${version} in ${folder}`).join(', ');
  // Majors have names of their own (libnvinfer.so.8, libnvinfer.so.10): a program gets the one it was linked with.
  const hasRivals = new Set(found.map(majorOf)).size < found.length;
  const consequence = hasRivals
    ? 'Which one a program gets depends on the order'
    : 'Programs linked with one cannot load engines of the other';
  return [
    versions.warning(
      'loader-path',
      `The loader path leads to ${found.length} versions of TensorRT: ${where}. ${consequence}.`,
      `Keep one of them in LD_LIBRARY_PATH and the system's library folders. ${ONE_VERSION}`,
    ),
  ];
}

function otherParser(full: readonly ListedToolchain[]): readonly Finding[] {
  return full
    .filter(({ parserVersion, version }) => parserVersion !== null && !agree(parserVersion, version))
    .map(({ folder, version, parserVersion }) =>
      versions.warning(
        'parser',
        `In ${folder} the ONNX parser is ${parserVersion} and libnvinfer is ${version}.`,
        'Install both from one release.',
      ),
    );
}

function otherTrtexec(
  trtexecs: NonNullable<DoctorFacts['trtexecs']>,
  full: readonly ListedToolchain[],
  onLoaderPath: readonly ListedToolchain[],
): readonly Finding[] {
  const reference = onLoaderPath.length > 0 ? onLoaderPath : full;
  if (reference.length === 0) return [];
  return trtexecs.flatMap(({ path, version }) => {
    if (version === null || reference.some((each) => agree(version, each.version))) return [];
    // A trtexec in the tree of an installation that is not on the loader path belongs there.
    if (full.some((each) => each.trtexec === path && agree(version, each.version))) return [];
    const others = reference.map((each) => `${each.version} (${each.foundBy})`).join(', ');
    return [
      versions.warning(
        'trtexec',
        `${path} is trtexec ${version}, while libnvinfer is ${others}: engines from one do not load in the other.`,
        ONE_VERSION,
      ),
    ];
  });
}

function otherPackages(
  packages: readonly DebianPackage[],
  onLoaderPath: readonly ListedToolchain[],
): readonly Finding[] {
  const libraries = packages.filter(({ name }) => /^lib(nvinfer|nvonnxparsers)/.test(name));
  const installed = [...new Set(libraries.map(({ version }) => version))];
  const among =
    installed.length > 1
      ? [
          versions.warning(
            'packages',
            `The Debian packages are of ${installed.length} versions: ${libraries.map(({ name, version }) => `${name} ${version}`).join(', ')}.`,
            'Install all libnvinfer and libnvonnxparsers packages in one version (apt install name=version).',
          ),
        ]
      : [];
  const [first] = onLoaderPath;
  const isOther =
    first !== undefined && installed.length > 0 && !installed.some((each) => agree(each, first.version));
  if (!isOther) return among;
  return [
    ...among,
    versions.warning(
      'host-package',
      `The host's packages are TensorRT ${installed.join(', ')} (dpkg), while programs started here load ${first.version} from ${first.folder}: what the host's services (DeepStream, Triton) run with may not load engines built here.`,
      `Build with the version the engine will run with, or take ${first.folder} out of LD_LIBRARY_PATH. ${ONE_VERSION}`,
    ),
  ];
}

function otherBindings(
  { pythonPackages = [], toolchains }: DoctorFacts,
  onLoaderPath: readonly ListedToolchain[],
): readonly Finding[] {
  const all = toolchains?.toolchains ?? [];
  return pythonPackages
    .filter(({ name }) => /^tensorrt(_cu\d+)?_bindings$/.test(name))
    .flatMap(({ name, version, folder }) => {
      // The bindings load the libraries beside them when there are any, else those of the loader path.
      const beside = all.filter((each) => each.folder.startsWith(`${folder}/tensorrt_libs`));
      const used = (beside.length > 0 ? beside : onLoaderPath)[0];
      if (used === undefined || agree(version, used.version)) return [];
      return [
        versions.warning(
          'python',
          `Python's ${name} in ${folder} is ${version}, and the library it would load is ${used.version} in ${used.folder}.`,
          `Install the bindings of ${used.version}, pinned (pip install ${name.replaceAll('_', '-')}==…).`,
        ),
      ];
    });
}

function containerNote({ machine }: DoctorFacts, full: readonly ListedToolchain[]): readonly Finding[] {
  const [first] = full;
  if (machine?.isContainer !== true || first === undefined) return [];
  return [
    versions.info(
      'container',
      `Engines built in this container are of TensorRT ${first.version}; a host with another version will not load them, and some programs then just hang.`,
      'Build where the engine will run, or compare with dpkg -l libnvinfer* on the host.',
    ),
  ];
}

const tensorrt = findingsOf('tensorrt');

export function judgeToolchains({
  toolchains: list,
  gpus,
  trtexecs,
  machine,
}: DoctorFacts): readonly Finding[] {
  if (list === undefined) return [];
  const damaged = list.damaged.map(({ path, why }) =>
    tensorrt.warning('damaged', `${path}: ${why}`, 'Install its package again, or remove it.'),
  );
  return [
    ...list.toolchains.map(judgeOne),
    ...damaged,
    ...judgeBuilding(list.toolchains, machine?.platform ?? 'linux'),
    ...judgeTrtexecs(trtexecs ?? [], (gpus?.gpus.length ?? 0) > 0),
  ];
}

function judgeOne(toolchain: ListedToolchain): Finding {
  const { name, foundBy, folder, build, run } = toolchain;
  const where = `${name}, ${foundBy}, ${folder}`;
  if (build.can && run.can) return tensorrt.ok('toolchain', `${where}: builds and runs here`);
  if (build.can) return tensorrt.ok('toolchain', `${where}: builds here; does not run: ${run.why}`);
  if (run.can) return tensorrt.ok('toolchain', `${where}: runs here; does not build: ${build.why}`);
  return tensorrt.info('toolchain', `${where}: ${build.why}`);
}

function judgeBuilding(toolchains: readonly ListedToolchain[], platform: string): readonly Finding[] {
  if (toolchains.some(({ build }) => build.can) || platform !== 'linux') return [];
  return [
    tensorrt.warning(
      toolchains.length === 0 ? 'none' : 'no-builder',
      toolchains.length === 0
        ? 'No TensorRT is installed where trtforge looks.'
        : 'No TensorRT found can build here.',
      'Run `trtforge toolchain install tensorrt-rtx`: it builds without a GPU. For a full TensorRT elsewhere set TENSORRT_HOME.',
    ),
  ];
}

function judgeTrtexecs(trtexecs: NonNullable<DoctorFacts['trtexecs']>, hasGpu: boolean): readonly Finding[] {
  if (trtexecs.length === 0) {
    const what = 'trtexec is not on PATH nor in its usual places; --builder trtexec needs it.';
    return hasGpu
      ? [
          tensorrt.info(
            'trtexec',
            what,
            'It comes with libnvinfer-bin, the archive and the NGC container, not with pip.',
          ),
        ]
      : [];
  }
  return trtexecs.map(({ path, version }) =>
    version === null
      ? tensorrt.warning(
          'trtexec',
          `${path} does not state its version.`,
          'Run it with --help: its libraries may be missing.',
        )
      : tensorrt.ok('trtexec', `trtexec ${version}, ${path}`),
  );
}
