import { dirname, isAbsolute, join, resolve } from 'node:path';
import { isBelow } from '../../base/files/folders.js';
import { didYouMean } from '../../base/text/suggest-name.js';
import { firstProblem, readYaml } from '../../base/text/yaml.js';
import { longName, type OptionSpec, type OptionTable } from '../../cli/option.js';
import { buildOptions } from '../../cli/options/build.js';
import { comparisonOptions } from '../../cli/options/comparison.js';
import { resolveOptions } from '../../cli/resolve.js';
import { isRemoteAddress } from '../../engines/store/remote/address.js';
import { TrtforgeError } from '../../errors.js';
import { enginesFileSchema, modelEntryShape, targetEntrySchema } from './engines-schema.js';
import type { FleetJob, FleetPlan } from './plan-schema.js';

/** One model of an engines file, with every default filled in. */
export interface FleetEntry {
  /** The model or the bundle's meta file, from the file's folder. */
  readonly path: string;
  readonly isBundle: boolean;
  /** Options of `trtforge build`, as they were written. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Names of its targets. */
  readonly targets: readonly string[];
  readonly gate: string | null;
  /** For messages: `engines.yaml, line 12`. */
  readonly where: string;
}

export interface EnginesFile extends Pick<FleetPlan, 'store' | 'folder' | 'targets'> {
  readonly entries: readonly FleetEntry[];
}

/** The target, the library and the GPU are those of the task. */
const { target: _, toolchain: __, device: ___, ...modelOptions } = buildOptions;

/** What decides an engine of a model, and the samples that it is verified on. */
export const fleetOptions = { ...modelOptions, inputs: comparisonOptions.inputs } satisfies OptionTable;

const optionNames = Object.values(fleetOptions).map(longName);

/** Reads an engines file. Throws TF_FLEET_INVALID with the line, TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE. */
export function readEnginesFile(path: string): EnginesFile {
  const { content, lineOf } = readYaml(path, 'TF_FLEET_INVALID');
  const at = (place: readonly PropertyKey[]) => {
    const line = lineOf(place);
    return line === null ? path : `${path}, line ${line}`;
  };
  const { data, error } = enginesFileSchema.safeParse(content);
  if (data === undefined)
    throw firstProblem(error, { path, code: 'TF_FLEET_INVALID', lineOf }, ([section]) =>
      Object.keys(section === 'targets' ? targetEntrySchema.shape : enginesFileSchema.shape),
    );
  const { store, targets, models, gate = null } = data;
  const folder = resolve(dirname(path));
  const entries = models.map((written, index): FleetEntry => {
    const where = at(['models', index]);
    const { model, bundle, targets: wanted, gate: own = gate, ...options } = written;
    const invalid = (why: string) => new TrtforgeError('TF_FLEET_INVALID', `${where}: ${why}`);
    if ((model === undefined) === (bundle === undefined))
      throw invalid('an entry names a model or a bundle, and one of them.');
    const unknown = Object.keys(options).find((key) => !optionNames.includes(key));
    if (unknown !== undefined)
      throw new TrtforgeError(
        'TF_FLEET_INVALID',
        `${at(['models', index, unknown])}: "${unknown}" is not a key of a model.${didYouMean(unknown, [...Object.keys(modelEntryShape), ...optionNames])}`,
      );
    const ranges = ['profile', 'profile-from'].find((key) => [options[key] ?? []].flat().length > 0);
    if (bundle !== undefined && ranges !== undefined)
      throw invalid(`"${ranges}" is for a model: the ranges of a bundle follow from "batch" and "dim".`);
    const names = wanted === 'all' ? Object.keys(targets) : wanted;
    const missing = names.find((name) => !Object.hasOwn(targets, name));
    if (missing !== undefined)
      throw invalid(`there is no target "${missing}".${didYouMean(missing, Object.keys(targets))}`);
    resolveOptions(fleetOptions, {}, { path: where, values: options }, {});
    return {
      path: (model ?? bundle)!,
      isBundle: bundle !== undefined,
      options,
      targets: names,
      gate: own,
      where,
    };
  });
  return {
    store: isRemoteAddress(store) ? store : inFolder(folder, store),
    folder,
    targets,
    entries,
  };
}

/** A path of an engines file. */
export const inFolder = (folder: string, path: string): string =>
  isAbsolute(path) ? path : join(folder, path);

/** Options whose values are paths, or `NAME=@PATH`, by what they are called in help. */
const PATHS = Object.values(fleetOptions)
  .filter(({ flags }) => /<(file|folder|library|path)>/.test(flags))
  .map(longName);

/** What of a job only its author or a trusted key may ask for, as what follows the job's name: an option that decides which code runs, a path that leaves the folder. Null where there is none. */
export function foreignIn(
  { model, gate, options }: Pick<FleetJob, 'model' | 'gate' | 'options'>,
  folder: string,
): string | null {
  const [trusted] = Object.values(fleetOptions).filter(
    (spec: OptionSpec<unknown>) => spec.trust && Object.hasOwn(options, longName(spec)),
  );
  if (trusted !== undefined) return `sets "${longName(trusted)}", which decides what code runs`;
  const named = PATHS.flatMap((key) => [options[key] ?? []].flat()).map((text) => splitName(String(text))[1]);
  const outside = [model.path, gate?.path ?? '.', ...named].find((path) => !isBelow(folder, path));
  return outside === undefined ? null : `names ${outside}, which is outside of ${folder}`;
}

/** The options with every path made one from the folder. */
export const optionsIn = (
  folder: string,
  options: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> =>
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

/** The file as it was understood: what --print-config shows. */
export const resolvedFile = ({ store, targets, entries }: EnginesFile): Record<string, unknown> => ({
  store,
  targets,
  models: entries.map(({ path, isBundle, options, targets: names, gate }) => {
    const { shown } = resolveOptions(fleetOptions, {}, { path: '', values: options }, {});
    return { [isBundle ? 'bundle' : 'model']: path, targets: names, ...(gate && { gate }), ...shown };
  }),
});
