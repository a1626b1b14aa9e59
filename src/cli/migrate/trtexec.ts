import { removal } from '../../behaviour/facts.js';
import { trtexecFlags } from '../../behaviour/trtexec.js';
import { rangeText } from '../../behaviour/versions.js';
import {
  BUILDER_FLAG,
  CALIBRATED,
  CALIBRATION_TABLE,
  DLA,
  type ForeignFlag,
  KEPT_TYPES,
  poolSettings,
  QUANTIZED,
  QUANTIZES,
  REMOVED,
  rowsOf,
  spelled,
  weightBudget,
} from '../foreign-flag.js';

const { bare, valued, builderFlag, setting, permitted, shapeFlags } = rowsOf('trtexec');

const models = [
  'build',
  'forge',
  'convert',
  'inspect',
  'verify',
  'run',
  'cache why',
  'bench model',
  'deepstream size',
];
const builds = ['build', 'forge', 'cache why', 'deepstream size', 'bundle build', 'bundle forge'];
const engines = ['bench', 'run', 'verify', 'engine inspect', 'engine layers'];

const DEFAULT_NOW = `the same; the default from trtexec ${trtexecFlags.noSpinWait.since} on`;
const FILES = '`trtforge run ENGINE … -o outputs.npz` writes outputs, with their types and shapes';
const DEBUG = '`trtforge compare layers` compares the tensors inside, and writes none';
const TUNING = 'trtforge does not search build routes';
const ACCURACY = '`trtforge verify ENGINE --against MODEL` compares outputs';

/** `/ln/Pow:fp32,/b*:fp32`, as trtexec names layers, as regular expressions of nodes; null where another type is requested. */
function keptNodes(value: string): readonly string[] | null {
  const names = value.split(',').map((part) => /^(.+):fp32$/.exec(part)?.[1]);
  return names.every((name) => name !== undefined)
    ? names.map((name) => `^${name.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`)
    : null;
}

/** Every flag of trtexec that people and scripts write. */
export const trtexecRows: readonly ForeignFlag[] = [
  ...valued('--onnx', '{value}', 'the model is an argument', { verbs: models }),
  ...valued('--saveEngine', '-o {value}', 'the engine goes there; without it, into the store'),
  ...valued('--loadEngine', '{value}', 'the engine is an argument', { verbs: engines }),
  ...bare('--skipInference --buildOnly', '', '`build` never measures, `bench` does', {
    verbs: builds,
  }),
  ...valued(
    '--shapes',
    ['--shapes {value}', '--profile {value}'],
    'shapes to measure; a build takes a profile',
  ),
  ...shapeFlags((end) => `--${end}Shapes`, 'valued'),
  ...valued('--profile', null, 'every --profile of trtforge is one profile: NAME:MIN/OPT/MAX'),
  ...valued('--useProfile', '--profile {value}', 'elsewhere the profile that takes the shapes is chosen', {
    verbs: ['run'],
  }),
  ...valued(
    '--memPoolSize',
    '--builder-config {value}',
    'sizes are MiB without a unit; M and MiB are the same',
    {
      values: poolSettings(''),
    },
  ),
  ...valued('--workspace', '--workspace {value}', 'the same, in MiB without a unit'),

  ...permitted('--fp16'),
  ...permitted('--bf16'),
  ...bare('--int8 --fp8 --int4', null, QUANTIZED, QUANTIZES),
  ...bare(
    '--best',
    '--precision fp16',
    'the fastest types without samples; with them: --precision int8 --calibration SAMPLES',
    REMOVED,
  ),
  ...bare('--stronglyTyped', '', "builds are strongly typed: the graph's types decide", { verbs: builds }),
  ...valued('--calib', '--calibration-cache {value}', CALIBRATION_TABLE, REMOVED),
  ...valued('--calibProfile --minShapesCalib --optShapesCalib --maxShapesCalib', null, CALIBRATED, REMOVED),
  ...valued('--layerPrecisions', '--keep-nodes {value}', KEPT_TYPES, { ...REMOVED, values: keptNodes }),
  ...valued('--layerOutputTypes', null, KEPT_TYPES, REMOVED),
  ...valued('--precisionConstraints', '', 'the types of the graph are obeyed', { verbs: builds }),
  ...valued('--layerDeviceTypes --useDLACore --reportCapabilityDLA --adjustForDLA', null, DLA),
  ...valued(
    '--inputIOFormats --outputIOFormats',
    null,
    "inputs and outputs keep the graph's types; `trtforge convert --io-types convert` changes them",
  ),

  ...builderFlag('--noTF32', 'no-tf32'),
  ...valued('--sparsity', '--builder-config {value}', 'a builder flag; force would change weights', {
    values: (value) => (value === 'enable' ? ['flags=sparse-weights'] : value === 'disable' ? [] : null),
  }),
  ...bare('--refit', '--refit', '`trtforge engine refit` replaces the weights later'),
  ...builderFlag('--stripWeights --stripAllWeights --weightless', 'strip-plan'),
  ...builderFlag('--versionCompatible --vc', 'version-compatible'),
  ...builderFlag('--excludeLeanRuntime', 'exclude-lean-runtime'),
  ...builderFlag('--allowWeightStreaming', 'weight-streaming'),
  ...builderFlag('--directIO', 'direct-io'),
  ...builderFlag('--restricted', 'safety-scope', {
    why: `${BUILDER_FLAG}; trtexec ${rangeText(trtexecFlags.restricted)}`,
  }),
  ...builderFlag('--allowGPUFallback', 'gpu-fallback'),
  ...builderFlag('--heuristic', 'enable-tactic-heuristic', {
    why: `${BUILDER_FLAG}; trtexec ${rangeText(trtexecFlags.heuristic)}`,
  }),
  ...builderFlag('--monitorMemory', 'monitor-memory'),
  ...builderFlag('--distributiveIndependence', 'distributive-independence'),
  ...builderFlag('--noCompilationCache', 'disable-compilation-cache'),
  ...builderFlag('--errorOnTimingCacheMiss', 'error-on-timing-cache-miss'),
  ...valued(
    '--useRuntime --leanDLLPath',
    null,
    '--allow-host-code loads engines with the runtime that they carry',
  ),
  ...setting('--builderOptimizationLevel', 'optimization-level'),
  ...setting('--avgTiming --minTiming', 'avg-timing'),
  ...setting('--maxAuxStreams', 'max-aux-streams'),
  ...setting('--maxTactics', 'max-tactics'),
  ...setting('--tilingOptimizationLevel', 'tiling-optimization-level', {
    why: 'a builder setting; 0 to 3 have names',
    values: spelled({ 0: 'none', 1: 'fast', 2: 'moderate', 3: 'full' }),
  }),
  ...setting('--l2LimitForTiling', 'l2-limit-for-tiling', {
    why: 'a builder setting; trtexec counts bytes',
    values: (value) => (/^\d+$/.test(value) ? [`${value}B`] : null),
  }),
  ...setting('--profilingVerbosity --nvtxMode', 'profiling-verbosity', {
    values: spelled({
      layer_names_only: 'layer-names-only',
      default: 'layer-names-only',
      none: 'none',
      detailed: 'detailed',
      verbose: 'detailed',
    }),
  }),
  ...setting('--hardwareCompatibilityLevel', 'hardware-compatibility', {
    values: spelled({
      none: 'none',
      'ampere+': 'ampere-plus',
      sameComputeCapability: 'same-compute-capability',
    }),
  }),
  ...setting('--runtimePlatform', 'runtime-platform', {
    values: spelled({ SameAsBuild: 'same-as-build', WindowsAMD64: 'windows-amd64' }),
  }),
  ...valued(
    '--tacticSources',
    null,
    'trtexec adds to and removes from a default; trtforge takes the whole list: --builder-config tactic-sources=LIST',
  ),
  ...setting('--preview', 'preview-features', {
    why: 'a builder setting; features can be switched on only',
    values: spelled({
      '+aliasedPluginIO1003': 'aliased-plugin-io-10-03',
      '+runtimeActivationResize': 'runtime-activation-resize-10-10',
      '+profileSharing0806': 'profile-sharing-0806',
      '+fasterDynamicShapes0805': 'faster-dynamic-shapes-0805',
      '+disableExternalTacticSourcesForCore0805': 'disable-external-tactic-sources-for-core-0805',
    }),
  }),
  ...valued(
    '--timingCacheFile',
    '--timing-cache {value}',
    'the same; without it trtforge keeps one by itself',
  ),
  ...bare('--noBuilderCache', '--timing-cache none', 'the same'),
  ...valued(
    '--staticPlugins --dynamicPlugins --plugins',
    '--plugin {value}',
    'a plug-in library is loaded before the model',
  ),
  ...valued(
    '--setPluginsToSerialize',
    null,
    'engines do not carry plug-ins: pass --plugin where they are loaded',
  ),
  ...bare('--ignoreParsedPluginLibs --pluginInstanceNorm --pi', null, 'the ONNX parser decides'),
  ...valued('--device', '--device {value}', 'the same'),
  ...bare('--verbose', '--verbose', 'the same'),

  ...bare('--noDataTransfers', '--no-data-transfers', DEFAULT_NOW),
  ...bare('--useSpinWait', '--spin-wait', DEFAULT_NOW),
  ...bare('--useCudaGraph', '--graph', DEFAULT_NOW),
  ...bare('--includeDataTransfers', '', 'data transfers are measured by default', { verbs: ['bench'] }),
  ...bare('--noSpinWait', '', 'the host waits without spinning by default', { verbs: ['bench'] }),
  ...bare('--noCudaGraph', '', 'inferences are launched one by one by default', { verbs: ['bench'] }),
  ...bare('--separateProfileRun', '', '--layers measures layers in runs of their own', { verbs: ['bench'] }),
  ...valued('--iterations', '--iterations {value}', 'the same'),
  ...valued('--duration', '--duration {value}', 'the same, in seconds'),
  ...valued('--warmUp', '--warm-up {value}', 'the same, in milliseconds'),
  ...valued('--avgRuns', '', 'every sample is kept: averages hide the spread', { verbs: ['bench'] }),
  ...valued('--percentile', '--percentile {value}', '90, 95 and 99 are always reported'),
  ...valued('--infStreams --streams', '--streams {value}', 'the same'),
  ...valued('--idleTime', '--idle {value}', 'the same, in milliseconds'),
  ...valued('--sleepTime', null, 'the GPU is not delayed'),
  ...bare(
    '--exposeDMA',
    null,
    'copies one after another measure nothing that a program does; see --no-data-transfers',
  ),
  ...bare('--threads', null, 'bench drives its streams itself: --streams'),
  ...bare('--useManagedMemory', null, 'bench uses device memory'),
  ...bare('--timeDeserialize --timeRefit', null, 'bench measures inference'),
  ...valued('--weightStreamingBudget', '--weight-budget {value}', 'sizes; percentages have no equivalent', {
    values: weightBudget(/^(0|[\d.]+[BKMG])$/i),
  }),
  ...valued('--loadInputs', null, 'raw bytes have neither type nor shape: --inputs NAME=@FILE.npy'),
  ...valued('--exportTimes', '--samples {value}', 'every sample, as .json or .npz', {
    values: (value) => (/\.(npz|json)$/i.test(value) ? [value] : null),
  }),
  ...bare('--dumpProfile', '--layers', "layers' times, with their ONNX nodes"),
  ...valued('--exportProfile --exportLayerInfo', '--layers', 'in the result: --json prints it'),
  ...bare('--dumpLayerInfo', '--layers', 'also: `trtforge engine layers ENGINE`'),
  ...valued('--exportOutput', null, FILES),
  ...bare('--dumpOutput --dumpRawBindingsToFile', null, FILES),
  ...bare('--getPlanVersionOnly', '', '`engine inspect` reports the version without loading the plan', {
    verbs: ['engine inspect'],
  }),
  ...bare('--dumpOptimizationProfile', null, '`trtforge engine inspect` prints the profiles of the passport'),
  ...bare('--dumpRefit', null, 'there is no list: `engine refit` takes a model, and has all weights of it'),
  ...valued('--markDebug --saveDebugTensors --saveAllDebugTensors', null, DEBUG),
  ...bare('--markUnfusedTensorsAsDebugTensors', null, DEBUG),
  ...valued('--loadRefOutputs --refPair --accuracyAlgorithm --accuracyThreshold', null, ACCURACY),
  ...valued('--atol', '--atol {value}', 'the same'),
  ...valued('--rtol', '--rtol {value}', 'the same'),
  ...valued(
    '--setBuildRoute --tuneBuildRouteFile --tuningSearch --tuningCacheFile --tuningTimeOut --remoteAutoTuningConfig',
    null,
    TUNING,
  ),
  ...bare('--helpBuildRoute --tuneBuildRoutes --saveAllEngines --continue --dryRun', null, TUNING),
  ...bare('--explicitBatch', '', 'every ONNX network has explicit batch', { verbs: builds }),
  ...valued('--batch --maxBatch', '--batch {value}', 'the open first axis of every input'),
  ...valued('--persistentCacheRatio --allocationStrategy', null, "TensorRT's default is used"),
  ...valued('--tempdir --tempfileControls', null, 'TensorRT chooses its temporary files'),
  ...bare('--safe --consistency --std --cpuOnly', null, 'trtforge does not build safety engines'),
  ...valued(
    '--refitFromOnnx',
    null,
    '`trtforge engine refit ENGINE MODEL -o OUT` writes a refitted engine, which bench takes',
  ),
  ...valued('--safetyPlugins', null, 'trtforge has no such step'),
  ...bare(
    '--asyncFileReader --dumpKernelText --decomposableAttentions --enablePluginOverride',
    null,
    'trtforge has no such setting',
  ),
  ...valued(
    '--model --deploy --output --uff --uffInput --uffNHWC',
    null,
    `${removal('foreign-parsers')}: export ONNX`,
  ),
];
