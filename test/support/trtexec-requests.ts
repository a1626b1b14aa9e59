import type { TrtexecBenchRequest, TrtexecBuildRequest } from '../../src/tensorrt/trtexec/options.js';

export const noPlugins = { static: [], dynamic: [], serialize: [] };

/** A build that asks for nothing. */
export const plain: TrtexecBuildRequest = {
  onnx: 'm.onnx',
  saveEngine: 'm.plan',
  stronglyTyped: false,
  precisions: [],
  switches: [],
  profiles: [],
  memoryPools: {},
  optimizationLevel: null,
  maxAuxStreams: null,
  avgTimingIterations: 1,
  maxTactics: null,
  tilingOptimizationLevel: null,
  l2LimitForTiling: null,
  profilingVerbosity: 'layer-names-only',
  hardwareCompatibility: 'none',
  runtimePlatform: 'same-as-build',
  tacticSources: null,
  previewFeatures: [],
  layerPrecisions: [],
  layerOutputTypes: [],
  timingCache: null,
  plugins: noPlugins,
  device: 0,
  verbose: false,
};

/** A measurement at an engine's own shapes. */
export const measured: TrtexecBenchRequest = {
  loadEngine: 'm.plan',
  shapes: {},
  profile: 0,
  transfers: false,
  graph: true,
  spinWait: true,
  streams: 1,
  warmUpMs: 200,
  durationMs: 3000,
  iterations: 10,
  idleMs: 0,
  inputFiles: {},
  exports: {},
  runtime: 'full',
  allowHostCode: false,
  plugins: noPlugins,
  device: 0,
  verbose: false,
};
