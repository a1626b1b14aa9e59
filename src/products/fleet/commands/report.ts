import { defineCommand } from '../../../cli/command.js';
import { choice, text } from '../../../cli/option.js';
import type { RenderedReport } from '../../../report/forge-result.js';
import { renderReport, writeReport } from '../../../report/pages/report.js';
import { fleetArgument, readersOf } from './status.js';

export const command = defineCommand({
  arguments: [fleetArgument],
  examples: [
    'trtforge fleet report engines.yaml',
    'trtforge fleet report engines.yaml --format markdown -o fleet.md',
  ],
  options: {
    format: choice({
      flags: '--format <format>',
      describe: 'what to write',
      choices: ['html', 'markdown', 'json'],
      default: 'html',
    }),
    output: text({
      flags: '-o, --output <file>',
      describe: 'where to write it; - is stdout (default: fleet.html, fleet.md or fleet.json)',
      writes: true,
    }),
  },
  schema: async () => (await import('../../../report/forge-result.js')).renderedReportSchema,
  run: async ([fleet = ''], { format, output }, context): Promise<RenderedReport> => {
    const [{ fleetStatus }, { fleetReport }] = await Promise.all([
      import('../status.js'),
      import('../page.js'),
    ]);
    const result = await fleetStatus({ fleet, ...(await readersOf(context)) }, context);
    const { name, content } = renderReport({ kind: fleetReport, result }, format);
    return writeReport(format, content, output ?? name.replace('report', 'fleet'));
  },
  // A line end inside a line would leave as text.
  render: ({ path, content }, output) => {
    for (const line of (path ?? content ?? '').trimEnd().split('\n')) output.line(line);
  },
});
