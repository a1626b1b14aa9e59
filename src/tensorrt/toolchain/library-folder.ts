import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { openFile } from '../../base/files/byte-source.js';
import { namesIn } from '../../base/files/files.js';
import { versionOfCode } from '../../behaviour/versions.js';
import { TrtforgeError } from '../../errors.js';
import { constantReturned, type ElfFacts, readElf } from './elf.js';
import type { DamagedLibrary, Flavour, Toolchain } from './toolchain.js';

/** One inference library with what lies beside it in its folder. */
export interface LibraryGroup {
  readonly product: Toolchain['product'];
  readonly flavour: Flavour;
  /** As the library itself reports, or its file name; null where neither does. */
  readonly version: string | null;
  readonly architecture: string;
  readonly libraries: Toolchain['libraries'];
  /** From the parser's file name (`libnvonnxparser.so.10.6.0`), links followed: the library itself reports a number of its own. Null where the name is short. */
  readonly parserVersion: string | null;
  /** CUDA major it is linked against; null where it links none. */
  readonly cudaMajor: number | null;
  /** The targets of the builder's kernels: `sm89`, `ptx`, or `all` (one file for every architecture). Empty for tensorrt-rtx, which needs none. */
  readonly builderResources: readonly string[];
  /** Where the inference library really is, links followed. */
  readonly realPath: string;
}

interface Family {
  readonly product: Toolchain['product'];
  readonly flavour: Flavour;
  readonly inference: string;
  readonly parser: string | null;
  readonly plugins: string | null;
}

const families: readonly Family[] = [
  {
    product: 'tensorrt',
    flavour: 'full',
    inference: 'libnvinfer',
    parser: 'libnvonnxparser',
    plugins: 'libnvinfer_plugin',
  },
  { product: 'tensorrt', flavour: 'lean', inference: 'libnvinfer_lean', parser: null, plugins: null },
  { product: 'tensorrt', flavour: 'dispatch', inference: 'libnvinfer_dispatch', parser: null, plugins: null },
  {
    product: 'tensorrt-rtx',
    flavour: 'full',
    inference: 'libtensorrt_rtx',
    parser: 'libtensorrt_onnxparser_rtx',
    plugins: null,
  },
];

/** Describes every TensorRT in a folder without loading one: a few kilobytes of each library are read. A folder that cannot be listed has none. */
export function readLibraryFolder(folder: string): {
  readonly groups: readonly LibraryGroup[];
  readonly damaged: readonly DamagedLibrary[];
} {
  const names = namesIn(folder);
  const groups: LibraryGroup[] = [];
  const damaged: DamagedLibrary[] = [];
  for (const family of families) {
    for (const [major, name] of byMajor(names, family.inference)) {
      const path = join(folder, name);
      try {
        groups.push(describe(folder, names, family, major, path));
      } catch (error) {
        if (!(error instanceof TrtforgeError)) throw error;
        damaged.push({ path, why: error.message });
      }
    }
  }
  return { groups, damaged };
}

function describe(
  folder: string,
  names: readonly string[],
  family: Family,
  major: string,
  path: string,
): LibraryGroup {
  const beside = (stem: string | null) => {
    const name = stem === null ? undefined : byMajor(names, stem).get(major);
    return name === undefined ? null : join(folder, name);
  };
  const realPath = followed(path);
  const { facts, version } = readLibrary(realPath);
  const parser = beside(family.parser);
  return {
    product: family.product,
    flavour: family.flavour,
    version: version ?? versionInName(realPath),
    architecture: facts.architecture,
    libraries: { inference: path, parser, plugins: beside(family.plugins) },
    parserVersion: parser === null ? null : versionInName(followed(parser)),
    cudaMajor: cudaMajorOf(facts),
    builderResources: family.product === 'tensorrt' && family.flavour === 'full' ? resources(names) : [],
    realPath,
  };
}

function followed(path: string): string {
  try {
    return realpathSync(path);
  } catch (cause) {
    throw new TrtforgeError('TF_LIBRARY_INVALID', `${path} is a link to a file that is not there.`, {
      cause,
    });
  }
}

/** A full TensorRT exports a symbol named after its whole version since 8; in lean and dispatch runtimes functions return it, the build number by one of its own since 10. */
function readLibrary(path: string): { readonly facts: ElfFacts; readonly version: string | null } {
  const source = openFile(path);
  try {
    const facts = readElf(source);
    for (const name of facts.symbols.keys()) {
      const match = /^tensorrt_version_(\d+)_(\d+)_(\d+)_(\d+)$/.exec(name);
      if (match !== null) return { facts, version: match.slice(1).join('.') };
    }
    const code = returned(facts, source, 'getInferLibVersion');
    const build = returned(facts, source, 'getInferLibBuildVersion');
    if (code === null) return { facts, version: null };
    return { facts, version: build === null ? versionOfCode(code) : `${versionOfCode(code)}.${build}` };
  } finally {
    source.close();
  }
}

function returned(facts: ElfFacts, source: Parameters<typeof readElf>[0], name: string): number | null {
  const symbol = facts.symbols.get(name);
  return symbol === undefined ? null : constantReturned(source, symbol, facts.architecture);
}

function cudaMajorOf(facts: ElfFacts): number | null {
  for (const name of facts.needed) {
    const major = /^libcudart\.so\.(\d+)/.exec(name)?.[1];
    if (major !== undefined) return Number(major);
  }
  return null;
}

/** `libnvinfer_builder_resource_sm89.so.10.16.2` → sm89; `libnvinfer_builder_resource.so.10.6.0` → all. Windows cross-build resources are not ours. */
function resources(names: readonly string[]): readonly string[] {
  const found = names.flatMap((name) => {
    const match = /^libnvinfer_builder_resource(?:_([a-z0-9]+))?\.so\b/.exec(name);
    return match === null ? [] : [match[1] ?? 'all'];
  });
  return [...new Set(found)].sort();
}

/** For each major version the name to load: `libnvinfer.so.10` before `libnvinfer.so.10.6.0`; the link without a number only where there is no other. */
function byMajor(names: readonly string[], stem: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const name of names) {
    if (!name.startsWith(`${stem}.so.`)) continue;
    const rest = name.slice(stem.length + 4);
    const major = /^(\d+)(\.\d+)*$/.exec(rest)?.[1];
    const present = major === undefined ? undefined : found.get(major);
    if (major !== undefined && (present === undefined || name.length < present.length))
      found.set(major, name);
  }
  return found;
}

function versionInName(path: string): string | null {
  return /\.so\.(\d+\.\d+\.\d+(?:\.\d+)?)$/.exec(path)?.[1] ?? null;
}
