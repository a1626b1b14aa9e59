import { defineCommand } from '../../../cli/command.js';
import type { FleetWork } from '../plan-schema.js';
import { workFleet, workOptions } from '../work.js';
import { readersOf } from './status.js';

export const command = defineCommand({
  arguments: [{ name: 'PLAN', describe: 'the address of a plan: STORE/fleet/ID.json' }],
  examples: [
    'trtforge fleet work s3://team/engines/fleet/3f2a90c1b7de5c0f4a8e1d6b92c07f35.json --jobs 0,3,7',
    'trtforge fleet work /shared/engines/fleet/3f2a90c1b7de5c0f4a8e1d6b92c07f35.json --jobs 0,3,7 --index 1',
  ],
  options: { jobs: workOptions.jobs, index: workOptions.index },
  schema: async () => (await import('../plan-schema.js')).fleetWorkSchema,
  run: async ([fleet = ''], options, context): Promise<FleetWork> => {
    return workFleet({ fleet, ...options, ...(await readersOf(context)) }, context);
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
