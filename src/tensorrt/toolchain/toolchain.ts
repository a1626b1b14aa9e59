import { readFileSync } from 'node:fs';
import type { Generation } from '../../addon/addon.js';
import { behaviour, type Processor, products } from '../../behaviour/facts.js';
import { isWithin, rangeText } from '../../behaviour/versions.js';

/** `full` builds and runs, `lean` only runs, `dispatch` only runs plans that bring their own runtime. */
export type Flavour = 'full' | 'lean' | 'dispatch';

/** An installed TensorRT: where its libraries are and which product and version they are. */
export interface Toolchain {
  readonly product: 'tensorrt' | 'tensorrt-rtx';
  /** `major.minor.patch.build`, as the library itself reports; build is absent where the library cannot report it. */
  readonly version: string;
  /** Left out for `full`. */
  readonly flavour?: Flavour;
  readonly libraries: {
    /** libnvinfer.so.N or libtensorrt_rtx.so.N */
    readonly inference: string;
    /** libnvonnxparser.so.N or libtensorrt_onnxparser_rtx.so.N; null in a runtime-only installation. */
    readonly parser: string | null;
    /** libnvinfer_plugin.so.N, where there is one. */
    readonly plugins: string | null;
  };
  readonly trtexec: string | null;
  /** The way it was found, for users: `installed by trtforge`, `TENSORRT_HOME`, `loader path`, `Debian package`, `pip package`, `tar`, `NGC`. */
  readonly foundBy: string;
}

/** A file that should be a library of TensorRT, and why it is none that can be used, for users. */
export interface DamagedLibrary {
  readonly path: string;
  readonly why: string;
}

/** A TensorRT-RTX release that trtforge can install, and what its wheels must be. */
export interface Release {
  readonly product: 'tensorrt-rtx';
  /** `major.minor.patch.build`. */
  readonly version: string;
  /** Name of the wheel's package. */
  readonly packageName: string;
  /** Those for Linux; null for a version whose digests nobody has pinned here. */
  readonly wheels: Readonly<Record<Processor, PinnedWheel>> | null;
}

export interface PinnedWheel {
  /** The platform in its name. */
  readonly tag: string;
  readonly sha256: string;
  readonly bytes: number;
}

interface License {
  readonly owner: string;
  readonly name: string;
  readonly url: string;
}

/** Shown before anything is downloaded. The text itself is in the wheel. */
export const tensorrtRtxLicense: License = {
  owner: 'NVIDIA Corporation',
  name: 'NVIDIA Software License Agreement for TensorRT-RTX',
  url: 'https://docs.nvidia.com/deeplearning/tensorrt-rtx/latest/',
};

/** Newest first: the first is the default. */
const releases: readonly Release[] = behaviour['rtx-wheels'].value;
const [newest] = behaviour['rtx-wheels'].value;

/** The platform in the names of wheels for a processor, as the newest release has it. */
export const wheelTag = (processor: Processor): string => newest.wheels[processor].tag;

/** The release of a version, pinned or not; without a version the newest pinned one. */
export function releaseOf(version: string | undefined): Release {
  if (version === undefined) return newest;
  const pinned = releases.find((release) => release.version === version);
  return pinned ?? { ...newest, version, wheels: null };
}

/** The content of a table in `native/abi/` on one generation: the functions of each class and the numbers of each enumeration. */
interface AbiTable {
  readonly generation: Generation;
  /** First and last version the table was derived from. */
  readonly from: string;
  readonly to: string;
  readonly classes: Readonly<Record<string, { readonly slots: readonly AbiSlot[] }>>;
  readonly enums: Readonly<Record<string, Readonly<Record<string, AbiNumber>>>>;
}

interface AbiSlot {
  readonly index: number;
  readonly name: string;
  readonly parameters: number;
  readonly since?: string;
}

interface AbiNumber {
  readonly value: number;
  readonly since?: string;
}

export const generations: readonly Generation[] = behaviour.generations.value.map(
  ({ generation }) => generation,
);

const tables = new Map<Generation, AbiTable>();

export function abiTable(generation: Generation): AbiTable {
  let table = tables.get(generation);
  if (table === undefined) {
    const file = new URL(`../../../native/abi/${generation}.json`, import.meta.url);
    table = JSON.parse(readFileSync(file, 'utf8')) as AbiTable;
    tables.set(generation, table);
  }
  return table;
}

/** The generation whose table an installation follows; null where there is none. */
export function generationOf({
  product,
  version,
}: Pick<Toolchain, 'product' | 'version'>): Generation | null {
  const found = behaviour.generations.value.find((row) => row.product === product && isWithin(version, row));
  return found?.generation ?? null;
}

/** A function of a class, or a number of an enumeration, that may be missing in a version. */
export type Feature =
  | { readonly class: string; readonly name: string }
  | { readonly enum: string; readonly name: string };

/** The first version of a generation that has a feature; null where none has. */
export function sinceIn(generation: Generation, feature: Feature): string | null {
  const table = abiTable(generation);
  const found =
    'class' in feature
      ? table.classes[feature.class]?.slots.find(({ name }) => name === feature.name)
      : table.enums[feature.enum]?.[feature.name];
  return found === undefined ? null : (found.since ?? table.from);
}

/** True where `version` is `since` or newer; numbers a version lacks count as zero. */
export function isAtLeast(version: string, since: string): boolean {
  const wanted = since.split('.').map(Number);
  const own = version.split('.').map(Number);
  for (const [index, number] of wanted.entries()) {
    const difference = (own[index] ?? 0) - number;
    if (difference !== 0) return difference > 0;
  }
  return true;
}

/** The versions that have a feature, for an error: `TensorRT 10.8.0 to 10.x, TensorRT 11.x, TensorRT-RTX 1.7 to 1.x`. */
export function versionsWith(feature: Feature): string {
  const named = behaviour.generations.value.flatMap(({ generation, product, ...range }) => {
    const since = sinceIn(generation, feature);
    if (since === null) return [];
    const isWhole = since === abiTable(generation).from;
    return [`${products[product]} ${rangeText(isWhole ? range : { ...range, since })}`];
  });
  return named.length === 0 ? 'no version of TensorRT' : named.join(', ');
}

/** `sparse-weights` as TensorRT spells it: `kSPARSE_WEIGHTS`. */
export const enumerator = (name: string): string => `k${name.toUpperCase().replaceAll('-', '_')}`;

/** The number of an enumerator in a version of a generation; null where that version lacks it. */
export function numberOf(
  generation: Generation,
  version: string,
  enumeration: string,
  name: string,
): number | null {
  const since = sinceIn(generation, { enum: enumeration, name });
  if (since === null || !isAtLeast(version, since)) return null;
  return abiTable(generation).enums[enumeration]?.[name]?.value ?? null;
}
