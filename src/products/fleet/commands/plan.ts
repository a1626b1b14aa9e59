import { plural } from '../../../base/text/quantity.js';
import { shellQuote } from '../../../base/text/shell-line.js';
import { defineCommand } from '../../../cli/command.js';
import { table } from '../../../cli/text.js';
import { missLines, priceTable } from '../../../report/sentences.js';
import { readEnginesFile, resolvedFile } from '../engines-file.js';
import type { FleetJob, FleetPlan } from '../plan-schema.js';
import { readersOf } from './status.js';

export const command = defineCommand({
  arguments: [{ name: 'ENGINES', describe: 'an engines.yaml: a store, targets, models (docs/fleet.md)' }],
  examples: [
    'trtforge fleet plan engines.yaml',
    'trtforge fleet plan engines.yaml --json > plan.json',
    'trtforge fleet plan engines.yaml --print-config',
  ],
  options: {},
  schema: async () =>
    // The document in the store, whose place it does not state, names the same schema.
    (await import('../plan-schema.js')).fleetPlanSchema.extend({
      address: (await import('zod')).z.string().optional(),
    }),
  file: ([path = '']) => resolvedFile(readEnginesFile(path)),
  run: async ([fleet = ''], _, context): Promise<FleetPlan & { address: string }> => {
    const { planFleet } = await import('../plan.js');
    return planFleet({ fleet, ...(await readersOf(context)) }, context);
  },
  render: ({ jobs, address }, { line, colors, verbose = false }) => {
    const names = [...new Set(jobs.map(({ on }) => on))];
    const modelOf = ({ model, recipe }: FleetJob) =>
      [model.path, model.component, recipe.precision].filter(Boolean).join(' ');
    const cell = (model: string, on: string) =>
      jobs
        .flatMap((job) => (job.on === on && modelOf(job) === model ? [`${job.index} ${job.state}`] : []))
        .join(', ') || '-';
    const models = [...new Set(jobs.map(modelOf))];
    const rows = models.map((model) => [model, ...names.map((on) => cell(model, on))]);
    for (const row of table(['', ...names], rows)) line(row);
    for (const { index, name, state, why } of verbose ? jobs : []) {
      line(`${String(index).padStart(4)}  ${state}  ${colors.bold(name)}`);
      for (const reason of why === null ? [] : missLines(why)) line(colors.dim(`        ${reason}`));
    }
    for (const [model, { healed }] of new Map(jobs.map((job) => [modelOf(job), job]))) {
      if (healed === undefined) continue;
      line(`${model} is healed: ${healed.page}`);
      const { columns, rows } = priceTable(healed);
      for (const row of table(columns, rows)) line(`  ${row}`);
    }
    const missing = jobs.filter(({ state }) => state === 'missing').length;
    line(`${plural(jobs.length, 'engine')}, ${missing} missing. ${address}`);
    if (missing > 0) line(`${colors.dim('Next:')} trtforge fleet submit ${shellQuote(address)}`);
  },
});
