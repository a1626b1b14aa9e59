import { valuesOf } from '../../base/options/option.js';
import { splitAtCommas } from '../../base/options/readers.js';
import { behaviour } from '../../behaviour/facts.js';
import { type BuildOptions, builderNames } from '../../engines/builder/build.js';
import { builderConfigKeys, parseBuilderConfig } from '../../engines/identity/builder-config.js';
import { parseTarget } from '../../engines/identity/target.js';
import { type ProfileRequest, parseProfile } from '../../engines/profiles/profile.js';
import { type SizeRange, sizeRange } from '../../engines/profiles/sizes.js';
import { TrtforgeError } from '../../errors.js';
import { preparationOptions } from '../../formats/images/preprocess.js';
import { formatIds } from '../../formats/precision/formats/index.js';
import {
  advanced,
  choice,
  flag,
  inConfig,
  type OptionTable,
  type OptionValues,
  option,
  text,
} from '../option.js';
import { numberNamed, parseSize } from '../values.js';
import { placeOptions } from './comparison.js';
import { calibrationPlaceOptions, conversionFrom, typedConversionOptions } from './conversion.js';

/** What an engine is for; every command that builds has the same. */
const targetOptions = {
  target: option({
    flags: '--target <target>',
    group: 'Target',
    describe:
      'tensorrt-rtx:sm_89,sm_120, tensorrt-rtx, tensorrt, tensorrt:sm_90, tensorrt@10.13.3.9:sm_90 (default: tensorrt with a GPU, else tensorrt-rtx)',
    parse: parseTarget,
  }),
  toolchain: text({
    flags: '--toolchain <name>',
    group: 'Target',
    trust: true,
    advanced: true,
    describe:
      'which TensorRT: a name of `trtforge toolchain list`, or its folder (default: the first for the target)',
  }),
  device: option({
    flags: '--device <number>',
    group: 'Target',
    describe: 'which visible GPU builds and runs (default: 0); tensorrt-rtx builds without one',
    parse: numberNamed('device'),
    advanced: true,
  }),
};

const { calibration, keepNodes, keepOps, ioTypes, rest, calibrationMethod, calibrationCache } =
  typedConversionOptions('conversion: ');

/** What a first conversion needs, on the command line; the rest of a conversion is in the configuration file. */
const firstConversionOptions = {
  calibration,
  ...preparationOptions,
  ...advanced({ keepNodes, keepOps, ioTypes, rest, calibrationMethod, calibrationCache }),
};

/** Every option that decides what is built, besides profiles. */
export const recipeOptions = {
  ...targetOptions,
  precision: choice({
    flags: '--precision <type>',
    describe: `${formatIds.join(', ')} convert the graph first; as-is builds the graph's own types, such as FP32`,
    choices: ['as-is', ...formatIds],
    default: 'as-is',
  }),
  weaklyTyped: flag({
    flags: '--weakly-typed',
    group: 'Builder',
    describe: `before TensorRT ${behaviour['weak-typing'].tensorrt.until}: the builder chooses types up to --precision, and nothing is converted`,
    advanced: true,
  }),
  ...configOnly(typedConversionOptions('conversion: ')),
  ...configOnly(calibrationPlaceOptions),
  ...firstConversionOptions,
  workspace: option({
    flags: '--workspace <size>',
    group: 'Builder',
    describe: 'most GPU memory that the builder may use as scratch space: 4G; a bare number is MiB',
    parse: parseSize,
  }),
  builderConfig: text({
    flags: '--builder-config <key=value>',
    group: 'Builder',
    describe: `a builder setting: ${builderConfigKeys.join(', ')}; lists by comma`,
    repeat: true,
    advanced: true,
  }),
  plugin: text({
    flags: '--plugin <library>',
    group: 'Builder',
    trust: true,
    describe: 'a plug-in library that the model needs',
    repeat: true,
    advanced: true,
  }),
};

/** The option table with every option as a key of the configuration file only. */
export function configOnly<O extends OptionTable>(table: O): O {
  return Object.fromEntries(
    Object.entries(table).map(([key, spec]) => [key, inConfig(spec)]),
  ) as unknown as O;
}

/** Every option that decides what is built; `build`, `forge` and `cache why` have the same. */
export const buildOptions = {
  ...recipeOptions,
  profile: option({
    flags: '--profile <ranges>',
    describe:
      'an optimization profile: x:1x3x224x224, or NAME:MIN/OPT/MAX, several inputs by comma; NAME=MIN/OPT/MAX for values of a shape tensor',
    parse: parseProfile,
    repeat: true,
    group: 'Profiles',
  }),
  batch: option({
    flags: '--batch <n>',
    describe: 'size of the open first axis of every input: 8, or MIN/OPT/MAX as 1/8/64',
    parse: (text) => sizeRange(text),
    group: 'Profiles',
  }),
  dim: option({
    flags: '--dim <name=size>',
    describe: 'an open dimension by its name in the model: height=640, batch=1/8/64',
    parse: parseDimensions,
    repeat: true,
    group: 'Profiles',
  }),
  profileFrom: text({
    flags: '--profile-from <file>',
    describe: 'profiles from samples, a contract or a recorded stream',
    repeat: true,
    group: 'Profiles',
  }),
  name: text({
    flags: '--name <name>',
    describe:
      "NAME or NAME:VERSION in the engine's readable name (default: the file's, and digits of its digest)",
    advanced: true,
  }),
};
export type BuildOptionValues = OptionValues<typeof buildOptions> & { readonly inputs?: readonly string[] };

/** Who builds; not part of what is built, so `cache why` does not ask. */
export const builderOption = {
  builder: choice({
    flags: '--builder <builder>',
    group: 'Builder',
    describe: 'native calls the library; trtexec runs that program (logs: ~/.cache/trtforge/build_logs)',
    choices: builderNames,
    default: 'native',
    advanced: true,
  }),
};

/** The options as the builder takes them. Throws TF_USAGE for options that contradict each other. */
export function buildRequest(model: string, options: BuildOptionValues): BuildOptions {
  const [modelName, modelVersion] = options.name === undefined ? [] : nameAndVersion(options.name);
  return {
    model,
    ...recipeRequest(options),
    profiles: profilesOf(options),
    batch: options.batch,
    dims: dimsOf(options.dim),
    modelName,
    modelVersion,
  };
}

/** The same without a model and its profiles. */
export function recipeRequest(
  options: OptionValues<typeof recipeOptions> & Pick<BuildOptionValues, 'inputs'>,
): Omit<BuildOptions, 'model' | 'profiles' | 'batch' | 'dims'> {
  const settings = parseBuilderConfig(options.builderConfig);
  const { workspace } = options;
  return {
    target: options.target,
    toolchain: options.toolchain,
    device: options.device,
    precision: options.precision,
    weaklyTyped: options.weaklyTyped,
    conversion: conversionFrom(options, valuesOf(placeOptions, options)),
    settings: {
      ...settings,
      memoryPools: { ...settings.memoryPools, ...(workspace === undefined ? {} : { workspace }) },
    },
    plugins: options.plugin,
  };
}

/** `yolo:3` is the model yolo in its version 3. */
function nameAndVersion(name: string): readonly [string, string | undefined] {
  const colon = name.lastIndexOf(':');
  return colon < 0 ? [name, undefined] : [name.slice(0, colon), name.slice(colon + 1)];
}

/** Reads `height=640` and `batch=1/8/64`, several by comma; the last `=` separates. */
function parseDimensions(text: string): readonly (readonly [name: string, size: SizeRange])[] {
  return splitAtCommas(text).map((part) => {
    const [, name, size] = /^['"]?(.+?)['"]?=([^=]*)$/.exec(part) ?? [];
    if (name !== undefined && size !== undefined) return [name, sizeRange(size, 0)];
    throw new TrtforgeError('TF_USAGE', `"${part}" is not written as name=size.`, {
      remedy: 'Write height=640, or batch=1/8/64 for minimum, optimum and maximum.',
    });
  });
}

/** Dimensions by name, as the library takes them. */
export const dimsOf = (dims: OptionValues<typeof buildOptions>['dim']): Readonly<Record<string, SizeRange>> =>
  Object.fromEntries(dims.flat());

/** Profiles come from --profile, from --batch, or later from the files of --profile-from. */
function profilesOf(options: BuildOptionValues): readonly ProfileRequest[] {
  const ways = [
    options.profile,
    [options.batch, ...options.dim].filter((set) => set !== undefined),
    options.profileFrom,
  ];
  if (ways.filter((way) => way.length > 0).length > 1) {
    throw new TrtforgeError(
      'TF_USAGE',
      '--profile, --batch with --dim, and --profile-from are three ways to set profiles.',
      { remedy: 'Use one of them; --profile takes several profiles.' },
    );
  }
  return options.profile;
}
