import { splitAtCommas } from '../../../base/options/readers.js';
import { plural } from '../../../base/text/quantity.js';
import { defineCommand } from '../../../cli/command.js';
import { option } from '../../../cli/option.js';
import { integer } from '../../../cli/values.js';
import { TrtforgeError } from '../../../errors.js';
import type { FleetJob, FleetPlan, FleetWork } from '../plan-schema.js';

export const command = defineCommand({
  arguments: [{ name: 'PLAN', describe: 'the address of a plan: STORE/fleet/ID.json' }],
  examples: [
    'trtforge fleet work s3://team/engines/fleet/3f2a90c1b7de5c0f4a8e1d6b92c07f35.json --jobs 0,3,7',
    'trtforge fleet work /shared/engines/fleet/3f2a90c1b7de5c0f4a8e1d6b92c07f35.json --jobs 0,3,7 --index 1',
  ],
  options: {
    jobs: option({
      flags: '--jobs <list>',
      describe: 'indices of the plan, 0,3,7 (default: all; what the store has ends at once)',
      parse: (text) => splitAtCommas(text).map(integer(0)),
    }),
    index: option({
      flags: '--index <number>',
      describe:
        'work the job at this place of the list alone, as an Indexed Job counts (default: all of them)',
      parse: integer(0),
      env: 'JOB_COMPLETION_INDEX',
    }),
  },
  schema: async () => (await import('../plan-schema.js')).fleetWorkSchema,
  run: async ([address = ''], { jobs, index }, context): Promise<FleetWork> => {
    const [{ withFleet }, { workOn }] = await Promise.all([import('../open-plan.js'), import('../work.js')]);
    return withFleet(address, context, { asPlanned: true }, async (fleet) => {
      // Models lie below the folder that the task is in, whatever the planning machine called it.
      const plan = { ...fleet.plan, folder: process.cwd() };
      const listed = listedJobs(plan, jobs);
      const chosen = index === undefined ? listed : listed.slice(index, index + 1);
      if (chosen.length === 0 && index !== undefined)
        throw new TrtforgeError(
          'TF_USAGE',
          `There is no job ${index} among ${plural(listed.length, 'job')}.`,
        );
      return workOn({ ...fleet, plan }, chosen, context);
    });
  },
  render: ({ jobs }, { line, colors }) => {
    const { green, red, yellow, bold, dim } = colors;
    for (const { index, did, exitCode, name, reasons, check, node } of jobs) {
      const color = exitCode === 0 ? green : exitCode === 4 ? yellow : red;
      line(
        `${String(index).padStart(4)}  ${color(did.padEnd(7))}  ${bold(name)}  ${dim(`${node}, known answer: ${check ?? 'not run'}`)}`,
      );
      for (const reason of reasons) line(`      ${reason}`);
    }
  },
});

/** Without a list all: whoever may write to the store could have edited a plan's states, which its ID does not cover. Throws TF_USAGE for an index that the plan lacks. */
export function listedJobs({ jobs }: FleetPlan, indices: readonly number[] | undefined): readonly FleetJob[] {
  if (indices === undefined) return jobs;
  return indices.map((index) => {
    const job = jobs[index];
    if (job === undefined)
      throw new TrtforgeError(
        'TF_USAGE',
        `The plan has ${plural(jobs.length, 'job')}, and none has the index ${index}.`,
      );
    return job;
  });
}
