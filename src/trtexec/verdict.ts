import { type ErrorCode, TrtforgeError } from '../errors.js';
import { remedyForDeath } from '../system/supervise.js';
import { budgetText } from './bench-flags.js';
import type { TrtexecLog } from './log-result.js';
import type { TrtexecBenchRequest, TrtexecBuildRequest } from './request.js';
import type { TrtexecRun } from './run.js';

/** trtexec prints six significant digits. */
const PRINTED_PRECISION = 1e-5;

/** How a shell ends when its program was killed. */
const SHELL_SIGKILL = 137;

/** How trtexec 8.6 ends when a call of its own into CUDA fails: with this line and abort(), where 10.x ends with exit code 1. */
const ABORTED_ITSELF = /^Cuda failure: /;

/** Lines of errors that a message carries. */
const ERRORS_TOLD = 8;

/** What trtexec says it understood, and what it was told. */
export interface Misreading {
  readonly option: string;
  readonly asked: string;
  readonly echoed: string;
}

/**
 * Throws unless a run ended well by its own account: exit code 0, no signal, and `&&&& PASSED`. `doing` completes «trtexec failed while …».
 * Errors: TF_CHILD_DIED for a signal or an abort that CUDA's answer does not explain, TF_MODEL_REJECTED where its parser refused the model, TF_LIBRARY_LOAD_FAILED, TF_GPU_MEMORY,
 * TF_BUILDER_UNAVAILABLE without GPU or builder, else `otherwise`.
 */
export function requireSuccess(
  run: TrtexecRun,
  doing: string,
  otherwise: 'TF_BUILD_FAILED' | 'TF_TRTEXEC_FAILED',
): void {
  const { exitCode, signal, log } = run;
  if (exitCode === 0 && signal === null && log.outcome === 'passed') return;
  const details = {
    exitCode,
    signal,
    outcome: log.outcome,
    errors: log.errors.slice(0, ERRORS_TOLD).map(({ line, message }) => ({ line, message })),
    lastLines: run.lastLines,
    log: run.logPath,
    arguments: run.arguments,
  };
  const where = run.logPath === null ? '' : ` (log: ${run.logPath})`;
  // A shell's 128 + n is a death by signal n too: trtexec may have been started by a wrapper script.
  if (signal !== null || (exitCode !== null && exitCode > 128)) {
    const how = signal === null ? `ended with exit code ${exitCode}` : `was killed by ${signal}`;
    const code = saysAnError(log, ABORTED_ITSELF) ? codeOf(log, 'TF_CHILD_DIED') : 'TF_CHILD_DIED';
    throw new TrtforgeError(code, `trtexec ${how} while ${doing}${where}.${lastWords(run)}`, {
      ...(code === 'TF_CHILD_DIED' && {
        remedy: remedyForDeath(exitCode === SHELL_SIGKILL ? 'SIGKILL' : signal, run.lastLines),
      }),
      details,
    });
  }
  const how =
    exitCode === 0
      ? 'ended with exit code 0 but without its line «PASSED»'
      : `failed with exit code ${exitCode}`;
  throw new TrtforgeError(
    codeOf(log, otherwise),
    `trtexec ${how} while ${doing}${where}.${errorLines(log) || lastWords(run)}`,
    { details },
  );
}

const saysAnError = ({ errors }: TrtexecLog, pattern: RegExp): boolean =>
  errors.some(({ message }) => pattern.test(message));

function codeOf(log: TrtexecLog, otherwise: ErrorCode): ErrorCode {
  const says = (pattern: RegExp) => saysAnError(log, pattern);
  if (says(/^(?:Failed to parse onnx file|Parsing model failed)/)) return 'TF_MODEL_REJECTED';
  if (
    says(
      /error while loading shared libraries|Could not (?:open|load) library|^Uncaught exception detected: Unable to open library/i,
    )
  )
    return 'TF_LIBRARY_LOAD_FAILED';
  // A tactic that is left out for want of memory is told as well, also where something else is the end of the build.
  if (says(/^(?!.*tactic).*(?:out of memory|OutOfMemory|cudaErrorMemoryAllocation)/i)) return 'TF_GPU_MEMORY';
  if (
    says(
      /Builder creation failed|no CUDA-capable device|CUDA driver version is insufficient|Cannot find any available devices/,
    )
  )
    return 'TF_BUILDER_UNAVAILABLE';
  return otherwise;
}

function errorLines({ errors, errorCount }: TrtexecLog): string {
  if (errors.length === 0) return '';
  const told = errors.slice(0, ERRORS_TOLD).map(({ message }) => `\n  ${message.trim()}`);
  const more = errorCount > told.length ? `\n  and ${errorCount - told.length} more` : '';
  return ` It says:${told.join('')}${more}`;
}

const lastWords = ({ lastLines }: TrtexecRun): string =>
  lastLines.length === 0 ? ' It said nothing.' : ` Its last lines:\n${lastLines.join('\n')}`;

/** Throws TF_TRTEXEC_MISREAD when trtexec echoes something else than it was told. */
export function requireUnderstood(misreadings: readonly Misreading[], run: TrtexecRun): void {
  if (misreadings.length === 0) return;
  const [first] = misreadings;
  const more = misreadings.length > 1 ? ` (and ${misreadings.length - 1} more)` : '';
  throw new TrtforgeError(
    'TF_TRTEXEC_MISREAD',
    `trtexec was told ${first?.option} ${first?.asked} and echoes ${first?.echoed}${more}.`,
    { details: { misreadings, log: run.logPath, arguments: run.arguments } },
  );
}

/** What a build was told and what its log echoes, wherever they differ; an option the log is silent about is none. */
export function buildMisreadings(request: TrtexecBuildRequest, log: TrtexecLog): readonly Misreading[] {
  const { build, options } = log;
  const number = (option: string, key: string, asked: number | null): Misreading[] => {
    const echoed = options.build[key];
    return asked === null || echoed === undefined || Number(echoed) === asked
      ? []
      : [{ option, asked: String(asked), echoed }];
  };
  const enabled = (option: string, key: string, asked: boolean, yes = 'Enabled'): Misreading[] => {
    const echoed = options.build[key];
    return echoed === undefined || (echoed === yes) === asked
      ? []
      : [{ option, asked: asked ? yes : 'Disabled', echoed }];
  };
  const on = (name: TrtexecBuildRequest['switches'][number]) => request.switches.includes(name);
  return [
    ...poolMisreadings(request, build.memoryPools),
    ...precisionMisreadings(request, build.precision),
    ...profileMisreadings(request, log),
    ...number('--builderOptimizationLevel', 'BuilderOptimizationLevel', request.optimizationLevel),
    ...number('--maxAuxStreams', 'MaxAuxStreams', request.maxAuxStreams),
    ...number('--avgTiming', 'avgTiming', request.avgTimingIterations),
    ...number('--maxTactics', 'MaxTactics', request.maxTactics),
    ...enabled('--sparsity', 'Sparsity', on('sparse-weights')),
    ...enabled('--refit', 'Refit', on('refit')),
    ...enabled('--stripWeights', 'Strip weights', on('strip-plan')),
    ...enabled('--versionCompatible', 'Version Compatible', on('version-compatible')),
    ...enabled('--excludeLeanRuntime', 'Exclude Lean Runtime', on('exclude-lean-runtime')),
    ...enabled('--allowWeightStreaming', 'Weight Streaming', on('weight-streaming')),
    ...enabled('--directIO', 'DirectIO mode', on('direct-io')),
    ...enabled('--skipInference', 'Skip inference', true),
  ];
}

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

/** Types by the words that trtexec joins with `+`; `FP32` is always among them in a weakly typed build. */
function precisionMisreadings(
  { stronglyTyped, precisions }: TrtexecBuildRequest,
  echoed: string | null,
): Misreading[] {
  if (echoed === null) return [];
  const asked = stronglyTyped
    ? ['Strongly Typed']
    : ['FP32', ...precisions.map((each) => each.toUpperCase())];
  const said = echoed.replace(/\s*\(.*$/, '').split('+');
  const isSame = said.length === asked.length && asked.every((each) => said.includes(each));
  return isSame ? [] : [{ option: 'precision', asked: asked.join('+'), echoed }];
}

function profileMisreadings({ profiles }: TrtexecBuildRequest, log: TrtexecLog): Misreading[] {
  const invented = log.warnings.find(({ message }) =>
    /no shapes were provided\. Automatically overriding/.test(message),
  );
  if (invented !== undefined) return [{ option: 'shapes', asked: 'none', echoed: invented.message }];
  // A log without any shapes at all is one that does not echo them.
  if (log.build.profiles.length === 0) return [];
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
          option: `shapes of «${input}» in profile ${index}`,
          asked: text(range),
          echoed: echoed === undefined ? 'nothing' : text(echoed),
        },
      ];
    }),
  );
}

/** What a measurement was told and what its log echoes, wherever they differ. */
export function benchMisreadings(request: TrtexecBenchRequest, log: TrtexecLog): readonly Misreading[] {
  const echo = log.measurement;
  const compared = [
    ['data transfers', request.transfers, echo.transfers],
    ['spin wait', request.spinWait, echo.spinWait],
    ['CUDA graph', request.graph, echo.cudaGraph],
    ['--iterations', request.iterations, echo.iterations],
    ['--infStreams', request.streams, echo.streams],
    ['--idleTime', request.idleMs, echo.idleMs],
    ['--duration', request.durationMs / 1000, echo.durationSeconds],
    ['--warmUp', request.warmUpMs, echo.warmUpMs],
  ] as const;
  const options = compared.flatMap(([option, asked, echoed]) =>
    echoed === null || isSameSetting(asked, echoed)
      ? []
      : [{ option, asked: String(asked), echoed: String(echoed) }],
  );
  const shapes = Object.entries(request.shapes).flatMap(([input, dims]) => {
    const echoed = echo.shapes[input];
    if (Object.keys(echo.shapes).length === 0 || echoed?.join('x') === dims.join('x')) return [];
    return [
      { option: `--shapes of «${input}»`, asked: dims.join('x'), echoed: echoed?.join('x') ?? 'nothing' },
    ];
  });
  return [...options, ...shapes, ...budgetMisreadings(request, log)];
}

/** The echo, and what was then set: only the log knows what the library chose by itself, or what the least is that 10.0 takes. */
function budgetMisreadings(
  { weightBudget }: TrtexecBenchRequest,
  { version, options, engine }: TrtexecLog,
): Misreading[] {
  if (weightBudget === undefined || version === null) return [];
  const asked = budgetText(weightBudget, version);
  const isBytes = /^\d+$/.test(asked);
  const expected = isBytes ? `${asked} bytes` : asked === '-1' ? 'Automatic' : '100.000000%';
  const told = { option: '--weightStreamingBudget', asked };
  const echoed = options.inference['Weight Streaming Budget'];
  const set = engine.weightBudget;
  return [
    ...(echoed === undefined || echoed === expected ? [] : [{ ...told, echoed }]),
    ...(set === null || !isBytes || String(set) === asked ? [] : [{ ...told, echoed: `a limit of ${set}` }]),
  ];
}

const isSameSetting = (asked: number | boolean, echoed: number | boolean): boolean =>
  typeof asked === 'number' && typeof echoed === 'number'
    ? Math.abs(asked - echoed) <= Math.abs(asked) * PRINTED_PRECISION
    : asked === echoed;
