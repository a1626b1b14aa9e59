import * as is from '../../base/options/kinds.js';
import { allBut, needed, type OptionsOf, optional } from '../../base/options/option.js';
import { splitAtCommas } from '../../base/options/readers.js';
import { parseSize } from '../../base/text/quantity.js';
import { buildOptions, type PlanBuilder } from '../../engines/builder/options.js';
import type { WorkContext } from '../../events.js';
import { minAgreementOption } from '../../quality/tasks/agreement.js';
import { judgingOptions } from '../../quality/verify/options.js';
import { onlyLoadOptions } from '../../tensorrt/trtexec/options.js';

export const chainCheckOptions = {
  /** Default 0. */
  seed: judgingOptions.seed,
  /** Default 3. */
  samples: judgingOptions.samples,
  /** The share of tokens and of durations that must be the same; default 0.99. */
  minAgreement: minAgreementOption,
};

/** The bundle, and what becomes of it besides its engines. */
export const partsOptions = {
  /** A YAML file of ranges and components. */
  profilesFile: optional(is.text, {
    flags: '--profiles <file>',
    describe: 'YAML with the components and the ranges of their open dimensions',
    group: 'Profiles',
  }),
  /** Names of the components to build; default all. */
  only: optional(is.list<string>(), {
    flags: '--only <components>',
    describe: 'build these components only, several by comma',
    parse: splitAtCommas,
    repeat: true,
    make: (lists: readonly (readonly string[])[]): readonly string[] => lists.flat(),
  }),
  /** Where the models are; default: beside the meta file. */
  onnxDir: optional(is.text, {
    flags: '--onnx-dir <folder>',
    describe: 'where the models are (default: beside the meta file)',
    advanced: true,
  }),
  /** Link every file of the models into one folder first; both builders read models where they are, so it is off by default. */
  stage: optional(is.flag, {
    flags: '--stage',
    describe: 'link the models and their external files into one clean folder and build from there',
    advanced: true,
  }),
  /** Keep staged and typed models. */
  keepTemp: optional(is.flag, {
    flags: '--keep-temp',
    describe: 'keep the staged and the converted models',
    advanced: true,
  }),
  /** Most memory, in bytes, that builds of tensorrt-rtx may hold side by side; default half of what is available. */
  memoryBudget: optional(is.whole(1), {
    flags: '--memory-budget <size>',
    describe: 'memory that builds of tensorrt-rtx may take side by side (default: half of what is free)',
    parse: parseSize,
    advanced: true,
  }),
};

/** All but the meta file and the folder has a default. */
export const bundleOptions = {
  /** Path of `model_meta.json`. */
  meta: needed(is.text),
  /** Where engines, logs and the report go. */
  outdir: needed(is.text, {
    flags: '--outdir <folder>',
    describe: 'where engines, logs and the report go',
    required: '--outdir engines',
    writes: true,
  }),
  ...partsOptions,
  ...allBut(buildOptions, 'model', 'profiles', 'modelName', 'extension', 'logFolder', 'output'),
  /** A file, `auto` (default) for those of the store, with a copy in `timing.cache` of the folder, null for none. */
  timingCache: buildOptions.timingCache,
  /** Run each component once: always (default; without a GPU the model on ONNX Runtime), only where the engine itself can run, or never. */
  smoke: optional(is.words('always', 'engine', 'never')),
  /** The check that decodes through all components and compares; false: none. */
  check: optional(
    is.either(is.object<OptionsOf<typeof chainCheckOptions>>(chainCheckOptions), is.only(false)),
  ),
  ...onlyLoadOptions,
};

/** The request to build a bundle. */
export interface BundleRequest extends OptionsOf<typeof bundleOptions> {}

/** The chained check with its defaults; undefined where none is wanted. */
export const chainCheckOf = ({ check = {} }: BundleRequest) =>
  check === false ? undefined : { ...check, seed: check.seed ?? 0, samples: check.samples ?? 3 };

export interface BundleContext extends WorkContext {
  /** The command line of this run, for its report; none where a program calls the library. */
  readonly commandLine?: string;
  /** The builder of plans; default: the builder of the request. */
  readonly build?: PlanBuilder;
}
