import { type OptionsOf, type OptionTable, type OptionValues, valuesOf } from '../../base/options/option.js';
import { parseSize } from '../../base/text/quantity.js';
import { type BuildOptions, buildOptions as engineBuildOptions } from '../../engines/builder/options.js';
import { originText, type ProfileOrigin } from '../../engines/builder/result.js';
import { profileText } from '../../engines/identity/build-line.js';
import { builderConfigKeys, parseBuilderConfig } from '../../engines/identity/recipe.js';
import type { DerivedProfile, ProfileInputs, ProfileSource } from '../../engines/profiles/sample-profile.js';
import { storeOptions as stores } from '../../engines/store/open-stores.js';
import { TrtforgeError } from '../../errors.js';
import { inPhase, type Work } from '../../events.js';
import { preparationOptions } from '../../formats/images/preprocess.js';
import { broughtBy, type Product } from '../command.js';
import { advanced, flag, inConfig, option, text } from '../option.js';
import { assertImages, placeOptions } from './comparison.js';
import { calibrationPlaceOptions, conversionFrom, typedConversionOptions } from './conversion.js';

const { target, toolchain, device, precision, weaklyTyped, refit, plugins, profiles, batch, dims, builder } =
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
export type BuildOptionValues = OptionValues<typeof buildOptions> & MoreValues;

/** What some verbs have besides. */
type MoreValues = Partial<OptionValues<typeof storeOptions & typeof builderOption>> & {
  readonly inputs?: readonly string[];
};

/** Who builds; not part of what is built, so `cache why` does not ask. */
export const builderOption = { builder };

/** The options as the builder takes them. Throws TF_USAGE for options that contradict each other. */
export function buildRequest(model: string, options: BuildOptionValues): BuildOptions {
  const [modelName, modelVersion] = options.name === undefined ? [] : nameAndVersion(options.name);
  return {
    model,
    ...recipeRequest(asProfiled(options)),
    modelName,
    modelVersion,
  };
}

/** The same without a model: all that the verb has of the builder's options. */
export function recipeRequest(
  options: OptionValues<typeof recipeOptions> & MoreValues,
): Omit<BuildOptions, 'model'> {
  return {
    ...valuesOf(engineBuildOptions, withStore(options)),
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

/** A request whose profiles are complete. */
interface ProfiledRequest<R extends BuildOptions> {
  readonly request: R;
  readonly profileFrom: readonly ProfileOrigin[];
}

/** Work, and who reads files that state profiles themselves. */
interface ProfileWork extends Work {
  readonly products: readonly Pick<Product, 'profileSources'>[];
}

type ProfileFromValues = OptionValues<
  Pick<typeof buildOptions, 'profileFrom' | 'preprocess' | 'imgsz' | 'calibration'>
> & { readonly inputs?: readonly string[] };

/**
 * The request with the profiles that the files of `--profile-from` show: contracts each their own, all samples together one. Where no size is set, the
 * samples that calibrate or judge show it, and a batch that alone is open is `batchAlone`, where that is passed. Throws what reading the model and the
 * files throws.
 */
export async function withProfileFrom<R extends BuildOptions>(
  request: R,
  options: ProfileFromValues,
  context: ProfileWork,
  batchAlone?: number,
): Promise<ProfiledRequest<R>> {
  if (options.profileFrom.length > 0) return profiled(request, options, context, true);
  const sized = await withImageSize(request, options, context);
  const { profiles = [], batch, dims = {} } = sized;
  const isSized = profiles.length > 0 || batch !== undefined || Object.keys(dims).length > 0;
  const found = isSized ? null : await implied(sized, options, context, batchAlone);
  return found ?? { request: sized, profileFrom: [] };
}

/** Null where neither samples nor the model alone decide: the build then names what is missing. */
async function implied<R extends BuildOptions>(
  request: R,
  { calibration, inputs = [], ...options }: ProfileFromValues,
  context: ProfileWork,
  batchAlone: number | undefined,
): Promise<ProfiledRequest<R> | null> {
  const [{ profileInputs, needsRange }, { openDimensions }] = await Promise.all([
    import('../../engines/profiles/sample-profile.js'),
    import('../../formats/onnx/open-dimensions.js'),
  ]);
  // A model that cannot be read is for the phases after this to report.
  const model = await profileInputs(request.model, context).catch(() => null);
  const open = model?.inputs.filter((input) => needsRange(model, input)) ?? [];
  if (model === null || open.length === 0) return null;
  const profileFrom = (calibration.length > 0 ? calibration : inputs).filter((file) => file !== 'random');
  if (profileFrom.length > 0)
    return profiled(request, { ...options, profileFrom }, context, false).catch((error) => {
      // Samples that judge may lack inputs.
      if (error.code !== 'TF_SESSION_INPUT' || calibration.length > 0) throw error;
      return null;
    });
  const isBatch = openDimensions(model.inputs).every(({ tries }) => tries.every((size) => size === 1));
  if (batchAlone === undefined || !isBatch || model.valued.size > 0) return null;
  const ranges = open.map(({ name, shape }) => {
    const dims = (shape ?? []).map((size) => (typeof size === 'number' ? size : batchAlone));
    return [name, { min: dims, opt: dims, max: dims, values: false }] as const;
  });
  const profile = profileText(Object.fromEntries(ranges));
  const from = `a batch of ${batchAlone} (--batch sets another)`;
  return {
    request: { ...request, profiles: [new Map(ranges)] },
    profileFrom: [{ from, samples: null, profile }],
  };
}

/** Batch, channels, height and width. */
const IMAGE_RANK = 4;

/**
 * Without whole ranges, `--imgsz` is the size of open image axes that have a name and no size, and an open batch that has none either gets the range that
 * errors suggest: exporters of detectors ask for the size of images alone.
 */
async function withImageSize<R extends BuildOptions>(
  request: R,
  { imgsz, calibration, inputs: judging = [] }: ProfileFromValues,
  context: ProfileWork,
): Promise<R> {
  if (imgsz === undefined || (request.profiles ?? []).length > 0) return request;
  const [{ profileInputs }, { imageDimensions, openDimensions }] = await Promise.all([
    import('../../engines/profiles/sample-profile.js'),
    import('../../formats/onnx/open-dimensions.js'),
  ]);
  const { inputs } = await profileInputs(request.model, context);
  const sized = imageDimensions(inputs).map((symbol) => [symbol, imgsz] as const);
  const isOwn = inputs.some(({ shape }) => shape?.length === IMAGE_RANK && shape.at(-1) === imgsz);
  if (sized.length === 0 && !isOwn) assertImages(imgsz, calibration, judging);
  const dims = { ...Object.fromEntries(sized), ...request.dims };
  const batch = openDimensions(inputs.filter(({ shape }) => shape?.length === IMAGE_RANK)).find(
    ({ symbol, places }) => !Object.hasOwn(dims, symbol ?? '') && places.some(({ axis }) => axis === 0),
  );
  if (batch === undefined || request.batch !== undefined) return { ...request, dims };
  const [min, opt, max] = batch.range;
  context.emit({
    type: 'log',
    source: 'trtforge',
    severity: 'info',
    message: `The batch is ${min}/${opt}/${max}; --batch sets another.`,
  });
  return { ...request, dims, batch: { min, opt, max } };
}

/** `uncut`: an array is one call, not several samples. */
function profiled<R extends BuildOptions>(
  request: R,
  options: Pick<ProfileFromValues, 'profileFrom' | 'preprocess' | 'imgsz'>,
  context: ProfileWork,
  uncut: boolean,
): Promise<ProfiledRequest<R>> {
  return inPhase(
    'profile',
    context.emit,
    async () => {
      const { profileInputs, needsRange } = await import('../../engines/profiles/sample-profile.js');
      const model = await profileInputs(request.model, context);
      const derived = await derivedProfiles(options, model, context, uncut);
      const profileFrom = derived.map(({ from, samples, profile }): ProfileOrigin => {
        const ranged = new Set(
          model.inputs.filter((input) => needsRange(model, input)).map(({ name }) => name),
        );
        const ranges = [...profile].filter(([name]) => ranged.has(name));
        return { from, samples, profile: profileText(Object.fromEntries(ranges)) };
      });
      for (const { from, samples, profile } of profileFrom)
        if (samples === 1 && profile !== '')
          context.emit({
            type: 'log',
            source: 'trtforge',
            severity: 'warning',
            message: `${from} has one sample: minimum, optimum and maximum of the profile are its sizes.`,
          });
      const profiles = derived.map(({ profile }) => profile).filter(({ size }) => size > 0);
      return { request: { ...request, profiles }, profileFrom };
    },
    options.profileFrom.join(', '),
    ({ profileFrom }) => profileFrom.map(originText).join('; '),
  );
}

async function derivedProfiles(
  { profileFrom: files, preprocess, imgsz }: Pick<ProfileFromValues, 'profileFrom' | 'preprocess' | 'imgsz'>,
  inputs: ProfileInputs,
  { products, signal }: ProfileWork,
  uncut: boolean,
): Promise<readonly DerivedProfile[]> {
  const sources = await broughtBy(products, 'profileSources');
  const owner = (file: string): ProfileSource | undefined => sources.find((source) => source.takes(file));
  const stated = files.flatMap((file) => owner(file)?.read(file, inputs) ?? []);
  const rest = files.filter((file) => owner(file) === undefined);
  if (rest.length === 0) return stated;
  const [{ readSamples }, { profileOfSamples }] = await Promise.all([
    import('../../engines/calibration/read-samples.js'),
    import('../../engines/profiles/sample-profile.js'),
  ]);
  const samples = readSamples(rest, { preprocess, imgsz, uncut });
  const all = async function* () {
    for (const source of samples) yield* source.samples(inputs.inputs);
  };
  return [...stated, await profileOfSamples(rest.join(', '), all(), inputs, signal)];
}

const { store, layers, remote, maxBytes, requireSignature, trustKeys, signKey } = stores;
const { forceRebuild, timingCache } = engineBuildOptions;

/** Where engines are kept, and whether the store is asked; for commands that build or load. */
export const storeOptions = {
  store: { ...store, group: 'Store', advanced: true as const },
  remote,
  noCache: flag({
    flags: '--no-cache',
    describe: 'neither ask the stores nor keep the engine there',
    group: 'Store',
  }),
  ...{ forceRebuild, timingCache, layers },
  maxBytes: inConfig(maxBytes),
  requireSignature: inConfig(requireSignature),
  trustKeys: inConfig(trustKeys),
  signKey: inConfig(signKey),
};

/** Values as the builder takes them: without a store for `--no-cache`. Throws TF_USAGE for options that contradict each other. */
export function withStore<V extends Partial<OptionValues<typeof storeOptions>>>(
  options: V,
): Omit<V, 'store'> & OptionsOf<typeof stores> {
  if (!options.noCache) return options;
  if (options.forceRebuild) {
    throw new TrtforgeError('TF_USAGE', '--no-cache and --force-rebuild contradict each other.', {
      remedy:
        '--no-cache alone always builds and keeps nothing; --force-rebuild replaces what the store has.',
    });
  }
  return { ...options, store: false };
}

/** Those that a search in the stores takes. */
export const searchOptions = {
  ...{ store, layers, remote },
  requireSignature: storeOptions.requireSignature,
  trustKeys: storeOptions.trustKeys,
};
