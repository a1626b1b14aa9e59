import type { OptionValues, ValueOption } from '../../../base/options/option.js';
import { plural } from '../../../base/text/quantity.js';
import { shellQuote } from '../../../base/text/shell-line.js';
import { defineCommand } from '../../../cli/command.js';
import { toJson } from '../../../cli/output.js';
import { confirm, step, yesOption } from '../../../cli/plan.js';
import { TrtforgeError } from '../../../errors.js';
import type { Scheduler } from '../schedulers/scheduler.js';
import { schedulers, type WhereKind, whereSchema } from '../schedulers/where.js';
import type { FleetSubmit } from '../submit/result.js';
import { planSubmit, type Sending, submitFleet, submitOptions } from '../submit/submit.js';
import { fleetArgument, readersOf } from './status.js';

const kindOptions = Object.fromEntries(
  Object.entries(schedulers).map(([kind, { option }]) => [kind, option]),
) as Readonly<Record<WhereKind, ValueOption<unknown>>>;

const options = {
  ...kindOptions,
  output: submitOptions.output,
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
  schema: async () => (await import('../submit/result.js')).fleetSubmitSchema,
  plan: async ([fleet = ''], values, context) => {
    const asked = { fleet, ...chosen(values), ...(await readersOf(context)) };
    const { address: plan, sending } = await planSubmit(asked, context);
    const steps = sending.map((each) =>
      step(values.output === undefined ? 'submit' : 'write', each.target, {
        detail: placeText(each),
        skipped: each.jobs.length === 0 ? 'every job is there or with its scheduler' : null,
      }),
    );
    return { steps, resolved: { plan } };
  },
  run: async ([fleet = ''], values, context): Promise<FleetSubmit> => {
    const asked = { fleet, ...chosen(values), ...(await readersOf(context)) };
    const confirmed = async (sending: readonly Sending[]) => {
      const action = `Sending ${sending.map(placeText).join('; ')}, as a plan states that no trusted key signed,`;
      await confirm(action, { yes: values.yes, ask: context.ask });
      return true;
    };
    return submitFleet({ ...asked, confirm: confirmed }, context);
  },
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

/** Where jobs go, with all that is asked there: host, image, account. */
const placeText = ({ where, target, jobs, folder }: Sending): string =>
  `${plural(jobs.length, 'job')} of ${target} (${jobs.join(',')}) to ${where === 'local' ? 'this machine' : toJson(where, 0)} in ${folder}`;

/** Throws TF_USAGE for more than one place, and for what is not a host. */
function chosen({ output, yes: _, ...places }: OptionValues<typeof options>) {
  const [kind, ...others] = (Object.keys(schedulers) as WhereKind[]).filter((each) => places[each]);
  const by: Scheduler<unknown> | undefined = kind && schedulers[kind];
  const instead = by?.instead && whereSchema.safeParse(by.instead(String(places[kind!]))).data;
  if (others.length > 0 || (by?.instead !== undefined && instead === undefined))
    throw new TrtforgeError(
      'TF_USAGE',
      'One place is expected: --slurm, --kubernetes, --local or --ssh HOST.',
    );
  return instead === undefined ? { kind, output } : { instead, output };
}
