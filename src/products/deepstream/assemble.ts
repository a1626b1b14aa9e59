import { publishFile } from '../../base/files/publish.js';
import { TrtforgeError } from '../../errors.js';
import {
  benchmarkData,
  type EarlierData,
  readBenchmarkData,
  summaryBlock,
  writeBenchmarkData,
} from './benchmark-data.js';
import { answerFor, type EngineStage, type StreamsAnswer } from './decision.js';
import { pipelineLogs } from './deepstream-app-log.js';
import type { StreamsPaths } from './names.js';
import type { StreamsLimits } from './options.js';
import type { StreamsBody, StreamsMeasurement, StreamsResult } from './result.js';

export const answersOf = ({ fps }: StreamsLimits, stages: readonly EngineStage[]): StreamsAnswer[] =>
  fps.flatMap((each) => answerFor(each, stages) ?? []);

/** opt = max: an engine's kernels are chosen for its largest batch, and batch 1 gets what is left. */
export const baselineNote = (
  baseline: StreamsMeasurement | null,
  maxBatch: number | null,
): readonly string[] =>
  baseline === null || baseline.batch === maxBatch
    ? []
    : [
        `Batch 1 was measured on the engine of max batch ${baseline.engineMaxBatch}, whose kernels are chosen for those: an engine built for batch 1 is faster there.`,
      ];

/** Rates whose PEAK no measured engine holds in one batch. */
export const shortOf = (answers: readonly StreamsAnswer[]): readonly string[] =>
  answers.flatMap(({ fps, peakGpuStreams, maxBatch }) =>
    peakGpuStreams > maxBatch
      ? [
          `At ${fps} fps the GPU has room for ${peakGpuStreams} streams, and the engine's batch has ${maxBatch}.`,
        ]
      : [],
  );

export const unique = (sentences: readonly string[]): string[] => [...new Set(sentences)];

/** Whenever it was done: step 4 is all building, step 5 all measuring. Unknown as soon as one part is. */
export function stepSeconds(
  engines: StreamsResult['engines'],
  baseline: StreamsMeasurement | null,
): StreamsResult['steps'] {
  const step4Seconds = sum(engines.map(({ buildSeconds }) => buildSeconds));
  const peaks = engines.flatMap(({ peak }) => (peak === null || peak === baseline ? [] : [peak]));
  const step5Seconds = sum(
    [...(baseline === null ? [] : [baseline]), ...peaks].map(({ seconds }) => seconds),
  );
  return { step4Seconds, step5Seconds, totalSeconds: sum([step4Seconds, step5Seconds]) };
}

const sum = (parts: readonly (number | null)[]): number | null =>
  parts.reduce((total, part) => (total === null || part === null ? null : total + part), 0);

/** Runs of DeepStream that stood there for another engine, which would be wrong beside this one. */
function droppedRuns(before: EarlierData | null, engine: string): readonly string[] {
  if (before === null || before.engine === engine) return [];
  const { run1, run2 } = before.deepstream;
  return (run1.streams ?? run2.streams) === null
    ? []
    : [
        `The DeepStream runs in benchmark_data.json were of ${before.engine ?? 'another engine'} and are left out now.`,
      ];
}

/** The data of an earlier file; one that cannot be read is written anew, which is reported. */
function earlierData(path: string): { readonly before: EarlierData | null; readonly spoilt: string[] } {
  try {
    return { before: readBenchmarkData(path), spoilt: [] };
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    return {
      before: null,
      spoilt: [`${error.message} It is written anew, and DeepStream's runs in it are lost.`],
    };
  }
}

/** Writes benchmark_data.json and the result itself, and adds the summary. Without an answer the files that are there stay. Throws TF_WRITE_FAILED. */
export function finishResult(paths: StreamsPaths, body: StreamsBody): StreamsResult {
  if (body.engine === null) return { ...body, data: null, summary: summaryBlock(body, paths.shownModel()) };
  const { before, spoilt } = earlierData(paths.data);
  const checked = { ...body, warnings: [...spoilt, ...droppedRuns(before, body.engine), ...body.warnings] };
  writeBenchmarkData(paths.data, benchmarkData(checked, before, pipelineLogs(paths.model)));
  const result = { ...checked, data: paths.data, summary: summaryBlock(checked, paths.shownModel()) };
  publishFile(paths.sizing, `${JSON.stringify(result, null, 2)}\n`);
  return result;
}
