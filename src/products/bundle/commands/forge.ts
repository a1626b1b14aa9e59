import { type CommandContext, defineCommand } from '../../../cli/command.js';
import { flag, type OptionValues } from '../../../cli/option.js';
import { comparisonOptions } from '../../../cli/options/comparison.js';
import { limited } from '../../../cli/options/timeout.js';
import { minAgreementOption } from '../../../quality/tasks/decisions.js';
import type { BundleRequest } from '../bundle-request.js';
import { forgeBundle } from '../forge-bundle.js';
import { planBundle } from '../plan-bundle.js';
import type { BundleReport } from '../report-schema.js';
import { metaArgument } from './build.js';
import { bundleOptions, bundleRequest } from './options.js';
import { bundleSteps } from './plan.js';
import { renderBundle } from './text.js';

const options = {
  ...bundleOptions,
  seed: comparisonOptions.seed,
  samples: comparisonOptions.samples,
  minAgreement: minAgreementOption,
  noCheck: flag({ flags: '--no-check', describe: 'build and run the engines, and skip the chained check' }),
};

export const command = defineCommand({
  arguments: [metaArgument],
  examples: ['trtforge bundle forge out/model_meta.json --outdir engines --precision fp16'],
  options,
  schema: async () => (await import('../report-schema.js')).bundleReportSchema,
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
  const { seed, samples, minAgreement, noCheck } = values;
  return {
    ...bundleRequest(meta, values),
    verbose,
    check: noCheck ? false : { seed, samples, minAgreement },
  };
}
