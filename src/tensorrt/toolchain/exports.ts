import { basename, dirname, relative } from 'node:path';
import { shellQuote } from '../../base/text/shell-line.js';
import type { FoundToolchain } from './find.js';

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
