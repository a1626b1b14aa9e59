import { shellQuote } from '../../../base/process/shell-quote.js';
import { plural } from '../../../base/text/quantity.js';
import { defineCommand } from '../../../cli/command.js';
import { flag, type OptionValues, text } from '../../../cli/option.js';
import { yesOption } from '../../../cli/plan.js';
import { TrtforgeError } from '../../../errors.js';
import type { FleetSubmit } from '../submit/result-schema.js';
import type { SubmitOptions } from '../submit/submit.js';
import { whereSchema } from '../where.js';
import { fleetArgument } from './status.js';

const options = {
  slurm: flag({ flags: '--slurm', describe: 'only the targets that Slurm builds' }),
  kubernetes: flag({ flags: '--kubernetes', describe: 'only the targets that Kubernetes builds' }),
  local: flag({ flags: '--local', describe: 'every target that this machine can build, here' }),
  ssh: text({
    flags: '--ssh <host>',
    describe: 'every target, on that machine, which has trtforge',
    trust: true,
  }),
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
function chosen({ slurm, kubernetes, local, ssh, output, yes }: OptionValues<typeof options>): SubmitOptions {
  const kinds = { slurm, kubernetes, local, ssh: ssh !== undefined };
  const [kind = null, ...others] = (['slurm', 'kubernetes', 'local', 'ssh'] as const).filter(
    (each) => kinds[each],
  );
  const where = ssh === undefined ? 'local' : whereSchema.safeParse({ ssh: { host: ssh } }).data;
  if (others.length > 0 || where === undefined)
    throw new TrtforgeError(
      'TF_USAGE',
      'One place is expected: --slurm, --kubernetes, --local or --ssh HOST.',
    );
  return local || ssh !== undefined
    ? { kind: null, instead: where, output, yes }
    : { kind, instead: null, output, yes };
}
