import { builderNames } from '../../engines/builder/plan-builders.js';
import type { BuildWishes } from '../../engines/builder/prepare.js';
import { type ProfileRequest, parseProfile } from '../../engines/identity/profile.js';
import { defaultRecipe, type ProfileRange, type Recipe } from '../../engines/identity/recipe.js';
import { parseTarget } from '../../engines/identity/target.js';
import { TrtforgeError } from '../../errors.js';
import { choice, flag, type OptionValues, option, text } from '../option.js';
import {
  integer,
  type NamedShape,
  parseNamedSize,
  parseShapes,
  parseSize,
  splitAtCommas,
} from '../values.js';
import { conversionOptions, conversionWishes, refuseWithoutConversion } from './conversion.js';

const shapes = (which: string, what: string, alias: string) =>
  option({
    flags: `--${which}-shapes <shapes>`,
    describe: `${what} of inputs with open dimensions: x:1x3x224x224, several by comma`,
    parse: parseShapes,
    repeat: true,
    aliases: [alias],
  });

/** Every option that decides what is built; `build` and `cache why` have the same. */
export const buildOptions = {
  target: option({
    flags: '--target <target>',
    describe:
      'tensorrt-rtx:sm_89,sm_120, tensorrt-rtx, tensorrt:sm_90 or tensorrt (default: tensorrt where it and a GPU are here, else tensorrt-rtx for sm_80, sm_86, sm_89 and sm_120)',
    parse: parseTarget,
  }),
  toolchain: text({
    flags: '--toolchain <name>',
    trust: true,
    describe:
      'which TensorRT, by its name in trtforge toolchain list or its folder (default: the first for the target)',
  }),
  device: option({
    flags: '--device <number>',
    describe:
      'which of the visible GPUs: TensorRT builds on it, for its compute capability, and engines run on it; tensorrt-rtx builds without one (default: 0)',
    parse: integer(0),
  }),
  precision: choice({
    flags: '--precision <type>',
    describe: "as-is builds the graph's own types; fp16 and bf16 convert it first",
    choices: ['as-is', 'fp16', 'bf16'],
    default: 'as-is',
  }),
  weaklyTyped: flag({
    flags: '--weakly-typed',
    describe:
      'TensorRT 10: let the builder choose precisions up to --precision instead of converting the graph',
  }),
  ...conversionOptions('conversion: '),
  profile: option({
    flags: '--profile <ranges>',
    describe:
      'one optimization profile: NAME:MIN/OPT/MAX, several inputs by comma; repeat it for more profiles; NAME=MIN/OPT/MAX gives values of a shape tensor',
    parse: parseProfile,
    repeat: true,
  }),
  shapes: option({
    flags: '--shapes <shapes>',
    describe: 'one profile with these shapes as minimum, optimum and maximum',
    parse: parseShapes,
    repeat: true,
  }),
  minShapes: shapes('min', 'smallest shapes', '--minShapes'),
  optShapes: shapes('opt', 'shapes to optimize for', '--optShapes'),
  maxShapes: shapes('max', 'largest shapes', '--maxShapes'),
  workspace: option({
    flags: '--workspace <size>',
    describe:
      'most device memory that the builder may use for scratch space: 4G, 4096M; a bare number is MiB',
    parse: parseSize,
  }),
  memoryPool: option({
    flags: '--memory-pool <pool:size>',
    describe:
      'limit of another memory pool: tactic-shared-memory, dla-managed-sram, dla-local-dram, dla-global-dram, workspace',
    parse: parsePools,
    repeat: true,
    aliases: ['--memPoolSize'],
  }),
  optimizationLevel: option({
    flags: '--optimization-level <n>',
    describe: '0 builds fastest, 5 gives the fastest engine',
    parse: integer(0, 5),
    aliases: ['--builderOptimizationLevel'],
  }),
  builderFlag: text({
    flags: '--builder-flag <name>',
    describe: 'a builder flag by its name: refit, sparse-weights, version-compatible, no-tf32, …',
    repeat: true,
  }),
  profilingVerbosity: choice({
    flags: '--profiling-verbosity <level>',
    describe: 'what the engine can tell of its layers later',
    choices: ['layer-names-only', 'none', 'detailed'],
    default: defaultRecipe.profilingVerbosity,
  }),
  hardwareCompatibility: choice({
    flags: '--hardware-compatibility <level>',
    describe: 'GPUs besides the one it is built on that may load the engine',
    choices: ['none', 'ampere-plus', 'same-compute-capability'],
    default: defaultRecipe.hardwareCompatibility,
  }),
  runtimePlatform: choice({
    flags: '--runtime-platform <platform>',
    describe: 'operating system that will load the engine',
    choices: ['same-as-build', 'windows-amd64'],
    default: defaultRecipe.runtimePlatform,
  }),
  maxAuxStreams: option({
    flags: '--max-aux-streams <n>',
    describe: 'most streams beside the main one',
    parse: integer(0),
    aliases: ['--maxAuxStreams'],
  }),
  avgTiming: option({
    flags: '--avg-timing <n>',
    describe: 'how many runs a kernel time is averaged over',
    parse: integer(1),
    default: defaultRecipe.avgTimingIterations,
    aliases: ['--avgTiming'],
  }),
  tilingOptimizationLevel: choice({
    flags: '--tiling-optimization-level <level>',
    describe: 'how hard to search for tilings that keep data in the L2 cache',
    choices: ['none', 'fast', 'moderate', 'full'],
  }),
  maxTactics: option({
    flags: '--max-tactics <n>',
    describe: 'most tactics tried per layer',
    parse: integer(1),
  }),
  l2LimitForTiling: option({
    flags: '--l2-limit-for-tiling <size>',
    describe: 'most L2 cache that tiling may count on',
    parse: parseSize,
  }),
  tacticSource: text({
    flags: '--tactic-source <name>',
    describe: 'only these tactic sources',
    repeat: true,
  }),
  previewFeature: text({
    flags: '--preview-feature <name>',
    describe: 'a preview feature to turn on',
    repeat: true,
  }),
  plugin: text({
    flags: '--plugin <library>',
    trust: true,
    describe: 'a plug-in library the model needs',
    repeat: true,
  }),
  name: text({
    flags: '--name <name>',
    describe: "the model's name in the engine's readable name (default: the file's)",
  }),
  modelVersion: text({
    flags: '--model-version <version>',
    describe: "the model's version there (default: the first digits of its digest)",
  }),
};
export type BuildOptionValues = OptionValues<typeof buildOptions>;

/** Who builds; not part of what is built, so `cache why` does not ask. */
export const builderOption = {
  builder: choice({
    flags: '--builder <who>',
    describe:
      'native calls the library; trtexec runs the program of that name, in the words of its version (its logs: ~/.cache/trtforge/build_logs)',
    choices: builderNames,
    default: 'native',
  }),
};

/** The options as the engine room takes them. Throws TF_USAGE for options that contradict each other. */
export function buildWishes(model: string, options: BuildOptionValues): BuildWishes {
  if (options.precision === 'as-is') refuseWithoutConversion(options);
  return {
    model,
    target: options.target,
    toolchain: options.toolchain,
    device: options.device,
    precision: options.precision,
    weaklyTyped: options.weaklyTyped,
    conversion: conversionWishes(options),
    profiles: profilesOf(options),
    settings: settingsOf(options),
    plugins: options.plugin,
    modelName: options.name,
    modelVersion: options.modelVersion,
  };
}

function settingsOf(options: BuildOptionValues): NonNullable<BuildWishes['settings']> {
  return {
    memoryPools: poolsOf(options),
    optimizationLevel: options.optimizationLevel ?? null,
    maxAuxStreams: options.maxAuxStreams ?? null,
    avgTimingIterations: options.avgTiming,
    tilingOptimizationLevel: options.tilingOptimizationLevel ?? null,
    maxTactics: options.maxTactics ?? null,
    l2LimitForTiling: options.l2LimitForTiling ?? null,
    profilingVerbosity: options.profilingVerbosity,
    hardwareCompatibility: options.hardwareCompatibility,
    runtimePlatform: options.runtimePlatform,
    flags: [...options.builderFlag],
    tacticSources: options.tacticSource.length === 0 ? null : [...options.tacticSource],
    previewFeatures: [...options.previewFeature],
  };
}

type PoolName = keyof Recipe['memoryPools'];

/** Pools by our names and by trtexec's. */
const poolNames: Readonly<Record<string, PoolName>> = {
  workspace: 'workspace',
  'tactic-shared-memory': 'tacticSharedMemory',
  tacticSharedMem: 'tacticSharedMemory',
  'dla-managed-sram': 'dlaManagedSram',
  dlaSRAM: 'dlaManagedSram',
  'dla-local-dram': 'dlaLocalDram',
  dlaLocalDRAM: 'dlaLocalDram',
  'dla-global-dram': 'dlaGlobalDram',
  dlaGlobalDRAM: 'dlaGlobalDram',
};

function parsePools(list: string): readonly { readonly pool: PoolName; readonly bytes: number }[] {
  return splitAtCommas(list).map((part) => {
    const { name, bytes } = parseNamedSize(part);
    const pool = Object.hasOwn(poolNames, name) ? poolNames[name] : undefined;
    if (pool !== undefined) return { pool, bytes };
    throw new TrtforgeError('TF_USAGE', `«${name}» is not a memory pool.`, {
      remedy: `Pools are ${Object.keys(poolNames)
        .filter((known) => known === known.toLowerCase())
        .join(', ')}.`,
    });
  });
}

function poolsOf({ workspace, memoryPool }: BuildOptionValues): Recipe['memoryPools'] {
  const pools = { ...defaultRecipe.memoryPools };
  for (const { pool, bytes } of memoryPool.flat()) pools[pool] = bytes;
  if (workspace !== undefined) pools.workspace = workspace;
  return pools;
}

/** Profiles are said in one of three ways: --profile, --shapes, or the three of --min-shapes, --opt-shapes and --max-shapes. */
function profilesOf(options: BuildOptionValues): readonly ProfileRequest[] {
  const fixed = options.shapes.flat();
  const [min, opt, max] = [options.minShapes.flat(), options.optShapes.flat(), options.maxShapes.flat()];
  const ways = [options.profile, fixed, [...min, ...opt, ...max]].filter((way) => way.length > 0);
  if (ways.length > 1) {
    throw new TrtforgeError(
      'TF_USAGE',
      '--profile, --shapes and --min-shapes/--opt-shapes/--max-shapes are given together.',
      {
        remedy: 'Say the profiles in one of these ways; --profile takes several profiles.',
      },
    );
  }
  if (fixed.length > 0) return [rangesOf(fixed, fixed, fixed)];
  if (min.length + opt.length + max.length > 0) return [rangesOf(min, opt, max)];
  return options.profile;
}

function rangesOf(
  min: readonly NamedShape[],
  opt: readonly NamedShape[],
  max: readonly NamedShape[],
): ProfileRequest {
  const ranges = new Map<string, ProfileRange>();
  for (const { name } of [...min, ...opt, ...max]) {
    const [low, middle, high] = [min, opt, max].map(
      (list) => list.find((shape) => shape.name === name)?.dims,
    );
    if (low === undefined || middle === undefined || high === undefined) {
      throw new TrtforgeError(
        'TF_USAGE',
        `Input «${name}» needs --min-shapes, --opt-shapes and --max-shapes.`,
        {
          remedy: 'Give all three, or --shapes for one fixed shape.',
        },
      );
    }
    ranges.set(name, { min: [...low], opt: [...middle], max: [...high], values: false });
  }
  return ranges;
}
