import { shellWord } from '../../base/process/shell-word.js';
import type { BuildWishes } from '../builder/prepare.js';
import { type ProfileRequest, parseProfile } from '../identity/profile.js';
import { defaultRecipe, LIBRARY_AVERAGES, type ProfileRange, type Recipe } from '../identity/recipe.js';
import { targetText } from '../identity/target.js';
import type { BuildOrLoadWishes } from './build-or-load.js';

/** Options that decide what is built, spelled as `build` and `forge` take them. */
export function buildWords(options: Omit<BuildWishes, 'model'>): readonly string[] {
  const { precision = 'as-is', target, toolchain, weaklyTyped, modelName, modelVersion } = options;
  return [
    ...word('--precision', precision),
    ...word('--target', target === undefined || typeof target === 'string' ? target : targetText(target)),
    ...word('--toolchain', typeof toolchain === 'object' ? toolchain.name : toolchain),
    ...word('--device', options.device),
    ...(weaklyTyped ? ['--weakly-typed'] : []),
    ...conversionWords(options),
    ...(options.profiles ?? []).flatMap((profile) => ['--profile', profileText(profile)]),
    ...settingWords({ ...defaultRecipe, ...options.settings }),
    ...(options.plugins ?? []).flatMap((path) => ['--plugin', path]),
    ...word('--name', modelName),
    ...word('--model-version', modelVersion),
  ];
}

/** Options that decide who builds and where engines are kept. */
export function storeWords(options: Omit<BuildOrLoadWishes, 'model'>): readonly string[] {
  const { store, layers = [], remote, maxBytes, forceRebuild, timingCache, builder = 'native' } = options;
  return [
    ...(builder === 'native' ? [] : ['--builder', builder]),
    ...(timingCache === 'auto' ? [] : word('--timing-cache', timingCache === null ? 'none' : timingCache)),
    ...(store === false ? ['--no-cache'] : word('--cache-dir', store)),
    ...(forceRebuild ? ['--force-rebuild'] : []),
    ...layers.flatMap((folder) => ['--cache-from', folder]),
    ...word('--remote', remote === false ? 'none' : remote),
    ...word('--max-size', maxBytes === undefined ? undefined : `${maxBytes}B`),
    ...trustWords(options),
  ];
}

/** Keys are named by their files, so a report that holds these words holds no key. */
const trustWords = ({
  requireSignature,
  trustKeys = [],
  signKey,
}: Omit<BuildOrLoadWishes, 'model'>): readonly string[] => [
  ...(requireSignature ? ['--require-signature'] : []),
  ...trustKeys.flatMap((path) => ['--trust-key', path]),
  ...word('--sign-key', signKey),
];

/** Options that decide how a model is converted. */
export function conversionWords({ conversion = {} }: Pick<BuildWishes, 'conversion'>): readonly string[] {
  const { keepNodes = [], keepOps, convertOps, ioTypes, calibration } = conversion;
  return [
    ...keepNodes.flatMap((pattern) => ['--keep-nodes', pattern.source]),
    ...(keepOps?.size ? ['--keep-ops', [...keepOps].join(',')] : []),
    ...(convertOps?.size ? ['--convert-ops', [...convertOps].join(',')] : []),
    ...(ioTypes === 'convert' ? ['--io-types', 'convert'] : []),
    ...(calibration?.samples ?? []).flatMap((path) => ['--calibration', path]),
    ...word('--data-max', conversion.dataMax),
    ...word('--init-max', conversion.initMax),
    ...word('--max-reduction-depth', conversion.maxReductionDepth),
  ];
}

const poolNames: Readonly<Record<keyof Recipe['memoryPools'], string>> = {
  workspace: 'workspace',
  tacticSharedMemory: 'tactic-shared-memory',
  dlaManagedSram: 'dla-managed-sram',
  dlaLocalDram: 'dla-local-dram',
  dlaGlobalDram: 'dla-global-dram',
};

type SettingName = Exclude<
  keyof Recipe,
  'precision' | 'conversion' | 'stronglyTyped' | 'profiles' | 'pluginDigests' | 'engineCapability'
>;

/** How each setting of a recipe is said; the type makes a new setting without a word a compile error. */
const settingWriters: { readonly [K in SettingName]: (setting: Recipe[K]) => readonly string[] } = {
  memoryPools: (pools) =>
    (Object.keys(poolNames) as (keyof typeof poolNames)[]).flatMap((pool) =>
      pools[pool] === null ? [] : ['--memory-pool', `${poolNames[pool]}:${pools[pool]}B`],
    ),
  optimizationLevel: (level) => word('--optimization-level', level),
  maxAuxStreams: (streams) => word('--max-aux-streams', streams),
  avgTimingIterations: (iterations) =>
    unlessDefault('avgTimingIterations', '--avg-timing', iterations ?? LIBRARY_AVERAGES),
  tilingOptimizationLevel: (level) => word('--tiling-optimization-level', level),
  maxTactics: (tactics) => word('--max-tactics', tactics),
  l2LimitForTiling: (bytes) => word('--l2-limit-for-tiling', bytes === null ? null : `${bytes}B`),
  profilingVerbosity: (level) => unlessDefault('profilingVerbosity', '--profiling-verbosity', level),
  hardwareCompatibility: (level) => unlessDefault('hardwareCompatibility', '--hardware-compatibility', level),
  runtimePlatform: (platform) => unlessDefault('runtimePlatform', '--runtime-platform', platform),
  flags: (flags) => flags.flatMap((flag) => ['--builder-flag', flag]),
  tacticSources: (sources) => (sources ?? []).flatMap((source) => ['--tactic-source', source]),
  previewFeatures: (features) => features.flatMap((feature) => ['--preview-feature', feature]),
};

const settingWords = (recipe: Recipe): readonly string[] =>
  (Object.keys(settingWriters) as SettingName[]).flatMap((name) => settingWord(name, recipe));

const settingWord = <K extends SettingName>(name: K, recipe: Recipe): readonly string[] =>
  settingWriters[name](recipe[name]);

/** An option with its value; nothing where there is none. */
export const word = (name: string, said: string | number | null | undefined): readonly string[] =>
  said === null || said === undefined ? [] : [name, String(said)];

const unlessDefault = (setting: keyof Recipe, name: string, said: string | number): readonly string[] =>
  said === defaultRecipe[setting] ? [] : [name, String(said)];

function profileText(profile: string | ProfileRequest): string {
  return [...(typeof profile === 'string' ? parseProfile(profile) : profile)]
    .map(([name, range]) => rangeText(name, range))
    .join(',');
}

function rangeText(name: string, { min, opt, max, values }: ProfileRange): string {
  const dims = (numbers: readonly number[]) => (numbers.length === 0 ? 'scalar' : numbers.join('x'));
  return `${quotedName(name)}${values ? '=' : ':'}${[min, opt, max].map(dims).join('/')}`;
}

/** Names with characters that mean something in a range or a shape stand in quotes. */
export const quotedName = (name: string): string => (/[,:='\s]/.test(name) ? `'${name}'` : name);

/** `x:1x3x224x224`, as `--shapes` takes it. */
export const shapeText = (name: string, dims: readonly number[]): string =>
  `${quotedName(name)}:${dims.length === 0 ? 'scalar' : dims.join('x')}`;

/** The option with the shapes of several inputs. */
export const shapesOption = (
  inputs: readonly { readonly name: string; readonly shape: readonly number[] }[],
): string => `--shapes ${shellWord(inputs.map(({ name, shape }) => shapeText(name, shape)).join(','))}`;
