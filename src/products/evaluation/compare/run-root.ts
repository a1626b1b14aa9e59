import { join } from 'node:path';
import { listFolder, readJson, removeIfThere, statIfThere } from '../../../base/files/files.js';
import { publishFile } from '../../../base/files/publish.js';
import { type Figures, figureReaders } from './figures.js';
import { comparedTasks, type NotRun, notRunSchema, type Variant, variantFolder } from './variant.js';

/** A variant as its folder states it: with figures, or with the reason why there are none. */
export interface RecordedVariant {
  readonly variant: Variant;
  /** Its folder in the run root. */
  readonly folder: string;
  readonly figures: Figures | null;
  readonly error: NotRun['error'] | null;
}

const NOT_RUN = 'not-run.json';

/** What the folders of a run root state, in the order of the comparison; `unread` names the files that are not the metrics.json of a variant. */
export function readRunRoot(root: string): {
  readonly recorded: readonly RecordedVariant[];
  readonly unread: readonly string[];
} {
  const unread: string[] = [];
  const recorded = listFolder(root).flatMap((folder): RecordedVariant[] => {
    const task = comparedTasks.find((each) => folder.endsWith(`-${each}`));
    if (task === undefined) return [];
    const path = join(root, folder, 'metrics.json');
    if (statIfThere(path)?.isFile() === true) {
      const read = figureReaders[task].read(readJson(path));
      if (read !== null) return [{ ...read, folder, error: null }];
      unread.push(`${folder}/metrics.json`);
      return [];
    }
    const { data } = notRunSchema.safeParse(readJson(join(root, folder, NOT_RUN)));
    return data === undefined ? [] : [{ variant: data.variant, folder, figures: null, error: data.error }];
  });
  // Runs on other machines add to a comparison, each with places of its own.
  const order = (role: Variant['role']) => ['model', 'converted', 'candidate'].indexOf(role);
  recorded.sort(
    ({ variant: a }, { variant: b }) =>
      order(a.role) - order(b.role) || a.place - b.place || (a.name < b.name ? -1 : 1),
  );
  return { recorded, unread };
}

/** Records why a variant has no figures; those of an earlier run go, which had another model. */
export function recordNotRun(root: string, variant: Variant, error: NotRun['error']): void {
  const folder = join(root, variantFolder(variant));
  removeIfThere(join(folder, 'metrics.json'));
  const notRun: NotRun = { schema: 'trtforge.not-run/1', variant, error };
  publishFile(join(folder, NOT_RUN), `${JSON.stringify(notRun, null, 2)}\n`);
}

/** After a run: an earlier reason no longer holds. */
export const recordRun = (root: string, variant: Variant): void =>
  removeIfThere(join(root, variantFolder(variant), NOT_RUN));
