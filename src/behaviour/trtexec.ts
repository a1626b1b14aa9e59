import { always, before, type Range, since } from './versions.js';

/** Flags that permit a type in a weakly typed network. */
export const trtexecPrecisions = {
  fp16: before('11.0'),
  bf16: before('11.0', '9.1'),
  int8: before('11.0'),
  fp8: before('11.0'),
  int4: before('11.0', '10.1'),
} as const;

/**
 * Every flag that trtforge passes, with the versions that take it: read from trtexec's own parser in the public source, tag by tag (8.6.1, 9.1 and 9.3,
 * every 10.x to 10.16, 11.0, 11.1). A flag that 11 still takes without effect counts as gone, so that nothing is passed in vain.
 */
export const trtexecFlags = {
  onnx: always,
  saveEngine: always,
  loadEngine: always,
  skipInference: always,
  shapes: always,
  minShapes: always,
  optShapes: always,
  maxShapes: always,
  profile: since('9.1'),
  useProfile: since('9.1'),
  memPoolSize: always,
  stronglyTyped: before('11.0', '9.1'),
  ...trtexecPrecisions,
  noTF32: always,
  precisionConstraints: before('11.0'),
  layerPrecisions: before('11.0'),
  layerOutputTypes: before('11.0'),
  sparsity: always,
  refit: always,
  stripWeights: since('10.0'),
  versionCompatible: always,
  excludeLeanRuntime: always,
  useRuntime: always,
  allowWeightStreaming: since('10.0'),
  weightStreamingBudget: since('10.0'),
  directIO: always,
  restricted: before('11.0'),
  allowGPUFallback: always,
  heuristic: before('10.0'),
  monitorMemory: since('10.6'),
  distributiveIndependence: since('10.12'),
  builderOptimizationLevel: always,
  avgTiming: always,
  maxAuxStreams: always,
  maxTactics: since('10.4'),
  tilingOptimizationLevel: since('10.8'),
  l2LimitForTiling: since('10.8'),
  profilingVerbosity: always,
  hardwareCompatibilityLevel: always,
  runtimePlatform: since('10.2'),
  tacticSources: always,
  preview: always,
  timingCacheFile: always,
  noBuilderCache: always,
  errorOnTimingCacheMiss: since('9.1'),
  noCompilationCache: since('9.1'),
  staticPlugins: always,
  dynamicPlugins: always,
  setPluginsToSerialize: always,
  device: always,
  verbose: always,
  iterations: always,
  duration: always,
  warmUp: always,
  avgRuns: always,
  percentile: always,
  infStreams: always,
  idleTime: always,
  noDataTransfers: before('11.0'),
  includeDataTransfers: since('11.0'),
  useSpinWait: before('11.0'),
  noSpinWait: since('11.0'),
  useCudaGraph: before('11.0'),
  noCudaGraph: since('11.0'),
  separateProfileRun: before('11.0'),
  threads: always,
  loadInputs: always,
  exportTimes: always,
  exportProfile: always,
  exportLayerInfo: always,
  exportOutput: always,
} as const satisfies Readonly<Record<string, Range>>;

export type TrtexecFlag = keyof typeof trtexecFlags;

/**
 * Values that only some versions of a flag take. `multiDeviceRuntime` of 10.16 is none: its parser takes it, and nothing hands it to the builder.
 */
export const trtexecValues = {
  // Before, every shape is a list of numbers, and the word ends trtexec with "stoi".
  'shapes scalar': since('10.0'),
  'hardwareCompatibilityLevel sameComputeCapability': since('10.9'),
  'memPoolSize tacticSharedMem': since('10.0'),
  'tacticSources CUBLAS': before('11.0'),
  'tacticSources CUBLAS_LT': before('11.0'),
  'tacticSources CUDNN': before('11.0'),
  'tacticSources EDGE_MASK_CONVOLUTIONS': always,
  'tacticSources JIT_CONVOLUTIONS': always,
  'preview fasterDynamicShapes0805': before('10.0'),
  'preview disableExternalTacticSourcesForCore0805': before('10.0'),
  'preview profileSharing0806': before('11.0'),
  'preview aliasedPluginIO1003': since('10.3'),
  'preview runtimeActivationResize': since('10.10'),
  // 10.0 turns streaming off with it.
  'weightStreamingBudget 0': since('10.1'),
} as const satisfies Readonly<Record<string, Range>>;

export type TrtexecValue = keyof typeof trtexecValues;
