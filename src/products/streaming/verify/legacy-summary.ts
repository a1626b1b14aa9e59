import {
  executionProviders,
  providerInBackend,
} from '../../../engines/runtime/onnxruntime/provider-options.js';
import { python } from '../compare/tensor-parity.js';
import type { ParityResult } from './result.js';

type Failure = Readonly<Record<string, unknown>>;

/** The summary that the scripts around the streaming encoder read (`trt_parity_*.json`): names of tensors are in the keys. */
export interface LegacySummary {
  readonly mode: string;
  /** `engine` of engines, `onnx` of models. */
  readonly engine?: string;
  readonly onnx?: string;
  readonly providers?: readonly string[];
  readonly ref: string;
  readonly zero_feed_cache?: boolean;
  readonly total_chunks: number;
  readonly passed: number;
  readonly failed: number;
  /** Percent. */
  readonly pass_rate: number;
  readonly atol: number;
  readonly rtol: number;
  readonly cache_atol?: number;
  readonly cache_channel_atol?: number;
  readonly timing_ms: {
    readonly mean: number;
    readonly p50: number;
    readonly p95: number;
    readonly p99: number;
  };
  readonly encoder_output_error_distribution: Readonly<
    Record<'min' | 'max' | 'mean' | 'p95' | 'p99', number>
  > | null;
  readonly chunk_stats: readonly {
    readonly chunk: number;
    readonly encoder_output_max_abs: number;
    readonly encoder_output_mean_abs: number;
    readonly passed: boolean;
  }[];
  readonly failures: readonly Failure[];
}

const number = (measure: number | string): number => Number(measure);

/** Our result in the form of the encoder's own harness. `encoder_output` stands for the main output whatever it is called; every chunk is in `chunk_stats`. */
export function legacySummary(result: ParityResult): LegacySummary {
  const { drift, times, series, outputs } = result;
  const main = outputs.find(({ tensor }) => tensor === drift?.tensor);
  const states = outputs.filter(({ role, kind }) => role === 'state' && kind === 'float');
  const stateAtol = (name: RegExp) => states.find(({ tensor }) => name.test(tensor))?.tolerance?.absolute;
  const [cache, channel] = [stateAtol(/time/i), stateAtol(/channel/i)];
  const provider = providerInBackend(result.candidateBackend);
  const { mean = 0, p50 = 0, p95 = 0, p99 = 0 } = times.rest?.total ?? {};
  const errorOf = (chunk: number) => {
    const tensors = series.find((each) => each.chunk === chunk)?.tensors ?? [];
    return tensors.find(({ tensor }) => tensor === drift?.tensor);
  };
  return {
    mode: result.mode.replace('-', '_'),
    ...(provider === undefined
      ? { engine: result.candidate }
      : { onnx: result.candidate, providers: executionProviders(provider) }),
    ref: result.reference,
    zero_feed_cache: false,
    total_chunks: result.chunks,
    passed: result.passed,
    failed: result.failed,
    pass_rate: 100 * result.passRate,
    atol: main?.tolerance?.absolute ?? 0,
    rtol: main?.tolerance?.relative ?? 0,
    ...(cache === undefined ? {} : { cache_atol: cache }),
    ...(channel === undefined ? {} : { cache_channel_atol: channel }),
    timing_ms: { mean, p50, p95, p99 },
    encoder_output_error_distribution:
      drift === null
        ? null
        : {
            min: number(drift.min),
            max: number(drift.max),
            mean: number(drift.mean),
            p95: number(drift.p95),
            p99: number(drift.p99),
          },
    chunk_stats: series.flatMap(({ chunk, pass }) => {
      const error = errorOf(chunk);
      if (error === undefined) return [];
      const [max, mean] = [number(error.maxAbs), number(error.meanAbs)];
      return [{ chunk, encoder_output_max_abs: max, encoder_output_mean_abs: mean, passed: pass }];
    }),
    failures: failuresOf(result, (chunk) => number(errorOf(chunk)?.maxAbs ?? Number.NaN)),
  };
}

function failuresOf(result: ParityResult, mainError: (chunk: number) => number): readonly Failure[] {
  const broken = new Set(result.violations.map(({ chunk }) => chunk));
  return result.series
    .filter(({ pass }) => !pass)
    .map(({ chunk, tensors }): Failure => {
      const refused = result.failures.find((each) => each.chunk === chunk && each.kind === 'run');
      if (refused !== undefined) return { chunk, error: refused.reason };
      const numeric = tensors
        .filter(({ pass }) => !pass)
        .map(({ tensor, maxAbs, meanAbs, maxRel }) => {
          const of = result.failures.find((each) => each.chunk === chunk && each.tensor === tensor);
          if (of?.kind !== 'non-finite' && of?.kind.startsWith('outside') !== true)
            return of?.reason ?? tensor;
          const [max, mean, relative] = [maxAbs, meanAbs, maxRel].map((each) => python(number(each)));
          return `${tensor}: max_abs=${max} mean_abs=${mean} max_rel=${relative}`;
        });
      const contract = broken.has(chunk)
        ? result.violations
            .filter((each) => each.chunk === chunk)
            .map(({ tensor, found, sentence }) => `${tensor}: ${found} (${sentence})`)
        : [];
      return { chunk, errors: [...numeric, ...contract], encoder_output_max_abs: mainError(chunk) };
    });
}

/** JSON as that harness writes it: numbers that JSON lacks as `NaN` and `Infinity`, which Python reads. */
export function legacySummaryText(summary: LegacySummary): string {
  const marked = JSON.stringify(
    summary,
    (_key, value: unknown) =>
      typeof value === 'number' && !Number.isFinite(value) ? `${MARK}${value}` : value,
    2,
  );
  return `${marked.replace(new RegExp(`"${MARK}(-?(?:NaN|Infinity))"`, 'g'), '$1')}\n`;
}

/** No string of ours begins so: a character of private use. */
const MARK = '\ue000number:';
