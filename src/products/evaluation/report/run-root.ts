import { join } from 'node:path';
import { z } from 'zod';
import { filesBelow, readJson } from '../../../base/files/files.js';
import { kindOf } from '../../../base/files/user-files.js';
import { plural } from '../../../base/text/quantity.js';
import { badge, charts, code, lines, numbers, type Section, table } from '../../../report/blocks.js';
import { letterOf } from '../../../report/comparison/compare.js';
import type { RunRootSections } from '../../../report/pages/report.js';
import { precisionChart } from '../compare/charts.js';
import { type Figures, figuresOfResult } from '../compare/figures.js';

interface FoundEvaluation {
  /** In the run root. */
  readonly file: string;
  readonly figures: Figures;
}

/** `ROOT/eval/fp16-coco/metrics.json` */
const DEPTH = 3;

/** The content of a file decides, by its first bytes: what a verb of evaluation printed, or metrics.json of a detector. */
const isEvaluation = (path: string): boolean =>
  /^JSON \((?:trtforge\.eval-.*|onnx_path|engine_path)\)$/.test(kindOf(path) ?? '');

const evaluationsIn = (root: string): readonly FoundEvaluation[] =>
  filesBelow(root, DEPTH).flatMap((file) => {
    const path = join(root, file);
    const figures = file.endsWith('.json') && isEvaluation(path) ? figuresOfResult(readJson(path)) : null;
    return figures === null ? [] : [{ file, figures }];
  });

const withEngine = z.object({
  build: z.object({ passport: z.object({ plan: z.object({ sha256: z.string() }) }) }),
});

/** The evaluations that lie in a run root, beside what was forged there; of several roots those of all. */
export const evaluationSections: RunRootSections = (runs) => {
  const all = runs.flatMap(({ root, result }, index) => {
    const sha256 = withEngine.safeParse(result).data?.build.passport.plan.sha256;
    const side = runs.length === 1 ? '' : `${letterOf(index)}: `;
    return evaluationsIn(root).map(({ file, figures }) => ({
      file: `${side}${file}`,
      figures,
      isOfEngine: figures.files.some((each) => each.sha256 === sha256),
    }));
  });
  const [first] = all;
  if (first === undefined) return [];
  const alike = all.filter(({ figures }) => figures.comparabilityKey === first.figures.comparabilityKey);
  const chart = precisionChart(alike.map(({ file, figures }) => ({ name: file, figures })));
  const keys = new Set(all.map(({ figures }) => figures.comparabilityKey)).size;
  const where = runs.length === 1 ? 'in the run root' : 'in the run roots';
  return [
    {
      id: 'evaluation',
      title: 'Evaluation',
      lead: `${plural(all.length, 'evaluation')} ${where}. ${keys > 1 ? 'Their comparability keys differ: compare figures only where the keys are equal.' : 'Their comparability keys are equal.'}`,
      blocks: [
        table(
          'Every evaluation',
          ['result', 'metrics', ...numbers('samples', 'median_ms'), 'of', 'ran on', 'comparability key'],
          all.map(({ file, figures, isOfEngine }) => [
            code(file),
            lines(figures.metrics.map(({ name, value }) => `${name} ${value?.toFixed(4) ?? '–'}`)),
            String(figures.samples),
            figures.latency?.median_ms.toFixed(2) ?? '–',
            isOfEngine ? badge('this engine', 'good') : lines(figures.files.map((each) => code(each.file))),
            figures.providers.join(', '),
            code(figures.comparabilityKey.slice(0, 16)),
          ]),
        ),
        chart &&
          charts({
            chart,
            caption: `Evaluations with the comparability key of ${first.file}, overlap 0.50.`,
          }),
      ],
    } satisfies Section,
  ];
};
