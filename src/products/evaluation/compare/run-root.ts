import { join } from 'node:path';
import { listFolder, readJson, readText, removeIfThere, statIfThere } from '../../../base/files/files.js';
import { publishFile } from '../../../base/files/publish.js';
import { comparedTasks, type NotRun, notRunSchema, type Variant, variantFolder } from '../run/variant.js';
import { type Figures, figureReaders } from './figures.js';

/** A variant as its folder states it: with figures, or with the reason why there are none. */
export interface RecordedVariant {
  readonly variant: Variant;
  /** Its folder in the run root. */
  readonly folder: string;
  readonly figures: Figures | null;
  readonly error: NotRun['error'] | null;
}

const METRICS = 'metrics.json';
const NOT_RUN = 'not-run.json';

/** The variants in the folders of a run root, in the order of the comparison; `damaged` names, within the root, the files that state no variant. */
export function readRunRoot(root: string): {
  readonly recorded: readonly RecordedVariant[];
  readonly damaged: readonly string[];
} {
  const damaged: string[] = [];
  const recorded = listFolder(root).flatMap((folder): RecordedVariant[] => {
    const task = comparedTasks.find((each) => folder.endsWith(`-${each}`));
    if (task === undefined) return [];
    const name = [METRICS, NOT_RUN].find((each) => statIfThere(join(root, folder, each)) !== undefined);
    // A run that was cut off before it wrote either.
    if (name === undefined) return [];
    const json = readJson(join(root, folder, name));
    const read = name === METRICS ? figureReaders[task].read(json) : null;
    if (read !== null) return [{ ...read, folder, error: null }];
    const { data } = notRunSchema.safeParse(json);
    if (data !== undefined) return [{ variant: data.variant, folder, figures: null, error: data.error }];
    damaged.push(`${folder}/${name}`);
    return [];
  });
  // Runs on other machines add to a comparison, each with places of its own.
  const order = (role: Variant['role']) => ['model', 'converted', 'candidate'].indexOf(role);
  recorded.sort(
    ({ variant: a }, { variant: b }) =>
      order(a.role) - order(b.role) || a.place - b.place || (a.name < b.name ? -1 : 1),
  );
  return { recorded, damaged };
}

/** Records why a variant has no figures; those of an earlier run go, which had another model. */
export function recordNotRun(root: string, variant: Variant, error: NotRun['error']): void {
  const folder = join(root, variantFolder(variant));
  removeIfThere(join(folder, METRICS));
  const notRun: NotRun = { schema: 'trtforge.not-run/1', variant, error };
  publishFile(join(folder, NOT_RUN), `${JSON.stringify(notRun, null, 2)}\n`);
}

/** After a run: an earlier reason no longer holds. */
export const recordRun = (root: string, variant: Variant): void =>
  removeIfThere(join(root, variantFolder(variant), NOT_RUN));

/** A row of scores.tsv whose recording is known. */
interface Heard {
  readonly id: string;
  readonly text: string;
  readonly file: string;
  readonly sha256: string;
}

/** Of one set of scores: half a million utterances. Figures of more are compared all the same. */
const LARGEST_SCORES = 256 << 20;

/** What a variant heard, by the scores in its folder; empty where there are none, or a run of a version before wrote them. */
export function heardBy(root: string, { folder }: Pick<RecordedVariant, 'folder'>): readonly Heard[] {
  const path = join(root, folder, 'scores.tsv');
  const scores = statIfThere(path);
  if (scores === undefined || !scores.isFile() || scores.size > LARGEST_SCORES) return [];
  const [header = '', ...rows] = readText(path, LARGEST_SCORES, 'TF_EVAL_DATA').split('\n');
  const names = header.split('\t');
  if (!names.includes('audio_sha256')) return [];
  return rows.flatMap((row) => {
    const cells = row.split('\t');
    const of = (name: string) => cells[names.indexOf(name)] ?? '';
    return cells.length === names.length
      ? [{ id: of('utt_id'), text: of('hyp'), file: of('audio'), sha256: of('audio_sha256') }]
      : [];
  });
}
