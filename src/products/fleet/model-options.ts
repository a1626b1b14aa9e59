import { isAbsolute, join, relative } from 'node:path';
import { isBelow } from '../../base/files/folders.js';
import * as is from '../../base/options/kinds.js';
import {
  allBut,
  longName,
  type OptionSpec,
  type OptionsOf,
  type OptionTable,
  optional,
} from '../../base/options/option.js';
import { buildOptions, buildRequest, withProfileFrom } from '../../cli/options/build.js';
import { comparisonOptions } from '../../cli/options/comparison.js';
import { resolveOptions } from '../../cli/resolve.js';
import type { BuildOptions, BundleParts } from '../../engines/builder/options.js';
import { isPlatform, platformFor, type TargetRequest, thisPlatform } from '../../engines/identity/target.js';
import type { ProfileSource } from '../../engines/profiles/sample-profile.js';
import { TrtforgeError } from '../../errors.js';
import type { Work } from '../../events.js';
import { forge } from '../../forge/forge.js';
import { forgeOptions, type Healer } from '../../forge/options.js';
import { defaultRunRoot } from '../../forge/run-root.js';
import { conversionOptions, exactly } from '../../formats/precision/options.js';
import type { SampleData } from '../../quality/verify/options.js';
import type { AfterFailure } from '../../quality/verify/verify.js';
import { findToolchains, unableToBuild } from '../../tensorrt/toolchain/find.js';
import type { FleetJob } from './plan-schema.js';

/** A model of a fleet, or a bundle. */
export interface FleetModel {
  /** The model or the bundle's meta file, from the file's folder. */
  readonly path: string;
  readonly isBundle: boolean;
  /** Options of `trtforge build`, by their long names, as they were written. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** Who reads what other leaves write, and who searches after a failure. */
export const readerOptions = {
  /** Reads the components of an entry's bundle: that of `trtforge/bundle`. */
  bundleParts: optional(is.callback<BundleParts>()),
  /** Read files of `profile-from` that state profiles: `contractProfiles` of `trtforge/streaming`. */
  profileSources: optional(is.list<ProfileSource>()),
  /** Searches for the cause where an engine is verified and fails; default nothing. */
  afterFailure: optional(is.callback<AfterFailure>()),
  /** Searches for entries with `heal`; default nothing. */
  healer: optional(is.callback<Healer>()),
  /** The command line that plans, which a search whose time ended is repeated with; default: its page has none. */
  commandLine: optional(is.text),
};

export type ModelReaders = OptionsOf<typeof readerOptions>;

/** The options that decide an engine, and its verification samples. Keys of a model are options of `build`: only this file reads their tables. */
const entryOptions = {
  // The target, the library and the GPU are those of the task.
  ...allBut(buildOptions, 'target', 'toolchain', 'device'),
  unquantizedNodes: conversionOptions.unquantizedNodes,
  inputs: comparisonOptions.inputs,
  heal: forgeOptions.heal,
} satisfies OptionTable;

export const modelKeys = Object.values(entryOptions).map(longName);

/** Throws TF_USAGE and what the readers of values throw, with `where` in front. */
export const readOptions = (options: FleetModel['options'], where: string) =>
  resolveOptions(entryOptions, {}, { path: where, values: options }, {});

/** A path of an engines file. */
export const inFolder = (folder: string, path: string): string =>
  isAbsolute(path) ? path : join(folder, path);

/** Options whose values are paths, or `NAME=@PATH`, by what they are called in help. */
const PATHS = Object.values(entryOptions)
  .filter(({ flags }) => /<(file|folder|library|path)>/.test(flags))
  .map(longName);

/** Text after a job's name on what needs its author or a trusted key (an option that decides which code runs, a path outside the folder); or null. */
export function foreignIn(
  { model, gate, options }: Pick<FleetJob, 'model' | 'gate' | 'options'>,
  folder: string,
): string | null {
  const [trusted] = Object.values(entryOptions).filter(
    (spec: OptionSpec<unknown>) => spec.trust && Object.hasOwn(options, longName(spec)),
  );
  if (trusted !== undefined) return `sets "${longName(trusted)}", which decides what code runs`;
  const named = PATHS.flatMap((key) => [options[key] ?? []].flat()).map((text) => splitName(String(text))[1]);
  const outside = [model.path, gate?.path ?? '.', ...named].find((path) => !isBelow(folder, path));
  return outside === undefined ? null : `names ${outside}, which is outside of ${folder}`;
}

/** The options with every path made one from the folder. */
export const optionsIn = (folder: string, options: FleetModel['options']): FleetModel['options'] =>
  Object.fromEntries(
    Object.entries(options).map(([key, value]) => [
      key,
      PATHS.includes(key) ? [value].flat().map((each) => pathIn(folder, String(each))) : value,
    ]),
  );

const pathIn = (folder: string, text: string): string => {
  const [name, path] = splitName(text);
  return `${name}${inFolder(folder, path)}`;
};

/** `NAME=@` and the path, as samples are read: a name may have slashes. */
function splitName(text: string): readonly [name: string, path: string] {
  const [, name = '', path = text] = /^([^=@]+=@)(.+)$/s.exec(text) ?? [];
  return [name, path];
}

/** A build without its target; `component` is null for a model that is in no bundle. */
export interface ModelBuild {
  readonly component: string | null;
  readonly request: BuildOptions;
  /** The samples that engines are verified on; undefined: drawn inputs. */
  readonly samples: SampleData | undefined;
}

/** The builds of an entry: one, or one for each component of a bundle. Throws what reading its files throws. */
export async function buildsOf(
  { path, isBundle, options }: FleetModel,
  folder: string,
  { bundleParts, profileSources = [] }: ModelReaders,
  work: Work,
): Promise<readonly ModelBuild[]> {
  const resolved = readOptions(optionsIn(folder, options), path).values;
  const asked = { ...resolved, target: undefined, toolchain: undefined, device: undefined };
  const request = buildRequest(inFolder(folder, path), asked);
  const { inputs: files, preprocess, imgsz } = resolved;
  const samplesOf = ({ conversion }: BuildOptions) =>
    files.length > 0 ? { files, preprocess, imgsz } : conversion?.calibration?.judging;
  if (!isBundle) {
    const products = [{ profileSources: async () => profileSources }];
    const { request: whole } = await withProfileFrom(request, resolved, { ...work, products });
    return [{ component: null, request: whole, samples: samplesOf(whole) }];
  }
  if (bundleParts === undefined)
    throw new TrtforgeError('TF_USAGE', `${path} is a bundle, and nothing reads bundles here.`, {
      remedy: 'Pass `bundleParts` of trtforge/bundle.',
    });
  const { model: meta, ...shared } = request;
  return (await bundleParts(meta, shared)).map(({ name, request: part }) => ({
    component: name,
    request: part,
    samples: samplesOf(part),
  }));
}

/**
 * The options of an entry, with what `heal` finds where its typed model fails against the original here, and its price: engines are planned and built with that, and nobody searches
 * again. The run is in `runs` of the folder. Throws TF_USAGE for a bundle, TF_FLEET_UNDECIDED where nothing passes, and what `forge` throws.
 */
export async function healedOptions(
  { options: { heal, ...options }, ...source }: FleetModel,
  folder: string,
  readers: ModelReaders,
  work: Work,
): Promise<{ readonly options: FleetModel['options']; readonly healed?: FleetJob['healed'] }> {
  const { heal: limitMs } = readOptions({ ...(heal !== undefined && { heal }) }, source.path).values;
  if (limitMs === undefined) return { options };
  if (source.isBundle)
    throw new TrtforgeError('TF_USAGE', `"heal" is for a model, and ${source.path} is a bundle.`);
  const [{ request, samples: data }] = (await buildsOf({ ...source, options }, folder, readers, work)) as [
    ModelBuild,
  ];
  const runRoot = inFolder(folder, defaultRunRoot(request.model, request.precision ?? 'as-is'));
  const { healer, commandLine } = readers;
  const asked = { ...request, skip: ['build'], heal: limitMs, verify: { data }, runRoot } as const;
  const { verdict, heal: found, error } = await forge(asked, { ...work, healer, commandLine });
  const page = join(runRoot, 'report.html');
  if (verdict.outcome !== 'pass')
    throw new TrtforgeError(
      error?.code === 'TF_CANCELLED' ? error.code : refusals[verdict.outcome],
      [verdict.headline, ...verdict.reasons].join(' '),
      { remedy: `The page of the run is ${page}; planning again goes on from there.` },
    );
  if (found === null) return { options };
  const { raised, prices } = found;
  const patterns = raised.map(({ option, nodes }) => [
    option,
    [options[option] ?? [], nodes.map((name) => exactly(name).source)].flat(2),
  ]);
  return {
    options: { ...options, ...Object.fromEntries(patterns) },
    healed: { raised, prices, page: relative(folder, page) },
  };
}

const refusals = {
  fail: 'TF_FLEET_REFUSED',
  error: 'TF_FLEET_INVALID',
  inconclusive: 'TF_FLEET_UNDECIDED',
  built: 'TF_FLEET_UNDECIDED',
} as const;

/** A target that names its TensorRT, with that of this machine where it is here; for which CUDA that is counts only where the target names one. */
export async function targetHere(
  target: TargetRequest,
  { environment }: Work,
): Promise<Pick<BuildOptions, 'target' | 'toolchain'>> {
  const { named, ...asked } = target;
  const toolchain = (await findToolchains(environment)).find(
    (each) =>
      isPlatform(platformFor(target), thisPlatform) &&
      each.product === target.product &&
      each.version === named?.version &&
      [null, each.cudaMajor].includes(named.cudaMajor) &&
      unableToBuild(each) === null,
  );
  return toolchain === undefined ? { target } : { target: asked, toolchain };
}
