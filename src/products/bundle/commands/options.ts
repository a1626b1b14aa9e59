import { flag, type OptionValues, option, text } from '../../../cli/option.js';
import { type BuildOptionValues, buildWishes } from '../../../cli/options/build.js';
import { type loadOptions, loadWishes } from '../../../cli/options/engine.js';
import { integer, parseSize, splitAtCommas } from '../../../cli/values.js';
import { TrtforgeError } from '../../../errors.js';
import type { BundleRequest } from '../bundle-request.js';
import type { ProfileWishes } from '../component-profile.js';

type End = 'min' | 'opt' | 'max';

/** One end of one range; `alias` is the name that exporters' build tools give it. */
const end = (component: string, which: End, axis: 't' | 'u', usual: number) =>
  option({
    flags: `--${component}-${which}-${axis} <n>`,
    describe: `with --meta: ${which === 'opt' ? 'optimal' : which === 'min' ? 'smallest' : 'largest'} ${axis === 't' ? 'number of frames' : 'number of tokens'} of the ${component} (default: ${usual})`,
    parse: integer(1),
    aliases: [`--${component}-${which}-${axis.toUpperCase()}`],
  });

const batch = (which: End) =>
  option({
    flags: `--${which}-batch <n>`,
    describe: `with --meta: ${which === 'opt' ? 'optimal' : which === 'min' ? 'smallest' : 'largest'} batch of every component (default: 1)`,
    parse: integer(1),
  });

/** What only bundles have; `build` and `forge` have the same. */
export const bundleOptions = {
  meta: text({
    flags: '--meta <file>',
    describe: 'build the bundle that this model_meta.json describes, instead of one MODEL',
  }),
  onnxDir: text({
    flags: '--onnx-dir <folder>',
    describe: 'with --meta: where the models are (default: beside the meta file)',
  }),
  only: option({
    flags: '--only <components>',
    describe: 'with --meta: build these components only, several by comma',
    parse: splitAtCommas,
    repeat: true,
  }),
  profiles: text({
    flags: '--profiles <file>',
    describe: 'with --meta: YAML with the components and the ranges of their open dimensions',
  }),
  encoderMinT: end('encoder', 'min', 't', 16),
  encoderOptT: end('encoder', 'opt', 't', 64),
  encoderMaxT: end('encoder', 'max', 't', 256),
  predictorMinU: end('predictor', 'min', 'u', 1),
  predictorOptU: end('predictor', 'opt', 'u', 1),
  predictorMaxU: end('predictor', 'max', 'u', 8),
  jointMinT: end('joint', 'min', 't', 16),
  jointOptT: end('joint', 'opt', 't', 64),
  jointMaxT: end('joint', 'max', 't', 256),
  jointMinU: end('joint', 'min', 'u', 1),
  jointOptU: end('joint', 'opt', 'u', 1),
  jointMaxU: end('joint', 'max', 'u', 8),
  minBatch: batch('min'),
  optBatch: batch('opt'),
  maxBatch: batch('max'),
  stage: flag({
    flags: '--stage',
    describe:
      'with --meta: link the models and their external files into one clean folder and build from there',
  }),
  keepTemp: flag({
    flags: '--keep-temp',
    describe: 'with --meta: keep the staged and the converted models',
  }),
  memoryBudget: option({
    flags: '--memory-budget <size>',
    describe:
      'with --meta: memory that builds of tensorrt-rtx may take side by side (default: half of what is free)',
    parse: parseSize,
  }),
};

export type BundleOptionValues = OptionValues<typeof bundleOptions>;

/**
 * Whether the command line is about a bundle. Throws TF_USAGE where it names both a model and a meta file, or neither, or says things of one about the other.
 */
export function isBundle(model: string | undefined, options: BundleOptionValues): boolean {
  if (options.meta === undefined) {
    refuseWithoutMeta(options);
    if (model !== undefined) return false;
    throw new TrtforgeError('TF_USAGE', 'Neither a MODEL nor --meta is given.', {
      remedy: 'Name an ONNX file, or the model_meta.json of a bundle with --meta.',
    });
  }
  if (model === undefined) return true;
  throw new TrtforgeError('TF_USAGE', `Both the model ${model} and --meta ${options.meta} are given.`, {
    remedy: 'Name one: --meta finds the models of its bundle itself (--onnx-dir says where, --only which).',
  });
}

function refuseWithoutMeta(options: BundleOptionValues): void {
  for (const [key, spec] of Object.entries(bundleOptions)) {
    const value = options[key as keyof BundleOptionValues];
    if (value === undefined || value === false || (Array.isArray(value) && value.length === 0)) continue;
    const [name] = spec.flags.split(' ');
    throw new TrtforgeError('TF_USAGE', `${name} is about a bundle, and there is no --meta.`, {
      remedy: 'Give the model_meta.json of the bundle with --meta; ranges of one model go into --profile.',
    });
  }
}

/** The options as the bundle room takes them. Throws TF_USAGE for what is about a single model. */
export function bundleWishes(
  options: BundleOptionValues & BuildOptionValues & OptionValues<typeof loadOptions>,
  outdir: string | undefined,
): Omit<BundleRequest, 'check' | 'smoke'> {
  const { meta = '', onnxDir, only, stage, keepTemp, memoryBudget } = options;
  const { model: _, profiles, modelName, ...wishes } = buildWishes(meta, options);
  if (profiles !== undefined && profiles.length > 0) {
    throw new TrtforgeError('TF_USAGE', 'Profiles of one model are given for a bundle.', {
      remedy: 'Say the ranges of components with --encoder-max-t and its kin, or in a --profiles file.',
    });
  }
  if (modelName !== undefined) {
    throw new TrtforgeError('TF_USAGE', 'One --name is given for all components of a bundle.', {
      remedy: 'Engines of a bundle are named after their components; leave --name out.',
    });
  }
  if (outdir === undefined) {
    throw new TrtforgeError(
      'TF_USAGE',
      '--meta needs --outdir: the folder for engines, logs and the report.',
    );
  }
  return {
    ...wishes,
    ...loadWishes(options),
    meta,
    onnxDir,
    outdir,
    only: only.flat(),
    profilesFile: options.profiles,
    ranges: rangesOf(options),
    stage,
    keepTemp,
    memoryBudget,
  };
}

const rangesOf = (options: BundleOptionValues): Omit<ProfileWishes, 'file'> => ({
  batch: { min: options.minBatch, opt: options.optBatch, max: options.maxBatch },
  encoderTime: { min: options.encoderMinT, opt: options.encoderOptT, max: options.encoderMaxT },
  predictorTokens: { min: options.predictorMinU, opt: options.predictorOptU, max: options.predictorMaxU },
  jointTime: { min: options.jointMinT, opt: options.jointOptT, max: options.jointMaxT },
  jointTokens: { min: options.jointMinU, opt: options.jointOptU, max: options.jointMaxU },
});
