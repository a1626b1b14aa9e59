import type { OptionValues } from '../../../base/options/option.js';
import {
  builderOption,
  buildOptions,
  recipeOptions,
  recipeRequest,
  storeOptions,
} from '../../../cli/options/build.js';
import { timeoutOption } from '../../../cli/options/timeout.js';
import { onlyLoadOptions } from '../../../tensorrt/trtexec/options.js';
import { type BundleRequest, partsOptions, bundleOptions as requestOptions } from '../options.js';

/** The options of `bundle build` and `bundle forge`. */
export const bundleFlags = {
  outdir: requestOptions.outdir,
  ...recipeOptions,
  batch: { ...buildOptions.batch, describe: 'batch of every component: 8, or MIN/OPT/MAX as 1/8/64' },
  dims: buildOptions.dims,
  ...partsOptions,
  ...storeOptions,
  ...builderOption,
  ...onlyLoadOptions,
  ...timeoutOption,
};

export type BundleOptionValues = OptionValues<typeof bundleFlags>;

/** The options as the bundle room takes them. */
export const bundleRequest = (
  meta: string,
  options: BundleOptionValues,
): Omit<BundleRequest, 'check' | 'smoke'> => ({
  ...options,
  ...recipeRequest(options),
  meta,
});
