import { shellQuote } from '../../../base/process/shell-quote.js';
import { plural } from '../../../base/text/quantity.js';
import { defineCommand } from '../../../cli/command.js';
import { missLines } from '../../../report/sentences.js';
import { readEnginesFile, resolvedFile } from '../engines-file.js';
import type { FleetPlan } from '../plan-schema.js';

export const command = defineCommand({
  arguments: [{ name: 'ENGINES', describe: 'an engines.yaml: a store, targets, models (docs/fleet.md)' }],
  examples: [
    'trtforge fleet plan engines.yaml',
    'trtforge fleet plan engines.yaml --json > plan.json',
    'trtforge fleet plan engines.yaml --print-config',
  ],
  options: {},
  schema: async () =>
    (await import('../plan-schema.js')).fleetPlanSchema.extend({ address: (await import('zod')).z.string() }),
  file: ([path = '']) => resolvedFile(readEnginesFile(path)),
  run: async ([path = ''], _, context): Promise<FleetPlan & { address: string }> => {
    const { withFleet } = await import('../open-plan.js');
    return withFleet(path, context, { keep: true }, async ({ plan, address }) => ({ ...plan, address }));
  },
  render: ({ jobs, address }, { line, colors, verbose = false }) => {
    for (const { index, name, on, state, why } of jobs) {
      const shown = state === 'have' ? colors.green('have   ') : colors.yellow('missing');
      line(`${String(index).padStart(4)}  ${shown}  ${colors.bold(name)}  ${colors.dim(on)}`);
      const reasons = why === null ? [] : missLines(why);
      for (const reason of verbose ? reasons : reasons.slice(0, 2)) line(colors.dim(`        ${reason}`));
    }
    const missing = jobs.filter(({ state }) => state === 'missing').length;
    line(`${plural(jobs.length, 'engine')}, ${missing} missing. ${address}`);
    if (missing > 0) line(`${colors.dim('Next:')} trtforge fleet submit ${shellQuote(address)}`);
  },
});
