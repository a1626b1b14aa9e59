import { homedir } from 'node:os';
import { dirname, isAbsolute, join, relative } from 'node:path';
import { namesIn } from '../../base/files/files.js';
import { runCommand } from '../../base/process/command.js';
import { behaviour, products, serves } from '../../behaviour/facts.js';
import { isInLine, rangeText } from '../../behaviour/versions.js';
import { TrtforgeError } from '../../errors.js';
import { generationOf } from './abi.js';
import { type LibraryGroup, readLibraryFolder } from './library-folder.js';
import { type Host, places, placesIn, type SearchedPlace } from './places.js';
import type { DamagedLibrary, Flavour, Toolchain } from './toolchain.js';
import { trtexecBeside } from './trtexec.js';

/** A toolchain as it lies on this machine. */
export interface FoundToolchain extends Toolchain {
  /** Names it on the command line: `tensorrt-10.6.0.26`, with `@2` and so on where several have one version. */
  readonly name: string;
  /** Where its libraries are. */
  readonly folder: string;
  readonly flavour: Flavour;
  /** Other ways that lead to the same library. */
  readonly alsoFoundBy: readonly string[];
  readonly parserVersion: string | null;
  readonly cudaMajor: number | null;
  readonly builderResources: readonly string[];
}

export interface Survey {
  readonly toolchains: readonly FoundToolchain[];
  /** Files with a TensorRT library's name that are not one for this machine. */
  readonly damaged: readonly DamagedLibrary[];
}

export function thisMachine(environment: NodeJS.ProcessEnv = process.env): Host {
  return {
    environment,
    root: '',
    home: environment.HOME || homedir(),
    workingFolder: process.cwd(),
    architecture: process.arch,
    run: runCommand,
  };
}

/** Every TensorRT on this machine, the most deliberately placed first. No library is loaded; the whole takes some milliseconds. */
export async function findToolchains(
  environment: NodeJS.ProcessEnv = process.env,
): Promise<readonly FoundToolchain[]> {
  return (await surveyToolchains(thisMachine(environment))).toolchains;
}

/** `findToolchains` over any host, with what was found damaged. */
export const surveyToolchains = async (host: Host): Promise<Survey> => surveyPlaces(await places(host), host);

/** The survey of these places. */
export function surveyPlaces(where: readonly SearchedPlace[], host: Host): Survey {
  const candidates = new Map<string, Candidate>();
  const damaged = new Map<string, DamagedLibrary>();
  const seen = new Set<string>();
  for (const place of where) {
    if (seen.has(`${place.folder}\n${place.foundBy}`)) continue;
    seen.add(`${place.folder}\n${place.foundBy}`);
    const { groups, damaged: bad } = readLibraryFolder(place.folder);
    for (const item of bad) damaged.set(item.path, item);
    for (const group of groups) {
      if (group.architecture !== host.architecture) {
        damaged.set(group.realPath, wrongProcessor(group, host.architecture));
      } else addCandidate(candidates, group, place);
    }
  }
  const found = [...candidates.values()];
  return {
    toolchains: named(found.map((candidate) => toToolchain(candidate, found, host))),
    damaged: [...damaged.values()],
  };
}

interface ToolchainRequest {
  readonly product: Toolchain['product'];
  /** A version or its beginning: `10`, `10.6`, `10.6.0.26`. */
  readonly version?: string;
  /** The GPU that a target names. */
  readonly computeCapability?: number | undefined;
  /** The required ability; building needs the full libraries and the ONNX parser. Default: build. */
  readonly purpose?: 'build' | 'run';
}

/**
 * The first found that fits the request. Throws TF_TOOLCHAIN_NOT_FOUND that names what is there instead, damaged libraries among it, and what to do.
 */
export function chooseToolchain(
  found: readonly FoundToolchain[],
  { product, version, computeCapability, purpose = 'build' }: ToolchainRequest,
  damaged: readonly DamagedLibrary[] = [],
): FoundToolchain {
  const ofProduct = found.filter((toolchain) => toolchain.product === product);
  const ofVersion = ofProduct.filter((each) => version === undefined || isInLine(each.version, version));
  const unable = purpose === 'run' ? unknownVersion : unableToBuild;
  const able = ofVersion.filter((each) => unable(each) === null);
  const [chosen] = able.toSorted((a, b) => Number(b.flavour === 'full') - Number(a.flavour === 'full'));
  if (chosen !== undefined) return chosen;
  const what = version === undefined ? product : `${product} ${version}`;
  const [near] = ofVersion;
  const why =
    near !== undefined
      ? `${near.name} in ${near.folder} cannot ${purpose}: ${unable(near)}`
      : ofProduct.length === 0
        ? `no ${product} is installed where trtforge looks`
        : `found are ${ofProduct.map((each) => each.version).join(', ')}`;
  const unusable = damaged.length === 0 ? '' : ` ${damaged.map((each) => each.why).join(' ')}`;
  const repair = damaged.length === 0 ? '' : 'Install the package of the library named again. ';
  throw new TrtforgeError(
    'TF_TOOLCHAIN_NOT_FOUND',
    `There is no ${what} to ${purpose} with: ${why}.${unusable}`,
    {
      remedy: `${repair}${installRemedy({ product, version, computeCapability, purpose })}`,
      details: { product, version: version ?? null, found: found.map((each) => each.name) },
    },
  );
}

/** A toolchain of another machine: engines for it have an identity here, and can be found in stores, but not built. */
export const declaredToolchain = (
  product: Toolchain['product'],
  { version, cudaMajor }: Pick<FoundToolchain, 'version' | 'cudaMajor'>,
): FoundToolchain => ({
  product,
  version,
  cudaMajor,
  name: `${product}-${version}`,
  folder: '',
  flavour: 'full',
  alsoFoundBy: [],
  parserVersion: null,
  builderResources: [],
  libraries: { inference: '', parser: null, plugins: null },
  trtexec: null,
  foundBy: DECLARED,
});

const DECLARED = 'declared';

export const isDeclared = ({ foundBy }: Pick<Toolchain, 'foundBy'>): boolean => foundBy === DECLARED;

/** Why trtforge cannot drive a version, or null when it can: it needs the version's table of virtual functions. */
export function unknownVersion({ product, version }: Pick<Toolchain, 'product' | 'version'>): string | null {
  if (generationOf({ product, version }) !== null) return null;
  const driven = behaviour.generations.value.map((row) => `${products[row.product]} ${rangeText(row)}`);
  return `trtforge drives ${driven.join(', ')}, not ${version}`;
}

/** Why a toolchain cannot build engines, or null when it can. */
export function unableToBuild(toolchain: FoundToolchain): string | null {
  const unknown = unknownVersion(toolchain);
  if (unknown !== null) return unknown;
  if (toolchain.flavour !== 'full') return `it is the ${toolchain.flavour} runtime, which has no builder`;
  if (toolchain.libraries.parser === null) return 'its ONNX parser library is missing';
  return null;
}

/** How to get a toolchain. */
export function installRemedy({
  product,
  version,
  computeCapability: sm,
  purpose,
}: ToolchainRequest): string {
  const list = '`trtforge toolchain list` shows what is found and where.';
  if (product === 'tensorrt-rtx') {
    const wanted = version !== undefined && /^\d+(\.\d+){3}$/.test(version) ? ` --version ${version}` : '';
    return `Run \`trtforge toolchain install tensorrt-rtx${wanted} --accept-license\`. ${list}`;
  }
  const wanted = version === undefined ? '' : ` ${version}`;
  const install = `Install TensorRT${wanted} from NVIDIA (Debian package, archive or container) and set TENSORRT_HOME to its folder`;
  if (purpose === 'run') return `${install}. ${list}`;
  const rtx = { product: 'tensorrt-rtx', version: behaviour['rtx-gpus']['tensorrt-rtx'].since } as const;
  if (sm === undefined) return `${install}, or build without it: --target tensorrt-rtx. ${list}`;
  const instead = serves(rtx, sm) === 'yes' ? `, or build without it: --target tensorrt-rtx:sm_${sm}` : '';
  return `${install}${instead}. To find the engine of another machine, name the version there: --target tensorrt@${version ?? 'VERSION'}:sm_${sm}. ${list}`;
}

interface Candidate {
  readonly group: LibraryGroup;
  readonly place: SearchedPlace;
  readonly alsoFoundBy: Set<string>;
}

function addCandidate(candidates: Map<string, Candidate>, group: LibraryGroup, place: SearchedPlace): void {
  const known = candidates.get(group.realPath);
  if (known === undefined) {
    candidates.set(group.realPath, { group, place, alsoFoundBy: new Set() });
  } else if (known.place.foundBy !== place.foundBy) known.alsoFoundBy.add(place.foundBy);
}

function wrongProcessor(group: LibraryGroup, architecture: string): DamagedLibrary {
  return {
    path: group.realPath,
    why: `${group.realPath} is for ${group.architecture}; this machine is ${architecture}.`,
  };
}

const isOnLoaderPath = ({ foundBy }: SearchedPlace): boolean => /loader path|Debian|NGC/.test(foundBy);

function toToolchain(
  { group, place, alsoFoundBy }: Candidate,
  all: readonly Candidate[],
  host: Host,
): FoundToolchain {
  const { product, flavour, libraries, parserVersion, builderResources } = group;
  const record = packageRecord(place.folder, product, flavour);
  // That on PATH belongs to the library that the loader takes, where there is one alone.
  const isOnlyOne =
    all.filter(
      (each) =>
        each.group.product === product && each.group.flavour === flavour && isOnLoaderPath(each.place),
    ).length === 1;
  const major = /\.so\.(\d+)/.exec(libraries.inference)?.[1] ?? '0';
  return {
    name: '',
    product,
    version: group.version ?? record?.version ?? major,
    libraries,
    trtexec: trtexecBeside(product, place.folder, isOnlyOne && isOnLoaderPath(place), host),
    foundBy: place.foundBy,
    folder: place.folder,
    flavour,
    alsoFoundBy: [...alsoFoundBy],
    parserVersion,
    cudaMajor: group.cudaMajor ?? record?.cudaMajor ?? null,
    builderResources,
  };
}

/** The facts in the wheel's record beside a pip folder: `tensorrt_rtx_cu13_libs-1.7.1.116.dist-info`. */
function packageRecord(
  folder: string,
  product: Toolchain['product'],
  flavour: Flavour,
): { readonly version: string; readonly cudaMajor: number | null } | undefined {
  const part = product === 'tensorrt-rtx' ? '_rtx' : flavour === 'full' ? '' : `_${flavour}`;
  const pattern = new RegExp(`^tensorrt${part}(?:_cu(\\d+))?_libs-([\\d.]+)(?:\\.post\\d+)?\\.dist-info$`);
  for (const name of namesIn(dirname(folder))) {
    const match = pattern.exec(name);
    if (match?.[2] !== undefined) {
      return { version: match[2], cudaMajor: match[1] === undefined ? null : Number(match[1]) };
    }
  }
  return undefined;
}

/** Makes the names of toolchains unique, in the order found. */
function named(toolchains: readonly FoundToolchain[]): readonly FoundToolchain[] {
  const count = new Map<string, number>();
  return toolchains.map((toolchain) => {
    const flavour = toolchain.flavour === 'full' ? '' : `-${toolchain.flavour}`;
    const base = `${toolchain.product}${flavour}-${toolchain.version}`;
    const number = (count.get(base) ?? 0) + 1;
    count.set(base, number);
    return { ...toolchain, name: number === 1 ? base : `${base}@${number}` };
  });
}

/**
 * The toolchain of a name, or the first of a product; or, where a slash, `.` or `..` names a folder, the one in it: an installation, an archive or an environment, also where trtforge does not look
 * by itself. Throws TF_TOOLCHAIN_NOT_FOUND.
 */
export function toolchainNamed(found: readonly FoundToolchain[], name: string, host: Host): FoundToolchain {
  const match =
    found.find((each) => each.name === name) ??
    found.find(({ product, flavour }) => product === name && flavour === 'full');
  if (match !== undefined) return match;
  if (name.includes('/') || /^\.\.?$/.test(name)) return toolchainIn(found, name, host);
  const names = found.map((each) => each.name);
  throw new TrtforgeError(
    'TF_TOOLCHAIN_NOT_FOUND',
    `There is no toolchain named ${name}; found ${names.length === 0 ? 'is none' : `are ${names.join(', ')}`}.`,
  );
}

function toolchainIn(found: readonly FoundToolchain[], path: string, host: Host): FoundToolchain {
  const home = isAbsolute(path) ? join(path) : join(host.workingFolder, path);
  const inside = placesIn(home, 'its folder');
  const known = found.filter(({ folder }) => inside.some((place) => relative(place.folder, folder) === ''));
  const { toolchains, damaged } =
    known.length > 0 ? { toolchains: known, damaged: [] } : surveyPlaces(inside, host);
  const chosen = toolchains.find(({ flavour }) => flavour === 'full') ?? toolchains[0];
  if (chosen !== undefined) return chosen;
  const unusable = damaged.map(({ why }) => ` ${why}`).join('');
  throw new TrtforgeError(
    'TF_TOOLCHAIN_NOT_FOUND',
    `${path} holds no TensorRT that this machine can use, nor does its lib folder.${unusable}`,
    {
      remedy: 'Name the folder that an archive of TensorRT unpacks to, or the one that holds libnvinfer.so.',
    },
  );
}
