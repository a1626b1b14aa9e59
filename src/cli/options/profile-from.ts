import type { BuildOptions } from '../../engines/builder/build.js';
import { profileText } from '../../engines/profiles/profile.js';
import type { DerivedProfile, ProfileInputs, ProfileSource } from '../../engines/profiles/sample-profile.js';
import { originText } from '../../engines/store/build-result.js';
import type { ProfileOrigin } from '../../engines/store/build-result-schema.js';
import { inPhase } from '../../events.js';
import { type CommandContext, profileSourcesOfProducts } from '../command.js';
import type { OptionValues } from '../option.js';
import type { buildOptions } from './build.js';

/** A request whose profiles are complete. */
export interface ProfiledRequest<R extends BuildOptions> {
  readonly request: R;
  readonly profileFrom: readonly ProfileOrigin[];
}

type ProfileFromValues = OptionValues<Pick<typeof buildOptions, 'profileFrom' | 'preprocess' | 'imgsz'>>;

/**
 * The request with the profiles that the files of `--profile-from` show: contracts each their own, all samples together one.
 * Throws what reading the model and the files throws.
 */
export async function withProfileFrom<R extends BuildOptions>(
  request: R,
  options: ProfileFromValues,
  context: CommandContext,
): Promise<ProfiledRequest<R>> {
  if (options.profileFrom.length === 0)
    return { request: await withImageSize(request, options.imgsz, context), profileFrom: [] };
  return inPhase(
    'profile',
    context.emit,
    () => profiled(request, options, context),
    options.profileFrom.join(', '),
    ({ profileFrom }) => profileFrom.map(originText).join('; '),
  );
}

/** Batch, channels, height and width. */
const IMAGE_RANK = 4;

/**
 * Without whole ranges, `--imgsz` is the size of open image axes that have a name and no size, and an open batch that has none either gets the range that
 * errors suggest: exporters of detectors ask for the size of images alone.
 */
async function withImageSize<R extends BuildOptions>(
  request: R,
  imgsz: number | undefined,
  context: CommandContext,
): Promise<R> {
  if (imgsz === undefined || (request.profiles ?? []).length > 0) return request;
  const [{ profileInputs }, { imageDimensions, openDimensions }] = await Promise.all([
    import('../../engines/profiles/sample-profile.js'),
    import('../../formats/onnx/open-dimensions.js'),
  ]);
  const { inputs } = await profileInputs(request.model, context);
  const sized = imageDimensions(inputs).map((symbol) => [symbol, imgsz] as const);
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

async function profiled<R extends BuildOptions>(
  request: R,
  options: ProfileFromValues,
  context: CommandContext,
): Promise<ProfiledRequest<R>> {
  const { profileInputs, needsRange } = await import('../../engines/profiles/sample-profile.js');
  const model = await profileInputs(request.model, context);
  const derived = await derivedProfiles(options, model, context);
  const profileFrom = derived.map(({ from, samples, profile }): ProfileOrigin => {
    const ranged = new Set(model.inputs.filter((input) => needsRange(model, input)).map(({ name }) => name));
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
}

async function derivedProfiles(
  { profileFrom: files, preprocess, imgsz }: ProfileFromValues,
  inputs: ProfileInputs,
  { products, signal }: CommandContext,
): Promise<readonly DerivedProfile[]> {
  const sources = await profileSourcesOfProducts(products);
  const owner = (file: string): ProfileSource | undefined => sources.find((source) => source.takes(file));
  const stated = files.flatMap((file) => owner(file)?.read(file, inputs) ?? []);
  const rest = files.filter((file) => owner(file) === undefined);
  if (rest.length === 0) return stated;
  const [{ readSamples }, { profileOfSamples }] = await Promise.all([
    import('../../engines/calibration/read-samples.js'),
    import('../../engines/profiles/sample-profile.js'),
  ]);
  const samples = readSamples(rest, { preprocess, imgsz, uncut: true });
  const all = async function* () {
    for (const source of samples) yield* source.samples(inputs.inputs);
  };
  return [...stated, await profileOfSamples(rest.join(', '), all(), inputs, signal)];
}
