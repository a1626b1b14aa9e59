import { splitAtCommas } from '../../../base/options/readers.js';
import { defineCommand } from '../../../cli/command.js';
import { option } from '../../../cli/option.js';
import { integer } from '../../../cli/values.js';
import type { FleetWork } from '../plan-schema.js';
import { readersOf } from './status.js';

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
  run: async ([fleet = ''], { jobs, index }, context): Promise<FleetWork> => {
    const { workFleet } = await import('../work.js');
    return workFleet({ fleet, jobs, index, ...(await readersOf(context)) }, context);
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
