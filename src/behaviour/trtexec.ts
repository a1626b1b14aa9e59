import { always, before, type Range, since } from './versions.js';

type Words<Text extends string, Found = never> = Text extends `${infer Word} ${infer Rest}`
  ? Words<Rest, Found | Word>
  : Found | Text;

/** A range for each of the words. */
const flags = <Text extends string>(range: Range, words: Text) =>
  Object.fromEntries(words.split(' ').map((word) => [word, range])) as Readonly<
    Record<Words<Text> & string, Range>
  >;

/** Flags that permit a type in a weakly typed network. */
export const trtexecPrecisions = {
  bf16: before('11.0', '9.1'),
  int4: before('11.0', '10.1'),
  ...flags(before('11.0'), 'fp16 int8 fp8'),
};

/**
 * Every flag that trtforge passes, by the versions that take it: read from trtexec's own parser in the public source, tag by tag (8.6.1, 9.1 and 9.3,
 * every 10.x to 10.16, 11.0, 11.1). A flag that 11 still takes without effect counts as gone, so that nothing is passed in vain.
 */
export const trtexecFlags = {
  ...trtexecPrecisions,
  ...flags(always, 'onnx saveEngine loadEngine skipInference shapes minShapes optShapes maxShapes'),
  ...flags(always, 'memPoolSize noTF32 sparsity refit versionCompatible excludeLeanRuntime useRuntime'),
  ...flags(always, 'directIO allowGPUFallback builderOptimizationLevel avgTiming maxAuxStreams'),
  ...flags(always, 'profilingVerbosity hardwareCompatibilityLevel tacticSources preview timingCacheFile'),
  ...flags(always, 'noBuilderCache staticPlugins dynamicPlugins setPluginsToSerialize device verbose'),
  ...flags(always, 'iterations duration warmUp avgRuns percentile infStreams idleTime threads loadInputs'),
  ...flags(always, 'exportTimes exportProfile exportLayerInfo exportOutput'),
  ...flags(since('9.1'), 'profile useProfile errorOnTimingCacheMiss noCompilationCache'),
  ...flags(since('10.0'), 'stripWeights allowWeightStreaming weightStreamingBudget'),
  ...flags(since('10.2'), 'runtimePlatform'),
  ...flags(since('10.4'), 'maxTactics'),
  ...flags(since('10.6'), 'monitorMemory'),
  ...flags(since('10.8'), 'tilingOptimizationLevel l2LimitForTiling'),
  ...flags(since('10.12'), 'distributiveIndependence'),
  ...flags(since('11.0'), 'includeDataTransfers noSpinWait noCudaGraph'),
  ...flags(before('11.0', '9.1'), 'stronglyTyped'),
  ...flags(before('10.0'), 'heuristic'),
  ...flags(before('11.0'), 'precisionConstraints layerPrecisions layerOutputTypes restricted'),
  ...flags(before('11.0'), 'noDataTransfers useSpinWait useCudaGraph separateProfileRun'),
};

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
