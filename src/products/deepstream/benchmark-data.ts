import { existsSync } from 'node:fs';
import { z } from 'zod';
import { LARGEST_DOCUMENT, readText } from '../../base/files/files.js';
import { pythonJson } from '../../base/files/json.js';
import { publishFile } from '../../base/files/publish.js';
import { TrtforgeError } from '../../errors.js';
import type { PipelineLog } from './deepstream-app-log.js';
import type { StreamsBody } from './result.js';

/** A DeepStream run as its step writes it into benchmark_data.json. */
interface PipelineRun {
  readonly streams: number | null;
  readonly total_fps: number | null;
  readonly fps_per_stream: number | null;
}

/** `benchmark_data.json` of DeepStream's skill, and what is ours in one field of its own. Any figure may be null: nothing is made up. */
export interface BenchmarkData {
  readonly model_name: string;
  readonly engine: string | null;
  readonly max_bs: number | null;
  readonly trtexec: {
    readonly bs1: { readonly qps: number | null; readonly gpu_mean_ms: number | null };
    readonly bsmax: {
      readonly qps: number | null;
      readonly gpu_mean_ms: number | null;
      readonly p99_ms: number | null;
      readonly imgs_per_sec: number | null;
    };
  };
  readonly peak_gpu_streams: number | null;
  readonly deepstream: { readonly run1: PipelineRun; readonly run2: PipelineRun };
  readonly x_trtforge: Readonly<Record<string, unknown>>;
}

const noRun: PipelineRun = { streams: null, total_fps: null, fps_per_stream: null };

/** The run of a number, by its log; of several the one with most streams. */
function runOf(logs: readonly PipelineLog[], run: number, before: PipelineRun): PipelineRun {
  const [log] = logs.filter((each) => each.run === run).toSorted((a, b) => b.streams - a.streams);
  return log === undefined
    ? before
    : { streams: log.streams, total_fps: round2(log.totalFps), fps_per_stream: round2(log.meanFps) };
}

/** The data of a result. Runs of DeepStream are those of its logs, else what its own steps wrote of the same engine; of another engine it would be wrong. */
export function benchmarkData(
  result: StreamsBody,
  before: EarlierData | null,
  logs: readonly PipelineLog[],
): BenchmarkData {
  const { model, engine, maxBatch, baseline, engines, peakGpuStreams } = result;
  const peak = engines.find((one) => one.maxBatch === maxBatch)?.peak ?? null;
  const { run1, run2 } =
    before !== null && before.engine === engine ? before.deepstream : { run1: noRun, run2: noRun };
  return {
    model_name: model.name,
    engine,
    max_bs: maxBatch,
    trtexec: {
      bs1: { qps: baseline?.qps ?? null, gpu_mean_ms: baseline?.gpuMeanMs ?? null },
      bsmax: {
        qps: peak?.qps ?? null,
        gpu_mean_ms: peak?.gpuMeanMs ?? null,
        p99_ms: peak?.gpuP99Ms ?? null,
        imgs_per_sec: peak === null ? null : round2(peak.imagesPerSecond),
      },
    },
    peak_gpu_streams: peakGpuStreams,
    deepstream: { run1: runOf(logs, 1, run1), run2: runOf(logs, 2, run2) },
    x_trtforge: {
      schema: 'trtforge.benchmark-data/1',
      fps: result.fps,
      answers: result.answers,
      stop: result.stop,
      step4_seconds: result.steps.step4Seconds,
      step5_seconds: result.steps.step5Seconds,
      total_seconds: result.steps.totalSeconds,
      builder: result.builder,
      meter: result.meter,
      mode: result.mode,
      engines: engines.map((one) => ({
        max_bs: one.maxBatch,
        sha256: one.sha256,
        identity: one.identity,
        build_seconds: one.buildSeconds,
        qps: one.peak?.qps ?? null,
        imgs_per_sec: one.peak === null ? null : round2(one.peak.imagesPerSecond),
        gpu_ms_per_image: one.peak?.gpuMsPerImage ?? null,
      })),
      bs1_engine_max_bs: baseline?.engineMaxBatch ?? null,
      sensitivity: result.sensitivity,
      warnings: result.warnings,
    },
  };
}

/** A figure that is there; what is not a number, Python's NaN among it, is null. */
const figureSchema = z.number().nullable().catch(null);
const runSchema = z
  .object({ streams: figureSchema, total_fps: figureSchema, fps_per_stream: figureSchema })
  .catch(noRun);

/** The fields of an earlier file that are kept, whatever the rest of it looks like. */
const earlierSchema = z.object({
  engine: z.string().nullable().catch(null),
  deepstream: z.object({ run1: runSchema, run2: runSchema }).catch({ run1: noRun, run2: noRun }),
});
export type EarlierData = z.infer<typeof earlierSchema>;

/** The data an earlier run left; null where there is none. Throws TF_FILE_UNREADABLE for a file that is not such a document. */
export function readBenchmarkData(path: string): EarlierData | null {
  if (!existsSync(path)) return null;
  try {
    return earlierSchema.parse(pythonJson(readText(path, LARGEST_DOCUMENT, 'TF_FILE_UNREADABLE')));
  } catch (cause) {
    throw new TrtforgeError('TF_FILE_UNREADABLE', `${path} has no benchmark data.`, { cause });
  }
}

export const writeBenchmarkData = (path: string, data: BenchmarkData): void =>
  publishFile(path, `${JSON.stringify(data, null, 2)}\n`);

const round2 = (amount: number): number => Math.round(amount * 100) / 100;

/** Where a figure is unknown the words say so; the scripts leave an empty place. */
const UNKNOWN = 'unknown';

/** The block that DeepStream's script prints when steps 4 and 5 are done, word for word. */
export function summaryBlock(result: StreamsBody, shownModel: string): string[] {
  const { model, engine, maxBatch, baseline, engines, peakGpuStreams, fps, steps } = result;
  const peak = engines.find((one) => one.maxBatch === maxBatch)?.peak ?? null;
  const count = (value: number | null | undefined) => (value == null ? UNKNOWN : String(value));
  const ms = (value: number | null | undefined) => (value == null ? UNKNOWN : `${value}ms`);
  const seconds = (value: number | null) => (value === null ? UNKNOWN : `${Number(value.toFixed(3))}s`);
  const images = peak === null ? UNKNOWN : pythonFloat(round2(peak.imagesPerSecond));
  return [
    '=== TRT Engine Build Complete ===',
    `Model:   ${model.name}`,
    `Engine:  ${engine ?? UNKNOWN}`,
    '         (single engine — used for trtexec baseline and all DS runs)',
    '',
    'trtexec Results:',
    `  BS=1:       ${count(baseline?.qps)} QPS  |  GPU mean: ${ms(baseline?.gpuMeanMs)}`,
    `  BS=${count(maxBatch)}: ${count(peak?.qps)} QPS  |  ${images} img/s  |  GPU mean: ${ms(peak?.gpuMeanMs)}  P99: ${ms(peak?.gpuP99Ms)}`,
    '',
    `PEAK_GPU_STREAMS (GPU-only upper bound): ${count(peakGpuStreams)} streams @${fps}fps`,
    '',
    'Timing:',
    `  Step 4 (engine build): ${seconds(steps.step4Seconds)}`,
    `  Step 5 (benchmarks):   ${seconds(steps.step5Seconds)}`,
    `  Total Steps 4-5:       ${seconds(steps.totalSeconds)}`,
    '',
    `Ready for: Steps 6-7 — read references/pipeline-run.md ${shownModel}/`,
  ];
}

/** As Python prints a float: 1280 is 1280.0. */
const pythonFloat = (amount: number): string =>
  Number.isInteger(amount) ? amount.toFixed(1) : String(amount);
