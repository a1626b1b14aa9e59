import { type OptionValues, valuesOf } from '../../../base/options/option.js';
import { type CommandContext, defineCommand } from '../../../cli/command.js';
import { flag } from '../../../cli/option.js';
import { limited } from '../../../cli/options/timeout.js';
import { forgeBundle } from '../forge-bundle.js';
import { type BundleRequest, chainCheckOptions } from '../options.js';
import { planBundle } from '../plan-bundle.js';
import type { BundleReport } from '../result.js';
import { metaArgument } from './build.js';
import { bundleFlags, bundleRequest } from './bundle-options.js';
import { renderBundle } from './bundle-text.js';
import { bundleSteps } from './dry-run.js';

const options = {
  ...bundleFlags,
  ...chainCheckOptions,
  noCheck: flag({ flags: '--no-check', describe: 'build and run the engines, and skip the chained check' }),
};

export const command = defineCommand({
  arguments: [metaArgument],
  examples: ['trtforge bundle forge out/model_meta.json --outdir engines --precision fp16'],
  options,
  schema: async () => (await import('../result.js')).bundleReportSchema,
  run: limited(
    ([meta = ''], values, context): Promise<BundleReport> =>
      forgeBundle(requestOf(meta, values, context), context),
  ),
  plan: async ([meta = ''], values, context) =>
    bundleSteps(await planBundle(requestOf(meta, values, context), context)),
  render: renderBundle,
});

function requestOf(
  meta: string,
  values: OptionValues<typeof options>,
  { verbose = false }: CommandContext,
): BundleRequest {
  return {
    ...bundleRequest(meta, values),
    verbose,
    check: values.noCheck ? false : valuesOf(chainCheckOptions, values),
  };
}
