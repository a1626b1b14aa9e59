import { valuesOf } from '../../base/options/option.js';
import { type BuildOptions, buildOptions as engineBuildOptions } from '../../engines/builder/build.js';
import { builderConfigKeys, parseBuilderConfig } from '../../engines/identity/recipe.js';
import { TrtforgeError } from '../../errors.js';
import { preparationOptions } from '../../formats/images/preprocess.js';
import { advanced, inConfig, type OptionTable, type OptionValues, option, text } from '../option.js';
import { parseSize } from '../values.js';
import { placeOptions } from './comparison.js';
import { calibrationPlaceOptions, conversionFrom, typedConversionOptions } from './conversion.js';

const { target, toolchain, device, precision, weaklyTyped, refit, plugins, profiles, batch, dims } =
  engineBuildOptions;

const { calibration, keepNodes, keepOps, ioTypes, rest, calibrationMethod, calibrationCache } =
  typedConversionOptions('conversion: ');

/** Options that a first conversion needs on the command line; the rest of a conversion is in the configuration file. */
const firstConversionOptions = {
  calibration,
  ...preparationOptions,
  ...advanced({ keepNodes, keepOps, ioTypes, rest, calibrationMethod, calibrationCache }),
};

/** Every option that decides what is built, besides profiles. */
export const recipeOptions = {
  ...{ target, toolchain, device, precision, weaklyTyped, refit },
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
  plugins,
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
  ...{ profiles, batch, dims },
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
export const builderOption = { builder: engineBuildOptions.builder };

/** The options as the builder takes them. Throws TF_USAGE for options that contradict each other. */
export function buildRequest(model: string, options: BuildOptionValues): BuildOptions {
  const [modelName, modelVersion] = options.name === undefined ? [] : nameAndVersion(options.name);
  return {
    model,
    ...recipeRequest(options),
    ...valuesOf({ profiles, batch, dims }, asProfiled(options)),
    modelName,
    modelVersion,
  };
}

/** The same without a model and its profiles. */
export function recipeRequest(
  options: OptionValues<typeof recipeOptions> & Pick<BuildOptionValues, 'inputs'>,
): Omit<BuildOptions, 'model' | 'profiles' | 'batch' | 'dims'> {
  return {
    ...valuesOf({ target, toolchain, device, precision, weaklyTyped, refit, plugins }, options),
    conversion: conversionFrom(options, valuesOf(placeOptions, options)),
    settings: builderSettingsOf(options),
  };
}

/** The settings of `--builder-config`, and of `--workspace`, which is one of them. */
export function builderSettingsOf({
  builderConfig,
  workspace,
}: OptionValues<Pick<typeof recipeOptions, 'builderConfig' | 'workspace'>>) {
  const settings = parseBuilderConfig(builderConfig);
  if (workspace === undefined) return settings;
  return { ...settings, memoryPools: { ...settings.memoryPools, workspace } };
}

/** `yolo:3` is the model yolo in its version 3. */
function nameAndVersion(name: string): readonly [string, string | undefined] {
  const colon = name.lastIndexOf(':');
  return colon < 0 ? [name, undefined] : [name.slice(0, colon), name.slice(colon + 1)];
}

/** Profiles come from --profile, from --batch, or later from the files of --profile-from. */
function asProfiled(options: BuildOptionValues): BuildOptionValues {
  const ways = [
    options.profiles.length > 0,
    options.batch !== undefined || Object.keys(options.dims).length > 0,
    options.profileFrom.length > 0,
  ];
  if (ways.filter(Boolean).length <= 1) return options;
  throw new TrtforgeError(
    'TF_USAGE',
    '--profile, --batch with --dim, and --profile-from are three ways to set profiles.',
    { remedy: 'Use one of them; --profile takes several profiles.' },
  );
}
