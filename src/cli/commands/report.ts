import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { RenderedReport } from '../../report/forge-result.js';
import {
  picturesOf,
  readReport,
  renderComparison,
  renderReport,
  writeReport,
} from '../../report/pages/report.js';
import { broughtBy, defineCommand, sectionsOfProducts } from '../command.js';
import { choice, text } from '../option.js';

export const command = defineCommand({
  examples: [
    'trtforge report runs/resnet50 --format html',
    'trtforge report engines',
    'trtforge report runs/resnet50-int8 runs/resnet50-fp16 runs/resnet50-fp32',
    'trtforge report old.bench.json new.bench.json',
    'trtforge report runs/resnet50/report.json --format markdown -o - >> "$GITHUB_STEP_SUMMARY"',
  ],
  arguments: [
    {
      name: 'RUNS',
      describe:
        'a run root, the folder of a bundle or of a sizing of DeepStream, or the JSON file of a result: report.json, build_report.json, that of bench, verify, compare, stream verify or deepstream size; several of one kind side by side, as ratios over the last',
      many: true,
    },
  ],
  options: {
    format: choice({
      flags: '--format <format>',
      describe: 'what to write; svg: the chart of stream verify alone',
      choices: ['html', 'markdown', 'json', 'svg'],
      default: 'html',
    }),
    output: text({
      flags: '-o, --output <file>',
      describe:
        'where to write it; - is stdout (default: report.html, report.md, report.svg or the JSON beside the result; of several results comparison.html and the like in the folder of the first)',
      writes: true,
    }),
  },
  schema: async () => (await import('../../report/forge-result.js')).renderedReportSchema,
  run: async (paths, options, { products, emit }): Promise<RenderedReport> => {
    const kinds = await broughtBy(products, 'reports');
    const runs = paths.map((path) => ({ ...readReport(path, kinds), path, root: rootOf(path) }));
    const one = runs[0]!;
    const hasSections = runs.every(({ kind }) => kind.isRunRoot === true);
    const sections = hasSections ? (await sectionsOfProducts(products))(runs) : [];
    const { name, content, warnings } =
      runs.length === 1
        ? {
            ...renderReport(one, options.format, sections, await picturesOf(one, options.format)),
            warnings: [],
          }
        : renderComparison(runs, options.format, kinds, sections);
    for (const message of warnings) emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
    return writeReport(options.format, content, options.output ?? join(one.root, name));
  },
  // A line end inside a line would leave as text.
  render: ({ path, content }, output) => {
    for (const line of (path ?? content ?? '').trimEnd().split('\n')) output.line(line);
  },
});

const rootOf = (run: string): string => (statSync(run).isDirectory() ? run : join(run, '..'));
