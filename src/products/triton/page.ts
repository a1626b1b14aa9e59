import { dirname, join } from 'node:path';
import { filesBelow, readJson } from '../../base/files/files.js';
import { kindOf } from '../../base/files/user-files.js';
import { plural } from '../../base/text/quantity.js';
import { badge, code, labelled, lines, numbers, type Section, table } from '../../report/blocks.js';
import type { RunRootSections } from '../../report/pages/report.js';
import { ours } from './check/repository.js';
import type { TritonCheck } from './check/result.js';
import { backendOf, type ModelConfig, readModelConfig } from './model-config.js';
import type { TritonTry } from './try/result.js';

/** The part of the results of `triton check` and `triton try` that is shown. */
type Found = Partial<Pick<TritonCheck, 'findings'> & Pick<TritonTry, 'outcome' | 'models'>>;

/** `ROOT/deploy/triton/MODEL/config.pbtxt` */
const DEPTH = 4;

/** A configuration that cannot be read is for `triton check` to report. */
function readable(path: string): ModelConfig | null {
  try {
    return readModelConfig(path);
  } catch (cause) {
    ours(cause);
    return null;
  }
}

/** The reasons that a result states: of each finding, and of each model that did not pass. */
const reasonsOf = ({ findings = [], models = [] }: Found): readonly string[] => [
  ...findings.map(({ where, message }) => `${where}: ${message}`),
  ...models.flatMap(({ name, reason }) => (reason ? [`${name}: ${reason}`] : [])),
];

/** The serving of a run root's engines, and the findings about it; of two roots those of both. */
export const tritonSections: RunRootSections = (runs) => {
  const files = runs.flatMap(({ root }, at) =>
    filesBelow(root, DEPTH).map((file) => ({
      path: join(root, file),
      shown: `${runs.length === 1 ? '' : `${'AB'[at]}: `}${file}`,
    })),
  );
  const models = files.flatMap(({ path, shown }) => {
    const config = shown.endsWith('/config.pbtxt') ? readable(path) : null;
    return config === null ? [] : [{ folder: dirname(shown), config }];
  });
  if (models.length === 0) return [];
  const judged = files
    .filter(
      ({ path }) =>
        path.endsWith('.json') && /^JSON \(trtforge\.triton-(?:check|try)\)$/.test(kindOf(path) ?? ''),
    )
    .map(({ path, shown }) => ({ shown, result: readJson(path) as Found }));
  return [
    {
      id: 'triton',
      title: 'Triton',
      lead: `${plural(models.length, 'model')} for Triton's inference server${judged.length === 0 ? '; no check of them lies here' : ''}.`,
      blocks: [
        table(
          'Every model',
          ['folder', ...numbers('batch up to'), 'GPUs', 'states', 'served by'],
          models.map(({ folder, config }) => [
            code(folder),
            String(config.max_batch_size ?? 0),
            lines(
              Object.keys(config.cc_model_filenames ?? {}).map((key) => {
                const identity = config.parameters?.[`trtforge.identity.${key}`]?.string_value;
                return identity === undefined ? key : `${key}  ${identity.slice(0, 12)}`;
              }),
            ),
            lines((config.sequence_batching?.state ?? []).map(({ input_name = '' }) => code(input_name))),
            backendOf(config),
          ]),
        ),
        table(
          'What was found',
          ['result', 'outcome'],
          judged.map(({ shown, result: { outcome = 'inconclusive' } }) => [
            code(shown),
            badge(outcome, outcome === 'pass' ? 'good' : outcome === 'fail' ? 'bad' : 'warn'),
          ]),
        ),
        labelled(
          'finding',
          'warn',
          judged.flatMap(({ result }) => reasonsOf(result)),
        ),
      ],
    } satisfies Section,
  ];
};
