import type { OptionsOf } from '../../base/options/option.js';
import type { BuildOptions, PlanBuilder } from '../../engines/builder/build.js';
import type { onlyLoadOptions } from '../../engines/runtime/tensorrt/engine-options.js';
import type { WorkContext } from '../../events.js';

/** The request to build a bundle; all but the meta file and the folder has a default. */
export interface BundleRequest
  extends Omit<
      BuildOptions,
      'model' | 'profiles' | 'modelName' | 'extension' | 'timingCache' | 'logFolder' | 'output'
    >,
    OptionsOf<typeof onlyLoadOptions> {
  /** Path of `model_meta.json`. */
  readonly meta: string;
  /** Where the models are; default: beside the meta file. */
  readonly onnxDir?: string;
  /** Where engines, logs and the report go. */
  readonly outdir: string;
  /** Names of the components to build; default all. */
  readonly only?: readonly string[];
  /** A YAML file of ranges and components. */
  readonly profilesFile?: string;
  /** Link every file of the models into one folder first; both builders read models where they are, so it is off by default. */
  readonly stage?: boolean;
  /** Keep staged and typed models. */
  readonly keepTemp?: boolean;
  /** Most memory, in bytes, that builds of tensorrt-rtx may hold side by side; default half of what is available. */
  readonly memoryBudget?: number;
  /** A file, `auto` (default) for `timing.cache` in the folder, null for none. */
  readonly timingCache?: string | null;
  /** Run each component once: always (default; without a GPU the model on ONNX Runtime), only where the engine itself can run, or never. */
  readonly smoke?: 'always' | 'engine' | 'never';
  /** The check that decodes through all components and compares; false: none. */
  readonly check?: Partial<ChainCheckRequest> | false;
}

export interface ChainCheckRequest {
  /** Default 0. */
  readonly seed: number;
  /** Default 3. */
  readonly samples: number;
  /** The share of tokens and of durations that must be the same; default 0.99. */
  readonly minAgreement?: number | undefined;
}

/** The chained check with its defaults; undefined where none is wanted. */
export const chainCheckOf = ({ check = {} }: BundleRequest): ChainCheckRequest | undefined =>
  check === false ? undefined : { ...check, seed: check.seed ?? 0, samples: check.samples ?? 3 };

export interface BundleContext extends WorkContext {
  /** The command line of this run, for its report; none where a program calls the library. */
  readonly commandLine?: string;
  /** The builder of plans; default: the builder of the request. */
  readonly build?: PlanBuilder;
}
