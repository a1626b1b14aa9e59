import { trtexecPrecisions } from '../../behaviour/trtexec.js';
import { TrtforgeError } from '../../errors.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import type { Toolchain } from '../../tensorrt/toolchain/toolchain.js';
import { notInTrtexec, trtexecSwitches } from '../../tensorrt/trtexec/flags.js';
import type {
  TrtexecBuildRequest,
  TrtexecPrecision,
  TrtexecRange,
  TrtexecSwitch,
} from '../../tensorrt/trtexec/options.js';
import { LIBRARY_AVERAGES, type Recipe } from '../identity/recipe.js';
import type { ResolvedBuild } from './options.js';

const isPrecision = (flag: string): flag is TrtexecPrecision => Object.hasOwn(trtexecPrecisions, flag);

/** Files that trtexec reads and writes; all in a folder of its own. */
export interface TrtexecFiles {
  readonly plan: string;
  readonly timingCache: string | null;
}

/**
 * A build as `src/tensorrt/trtexec/` takes it: the same settings that the native builder makes, so the same identity.
 * Errors: TF_OPTION_UNSUPPORTED for what no trtexec has a flag for.
 */
export function trtexecBuildRequest(
  {
    identity: { recipe },
    pluginPaths,
    toolchain,
    verbose,
  }: Pick<ResolvedBuild, 'pluginPaths' | 'verbose'> & {
    readonly identity: Pick<ResolvedBuild['identity'], 'recipe'>;
    readonly toolchain: Pick<Toolchain, 'product'>;
  },
  modelPath: string,
  files: TrtexecFiles,
): TrtexecBuildRequest {
  assertTrtexecBuilds(toolchain.product, recipe);
  return {
    onnx: modelPath,
    saveEngine: files.plan,
    stronglyTyped: recipe.stronglyTyped,
    ...typesAndSwitches(recipe),
    profiles: recipe.profiles.map(rangesOf),
    memoryPools: poolsOf(recipe),
    optimizationLevel: recipe.optimizationLevel,
    maxAuxStreams: recipe.maxAuxStreams,
    avgTimingIterations: recipe.avgTimingIterations ?? LIBRARY_AVERAGES,
    maxTactics: recipe.maxTactics,
    tilingOptimizationLevel: recipe.tilingOptimizationLevel,
    l2LimitForTiling: recipe.l2LimitForTiling,
    profilingVerbosity: recipe.profilingVerbosity,
    hardwareCompatibility: recipe.hardwareCompatibility,
    runtimePlatform: recipe.runtimePlatform,
    tacticSources: recipe.tacticSources,
    previewFeatures: recipe.previewFeatures,
    layerPrecisions: [],
    layerOutputTypes: [],
    timingCache: files.timingCache,
    plugins: { static: pluginPaths, dynamic: [], serialize: [] },
    device: 0,
    verbose,
  };
}

/** Throws TF_OPTION_UNSUPPORTED for a product or an engine capability that trtexec does not build. */
function assertTrtexecBuilds(product: Toolchain['product'], { engineCapability }: Recipe): void {
  if (product !== 'tensorrt')
    throw new TrtforgeError(
      'TF_OPTION_UNSUPPORTED',
      `trtexec builds for TensorRT; engines of ${product} are built by its library.`,
      { remedy: 'Leave --builder trtexec out, or choose --target tensorrt.' },
    );
  if (engineCapability !== 'standard') throw notInTrtexec(`engine capability ${engineCapability}`);
}

/** The ranges of a profile, by input. */
const rangesOf = (profile: Recipe['profiles'][number]): Readonly<Record<string, TrtexecRange>> =>
  Object.fromEntries(
    Object.entries(profile).map(([name, { min, opt, max }]): [string, TrtexecRange] => [
      name,
      { min, opt, max },
    ]),
  );

/** The limits of memory, in bytes, by trtexec's names of the pools. */
const poolsOf = ({ memoryPools }: Recipe): TrtexecBuildRequest['memoryPools'] => ({
  workspace: memoryPools.workspace,
  tacticSharedMem: memoryPools.tacticSharedMemory,
  dlaSRAM: memoryPools.dlaManagedSram,
  dlaLocalDRAM: memoryPools.dlaLocalDram,
  dlaGlobalDRAM: memoryPools.dlaGlobalDram,
});

/** Flags of the recipe, sorted into permissions to use a type and switches. */
function typesAndSwitches({
  flags,
  precision,
  stronglyTyped,
}: Recipe): Pick<TrtexecBuildRequest, 'precisions' | 'switches'> {
  const format = stronglyTyped ? undefined : formatNamed(precision);
  const requested = format === undefined ? flags : [format.builderFlag, ...flags];
  const others = flags.filter((flag) => !isPrecision(flag) && flag !== 'tf32');
  const switches = others.map((flag): TrtexecSwitch => {
    const known = trtexecSwitches.find((name) => name === flag);
    if (known === undefined) throw notInTrtexec(`builder flag ${flag}`);
    return known;
  });
  return { precisions: [...new Set(requested.filter(isPrecision))], switches };
}
