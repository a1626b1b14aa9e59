import { statSync } from 'node:fs';
import { join } from 'node:path';
import { publishFile } from '../../base/files/publish.js';
import { readReport, renderReport } from '../../report/read.js';
import type { RenderedReport } from '../../report/result.js';
import { defineCommand, sectionsOfProducts } from '../command.js';
import { choice, text } from '../option.js';

export const command = defineCommand({
  examples: [
    'trtforge report runs/resnet50 --format html',
    'trtforge report engines',
    'trtforge report runs/resnet50/report.json --format markdown -o - >> "$GITHUB_STEP_SUMMARY"',
  ],
  arguments: [
    {
      name: 'RUN',
      describe:
        'a run root, the folder of a bundle, or the JSON file of a result: report.json, build_report.json, that of stream verify',
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
        'where to write it; - is stdout (default: report.html, report.md, report.svg or the JSON beside the result)',
      writes: true,
    }),
  },
  schema: async () => (await import('../../report/result.js')).renderedReportSchema,
  run: async ([run = ''], options, { products }): Promise<RenderedReport> => {
    const kinds = (await Promise.all(products.map(({ reports }) => reports?.() ?? []))).flat();
    const read = readReport(run, kinds);
    const sections = read.kind.isRunRoot === true ? await sectionsOfProducts(products) : () => [];
    const { name, content } = renderReport(read, options.format, sections(rootOf(run), read.result));
    if (options.output === '-')
      return { schema: 'trtforge.report/1', format: options.format, path: null, content };
    const path = options.output ?? join(rootOf(run), name);
    publishFile(path, content);
    return { schema: 'trtforge.report/1', format: options.format, path, content: null };
  },
  // A line end inside a line would leave as text.
  render: ({ path, content }, output) => {
    for (const line of (path ?? content ?? '').trimEnd().split('\n')) output.line(line);
  },
});

const rootOf = (run: string): string => (statSync(run).isDirectory() ? run : join(run, '..'));
