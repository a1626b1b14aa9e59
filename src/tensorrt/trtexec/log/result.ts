/** min, max, mean, median and the percentiles asked for, in milliseconds; a number that trtexec printed as `inf` or `nan` is null. */
export interface PrintedTimes {
  readonly min: number | null;
  readonly max: number | null;
  readonly mean: number | null;
  readonly median: number | null;
  /** In the order printed: 90, 95 and 99 unless asked otherwise. */
  readonly percentiles: readonly { readonly percent: number; readonly ms: number | null }[];
}

/** The performance summary. Null where a line is missing: a log that was cut short. */
interface PrintedPerformance {
  /** Queries per second: inferences of whole batches, not samples. */
  readonly throughputQps: number | null;
  readonly latency: PrintedTimes | null;
  readonly enqueue: PrintedTimes | null;
  readonly h2d: PrintedTimes | null;
  readonly gpuCompute: PrintedTimes | null;
  readonly d2h: PrintedTimes | null;
  readonly hostWalltimeSeconds: number | null;
  readonly gpuComputeTimeSeconds: number | null;
}

export interface LogMessage {
  /** Line of the log, from 1. */
  readonly line: number;
  readonly message: string;
}

export type OptionSection = 'model' | 'build' | 'system' | 'inference' | 'reporting';

/** A range of one input as echoed: `data=1x3x224x224+32x3x224x224+64x3x224x224`. */
export interface EchoedRange {
  readonly profile: number;
  readonly input: string;
  readonly min: readonly number[];
  readonly opt: readonly number[];
  readonly max: readonly number[];
}

/** The measurement, by trtexec's own echo; null where the log does not state it. */
export interface EchoedMeasurement {
  readonly iterations: number | null;
  /** -1 for an endless run. */
  readonly durationSeconds: number | null;
  readonly warmUpMs: number | null;
  readonly idleMs: number | null;
  readonly sleepMs: number | null;
  readonly streams: number | null;
  readonly transfers: boolean | null;
  readonly spinWait: boolean | null;
  readonly graph: boolean | null;
  readonly exposeDma: boolean | null;
  readonly separateProfileRun: boolean | null;
  readonly shapes: Readonly<Record<string, readonly number[]>>;
  readonly averageRuns: number | null;
  readonly percentiles: readonly number[];
}

/** The settings that trtexec printed for its build. */
export interface EchoedBuild {
  /** Bytes by trtexec's names of the pools; null for "default". Empty where the log has no such line. */
  readonly memoryPools: Readonly<Record<string, number | null>>;
  /** `FP32`, `FP32+FP16`, `Strongly Typed`. */
  readonly precision: string | null;
  readonly profiles: readonly EchoedRange[];
  readonly skipInference: boolean | null;
  readonly saveEngine: string | null;
  readonly loadEngine: string | null;
}

export interface LoggedDevice {
  readonly name: string | null;
  /** From 10.0 on. */
  readonly id: number | null;
  readonly uuid: string | null;
  /** 90 for 9.0. */
  readonly computeCapability: number | null;
  readonly sms: number | null;
  readonly memoryMiB: number | null;
}

/** Times in seconds, sizes in bytes; null where this log does not state it. */
export interface LoggedEngine {
  readonly parseSeconds: number | null;
  readonly builtSeconds: number | null;
  readonly loadedSeconds: number | null;
  readonly deserializedSeconds: number | null;
  /** As printed, six digits of MiB: not exact. Null in 8.6, which prints none when it builds. */
  readonly bytes: number | null;
  readonly inputs: number | null;
  readonly outputs: number | null;
  /** Nodes that memory was assigned for: the layers of the built engine that run. */
  readonly scheduledLayers: number | null;
  readonly hostPersistentBytes: number | null;
  readonly devicePersistentBytes: number | null;
  readonly scratchBytes: number | null;
  readonly activationBytes: number | null;
  readonly weightsBytes: number | null;
  readonly contextBytes: number | null;
  /**
   * Of an engine that can stream its weights, what trtexec set: the bytes of them that may stay on the GPU (without a budget all there are, from 10.1 on).
   * 10.0 gives no bytes for `automatic` and for `all`. Null for other engines.
   */
  readonly weightLimit: number | 'automatic' | 'all' | null;
  readonly peakCpuBytes: number | null;
  readonly peakGpuBytes: number | null;
  readonly timingCacheLoadedBytes: number | null;
  readonly timingCacheSavedBytes: number | null;
  /** The cache that the builder reports in use: the passed one (`global`) or one of its own that ends with it; null where it reports neither. */
  readonly timingCacheInUse: 'global' | 'local' | null;
  /** `Plan was created with TensorRT version`, when that was asked. */
  readonly planVersion: string | null;
}

export interface LoggedRun {
  readonly warmUpQueries: number | null;
  readonly warmUpMs: number | null;
  readonly queries: number | null;
  readonly seconds: number | null;
  /** Whether a CUDA graph was captured; null where none was tried, and before 10.0, which reports only rejections. */
  readonly graphCaptured: boolean | null;
  /** Inferences behind the per-layer table; null without one. */
  readonly profiledIterations: number | null;
}

/** Everything a log of trtexec reports. Of a file that holds several runs one after another, the last; `runs` states how many there were. */
export interface TrtexecLog {
  readonly schema: 'trtforge.trtexec-log/1';
  readonly lines: number;
  readonly runs: number;
  readonly product: 'tensorrt' | 'tensorrt-rtx' | null;
  /** `10.6.0.26`; 8.6 does not print its build number: `8.6.1`. Null where the banner is missing. */
  readonly version: string | null;
  readonly commandLine: string | null;
  /** By trtexec's last line; `unfinished` where it is missing: killed, crashed, options not accepted, or cut short. */
  readonly outcome: 'passed' | 'failed' | 'unfinished';
  /** First and last time printed, as printed. */
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  /** Every echoed option as printed. */
  readonly options: Readonly<Record<OptionSection, Readonly<Record<string, string>>>>;
  readonly build: EchoedBuild;
  readonly measurement: EchoedMeasurement;
  readonly device: LoggedDevice;
  readonly engine: LoggedEngine;
  readonly run: LoggedRun;
  /** Null where no line of a summary was seen. */
  readonly performance: PrintedPerformance | null;
  /** The first 500 of each; the counts are of all. */
  readonly warnings: readonly LogMessage[];
  readonly errors: readonly LogMessage[];
  readonly warningCount: number;
  readonly errorCount: number;
  readonly unknownOptions: readonly string[];
  readonly skippedInference: boolean;
}

/** As C++ streams print a double: six significant digits, an exponent, inf or nan. */
const NUMBER = '[-+0-9.eE]+|-?inf|-?nan';

const SCALARS: readonly (readonly [
  RegExp,
  'throughputQps' | 'hostWalltimeSeconds' | 'gpuComputeTimeSeconds',
])[] = [
  [new RegExp(`^Throughput: (${NUMBER}) qps$`), 'throughputQps'],
  [new RegExp(`^Total Host Walltime: (${NUMBER}) s$`), 'hostWalltimeSeconds'],
  [new RegExp(`^Total GPU Compute Time: (${NUMBER}) s$`), 'gpuComputeTimeSeconds'],
];

const TIMES: Readonly<Record<string, 'latency' | 'enqueue' | 'h2d' | 'gpuCompute' | 'd2h'>> = {
  Latency: 'latency',
  'Enqueue Time': 'enqueue',
  'H2D Latency': 'h2d',
  'GPU Compute Time': 'gpuCompute',
  'D2H Latency': 'd2h',
};

const STATISTIC = new RegExp(`(min|max|mean|median|percentile\\(([\\d.]+)%?\\)) = (${NUMBER}) ms`, 'g');

/** The beginnings of the summary's lines; everything else is distinguished by its first letters. */
const FIRST =
  /^(?:Throughput: |Total (?:Host|GPU) |(?:H2D |D2H )?Latency: |Enqueue Time: |GPU Compute Time: )/;

/** Collects the lines of a performance summary; a later summary replaces an earlier one line by line. */
export class PerformanceSummary {
  private readonly found: { -readonly [Key in keyof PrintedPerformance]?: PrintedPerformance[Key] } = {};

  /** Whether the line was one of a summary. */
  take(message: string): boolean {
    if (!FIRST.test(message)) return false;
    for (const [pattern, field] of SCALARS) {
      const value = pattern.exec(message)?.[1];
      if (value !== undefined) {
        this.found[field] = printedNumber(value);
        return true;
      }
    }
    const field = TIMES[message.slice(0, message.indexOf(':'))];
    const times = field === undefined ? undefined : printedTimes(message);
    if (field === undefined || times === undefined) return false;
    this.found[field] = times;
    return true;
  }

  result(): PrintedPerformance | null {
    if (Object.keys(this.found).length === 0) return null;
    return {
      throughputQps: this.found.throughputQps ?? null,
      latency: this.found.latency ?? null,
      enqueue: this.found.enqueue ?? null,
      h2d: this.found.h2d ?? null,
      gpuCompute: this.found.gpuCompute ?? null,
      d2h: this.found.d2h ?? null,
      hostWalltimeSeconds: this.found.hostWalltimeSeconds ?? null,
      gpuComputeTimeSeconds: this.found.gpuComputeTimeSeconds ?? null,
    };
  }
}

/** Undefined unless all four plain statistics are there: half a line is no line. */
function printedTimes(message: string): PrintedTimes | undefined {
  const plain = new Map<string, number | null>();
  const percentiles: { percent: number; ms: number | null }[] = [];
  for (const [, name = '', percent, value = ''] of message.matchAll(STATISTIC)) {
    if (percent === undefined) plain.set(name, printedNumber(value));
    else percentiles.push({ percent: Number(percent), ms: printedNumber(value) });
  }
  const [min, max, mean, median] = ['min', 'max', 'mean', 'median'].map((name) => plain.get(name));
  if (min === undefined || max === undefined || mean === undefined || median === undefined) return undefined;
  return { min, max, mean, median, percentiles };
}

/** Null for `inf`, `nan` and what is not a number at all. */
export function printedNumber(text: string): number | null {
  const value = Number(text);
  return text.trim() !== '' && Number.isFinite(value) ? value : null;
}
