import { join } from 'node:path';
import { listFolder, readJson, statIfThere } from '../../base/files/files.js';
import { kindOf } from '../../base/files/user-files.js';
import { plural } from '../../base/text/quantity.js';
import { TrtforgeError } from '../../errors.js';
import type { RunRootSections } from '../../report/kind.js';
import { badge, code, labelled, lines, numbers, type Section, table } from '../../report/section.js';
import { type ModelConfig, readModelConfig } from './model-config.js';

interface Deployed {
  /** In the run root. */
  readonly folder: string;
  readonly config: ModelConfig;
}

/** What a `triton check` or `triton try` found, as far as it is shown. */
interface Judged {
  readonly file: string;
  readonly outcome: string;
  readonly findings: readonly string[];
}

/** `ROOT/deploy/triton/MODEL/config.pbtxt` */
const DEEPEST = 4;
/** A folder with more entries is looked at no further. */
const MOST_ENTRIES = 2000;

/** The model repositories in a run root, and what was found about them. */
function deploymentIn(root: string): {
  readonly models: readonly Deployed[];
  readonly judged: readonly Judged[];
} {
  const models: Deployed[] = [];
  const judged: Judged[] = [];
  let left = MOST_ENTRIES;
  const look = (folder: string, depth: number) => {
    for (const name of listFolder(join(root, folder)).toSorted()) {
      if (left-- <= 0) return;
      const file = join(folder, name);
      const path = join(root, file);
      if (statIfThere(path)?.isDirectory() === true) {
        if (depth < DEEPEST) look(file, depth + 1);
      } else if (name === 'config.pbtxt') {
        const config = readable(path);
        if (config !== undefined) models.push({ folder, config });
      } else if (
        name.endsWith('.json') &&
        /^JSON \(trtforge\.triton-(?:check|try)\)$/.test(kindOf(path) ?? '')
      )
        judged.push(judgedBy(file, readJson(path) as Partial<Found>));
    }
  };
  look('', 1);
  return { models, judged };
}

/** What both results have that is shown. */
interface Found {
  readonly outcome: string;
  readonly findings: readonly { readonly code: string; readonly where: string; readonly message: string }[];
  readonly models: readonly { readonly name: string; readonly reason?: string | null }[];
}

const judgedBy = (
  file: string,
  { outcome = 'inconclusive', findings = [], models = [] }: Partial<Found>,
): Judged => ({
  file,
  outcome,
  findings: [
    ...findings.map(({ where, message }) => `${where}: ${message}`),
    ...models.flatMap(({ name, reason }) => (reason ? [`${name}: ${reason}`] : [])),
  ],
});

/** A configuration that cannot be read is for `triton check` to tell. */
function readable(path: string): ModelConfig | undefined {
  try {
    return readModelConfig(path);
  } catch (error) {
    if (error instanceof TrtforgeError && error.code === 'TF_SERVING_CONFIG') return undefined;
    throw error;
  }
}

/** How the engines of a run root are served; of two roots those of both. */
export const tritonSections: RunRootSections = (runs) => {
  const found = runs.map(({ root }) => deploymentIn(root));
  const models = found.flatMap(({ models }, at) => models.map((model) => ({ ...model, at })));
  if (models.length === 0) return [];
  const sideOf = (at: number) => (runs.length === 1 ? '' : `${'AB'[at]}: `);
  const judged = found.flatMap(({ judged }, at) => judged.map((one) => ({ ...one, at })));
  return [
    {
      id: 'triton',
      title: 'Triton',
      lead: `${plural(models.length, 'model')} for Triton's inference server${judged.length === 0 ? '; no check of them lies here' : ''}.`,
      blocks: [
        table(
          'Every model',
          ['folder', ...numbers('batch up to'), 'GPUs', 'states', 'served by'],
          models.map(({ at, folder, config }) => [
            code(`${sideOf(at)}${folder}`),
            String(config.max_batch_size ?? 0),
            lines(
              Object.keys(config.cc_model_filenames ?? {}).map((key) => {
                const identity = config.parameters?.[`trtforge.identity.${key}`]?.string_value;
                return identity === undefined ? key : `${key}  ${identity.slice(0, 12)}`;
              }),
            ),
            lines((config.sequence_batching?.state ?? []).map(({ input_name = '' }) => code(input_name))),
            config.backend ?? config.platform ?? '',
          ]),
        ),
        table(
          'What was found',
          ['result', 'outcome'],
          judged.map(({ at, file, outcome }) => [
            code(`${sideOf(at)}${file}`),
            badge(outcome, outcome === 'pass' ? 'good' : outcome === 'fail' ? 'bad' : 'warn'),
          ]),
        ),
        labelled(
          'finding',
          'warn',
          judged.flatMap(({ findings }) => findings),
        ),
      ],
    } satisfies Section,
  ];
};
