import { defineCommand } from '../../../cli/command.js';
import { limited } from '../../../cli/options/timeout.js';
import { forgeBundle } from '../forge-bundle.js';
import type { BundleReport } from '../report-schema.js';
import { bundleOptions, bundleRequest } from './options.js';
import { renderBundle } from './text.js';

export const metaArgument = { name: 'META', describe: 'the model_meta.json of the bundle' };

export const command = defineCommand({
  arguments: [metaArgument],
  examples: ['trtforge bundle build out/model_meta.json --outdir engines --precision fp16'],
  options: bundleOptions,
  schema: async () => (await import('../report-schema.js')).bundleReportSchema,
  run: limited(async ([meta = ''], options, context): Promise<BundleReport> => {
    const verbose = context.verbose ?? false;
    // A build alone runs nothing but the engines it has built.
    return forgeBundle({ ...bundleRequest(meta, options), verbose, smoke: 'engine' }, context);
  }),
  render: renderBundle,
});
