import { formatCount, plural } from '../../../base/text/quantity.js';
import { defineCommand, type TextOutput } from '../../../cli/command.js';
import { cocoOptions, evaluateCoco } from '../coco/coco.js';
import type { CategoryScore, CocoResult } from '../coco/result.js';
import type { Finding } from '../findings.js';

export const command = defineCommand({
  examples: [
    'trtforge eval coco --instances instances_val2017.json --detections detections.json',
    'trtforge eval coco --instances instances_val2017.json --detections detections.json --image-ids first-100.txt --json',
  ],
  options: cocoOptions,
  schema: async () => (await import('../coco/result.js')).cocoResultSchema,
  run: async (_, request, context): Promise<CocoResult> => evaluateCoco(request, context),
  render: renderCoco,
});

const figure = (value: number | null | undefined): string =>
  value === null || value === undefined || value < 0 ? '–' : value.toFixed(4);

function renderCoco(result: CocoResult, output: TextOutput): void {
  output.line(output.colors.bold(`${result.detections} against ${result.instances}`));
  renderScores(result, output);
}

/** The figures, the weakest categories, and what is odd about the data. */
export function renderScores(result: Omit<CocoResult, 'schema' | 'detections'>, output: TextOutput): void {
  const { bold, dim } = output.colors;
  const { stats, metrics, perClass, beyondLimit } = result;
  const of = result.subset ? ` of ${formatCount(result.imagesOfInstances)}: a subset` : '';
  output.line(
    `  ${plural(metrics.num_images, 'image')}${of}, ${plural(metrics.num_detections, 'detection')}, ${formatCount(beyondLimit)} of them beyond 100 an image and category`,
  );
  const rows = [
    ['mAP', ['0.50:0.95', '0.50', '0.75', 'small', 'medium', 'large'], stats.slice(0, 6)],
    ['AR ', ['1', '10', '100', 'small', 'medium', 'large'], stats.slice(6)],
  ] as const;
  for (const [name, columns, values] of rows)
    output.line(
      `  ${name}  ${columns.map((column, at) => `${dim(column)} ${figure(values[at])}`).join('  ')}`,
    );
  const scored = perClass.filter(({ annotations }) => annotations > 0);
  const weakest = scored.toSorted((a, b) => (a.AP_50_95 ?? 0) - (b.AP_50_95 ?? 0)).slice(0, SHOWN);
  output.line();
  output.line(bold(`Lowest of ${formatCount(scored.length)} categories`));
  for (const category of weakest) output.line(`  ${categoryLine(category)}`);
  output.line(
    dim(
      `  data ${result.dataDigest.slice(0, 16)}; compare it only with results of key ${result.comparabilityKey.slice(0, 16)}`,
    ),
  );
  renderFindings(result.warnings, output);
}

/** Prints the findings about the data, with their first places. */
export function renderFindings(findings: readonly Finding[], { line, colors }: TextOutput): void {
  for (const { count, what, examples } of findings)
    line(`${colors.yellow('warning')} ${formatCount(count)} ${what} (${examples.join(', ')})`);
}

const SHOWN = 8;

const categoryLine = ({ name, AP_50_95, AP_50, annotations, detections }: CategoryScore): string =>
  `${name}  AP ${figure(AP_50_95)}  at 0.50 ${figure(AP_50)}  ${plural(annotations, 'annotation')}, ${plural(detections, 'detection')}`;
