import type { Generation, NativeSetting } from '../../addon/addon.js';
import { didYouMean } from '../../base/text/suggest-name.js';
import { behaviour, type FactId, holds } from '../../behaviour/facts.js';
import { rangeText } from '../../behaviour/versions.js';
import { TrtforgeError } from '../../errors.js';
import { formatNamed, formats } from '../../formats/precision/formats/index.js';
import {
  abiTable,
  enumerator,
  type Feature,
  generationOf,
  numberOf,
  sinceIn,
  versionsWith,
} from '../../tensorrt/toolchain/abi.js';
import { isAtLeast, type Toolchain } from '../../tensorrt/toolchain/toolchain.js';
import type { Recipe } from '../identity/recipe.js';

/** A recipe in the numbers and calls of one version of TensorRT. */
export interface BuilderSettings {
  /** Bits of `NetworkDefinitionCreationFlags`. */
  readonly networkFlags: number;
  /** Bits of `OnnxParserFlags`; 0 leaves the parser its own. */
  readonly parserFlags: number;
  readonly settings: readonly NativeSetting[];
}

/** Flags that let a weakly typed builder choose a lower precision; the types of a strongly typed graph decide instead. */
const PRECISION_FLAGS = [...formats.map(({ builderFlag }) => builderFlag), 'int8', 'fp8', 'int4', 'fp4'];

/**
 * Resolves a recipe for a toolchain. An option the version lacks is TF_OPTION_UNSUPPORTED, naming the versions that have it; nothing is dropped.
 * A toolchain without a table is TF_LIBRARY_UNSUPPORTED.
 */
export function builderSettings(
  recipe: Recipe,
  toolchain: Pick<Toolchain, 'product' | 'version'>,
): BuilderSettings {
  const generation = generationOf(toolchain);
  if (generation === null) {
    throw new TrtforgeError(
      'TF_LIBRARY_UNSUPPORTED',
      `${nameOf(toolchain)} is not a version trtforge has a table of functions for.`,
    );
  }
  const version = new VersionedCalls(generation, toolchain);
  return {
    networkFlags: networkFlags(recipe, version),
    parserFlags: parserFlags(recipe, version),
    settings: [
      ...flagSettings(recipe, version),
      ...poolSettings(recipe, version),
      ...numberSettings(recipe, version),
      ...choiceSettings(recipe, version),
      ...listSettings(recipe, version),
    ],
  };
}

const nameOf = ({ product, version }: Pick<Toolchain, 'product' | 'version'>): string =>
  `${product === 'tensorrt' ? 'TensorRT' : product} ${version}`;

/** `kSPARSE_WEIGHTS` as trtforge spells it: `sparse-weights`. */
const wordOf = (enumerator: string): string => enumerator.slice(1).toLowerCase().replaceAll('_', '-');

const isNone = (versions: string): boolean => versions.startsWith('no ');

class VersionedCalls {
  constructor(
    readonly generation: Generation,
    private readonly toolchain: Pick<Toolchain, 'product' | 'version'>,
  ) {}

  has(id: FactId): boolean {
    return holds(id, this.toolchain);
  }

  /** A call on IBuilderConfig, rejected where this version has no such function. */
  call(option: string, name: string, ...args: number[]): NativeSetting {
    const feature: Feature = { class: 'IBuilderConfig', name };
    const since = sinceIn(this.generation, feature);
    if (since === null || !isAtLeast(this.toolchain.version, since)) throw this.unsupported(option, feature);
    return { option, call: name, arguments: args };
  }

  /** The number of an enumerator, rejected where this version has no such value. */
  number(option: string, enumeration: string, name: string): number {
    const number = numberOf(this.generation, this.toolchain.version, enumeration, name);
    if (number !== null) return number;
    const versions = versionsWith({ enum: enumeration, name });
    const known = Object.keys(abiTable(this.generation).enums[enumeration] ?? {}).map(wordOf);
    throw this.unsupportedIn(
      option,
      versions,
      isNone(versions) ? didYouMean(wordOf(name), known).trim() : '',
    );
  }

  unsupported(option: string, feature: Feature): TrtforgeError {
    return this.unsupportedIn(option, versionsWith(feature));
  }

  /** `hint` is the remedy where more is known than to leave the option out. */
  unsupportedIn(option: string, versions: string, hint = ''): TrtforgeError {
    return new TrtforgeError(
      'TF_OPTION_UNSUPPORTED',
      `${nameOf(this.toolchain)} has no ${option}; ${versions} ${isNone(versions) ? 'has' : 'have'} it.`,
      {
        remedy: hint || undefined,
        details: { option, version: this.toolchain.version, availableIn: versions },
      },
    );
  }
}

function networkFlags(recipe: Recipe, version: VersionedCalls): number {
  const bit = (name: string, option: string) =>
    1 << version.number(option, 'NetworkDefinitionCreationFlag', name);
  if (!version.has('weak-typing')) {
    if (recipe.stronglyTyped) return 0;
    const versions = `TensorRT ${rangeText(behaviour['weak-typing'].tensorrt)}`;
    throw version.unsupportedIn('weakly typed networks', versions);
  }
  if (recipe.stronglyTyped) return bit('kSTRONGLY_TYPED', 'strongly typed networks');
  return version.has('implicit-batch') ? bit('kEXPLICIT_BATCH', 'networks with an explicit batch') : 0;
}

/** NvOnnxParser.h requires the flag for these engines, and trtexec sets it. */
function parserFlags({ flags, hardwareCompatibility }: Recipe, version: VersionedCalls): number {
  const isCompatible = flags.includes('version-compatible') || hardwareCompatibility !== 'none';
  if (!isCompatible || version.has('instance-norm')) return 0;
  return 1 << version.number('native InstanceNormalization', 'OnnxParserFlag', 'kNATIVE_INSTANCENORM');
}

function flagSettings(recipe: Recipe, version: VersionedCalls): NativeSetting[] {
  // In a weakly typed network the precision is a permission to the builder; in a typed one the graph holds it already.
  const format = recipe.stronglyTyped ? undefined : formatNamed(recipe.precision);
  const permitted = format === undefined ? [] : [format.builderFlag];
  return [...new Set([...permitted, ...recipe.flags])].map((flag) => {
    if (recipe.stronglyTyped && PRECISION_FLAGS.includes(flag)) {
      throw new TrtforgeError(
        'TF_OPTION_UNSUPPORTED',
        `The builder flag ${flag} has no effect on a strongly typed network.`,
        {
          remedy:
            'Convert the model to the precision instead (`trtforge convert`), or build it weakly typed.',
        },
      );
    }
    const off = flag.startsWith('no-');
    const name = off ? flag.slice('no-'.length) : flag;
    const number = version.number(`builder flag ${name}`, 'BuilderFlag', enumerator(name));
    return version.call(`builder flag ${name}`, off ? 'clearFlag' : 'setFlag', number);
  });
}

function poolSettings({ memoryPools }: Recipe, version: VersionedCalls): NativeSetting[] {
  const pools = [
    ['workspace', 'kWORKSPACE', memoryPools.workspace],
    ['tactic shared memory', 'kTACTIC_SHARED_MEMORY', memoryPools.tacticSharedMemory],
    ['DLA managed SRAM', 'kDLA_MANAGED_SRAM', memoryPools.dlaManagedSram],
    ['DLA local DRAM', 'kDLA_LOCAL_DRAM', memoryPools.dlaLocalDram],
    ['DLA global DRAM', 'kDLA_GLOBAL_DRAM', memoryPools.dlaGlobalDram],
  ] as const;
  return pools.flatMap(([name, pool, bytes]) => {
    const option = `memory pool for ${name}`;
    if (bytes === null) return [];
    return [
      version.call(option, 'setMemoryPoolLimit', version.number(option, 'MemoryPoolType', pool), bytes),
    ];
  });
}

function numberSettings(recipe: Recipe, version: VersionedCalls): NativeSetting[] {
  const numbers = [
    ['builder optimization level', 'setBuilderOptimizationLevel', recipe.optimizationLevel],
    ['limit of auxiliary streams', 'setMaxAuxStreams', recipe.maxAuxStreams],
    ['number of averaged timing runs', 'setAvgTimingIterations', recipe.avgTimingIterations],
    ['limit of tactics', 'setMaxNbTactics', recipe.maxTactics],
    ['L2 limit for tiling', 'setL2LimitForTiling', recipe.l2LimitForTiling],
  ] as const;
  return numbers.flatMap(([option, call, value]) =>
    value === null ? [] : [version.call(option, call, value)],
  );
}

/** Choices whose default is the library's own: only another choice becomes a call. */
function choiceSettings(recipe: Recipe, version: VersionedCalls): NativeSetting[] {
  const choices = [
    [
      'profiling verbosity',
      'setProfilingVerbosity',
      'ProfilingVerbosity',
      recipe.profilingVerbosity,
      'layer-names-only',
    ],
    [
      'hardware compatibility level',
      'setHardwareCompatibilityLevel',
      'HardwareCompatibilityLevel',
      recipe.hardwareCompatibility,
      'none',
    ],
    ['runtime platform', 'setRuntimePlatform', 'RuntimePlatform', recipe.runtimePlatform, 'same-as-build'],
    ['engine capability', 'setEngineCapability', 'EngineCapability', recipe.engineCapability, 'standard'],
    [
      'tiling optimization level',
      'setTilingOptimizationLevel',
      'TilingOptimizationLevel',
      recipe.tilingOptimizationLevel,
      null,
    ],
  ] as const;
  return choices.flatMap(([option, call, enumeration, choice, usual]) => {
    if (choice === null || choice === usual) return [];
    const named = `${option} ${choice}`;
    return [version.call(named, call, version.number(named, enumeration, enumerator(choice)))];
  });
}

function listSettings(recipe: Recipe, version: VersionedCalls): NativeSetting[] {
  const sources = recipe.tacticSources?.map((source) =>
    version.number(`tactic source ${source}`, 'TacticSource', enumerator(source)),
  );
  const mask = sources?.reduce((bits, source) => bits | (1 << source), 0);
  return [
    ...(mask === undefined ? [] : [version.call('tactic sources', 'setTacticSources', mask)]),
    ...recipe.previewFeatures.map((feature) => {
      const option = `preview feature ${feature}`;
      return version.call(
        option,
        'setPreviewFeature',
        version.number(option, 'PreviewFeature', enumerator(feature)),
        1,
      );
    }),
  ];
}
