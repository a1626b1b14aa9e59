import { defineCommand } from '../../../cli/command.js';
import { flag } from '../../../cli/option.js';
import { comparisonOptions } from '../../../cli/options/comparison.js';
import { limited } from '../../../cli/options/timeout.js';
import { forgeBundle } from '../forge-bundle.js';
import type { BundleReport } from '../report-schema.js';
import { metaArgument } from './build.js';
import { bundleOptions, bundleRequest } from './options.js';
import { renderBundle } from './text.js';

export const command = defineCommand({
  arguments: [metaArgument],
  examples: ['trtforge bundle forge out/model_meta.json --outdir engines --precision fp16'],
  options: {
    ...bundleOptions,
    seed: comparisonOptions.seed,
    samples: comparisonOptions.samples,
    noCheck: flag({ flags: '--no-check', describe: 'build and run the engines, and skip the chained check' }),
  },
  schema: async () => (await import('../report-schema.js')).bundleReportSchema,
  run: limited(async ([meta = ''], options, context): Promise<BundleReport> => {
    const { seed = 0, samples = 3, noCheck } = options;
    const verbose = context.verbose ?? false;
    const check = noCheck ? undefined : { seed, samples };
    return forgeBundle({ ...bundleRequest(meta, options), verbose, check }, context);
  }),
  render: renderBundle,
});
