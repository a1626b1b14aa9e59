import type { OptionValues } from '../../base/options/option.js';
import type { BuildOptions } from '../../engines/builder/build.js';
import { originText, type ProfileOrigin } from '../../engines/builder/build-result.js';
import { profileText } from '../../engines/identity/build-line.js';
import type { DerivedProfile, ProfileInputs, ProfileSource } from '../../engines/profiles/sample-profile.js';
import { inPhase, type Work } from '../../events.js';
import { broughtBy, type Product } from '../command.js';
import type { buildOptions } from './build.js';
import { assertImages } from './comparison.js';

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
