import { formatBytes, formatMs } from '../../../base/text/quantity.js';
import {
  broughtBy,
  type CommandContext,
  defineCommand,
  searchesOf,
  type TextOutput,
} from '../../../cli/command.js';
import { type ExitCode, outcomeExitCodes } from '../../../errors.js';
import type { ModelReaders } from '../model-options.js';
import type { FleetStatus } from '../plan-schema.js';

export const fleetArgument = {
  name: 'FLEET',
  describe: 'an engines.yaml, or the address of a plan: STORE/fleet/ID.json',
} as const;

/** Who reads bundles and contracts, and who searches, of the products that are there. */
export async function readersOf({ products, commandLine }: CommandContext): Promise<ModelReaders> {
  const [bundleParts] = await broughtBy(products, 'bundleParts');
  const profileSources = await broughtBy(products, 'profileSources');
  return { bundleParts, profileSources, ...searchesOf(products), commandLine };
}

export const command = defineCommand({
  arguments: [fleetArgument],
  examples: [
    'trtforge fleet status engines.yaml',
    'trtforge fleet status s3://team/engines/fleet/3f2a90c1b7de5c0f4a8e1d6b92c07f35.json --json',
  ],
  options: {},
  schema: async () => (await import('../plan-schema.js')).fleetStatusSchema,
  run: async ([fleet = ''], _, context): Promise<FleetStatus & { exitCode: ExitCode }> => {
    const { fleetStatus } = await import('../status.js');
    const status = await fleetStatus({ fleet, ...(await readersOf(context)) }, context);
    return { ...status, exitCode: outcomeExitCodes[status.outcome] };
  },
  render,
});

function render({ jobs, schedulers, outcome }: FleetStatus, { line, colors, verbose }: TextOutput): void {
  const { green, red, yellow, cyan, bold, dim } = colors;
  const colored = {
    have: green,
    running: cyan,
    queued: dim,
    undecided: yellow,
    refused: red,
    failed: red,
    missing: yellow,
  };
  for (const { index, name, on, state, why, bytes, buildMs, check, gate, node } of jobs) {
    const facts = [
      on,
      node,
      bytes && formatBytes(bytes),
      buildMs && formatMs(buildMs),
      check && `known answer: ${check}`,
      gate && `policy: ${gate}`,
    ].filter(Boolean);
    line(
      `${String(index).padStart(4)}  ${colored[state](state.padEnd(9))}  ${bold(name)}  ${dim(facts.join(', '))}`,
    );
    for (const reason of verbose ? why : why.slice(0, 1)) line(dim(`        ${reason}`));
  }
  for (const { name, why } of schedulers) if (why !== null) line(dim(`${name} was not asked: ${why}`));
  const words = { pass: green('complete'), fail: red('FAIL'), inconclusive: yellow('not complete yet') };
  line(
    `${words[outcome]}  ${jobs.filter(({ state }) => state === 'have').length} of ${jobs.length} are there`,
  );
}
