import { readdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { TrtforgeError } from '../../errors.js';
import { driverInChild, lookForGpus } from '../../quality/doctor/gpu.js';
import { lookForOnnxRuntimes, type OnnxRuntimeFacts } from '../../quality/doctor/onnxruntime.js';
import { type ListedToolchain, listToolchains } from '../../quality/doctor/toolchain-list.js';
import { exportFormats, exportsOf, exportText } from '../../tensorrt/toolchain/exports.js';
import { surveyToolchains, thisMachine, toolchainNamed } from '../../tensorrt/toolchain/find.js';
import {
  installOptions,
  installToolchain,
  planInstallation,
  removeToolchain,
} from '../../tensorrt/toolchain/install.js';
import { readManifest } from '../../tensorrt/toolchain/manifest.js';
import { toolchainsFolder } from '../../tensorrt/toolchain/places.js';
import { releaseOf, tensorrtRtxLicense } from '../../tensorrt/toolchain/releases.js';
import type {
  ToolchainEnvResult,
  ToolchainInstallResult,
  ToolchainRemoveResult,
} from '../../tensorrt/toolchain/result.js';
import { type CommandContext, defineCommand, type TextOutput } from '../command.js';
import { choice, text } from '../option.js';
import { step } from '../plan.js';

const folderOption = text({
  flags: '--folder <folder>',
  trust: true,
  describe: 'where trtforge keeps toolchains',
  env: 'TRTFORGE_TOOLCHAINS',
});

const newest = releaseOf(undefined).version;

const nameArgument = { name: 'NAME', describe: 'a name that toolchain list shows, or its folder' };

/** Looks where the option reports too, the way the variable of the same meaning does. */
function machineOf(context: CommandContext, folder: string | undefined) {
  return thisMachine(
    folder === undefined
      ? context.environment
      : { ...context.environment, TRTFORGE_TOOLCHAINS: resolve(folder) },
  );
}

export const list = defineCommand({
  options: { folder: folderOption },
  schema: async () => (await import('../../quality/doctor/toolchain-list.js')).toolchainListSchema,
  run: async (_inputs, { folder }, context) => {
    const machine = machineOf(context, folder);
    const { gpus } = await lookForGpus(machine, driverInChild);
    const [found, onnxRuntimes] = await Promise.all([
      listToolchains(machine, gpus),
      lookForOnnxRuntimes(machine),
    ]);
    return { ...found, onnxRuntimes: [...onnxRuntimes] };
  },
  render: (result, output) => {
    for (const toolchain of result.toolchains) {
      renderToolchain(toolchain, output);
      output.line();
    }
    for (const { path, why } of result.damaged) {
      output.line(`${output.colors.yellow('!')} ${path}`);
      output.line(`  ${why}`);
    }
    for (const library of result.onnxRuntimes ?? []) {
      renderOnnxRuntime(library, output);
      output.line();
    }
    if (result.toolchains.length > 0) return;
    output.line('No TensorRT found.');
    output.line(
      `  ${output.colors.cyan('→')} trtforge toolchain install tensorrt-rtx   # builds engines without a GPU`,
    );
    output.line(
      `  ${output.colors.cyan('→')} TENSORRT_HOME=/path/to/TensorRT-10…      # makes an installed TensorRT visible`,
    );
  },
});

function renderOnnxRuntime(
  { path, foundBy, version, why, providers }: OnnxRuntimeFacts,
  { line, colors }: TextOutput,
): void {
  const row = (name: string, value: string) => line(`  ${colors.dim(name.padEnd(9))} ${value}`);
  line(colors.bold(`onnxruntime-${version ?? 'unknown'}`));
  row('found by', foundBy);
  row('library', path);
  if (why === null) row('provider', 'cpu');
  else row('loads', `${colors.yellow('no')}, ${why}`);
  for (const { name, missing } of providers)
    row('', missing.length === 0 ? name : `${name}: ${colors.yellow('no')}, it needs ${missing.join(', ')}`);
}

function renderToolchain(toolchain: ListedToolchain, { line, colors }: TextOutput): void {
  const { libraries, trtexec, trtexecVersion, license } = toolchain;
  const cuda = toolchain.cudaMajor === null ? '' : `, CUDA ${toolchain.cudaMajor}`;
  const also = toolchain.alsoFoundBy.length === 0 ? '' : `, also ${toolchain.alsoFoundBy.join(', ')}`;
  const row = (name: string, value: string) => line(`  ${colors.dim(name.padEnd(9))} ${value}`);
  const ability = ({ can, why }: ListedToolchain['build']) =>
    can ? colors.green('yes') : `${colors.yellow('no')}, ${why}`;
  line(colors.bold(toolchain.name));
  row('found by', `${toolchain.foundBy}${also}${cuda}`);
  row('libraries', libraries.inference);
  row('', libraries.parser ?? 'no ONNX parser');
  if (libraries.plugins !== null) row('', libraries.plugins);
  if (trtexec !== null) row('trtexec', `${trtexec}${trtexecVersion === null ? '' : ` (${trtexecVersion})`}`);
  if (license !== null) row('licence', license);
  row('builds', ability(toolchain.build));
  row('runs', ability(toolchain.run));
}

const { version, acceptLicense, wheel } = installOptions;

export const install = defineCommand({
  arguments: [{ name: 'PRODUCT', describe: 'tensorrt-rtx' }],
  options: {
    ...{ version, acceptLicense, wheel },
    folder: folderOption,
  },
  examples: [
    'trtforge toolchain install tensorrt-rtx --accept-license',
    `trtforge toolchain install tensorrt-rtx --accept-license --wheel tensorrt_rtx_cu13_libs-${newest}-….whl`,
  ],
  schema: async () => (await import('../../tensorrt/toolchain/result.js')).toolchainInstallSchema,
  run: async ([product = ''], options, context): Promise<ToolchainInstallResult> => {
    rejectProduct(product);
    const { version, wheel, acceptLicense, folder = toolchainsFolder(context.environment) } = options;
    const {
      folder: place,
      manifest,
      isNew,
    } = await installToolchain(
      {
        acceptLicense,
        folder: resolve(folder),
        command: commandText(options),
        version,
        wheel,
      },
      context,
    );
    return {
      schema: 'trtforge.toolchain-install/1',
      name: `${manifest.product}-${manifest.version}`,
      folder: place,
      version: manifest.version,
      installed: isNew,
      wheel: manifest.wheel,
      license: {
        ...tensorrtRtxLicense,
        path: manifest.license === null ? null : join(place, manifest.license),
      },
    };
  },
  plan: async ([product = ''], { version, wheel, folder }, { environment }) => {
    rejectProduct(product);
    const parent = resolve(folder ?? toolchainsFolder(environment));
    const { release, pinned, folder: place, present } = planInstallation({ version, wheel, folder: parent });
    const skipped = present === undefined ? null : 'it is installed already';
    const name = `${release.product}-${release.version}`;
    const bytes = pinned?.bytes ?? null;
    return {
      steps: [
        ...(wheel === undefined
          ? [
              step('download', `${release.packageName} ${release.version}`, {
                detail: 'with pip',
                bytes,
                skipped,
              }),
            ]
          : []),
        step('install', place, { skipped }),
      ],
      resolved: { name, folder: place, license: tensorrtRtxLicense.name },
    };
  },
  render: (result, { line, colors }) => {
    const what = result.installed ? 'is installed' : 'was installed already';
    const checked =
      result.wheel.checkedBy === 'pinned'
        ? 'SHA-256 as pinned in trtforge'
        : 'every member by the SHA-256 in the wheel (this version is not pinned in trtforge)';
    line(`${colors.green('✓')} ${colors.bold(result.name)} ${what} in ${result.folder}`);
    line(`  ${colors.dim('checked')}  ${checked}`);
    line(`  ${colors.dim('licence')}  ${result.license.name}, ${result.license.owner}`);
    line(`           ${result.license.path ?? result.license.url}`);
  },
});

function rejectProduct(product: string): void {
  if (product === 'tensorrt-rtx') return;
  const isFull = product === 'tensorrt';
  throw new TrtforgeError(
    'TF_USAGE',
    isFull
      ? 'trtforge installs tensorrt-rtx only; the full TensorRT comes from NVIDIA.'
      : `trtforge knows no toolchain "${product}" to install.`,
    {
      remedy: isFull
        ? 'Install its Debian packages, its archive or an NGC container, set TENSORRT_HOME to its folder and look at `trtforge toolchain list`.'
        : 'Run: trtforge toolchain install tensorrt-rtx',
    },
  );
}

function commandText(options: {
  readonly version: string | undefined;
  readonly wheel: string | undefined;
  readonly folder: string | undefined;
}): string {
  const passed = (['version', 'wheel', 'folder'] as const).flatMap((name) => {
    const value = options[name];
    return value === undefined ? [] : [`--${name} ${value}`];
  });
  return ['trtforge toolchain install tensorrt-rtx', ...passed].join(' ');
}

export const remove = defineCommand({
  arguments: [nameArgument],
  options: { folder: folderOption },
  schema: async () => (await import('../../tensorrt/toolchain/result.js')).toolchainRemoveSchema,
  run: async ([name = ''], { folder }, context): Promise<ToolchainRemoveResult> => {
    const { toolchain, place } = await removable(name, folder, context);
    removeToolchain(place);
    return { schema: 'trtforge.toolchain-remove/1', name: toolchain.name, folder: place };
  },
  plan: async ([name = ''], { folder }, context) => {
    const { toolchain, place } = await removable(name, folder, context);
    return {
      steps: [step('remove', place, { bytes: folderBytes(place) })],
      resolved: { name: toolchain.name },
    };
  },
  render: ({ name, folder }, { line }) => line(`${name} is removed (${folder}).`),
});

/** The toolchain of a name, and its folder. Throws TF_TOOLCHAIN_NOT_FOUND, and TF_USAGE where trtforge did not install it. */
async function removable(name: string, folder: string | undefined, context: CommandContext) {
  const machine = machineOf(context, folder);
  const { toolchains } = await surveyToolchains(machine);
  const toolchain = toolchainNamed(toolchains, name, machine);
  const place = dirname(toolchain.folder);
  if (readManifest(place) !== undefined) return { toolchain, place };
  throw new TrtforgeError(
    'TF_USAGE',
    `${toolchain.name} in ${toolchain.folder} was not installed by trtforge.`,
    { remedy: `It was found by ${toolchain.foundBy}: remove it with what installed it.` },
  );
}

/** Of all files below a folder. */
const folderBytes = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);

export const env = defineCommand({
  arguments: [nameArgument],
  options: {
    format: choice({
      flags: '--format <format>',
      describe: 'for whom',
      choices: exportFormats,
      default: 'shell',
    }),
    folder: folderOption,
  },
  examples: [
    `eval "$(trtforge toolchain env tensorrt-rtx-${newest})"`,
    'trtforge toolchain env tensorrt-10.6.0.26 --format pixi >> pixi.toml',
    'trtforge toolchain env tensorrt-10.6.0.26 --format dockerfile',
  ],
  schema: async () => (await import('../../tensorrt/toolchain/result.js')).toolchainEnvSchema,
  run: async ([name = ''], { format, folder }, context): Promise<ToolchainEnvResult> => {
    const machine = machineOf(context, folder);
    const { toolchains } = await surveyToolchains(machine);
    const toolchain = toolchainNamed(toolchains, name, machine);
    const { home, libraryFolder, binaryFolder, python } = exportsOf(toolchain);
    return {
      schema: 'trtforge.toolchain-env/1',
      name: toolchain.name,
      format,
      variables: {
        [home.variable]: home.folder,
        ...(libraryFolder === null ? {} : { LD_LIBRARY_PATH: libraryFolder }),
        ...(binaryFolder === null ? {} : { PATH: binaryFolder }),
      },
      python,
      text: exportText(toolchain, format),
    };
  },
  render: (result, { line }) => {
    for (const each of result.text.split('\n')) line(each);
  },
});
