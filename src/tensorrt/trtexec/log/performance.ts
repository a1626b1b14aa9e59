import type { PrintedPerformance, PrintedTimes } from './result.js';

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
  const [min, max, mean, median] = [
    plain.get('min'),
    plain.get('max'),
    plain.get('mean'),
    plain.get('median'),
  ];
  if (min === undefined || max === undefined || mean === undefined || median === undefined) return undefined;
  return { min, max, mean, median, percentiles };
}

/** Null for `inf`, `nan` and what is not a number at all. */
export function printedNumber(text: string): number | null {
  const value = Number(text);
  return text.trim() !== '' && Number.isFinite(value) ? value : null;
}
