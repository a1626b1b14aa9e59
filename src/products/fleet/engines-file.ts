import { dirname, resolve } from 'node:path';
import { didYouMean } from '../../base/text/suggest-name.js';
import { firstProblem, readYaml } from '../../base/text/yaml.js';
import { isRemoteAddress } from '../../engines/store/remote/address.js';
import { TrtforgeError } from '../../errors.js';
import { enginesFileSchema, modelEntryShape, targetEntrySchema } from './engines-file-schema.js';
import { type FleetModel, inFolder, modelKeys, readOptions } from './model-options.js';
import type { FleetPlan } from './plan-schema.js';

/** One model of an engines file, with every default filled in. */
export interface FleetEntry extends FleetModel {
  /** Names of its targets. */
  readonly targets: readonly string[];
  readonly gate: string | null;
  /** For messages: `engines.yaml, line 12`. */
  readonly where: string;
}

export interface EnginesFile extends Pick<FleetPlan, 'store' | 'folder' | 'targets'> {
  readonly entries: readonly FleetEntry[];
}

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
    const unknown = Object.keys(options).find((key) => !modelKeys.includes(key));
    if (unknown !== undefined)
      throw new TrtforgeError(
        'TF_FLEET_INVALID',
        `${at(['models', index, unknown])}: "${unknown}" is not a key of a model.${didYouMean(unknown, [...Object.keys(modelEntryShape), ...modelKeys])}`,
      );
    const ranges = ['profile', 'profile-from'].find((key) => [options[key] ?? []].flat().length > 0);
    if (bundle !== undefined && ranges !== undefined)
      throw invalid(`"${ranges}" is for a model: the ranges of a bundle follow from "batch" and "dim".`);
    const names = wanted === 'all' ? Object.keys(targets) : wanted;
    const missing = names.find((name) => !Object.hasOwn(targets, name));
    if (missing !== undefined)
      throw invalid(`there is no target "${missing}".${didYouMean(missing, Object.keys(targets))}`);
    readOptions(options, where);
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

/** The file as it was understood: what --print-config shows. */
export const resolvedFile = ({ store, targets, entries }: EnginesFile): Record<string, unknown> => ({
  store,
  targets,
  models: entries.map(({ path, isBundle, options, targets: names, gate }) => {
    const { shown } = readOptions(options, '');
    return { [isBundle ? 'bundle' : 'model']: path, targets: names, ...(gate && { gate }), ...shown };
  }),
});
