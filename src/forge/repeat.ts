import { type ProfileRequest, parseProfile } from '../engine/profile.js';
import { defaultRecipe, type ProfileRange, type Recipe } from '../engine/recipe.js';
import { targetText } from '../engine/target.js';
import type { ForgeResult } from '../report/result.js';
import { shellWord } from '../system/shell-word.js';
import type { ForgeOptions } from './options.js';
import type { RunRoot } from './run-root.js';

type Repeat = ForgeResult['repeat'];

/** The command lines that repeat a run: as a whole, and each of its steps; `verify` is the comparison's own, null without one. */
export function repeatCommands(options: ForgeOptions, root: RunRoot, verify: string | null): Repeat {
  const { model, precision } = options;
  const converts = precision === 'fp16' || precision === 'bf16';
  const typed = converts ? root.typedModel(model, precision) : null;
  const skip = options.skip ?? [];
  const line = (...words: readonly string[]) => ['trtforge', ...words].map(shellWord).join(' ');
  return [
    {
      step: 'The whole way',
      command: line(
        'forge',
        model,
        ...buildWords(options),
        ...storeWords(options),
        ...comparisonWords(options),
        ...skip.flatMap((phase) => ['--skip', phase]),
        '--run-root',
        root.path,
      ),
    },
    { step: 'Inspect', command: line('inspect', model) },
    ...(typed === null
      ? []
      : [
          {
            step: 'Convert',
            command: line(
              'convert',
              model,
              '--precision',
              String(precision),
              ...conversionWords(options),
              '-o',
              typed,
            ),
          },
        ]),
    ...(skip.includes('build')
      ? []
      : [
          {
            step: 'Build, or find in the store',
            command: line('build', model, ...buildWords(options), ...storeWords(options)),
          },
        ]),
    ...(verify === null ? [] : [{ step: 'Compare', command: verify }]),
    { step: 'Render the report again', command: line('report', root.path) },
  ];
}

/** Options that decide what is built, spelled as `build` and `forge` take them. */
function buildWords(options: ForgeOptions): readonly string[] {
  const { precision = 'as-is', target, toolchain, weaklyTyped, modelName, modelVersion } = options;
  return [
    ...word('--precision', precision),
    ...word('--target', target === undefined || typeof target === 'string' ? target : targetText(target)),
    ...word('--toolchain', typeof toolchain === 'object' ? toolchain.name : toolchain),
    ...(weaklyTyped ? ['--weakly-typed'] : []),
    ...conversionWords(options),
    ...(options.profiles ?? []).flatMap((profile) => ['--profile', profileText(profile)]),
    ...settingWords({ ...defaultRecipe, ...options.settings }),
    ...(options.plugins ?? []).flatMap((path) => ['--plugin', path]),
    ...word('--name', modelName),
    ...word('--model-version', modelVersion),
  ];
}

function storeWords({
  store,
  forceRebuild,
  timingCache,
  builder = 'native',
}: ForgeOptions): readonly string[] {
  return [
    ...(builder === 'native' ? [] : ['--builder', builder]),
    ...(timingCache === 'auto' ? [] : word('--timing-cache', timingCache === null ? 'none' : timingCache)),
    ...(store === false ? ['--no-cache'] : word('--cache-dir', store)),
    ...(forceRebuild ? ['--force-rebuild'] : []),
  ];
}

function comparisonWords({ verify = {} }: ForgeOptions): readonly string[] {
  const named = (name: string | null, said: string | number) =>
    name === null ? String(said) : `${quotedName(name)}:${said}`;
  return [
    ...word('--seed', verify.seed),
    ...word('--samples', verify.samples),
    ...(verify.ranges ?? []).flatMap(({ name, low, high }) => [
      '--val-range',
      named(name, `[${low},${high}]`),
    ]),
    ...(verify.files ?? []).flatMap(({ name, path }) => ['--inputs', `${quotedName(name)}=@${path}`]),
    ...(verify.atol ?? []).flatMap(({ name, value }) => ['--atol', named(name, value)]),
    ...(verify.rtol ?? []).flatMap(({ name, value }) => ['--rtol', named(name, value)]),
    ...word('--threads', verify.threads),
  ];
}

function conversionWords({ conversion = {} }: ForgeOptions): readonly string[] {
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
  avgTimingIterations: (iterations) => word('--avg-timing', iterations),
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

const word = (name: string, said: string | number | null | undefined): readonly string[] =>
  said === null || said === undefined ? [] : [name, String(said)];

const unlessDefault = (setting: keyof Recipe, name: string, said: string): readonly string[] =>
  said === defaultRecipe[setting] ? [] : [name, said];

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
const quotedName = (name: string): string => (/[,:='\s]/.test(name) ? `'${name}'` : name);
