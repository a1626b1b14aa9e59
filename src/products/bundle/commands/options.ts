import { valuesOf } from '../../../base/options/option.js';
import { splitAtCommas } from '../../../base/options/readers.js';
import { flag, type OptionValues, option, text } from '../../../cli/option.js';
import { builderOption, buildOptions, recipeOptions, recipeRequest } from '../../../cli/options/build.js';
import { storeOptions, storeOptionsOf } from '../../../cli/options/store.js';
import { timeoutOption } from '../../../cli/options/timeout.js';
import { parseSize } from '../../../cli/values.js';
import { onlyLoadOptions } from '../../../engines/runtime/tensorrt/engine-options.js';
import type { BundleRequest } from '../bundle-request.js';

/** The options of `bundle build` and `bundle forge`. */
export const bundleOptions = {
  outdir: text({
    flags: '--outdir <folder>',
    describe: 'where engines, logs and the report go',
    required: '--outdir engines',
    writes: true,
  }),
  ...recipeOptions,
  batch: { ...buildOptions.batch, describe: 'batch of every component: 8, or MIN/OPT/MAX as 1/8/64' },
  dims: buildOptions.dims,
  profiles: text({
    flags: '--profiles <file>',
    describe: 'YAML with the components and the ranges of their open dimensions',
    group: 'Profiles',
  }),
  only: option({
    flags: '--only <components>',
    describe: 'build these components only, several by comma',
    parse: splitAtCommas,
    repeat: true,
  }),
  onnxDir: text({
    flags: '--onnx-dir <folder>',
    describe: 'where the models are (default: beside the meta file)',
    advanced: true,
  }),
  stage: flag({
    flags: '--stage',
    describe: 'link the models and their external files into one clean folder and build from there',
    advanced: true,
  }),
  keepTemp: flag({
    flags: '--keep-temp',
    describe: 'keep the staged and the converted models',
    advanced: true,
  }),
  memoryBudget: option({
    flags: '--memory-budget <size>',
    describe: 'memory that builds of tensorrt-rtx may take side by side (default: half of what is free)',
    parse: parseSize,
    advanced: true,
  }),
  ...storeOptions,
  ...builderOption,
  ...onlyLoadOptions,
  ...timeoutOption,
};

export type BundleOptionValues = OptionValues<typeof bundleOptions>;

/** The options as the bundle room takes them. */
export function bundleRequest(
  meta: string,
  options: BundleOptionValues,
): Omit<BundleRequest, 'check' | 'smoke'> {
  const { outdir, onnxDir, only, stage, keepTemp, memoryBudget, batch } = options;
  return {
    ...recipeRequest(options),
    ...storeOptionsOf(options),
    builder: options.builder,
    ...valuesOf(onlyLoadOptions, options),
    meta,
    onnxDir,
    outdir,
    only: only.flat(),
    profilesFile: options.profiles,
    batch,
    dims: options.dims,
    stage,
    keepTemp,
    memoryBudget,
  };
}
