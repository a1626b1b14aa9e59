import { statSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { z } from 'zod';
import { readJson } from '../../base/files/files.js';
import { shellQuote } from '../../base/text/shell-line.js';
import type { FoundToolchain } from './find.js';
import { MANIFEST_NAME } from './places.js';

export const exportFormats = ['shell', 'pixi', 'dockerfile'] as const;
type ExportFormat = (typeof exportFormats)[number];

/** The exports that make a toolchain visible to other programs (and to trtforge). */
interface ToolchainExports {
  /** The variable that names the installation, and its folder. */
  readonly home: { readonly variable: 'TENSORRT_HOME' | 'TENSORRT_RTX_HOME'; readonly folder: string };
  /** Prepended to LD_LIBRARY_PATH; null where the loader looks anyway. */
  readonly libraryFolder: string | null;
  /** Prepended to PATH; null where there is no trtexec. */
  readonly binaryFolder: string | null;
  /** Python bindings of this very version, as pip and Pixi name them. */
  readonly python: string;
}

export function exportsOf(toolchain: FoundToolchain): ToolchainExports {
  const { folder, product, version, trtexec } = toolchain;
  const isTree = ['lib', 'lib64'].includes(basename(folder)) && !isSystemFolder(folder);
  return {
    home: {
      variable: product === 'tensorrt' ? 'TENSORRT_HOME' : 'TENSORRT_RTX_HOME',
      folder: isTree ? dirname(folder) : folder,
    },
    libraryFolder: isSystemFolder(folder) ? null : folder,
    binaryFolder: trtexec === null ? null : dirname(trtexec),
    python: `${product}==${release(version)}.*`,
  };
}

/** On the package index a version has three numbers up to 10.7, and four later. */
const release = (version: string): string => version.split('.').slice(0, 3).join('.');

/** The exports as lines to paste: `export …` for a shell, `[activation.env]` for Pixi, `COPY` and `ENV` for a Dockerfile. */
export function exportText(toolchain: FoundToolchain, format: ExportFormat): string {
  const exports = exportsOf(toolchain);
  const lines = { shell: shellLines, pixi: pixiLines, dockerfile: dockerLines }[format](toolchain, exports);
  return lines.join('\n');
}

function shellLines({ name }: FoundToolchain, exports: ToolchainExports): readonly string[] {
  const { home, libraryFolder, binaryFolder, python } = exports;
  const prepend = (variable: string, folder: string) =>
    `export ${variable}=${shellQuote(folder)}"\${${variable}:+:$${variable}}"`;
  return [
    `# ${name}; its Python bindings: pip install '${python}'`,
    `export ${home.variable}=${shellQuote(home.folder)}`,
    ...(libraryFolder === null ? [] : [prepend('LD_LIBRARY_PATH', libraryFolder)]),
    ...(binaryFolder === null ? [] : [prepend('PATH', binaryFolder)]),
  ];
}

/** Pixi puts the values into `export NAME="value"`, so variables in them are expanded (pixi.prefix.dev, workspace manifest, activation). */
function pixiLines({ name }: FoundToolchain, exports: ToolchainExports): readonly string[] {
  const { home, libraryFolder, binaryFolder, python } = exports;
  return [
    `# ${name}: into pixi.toml; in pyproject.toml the table is [tool.pixi.activation.env],`,
    '# for one feature [feature.NAME.activation.env] or [tool.pixi.feature.NAME.activation.env].',
    `# Its Python bindings: pixi add --pypi '${python}'`,
    '[activation.env]',
    `${home.variable} = ${tomlQuote(home.folder)}`,
    ...(libraryFolder === null
      ? []
      : [`LD_LIBRARY_PATH = ${tomlQuote(`${libraryFolder}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}`)}`]),
    ...(binaryFolder === null ? [] : [`PATH = ${tomlQuote(`${binaryFolder}\${PATH:+:$PATH}`)}`]),
  ];
}

function dockerLines(toolchain: FoundToolchain, exports: ToolchainExports): readonly string[] {
  const { name, version, product } = toolchain;
  const { home, libraryFolder, binaryFolder } = exports;
  if (libraryFolder === null) {
    const major = version.split('.')[0];
    const packages = [`libnvinfer${major}`, `libnvinfer-plugin${major}`, `libnvonnxparsers${major}`];
    return [
      `# ${name} lies in a system folder (${toolchain.foundBy}): install the same version in the image, from NVIDIA's package repository.`,
      `RUN apt-get update && apt-get install -y --no-install-recommends ${packages.map((each) => `${each}=${version}-*`).join(' ')}`,
    ];
  }
  const inside = `/opt/${product}-${version}`;
  const moved = (folder: string) => {
    const path = relative(home.folder, folder);
    return path === '' ? inside : `${inside}/${path}`;
  };
  const isCopied = binaryFolder?.startsWith(`${home.folder}/`) === true;
  return [
    `# ${name}: docker build --build-context tensorrt=${shellQuote(home.folder)} .`,
    "# The image then holds NVIDIA's libraries: their licence states who may receive it.",
    `COPY --from=tensorrt . ${inside}/`,
    `ENV ${home.variable}=${inside}`,
    `ENV LD_LIBRARY_PATH=${moved(libraryFolder)}\${LD_LIBRARY_PATH:+:\${LD_LIBRARY_PATH}}`,
    ...(binaryFolder !== null && isCopied ? [`ENV PATH=${moved(binaryFolder)}:\${PATH}`] : []),
  ];
}

const isSystemFolder = (folder: string): boolean =>
  /^\/(usr\/)?lib(64)?(\/[a-z0-9_]+-linux-gnu)?$|^\/usr\/local\/lib$/.test(folder);

const tomlQuote = (text: string): string => JSON.stringify(text);

/** The result of `trtforge toolchain install`. */
export const toolchainInstallSchema = z.object({
  schema: z.literal('trtforge.toolchain-install/1'),
  name: z.string(),
  folder: z.string(),
  version: z.string(),
  /** False when this version stood there already. */
  installed: z.boolean(),
  wheel: z.object({
    file: z.string(),
    sha256: z.string(),
    bytes: z.number(),
    checkedBy: z.enum(['pinned', 'record']),
  }),
  license: z.object({ owner: z.string(), name: z.string(), url: z.string(), path: z.string().nullable() }),
});
export type ToolchainInstallResult = z.infer<typeof toolchainInstallSchema>;

/** The result of `trtforge toolchain remove`. */
export const toolchainRemoveSchema = z.object({
  schema: z.literal('trtforge.toolchain-remove/1'),
  name: z.string(),
  folder: z.string(),
});
export type ToolchainRemoveResult = z.infer<typeof toolchainRemoveSchema>;

/** The result of `trtforge toolchain env`. */
export const toolchainEnvSchema = z.object({
  schema: z.literal('trtforge.toolchain-env/1'),
  name: z.string(),
  format: z.enum(exportFormats),
  /** Folders by variable; LD_LIBRARY_PATH and PATH are to be prepended to. */
  variables: z.record(z.string(), z.string()),
  /** Python bindings of this very version, as pip and Pixi name them: `tensorrt==10.6.0.*`. */
  python: z.string(),
  /** The lines to paste. */
  text: z.string(),
});
export type ToolchainEnvResult = z.infer<typeof toolchainEnvSchema>;

/** The content of `toolchain.json` in an installed toolchain's folder: its origin. Paths are relative to the folder. */
export const toolchainManifestSchema = z.object({
  schema: z.literal('trtforge.toolchain/1'),
  product: z.literal('tensorrt-rtx'),
  version: z.string(),
  wheel: z.object({
    file: z.string(),
    sha256: z.string(),
    bytes: z.number(),
    /** `pinned`: the whole file has the digest trtforge knows; `record`: every member has the digest the wheel itself lists. */
    checkedBy: z.enum(['pinned', 'record']),
  }),
  /** Path of the licence text in the folder; null where the wheel has none. */
  license: z.string().nullable(),
  files: z.array(z.object({ path: z.string(), bytes: z.number() })),
  installedAt: z.string(),
});
export type ToolchainManifest = z.infer<typeof toolchainManifestSchema>;

/** The manifest of a finished installation, or undefined where the folder is not one (or lost a file). */
export function readManifest(folder: string): ToolchainManifest | undefined {
  const path = join(folder, MANIFEST_NAME);
  const parsed = toolchainManifestSchema.safeParse(readJson(path));
  const isWhole = parsed.data?.files.every((file) => hasSize(join(folder, file.path), file.bytes)) === true;
  return isWhole ? parsed.data : undefined;
}

function hasSize(path: string, bytes: number): boolean {
  try {
    return statSync(path).size === bytes;
  } catch {
    return false;
  }
}
