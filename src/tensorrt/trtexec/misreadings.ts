import { TrtforgeError } from '../../errors.js';
import { enumerator } from '../toolchain/abi.js';
import { budgetText, isPassed, PERCENTILES, RUNS_AVERAGED } from './flags.js';
import { enabled } from './log/options.js';
import type { TrtexecLog } from './log/result.js';
import type { TrtexecBenchRequest, TrtexecBuildRequest, TrtexecSwitch } from './options.js';
import type { TrtexecRun } from './run.js';

/** trtexec prints six significant digits. */
const PRINTED_PRECISION = 1e-5;

/** An option as trtexec reports that it understood it, and as it was passed. */
export interface Misreading {
  readonly option: string;
  readonly asked: string;
  readonly echoed: string;
}

/** A setting and its echo; null and undefined where nothing was asked, or where the log is silent about it. */
export type Compared = readonly [
  option: string,
  asked: string | number | boolean | null,
  echoed: string | number | boolean | null | undefined,
];

/** Throws TF_TRTEXEC_MISREAD when trtexec echoes something else than it was passed. */
export function requireUnderstood(misreadings: readonly Misreading[], run: TrtexecRun): void {
  if (misreadings.length === 0) return;
  const [first] = misreadings;
  const more = misreadings.length > 1 ? ` (and ${misreadings.length - 1} more)` : '';
  throw new TrtforgeError(
    'TF_TRTEXEC_MISREAD',
    `trtexec was passed ${first?.option} ${first?.asked} and echoes ${first?.echoed}${more}.`,
    { details: { misreadings, log: run.logPath, arguments: run.arguments } },
  );
}

/** Those that differ; an option that was not passed, or that the log is silent about, is none. */
const differing = (compared: readonly Compared[]): readonly Misreading[] =>
  compared.flatMap(([option, asked, echoed]) =>
    asked === null || echoed === null || echoed === undefined || isSame(asked, echoed)
      ? []
      : [{ option, asked: text(asked), echoed: text(echoed) }],
  );

/** Numbers are echoed with six digits; a number in a text counts as one. */
function isSame(asked: string | number | boolean, echoed: string | number | boolean): boolean {
  if (typeof asked !== 'number') return asked === echoed;
  const printed = typeof echoed === 'string' && echoed.trim() === '' ? Number.NaN : Number(echoed);
  return Math.abs(asked - printed) <= Math.abs(asked) * PRINTED_PRECISION;
}

const text = (value: string | number | boolean): string => (value === '' ? 'nothing' : String(value));

/** Misreadings of builds and measurements: the GPU and the plug-ins (`Plugins`, from 10.16 on `Loaded static plugins`), echoed in trtexec's order. */
function processMisreadings(
  { device, plugins }: TrtexecBuildRequest | TrtexecBenchRequest,
  { options: { system } }: TrtexecLog,
): readonly Misreading[] {
  const sorted = (paths: string | undefined) => paths?.trim().split(' ').sort().join(' ');
  return differing([
    ['--device', device, system.Device],
    [
      '--staticPlugins',
      sorted(plugins.static.join(' ')) ?? '',
      sorted(system.Plugins ?? system['Loaded static plugins']),
    ],
  ]);
}

/** Differences between a measurement's options and their echo in its log. 10 and 11 echo nothing of how an engine is loaded, 8.6 and 9 all of it. */
export function benchMisreadings(request: TrtexecBenchRequest, log: TrtexecLog): readonly Misreading[] {
  const { measurement: echo, options } = log;
  const { build, inference, reporting } = options;
  const { exports, runtime } = request;
  return [
    ...differing([
      ['data transfers', request.transfers, echo.transfers],
      ['spin wait', request.spinWait, echo.spinWait],
      ['CUDA graph', request.graph, echo.graph],
      ['--iterations', request.iterations, echo.iterations],
      ['--infStreams', request.streams, echo.streams],
      ['--idleTime', request.idleMs, echo.idleMs],
      ['--duration', request.durationMs / 1000, echo.durationSeconds],
      ['--warmUp', request.warmUpMs, echo.warmUpMs],
      ['--useProfile', request.profile, inference['Optimization Profile Index']],
      ['--separateProfileRun', exports.profile !== undefined, echo.separateProfileRun],
      ['--avgRuns', RUNS_AVERAGED, echo.averageRuns],
      ['--percentile', PERCENTILES, reporting.Percentiles],
      ['--exportTimes', exports.times ?? '', reporting['Export timing to JSON file']],
      ['--exportOutput', exports.output ?? '', reporting['Export output to JSON file']],
      ['--exportProfile', exports.profile ?? '', reporting['Export profile to JSON file']],
      ['--loadEngine', request.loadEngine, build['Load engine']],
      ['--useRuntime', runtime, build['TensorRT runtime']],
      [
        '--versionCompatible',
        request.allowHostCode || runtime !== 'full',
        enabled(build['Version Compatible']),
      ],
    ]),
    ...shapeMisreadings(request, log),
    ...budgetMisreadings(request, log),
    ...processMisreadings(request, log),
  ];
}

function shapeMisreadings(
  { shapes }: TrtexecBenchRequest,
  { measurement: echo, options: { inference } }: TrtexecLog,
): readonly Misreading[] {
  // A log that does not mention shapes at all is one that does not echo them.
  if (Object.keys(echo.shapes).length === 0 && inference['Input inference shapes'] === undefined) return [];
  return Object.entries(shapes).flatMap(([input, dims]) => {
    const echoed = echo.shapes[input];
    if (echoed?.join('x') === dims.join('x')) return [];
    return [
      { option: `--shapes of "${input}"`, asked: dims.join('x'), echoed: echoed?.join('x') ?? 'nothing' },
    ];
  });
}

/** The echo, and what was then set: only the log knows what the library chose by itself, or what the least is that 10.0 takes. */
function budgetMisreadings(
  request: TrtexecBenchRequest,
  { version, options, engine }: TrtexecLog,
): Misreading[] {
  const asked = version === null ? undefined : budgetText(request, version);
  if (asked === undefined) return [];
  const isBytes = /^\d+$/.test(asked);
  const expected = isBytes ? `${asked} bytes` : asked === '-1' ? 'Automatic' : '100.000000%';
  const budget = { option: '--weightStreamingBudget', asked };
  const echoed = options.inference['Weight Streaming Budget'];
  const set = engine.weightLimit;
  return [
    ...(echoed === undefined || echoed === expected ? [] : [{ ...budget, echoed }]),
    ...(set === null || !isBytes || String(set) === asked
      ? []
      : [{ ...budget, echoed: `a limit of ${set}` }]),
  ];
}

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
