import { enumerator } from '../toolchain/abi.js';
import { isPassed } from './flags.js';
import { enabled } from './log/options.js';
import type { TrtexecLog } from './log/result.js';
import { differing, type Misreading, PRINTED_PRECISION, processMisreadings } from './misreading.js';
import type { TrtexecBuildRequest, TrtexecSwitch } from './request.js';

/** Switches by the words of their echo; what a version does not know it does not echo. */
const SWITCHES: readonly (readonly [option: string, key: string, name: TrtexecSwitch])[] = [
  ['--sparsity', 'Sparsity', 'sparse-weights'],
  ['--refit', 'Refit', 'refit'],
  ['--stripWeights', 'Strip weights', 'strip-plan'],
  ['--versionCompatible', 'Version Compatible', 'version-compatible'],
  ['--excludeLeanRuntime', 'Exclude Lean Runtime', 'exclude-lean-runtime'],
  ['--allowWeightStreaming', 'Weight Streaming', 'weight-streaming'],
  ['--directIO', 'DirectIO mode', 'direct-io'],
  ['--restricted', 'Restricted mode', 'safety-scope'],
  ['--allowGPUFallback', 'Allow GPU fallback for DLA', 'gpu-fallback'],
  ['--heuristic', 'Heuristic', 'enable-tactic-heuristic'],
  ['--monitorMemory', 'Enable Monitor Memory', 'monitor-memory'],
  ['--distributiveIndependence', 'Distributive Independence', 'distributive-independence'],
  ['--errorOnTimingCacheMiss', 'errorOnTimingCacheMiss', 'error-on-timing-cache-miss'],
];

/** `nvinfer1::ProfilingVerbosity`, which the echo gives as a number: alike in 8.6, 10 and 11. */
const VERBOSITY = { 'layer-names-only': 0, none: 1, detailed: 2 } as const;

const PLATFORM = { 'same-as-build': 'Same As Build', 'windows-amd64': 'Windows AMD64' } as const;

/** Tactic sources as the echo names them. */
const SOURCES: Readonly<Record<string, string>> = {
  cublas: 'cublas',
  'cublas-lt': 'cublasLt',
  cudnn: 'cudnn',
  'edge-mask-convolutions': 'edge mask convolutions',
  'jit-convolutions': 'JIT convolutions',
};

/** The differences between a build's options and their echo in its log; an option the log is silent about is not one. */
export function buildMisreadings(request: TrtexecBuildRequest, log: TrtexecLog): readonly Misreading[] {
  const { build, model } = log.options;
  const on = (name: TrtexecSwitch) => request.switches.includes(name);
  const isCached = request.timingCache !== null && !on('disable-timing-cache');
  return [
    ...poolMisreadings(request, log.build.memoryPools),
    ...precisionMisreadings(request, log.build.precision),
    ...profileMisreadings(request, log),
    ...differing([
      ['--onnx', request.onnx, model.Model],
      ['--saveEngine', request.saveEngine, build['Save engine']],
      ['--builderOptimizationLevel', request.optimizationLevel, build.BuilderOptimizationLevel],
      ['--maxAuxStreams', request.maxAuxStreams, build.MaxAuxStreams],
      ['--avgTiming', request.avgTimingIterations, build.avgTiming],
      ['--maxTactics', request.maxTactics, build.MaxTactics],
      ['--profilingVerbosity', VERBOSITY[request.profilingVerbosity], build['Profiling verbosity']],
      ['--runtimePlatform', PLATFORM[request.runtimePlatform], build['Runtime Platform']],
      ['--skipInference', true, enabled(build['Skip inference'])],
      ['--timingCacheFile', request.timingCache ?? '', build.timingCacheFile],
      [
        'a timing cache',
        isCached ? 'global' : on('disable-timing-cache') ? 'disable' : 'local',
        build.timingCacheMode,
      ],
      ...SWITCHES.map(([option, key, name]) => [option, on(name), enabled(build[key])] as const),
      [
        '--noCompilationCache',
        on('disable-compilation-cache'),
        not(enabled(build['Enable Compilation Cache'])),
      ],
    ]),
    ...listMisreadings(request, log),
    ...processMisreadings(request, log),
  ];
}

const not = (value: boolean | null): boolean | null => (value === null ? null : !value);

function poolMisreadings(
  { memoryPools }: TrtexecBuildRequest,
  echoed: Readonly<Record<string, number | null>>,
): Misreading[] {
  const text = (bytes: number | null) => (bytes === null ? 'the default' : `${bytes} bytes`);
  return Object.entries(echoed).flatMap(([pool, bytes]) => {
    const asked = memoryPools[pool as keyof typeof memoryPools] ?? null;
    if (asked === bytes || (asked !== null && bytes !== null && isPrintedAs(asked, bytes, pool))) return [];
    return [{ option: `--memPoolSize=${pool}`, asked: text(asked), echoed: text(bytes) }];
  });
}

/** DLA's SRAM is rounded down to a power of two. */
const isPrintedAs = (asked: number, echoed: number, pool: string): boolean =>
  Math.abs(asked - echoed) <= asked * PRINTED_PRECISION ||
  (pool === 'dlaSRAM' && echoed <= asked && echoed > asked / 2);

/**
 * `FP32+FP16 (obey precision constraints)`: types joined with `+`, of which `FP32` is always one in a weakly typed build. A strongly typed one is
 * `FP32 (Strongly Typed)` from 9.1 to 10.1 and `Strongly Typed` from 10.2 on.
 */
function precisionMisreadings(
  { stronglyTyped, precisions, switches }: TrtexecBuildRequest,
  echoed: string | null,
): Misreading[] {
  if (echoed === null) return [];
  const isTyped = echoed.includes('Strongly Typed');
  const types = ['FP32', ...precisions.map((each) => each.toUpperCase())];
  const echoedTypes = echoed.replace(/\s*\(.*$/, '').split('+');
  const isSame = echoedTypes.length === types.length && types.every((each) => echoedTypes.includes(each));
  const constraints = (['obey', 'prefer'] as const).find((word) =>
    switches.includes(`${word}-precision-constraints`),
  );
  const saidConstraints = /\((obey|prefer) precision constraints\)/.exec(echoed)?.[1];
  const asked = stronglyTyped
    ? 'Strongly Typed'
    : `${types.join('+')}${constraints === undefined ? '' : ` (${constraints} precision constraints)`}`;
  const isUnderstood = stronglyTyped ? isTyped : !isTyped && isSame && constraints === saidConstraints;
  return isUnderstood ? [] : [{ option: 'precision', asked, echoed }];
}

function profileMisreadings({ profiles }: TrtexecBuildRequest, log: TrtexecLog): Misreading[] {
  const invented = log.warnings.find(({ message }) =>
    /no shapes were provided\. Automatically overriding/.test(message),
  );
  if (invented !== undefined) return [{ option: 'shapes', asked: 'none', echoed: invented.message }];
  // A log that does not mention shapes at all is one that does not echo them.
  if (log.build.profiles.length === 0 && log.options.build['Input build shapes'] === undefined) return [];
  const text = (range: {
    readonly min: readonly number[];
    readonly opt: readonly number[];
    readonly max: readonly number[];
  }) => [range.min, range.opt, range.max].map((dims) => dims.join('x')).join('/');
  return profiles.flatMap((profile, index) =>
    Object.entries(profile).flatMap(([input, range]) => {
      const echoed = log.build.profiles.find((each) => each.profile === index && each.input === input);
      if (echoed !== undefined && text(echoed) === text(range)) return [];
      return [
        {
          option: `shapes of "${input}" in profile ${index}`,
          asked: text(range),
          echoed: echoed === undefined ? 'nothing' : text(echoed),
        },
      ];
    }),
  );
}

/** Tactic sources and preview features are echoed as `cudnn [OFF], JIT convolutions [ON], `, and as a message of its own where none was passed. */
function listMisreadings(
  { tacticSources, previewFeatures }: TrtexecBuildRequest,
  { options: { build }, version }: TrtexecLog,
): readonly Misreading[] {
  const passed = previewFeatures.filter((feature) => version !== null && isPassed(feature, version));
  const features = passed.map(enumerator);
  const sources = tacticSources?.map((source) => SOURCES[source] ?? source) ?? null;
  return differing([
    ['--tacticSources', listed(sources), turnedOn(build['Tactic sources'])],
    [
      '--preview',
      version === null ? null : listed(features.length === 0 ? null : features),
      turnedOn(build['Preview Features']),
    ],
  ]);
}

const DEFAULT = 'the default';

const listed = (names: readonly string[] | null): string =>
  names === null ? DEFAULT : `exactly ${names.toSorted().join(', ') || 'none'}`;

const turnedOn = (echo: string | undefined): string | undefined => {
  if (echo === undefined) return undefined;
  if (/^Us(?:e|ing) default/.test(echo)) return DEFAULT;
  return listed([...echo.matchAll(/([^,[]+) \[ON\]/g)].map(([, name = '']) => name.trim()));
};
