import { behaviour, holds } from '../../behaviour/facts.js';
import { type TrtexecFlag, type TrtexecValue, trtexecFlags, trtexecValues } from '../../behaviour/trtexec.js';
import { isWithin, type Range, rangeText } from '../../behaviour/versions.js';
import { TrtforgeError } from '../../errors.js';
import type {
  TrtexecBenchRequest,
  TrtexecBuildRequest,
  TrtexecPlugins,
  TrtexecPool,
  TrtexecSwitch,
} from './options.js';

/** A command line for one version of trtexec; what that version lacks is rejected by name. */
class CommandLine {
  readonly arguments: string[] = [];

  constructor(private readonly version: string) {}

  add(flag: TrtexecFlag, value?: string | number): void {
    this.check(`--${flag}`, trtexecFlags[flag]);
    this.arguments.push(value === undefined ? `--${flag}` : `--${flag}=${value}`);
  }

  takes(flag: TrtexecFlag): boolean {
    return isWithin(this.version, trtexecFlags[flag]);
  }

  takesValue(value: TrtexecValue): boolean {
    return isWithin(this.version, trtexecValues[value]);
  }

  checkValue(value: TrtexecValue): void {
    this.check(`--${value.replace(' ', '=')}`, trtexecValues[value]);
  }

  check(option: string, range: Range): void {
    if (isWithin(this.version, range)) return;
    const availableIn = `trtexec ${rangeText(range)}`;
    throw new TrtforgeError(
      'TF_OPTION_UNSUPPORTED',
      `trtexec ${this.version} has no ${option}; ${availableIn} has it.`,
      { details: { option, version: this.version, availableIn } },
    );
  }
}

/**
 * `x:1x3x224x224`, `x:scalar`. trtexec splits at commas before it looks at quotes, so some names cannot be written.
 * Errors: TF_OPTION_UNSUPPORTED, also for a scalar where the version has no word for it.
 */
function shapeText(line: CommandLine, name: string, dims: readonly number[]): string {
  if (/[,'*]/.test(name)) {
    throw new TrtforgeError(
      'TF_OPTION_UNSUPPORTED',
      `Input "${name}" cannot be written on trtexec's command line: a comma, quote or star in a name means something else there.`,
      { remedy: 'Use --builder native, or rename the input.' },
    );
  }
  if (dims.length === 0) line.checkValue('shapes scalar');
  return `${name}:${dims.length === 0 ? 'scalar' : dims.join('x')}`;
}

function addPlugins(line: CommandLine, plugins: TrtexecPlugins): void {
  for (const path of plugins.static) line.add('staticPlugins', path);
  for (const path of plugins.dynamic) line.add('dynamicPlugins', path);
  for (const path of plugins.serialize) line.add('setPluginsToSerialize', path);
}

function addProcess(
  line: CommandLine,
  { device, verbose }: { readonly device: number; readonly verbose: boolean },
) {
  if (device !== 0) line.add('device', device);
  if (verbose) line.add('verbose');
}

const MIB = 1 << 20;

/** The flag of each switch. */
const SWITCHES: Readonly<Record<TrtexecSwitch, readonly [TrtexecFlag, string?]>> = {
  'no-tf32': ['noTF32'],
  'sparse-weights': ['sparsity', 'enable'],
  refit: ['refit'],
  'strip-plan': ['stripWeights'],
  'version-compatible': ['versionCompatible'],
  'exclude-lean-runtime': ['excludeLeanRuntime'],
  'weight-streaming': ['allowWeightStreaming'],
  'direct-io': ['directIO'],
  'safety-scope': ['restricted'],
  'gpu-fallback': ['allowGPUFallback'],
  'enable-tactic-heuristic': ['heuristic'],
  'monitor-memory': ['monitorMemory'],
  'distributive-independence': ['distributiveIndependence'],
  'disable-timing-cache': ['noBuilderCache'],
  'disable-compilation-cache': ['noCompilationCache'],
  'error-on-timing-cache-miss': ['errorOnTimingCacheMiss'],
  'obey-precision-constraints': ['precisionConstraints', 'obey'],
  'prefer-precision-constraints': ['precisionConstraints', 'prefer'],
};

export const trtexecSwitches = Object.keys(SWITCHES) as readonly TrtexecSwitch[];

const TACTIC_SOURCES = [
  'cublas',
  'cublas-lt',
  'cudnn',
  'edge-mask-convolutions',
  'jit-convolutions',
] as const;

const PREVIEWS: Readonly<Record<string, TrtexecValue>> = {
  'faster-dynamic-shapes-0805': 'preview fasterDynamicShapes0805',
  'disable-external-tactic-sources-for-core-0805': 'preview disableExternalTacticSourcesForCore0805',
  'profile-sharing-0806': 'preview profileSharing0806',
  'aliased-plugin-io-10-03': 'preview aliasedPluginIO1003',
  'runtime-activation-resize-10-10': 'preview runtimeActivationResize',
};

const TILING = ['none', 'fast', 'moderate', 'full'] as const;

/**
 * The arguments that build a plan with trtexec of a version, measuring nothing.
 * Errors: TF_OPTION_UNSUPPORTED for what this version (or any trtexec) has no flag for; it names the versions that can.
 */
export function buildArguments(request: TrtexecBuildRequest, version: string): readonly string[] {
  const line = new CommandLine(version);
  line.add('onnx', request.onnx);
  line.add('saveEngine', request.saveEngine);
  line.add('skipInference');
  addTypes(line, request);
  for (const name of new Set(request.switches)) line.add(...SWITCHES[name]);
  addProfiles(line, request);
  addPools(line, request.memoryPools);
  addNumbers(line, request);
  addChoices(line, request);
  addTactics(line, request, version);
  if (request.timingCache !== null) line.add('timingCacheFile', request.timingCache);
  addPlugins(line, request.plugins);
  addProcess(line, request);
  return line.arguments;
}

function addTypes(line: CommandLine, request: TrtexecBuildRequest): void {
  const { stronglyTyped, precisions, layerPrecisions, layerOutputTypes } = request;
  if (stronglyTyped) {
    if (precisions.length > 0) {
      throw new TrtforgeError(
        'TF_OPTION_UNSUPPORTED',
        `A strongly typed build takes its types from the graph, so ${precisions.join(', ')} cannot be allowed besides.`,
      );
    }
    line.check('strongly typed networks', behaviour['strong-typing'].trtexec);
    if (line.takes('stronglyTyped')) line.add('stronglyTyped');
  } else line.check('weakly typed networks', behaviour['weak-typing'].trtexec);
  for (const precision of precisions) {
    if (precision === 'int8') {
      throw new TrtforgeError(
        'TF_OPTION_UNSUPPORTED',
        'trtexec invents random ranges for weakly typed INT8 without a calibration, so the plan would compute nonsense.',
        {
          remedy:
            'Build with --builder native, or quantize the graph itself (Q/DQ) and build it strongly typed.',
        },
      );
    }
    line.add(precision);
  }
  if (layerPrecisions.length > 0) line.add('layerPrecisions', layerPrecisions.join(','));
  if (layerOutputTypes.length > 0) line.add('layerOutputTypes', layerOutputTypes.join(','));
}

function addProfiles(line: CommandLine, { profiles }: TrtexecBuildRequest): void {
  for (const [index, profile] of profiles.entries()) {
    // 8.6 knows one profile and no word for it.
    if (profiles.length > 1) line.add('profile', index);
    for (const end of ['min', 'opt', 'max'] as const) {
      const shapes = Object.entries(profile).map(([name, range]) => shapeText(line, name, range[end]));
      if (shapes.length > 0) line.add(`${end}Shapes`, shapes.join(','));
    }
  }
}

/** Plain numbers of MiB: the only form that means the same to 8.6, which ignores a suffix, and to 10, where `MiB` means bytes. */
function addPools(line: CommandLine, pools: TrtexecBuildRequest['memoryPools']): void {
  const limits = Object.entries(pools) as readonly [TrtexecPool, number | null][];
  const parts = limits.flatMap(([pool, bytes]) => {
    if (bytes === null) return [];
    if (pool === 'tacticSharedMem') line.checkValue('memPoolSize tacticSharedMem');
    return [`${pool}:${mebibytes(bytes)}`];
  });
  if (parts.length > 0) line.add('memPoolSize', parts.join(','));
}

/** Without an exponent, whose last digit would still be read as one. */
const mebibytes = (bytes: number): string => {
  const size = bytes / MIB;
  return Number.isInteger(size) ? String(size) : size.toFixed(20).replace(/0+$/, '');
};

function addNumbers(line: CommandLine, request: TrtexecBuildRequest): void {
  const { optimizationLevel, maxAuxStreams, avgTimingIterations, maxTactics, l2LimitForTiling } = request;
  if (optimizationLevel !== null) line.add('builderOptimizationLevel', optimizationLevel);
  if (maxAuxStreams !== null) line.add('maxAuxStreams', maxAuxStreams);
  line.add('avgTiming', avgTimingIterations);
  if (maxTactics !== null) line.add('maxTactics', maxTactics);
  if (l2LimitForTiling !== null) line.add('l2LimitForTiling', l2LimitForTiling);
}

function addChoices(line: CommandLine, request: TrtexecBuildRequest): void {
  const { tilingOptimizationLevel, profilingVerbosity, hardwareCompatibility, runtimePlatform } = request;
  if (tilingOptimizationLevel !== null)
    line.add('tilingOptimizationLevel', TILING.indexOf(tilingOptimizationLevel));
  if (profilingVerbosity !== 'layer-names-only') line.add('profilingVerbosity', profilingVerbosity);
  if (hardwareCompatibility === 'ampere-plus') line.add('hardwareCompatibilityLevel', 'ampere+');
  if (hardwareCompatibility === 'same-compute-capability') {
    line.checkValue('hardwareCompatibilityLevel sameComputeCapability');
    line.add('hardwareCompatibilityLevel', 'sameComputeCapability');
  }
  if (runtimePlatform === 'windows-amd64') line.add('runtimePlatform', 'WindowsAMD64');
}

function addTactics(
  line: CommandLine,
  { tacticSources, previewFeatures }: TrtexecBuildRequest,
  version: string,
): void {
  if (tacticSources !== null) line.add('tacticSources', tacticText(line, tacticSources));
  const features = previewFeatures.flatMap((feature) => {
    const known = PREVIEWS[feature];
    if (known === undefined) throw notInTrtexec(`preview feature ${feature}`);
    line.checkValue(known);
    return isPassed(feature, version) ? [`+${known.slice('preview '.length)}`] : [];
  });
  if (features.length > 0) line.add('preview', features.join(','));
}

/** Whether trtexec of a version acts on the flag for a preview feature. */
export const isPassed = (feature: string, version: string): boolean =>
  feature !== 'profile-sharing-0806' || !holds('shared-profiles', { product: 'trtexec', version });

/** trtexec adds to and removes from the default, so the exact list names every source there is. */
function tacticText(line: CommandLine, wanted: readonly string[]): string {
  const unknown = wanted.find((source) => !TACTIC_SOURCES.some((known) => known === source));
  if (unknown !== undefined) throw notInTrtexec(`tactic source ${unknown}`);
  return TACTIC_SOURCES.flatMap((source) => {
    const name = source.toUpperCase().replaceAll('-', '_');
    const value = `tacticSources ${name}` as TrtexecValue;
    if (wanted.includes(source)) line.checkValue(value);
    return line.takesValue(value) ? [`${wanted.includes(source) ? '+' : '-'}${name}`] : [];
  }).join(',');
}

export const notInTrtexec = (option: string): TrtforgeError =>
  new TrtforgeError('TF_OPTION_UNSUPPORTED', `No version of trtexec has a flag for the ${option}.`, {
    remedy: 'Build with --builder native, which can.',
    details: { option, availableIn: 'the native builder' },
  });

/** Number of inferences that a line of the trace averages. */
export const RUNS_AVERAGED = 10;

export const PERCENTILES = '90,95,99';

/**
 * The arguments that measure an engine with trtexec of a version. Nothing is left to a version's own default: 11 measures without transfers, with
 * spin wait and a CUDA graph unless specified otherwise, 8.6 to 10 the other way round, so the same request is spelled for each.
 * Errors: TF_OPTION_UNSUPPORTED.
 */
export function benchArguments(request: TrtexecBenchRequest, version: string): readonly string[] {
  const line = new CommandLine(version);
  line.add('loadEngine', request.loadEngine);
  const shapes = Object.entries(request.shapes).map(([name, dims]) => shapeText(line, name, dims));
  if (shapes.length > 0) line.add('shapes', shapes.join(','));
  if (request.profile !== 0) line.add('useProfile', request.profile);
  addMode(line, request);
  line.add('iterations', request.iterations);
  line.add('duration', request.durationMs / 1000);
  line.add('warmUp', request.warmUpMs);
  line.add('infStreams', request.streams);
  line.add('idleTime', request.idleMs);
  line.add('avgRuns', RUNS_AVERAGED);
  line.add('percentile', PERCENTILES);
  addExports(line, request);
  addRuntime(line, request);
  addWeightBudget(line, request, version);
  addProcess(line, request);
  return line.arguments;
}

/** Alike from 8.6 to 11. Without the full runtime trtexec takes the plan for version-compatible with or without the flag, and loads no plug-ins itself. */
function addRuntime(line: CommandLine, { runtime, allowHostCode, plugins }: TrtexecBenchRequest): void {
  if (runtime !== 'full') {
    if (plugins.static.length > 0)
      throw new TrtforgeError(
        'TF_OPTION_UNSUPPORTED',
        `trtexec loads plug-ins (${plugins.static.join(', ')}) only into the full TensorRT, not into the ${runtime} runtime.`,
        { remedy: 'Measure with --with trtforge, or with a full TensorRT.' },
      );
    line.add('useRuntime', runtime);
  }
  if (allowHostCode) line.add('versionCompatible');
  addPlugins(line, plugins);
}

/** Every trtexec that has the flag rejects it alone: what allows streaming in a build must be passed again. */
function addWeightBudget(line: CommandLine, request: TrtexecBenchRequest, version: string): void {
  const budget = budgetText(request, version);
  if (budget === undefined) return;
  line.add('weightStreamingBudget', budget);
  line.add('allowWeightStreaming');
}

/** The budget, where there is one, in a version's words: bytes as a bare number, -1 for automatic. To 10.0 a 0 turns streaming off and a share is what is streamed: 100 % is the least. */
export function budgetText(
  { weightBudget: budget }: TrtexecBenchRequest,
  version: string,
): string | undefined {
  if (budget === undefined) return undefined;
  if (budget === 'automatic') return '-1';
  if (budget > 0 || isWithin(version, trtexecValues['weightStreamingBudget 0'])) return String(budget);
  return '100%';
}

/** Each way of measuring has a flag before 11 to turn it on (or off) and one from 11 on to do the opposite. */
function addMode(line: CommandLine, { transfers, graph, spinWait }: TrtexecBenchRequest): void {
  const isNew = line.takes('includeDataTransfers');
  if (isNew && transfers) line.add('includeDataTransfers');
  if (!isNew && !transfers) line.add('noDataTransfers');
  if (isNew && !spinWait) line.add('noSpinWait');
  if (!isNew && spinWait) line.add('useSpinWait');
  if (isNew && !graph) line.add('noCudaGraph');
  if (!isNew && graph) line.add('useCudaGraph');
}

function addExports(line: CommandLine, { inputFiles, exports }: TrtexecBenchRequest): void {
  const inputs = Object.entries(inputFiles).map(([name, path]) => {
    if (/[,':]/.test(path) || /[,']/.test(name)) {
      throw new TrtforgeError(
        'TF_OPTION_UNSUPPORTED',
        `Input file ${path} of "${name}" cannot be written on trtexec's command line: it splits at commas, colons and quotes.`,
      );
    }
    return `${name}:${path}`;
  });
  if (inputs.length > 0) line.add('loadInputs', inputs.join(','));
  if (exports.times !== undefined) line.add('exportTimes', exports.times);
  if (exports.layers !== undefined) line.add('exportLayerInfo', exports.layers);
  if (exports.output !== undefined) line.add('exportOutput', exports.output);
  if (exports.profile === undefined) return;
  line.add('exportProfile', exports.profile);
  // The profiler slows every inference down: the measured run stays without it. 11 always does that.
  if (line.takes('separateProfileRun')) line.add('separateProfileRun');
}
