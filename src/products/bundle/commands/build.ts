import { type CommandContext, defineCommand } from '../../../cli/command.js';
import { limited } from '../../../cli/options/timeout.js';
import { forgeBundle } from '../forge-bundle.js';
import type { BundleRequest } from '../options.js';
import { planBundle } from '../plan-bundle.js';
import type { BundleReport } from '../result.js';
import { type BundleOptionValues, bundleFlags, bundleRequest } from './bundle-options.js';
import { renderBundle } from './bundle-text.js';
import { bundleSteps } from './dry-run.js';

export const metaArgument = { name: 'META', describe: 'the model_meta.json of the bundle' };

export const command = defineCommand({
  arguments: [metaArgument],
  examples: ['trtforge bundle build out/model_meta.json --outdir engines --precision fp16'],
  options: bundleFlags,
  schema: async () => (await import('../result.js')).bundleReportSchema,
  run: limited(
    ([meta = ''], options, context): Promise<BundleReport> =>
      forgeBundle(requestOf(meta, options, context), context),
  ),
  plan: async ([meta = ''], options, context) =>
    bundleSteps(await planBundle(requestOf(meta, options, context), context)),
  render: renderBundle,
});

/** A build alone runs nothing but the engines it has built. */
const requestOf = (
  meta: string,
  options: BundleOptionValues,
  { verbose = false }: CommandContext,
): BundleRequest => ({ ...bundleRequest(meta, options), verbose, smoke: 'engine', check: false });
