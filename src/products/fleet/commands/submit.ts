import { shellQuote } from '../../../base/process/shell-quote.js';
import { plural } from '../../../base/text/quantity.js';
import { defineCommand } from '../../../cli/command.js';
import { type OptionValues, text, type ValueOption } from '../../../cli/option.js';
import { yesOption } from '../../../cli/plan.js';
import { TrtforgeError } from '../../../errors.js';
import type { Scheduler } from '../schedulers/scheduler.js';
import { schedulers, type WhereKind, whereSchema } from '../schedulers/where.js';
import type { FleetSubmit } from '../submit/result-schema.js';
import type { SubmitOptions } from '../submit/submit.js';

import { fleetArgument } from './status.js';

const kindOptions = Object.fromEntries(
  Object.entries(schedulers).map(([kind, { option }]) => [kind, option]),
) as Readonly<Record<WhereKind, ValueOption<unknown>>>;

const options = {
  ...kindOptions,
  output: text({
    flags: '-o, --output <folder>',
    describe: 'write scripts and manifests there, and send nothing',
    writes: true,
  }),
  yes: {
    ...yesOption,
    describe: 'do not ask before sending where a plan states that is read by its address and not signed',
  },
};

export const command = defineCommand({
  arguments: [fleetArgument],
  examples: [
    'trtforge fleet submit engines.yaml --dry-run',
    'trtforge fleet submit engines.yaml --kubernetes -o manifests',
    'trtforge fleet submit s3://team/engines/fleet/3f2a90c1b7de5c0f4a8e1d6b92c07f35.json --ssh builder@l4',
  ],
  options,
  schema: async () => (await import('../submit/result-schema.js')).fleetSubmitSchema,
  plan: async ([given = ''], values, context) =>
    (await import('../submit/submit.js')).submitPlan(given, chosen(values), context),
  run: async ([given = ''], values, context): Promise<FleetSubmit> =>
    (await import('../submit/submit.js')).submitFleet(given, chosen(values), context),
  render: ({ targets, schedulers, address }: FleetSubmit, { line, colors }) => {
    for (const { target, where, job, indices, manifest, did, skipped } of targets) {
      line(
        `${colors.bold(target)}  ${where}, ${plural(indices.length, 'job')}  ${job ?? manifest ?? did ?? ''}`,
      );
      for (const { index, why } of skipped) line(colors.dim(`  job ${index}: ${why}`));
    }
    for (const { name, why } of schedulers)
      if (why !== null) line(colors.dim(`${name} was not asked: ${why}`));
    line(`${colors.dim('Next:')} trtforge fleet status ${shellQuote(address)}`);
  },
});

/** Throws TF_USAGE for more than one place, and for what is not a host. */
function chosen({ output, yes, ...places }: OptionValues<typeof options>): SubmitOptions {
  const [kind = null, ...others] = (Object.keys(schedulers) as WhereKind[]).filter((each) => places[each]);
  const by: Scheduler<unknown> | null = kind && schedulers[kind];
  const instead = by?.instead && whereSchema.safeParse(by.instead(String(places[kind!]))).data;
  if (others.length > 0 || (by?.instead !== undefined && instead === undefined))
    throw new TrtforgeError(
      'TF_USAGE',
      'One place is expected: --slurm, --kubernetes, --local or --ssh HOST.',
    );
  return instead === undefined ? { kind, instead: null, output, yes } : { kind: null, instead, output, yes };
}
