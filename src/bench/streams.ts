import { ExitCode } from '../errors.js';
import { type EventListener, inPhase } from '../events.js';
import { inspectModel } from '../onnx/inspect.js';
import { benchmarkData, readBenchmarkData, summaryBlock, writeBenchmarkData } from './streams-data.js';
import { answerFor, type EngineStage, type StreamsAnswer, type StreamsLimits } from './streams-decision.js';
import type { StreamsBuilder, StreamsMeter } from './streams-effects.js';
import { sizingFromLogs } from './streams-from-logs.js';
import { type InputWishes, type StreamsInputs, streamsInputs } from './streams-input.js';
import { type NameWishes, type StreamsNames, StreamsPaths, streamsNames } from './streams-names.js';
import { type StreamsMeasurement, type StreamsResult, upperBoundWarning } from './streams-result.js';
import { measureSensitivity, sensitivityWarnings } from './streams-sensitivity.js';
import {
  type SizedEngine,
  type Sizing,
  type SizingProgress,
  sizeStreams,
  stageOf,
} from './streams-sizing.js';

export interface StreamsRequest {
  /** Path of an ONNX model. */
  readonly model: string;
  readonly names: NameWishes;
  readonly input: InputWishes;
  readonly limits: StreamsLimits;
  /** Believe nothing that lies on disk. */
  readonly fresh: boolean;
  /** Measure the batches beside the number of streams too. */
  readonly sensitivity: boolean;
}

/** Everything decided before the first build: the model is read, nothing is written. */
export interface StreamsPlan {
  readonly request: StreamsRequest;
  readonly names: StreamsNames;
  readonly paths: StreamsPaths;
  readonly inputs: StreamsInputs;
}

export interface StreamsEffects {
  readonly builder: StreamsBuilder;
  readonly builderName: StreamsResult['builder'];
  readonly meter: StreamsMeter;
  readonly emit: EventListener;
  readonly signal: AbortSignal;
  readonly now?: () => number;
}

/** Derives names, places and shapes. Errors: those of `inspectModel` and `streamsInputs`. */
export function planStreams(request: StreamsRequest): StreamsPlan {
  const names = streamsNames(request.model, request.names);
  const inputs = streamsInputs(inspectModel(request.model), request.input);
  return { request, names, paths: new StreamsPaths(names), inputs };
}

/**
 * How many streams a GPU serves with a model, by the way of DeepStream's skill: engines of doubling batch, measured at batch 1 and at the largest, until
 * PEAK_GPU_STREAMS fits into one batch. `benchmark_data.json` is written after every step, so a kill loses one step at most.
 * Errors: those of `sizeStreams`.
 */
export async function streams(plan: StreamsPlan, effects: StreamsEffects): Promise<StreamsResult> {
  const { request, paths } = plan;
  const { builder, meter, emit, signal, now = () => performance.now() } = effects;
  const onStep = (progress: SizingProgress) => {
    const stop = { reason: 'unfinished' as const, text: 'The search was not done when this was written.' };
    writeResult(plan, resultOf(plan, effects, { ...progress, stop }, null));
  };
  const sizing = await sizeStreams(
    { limits: request.limits, paths, fresh: request.fresh },
    { builder, meter, emit, signal, now, onStep },
  );
  const sensitivity = request.sensitivity ? await sensitivityOf(plan, effects, sizing) : null;
  const result = resultOf(plan, effects, sizing, sensitivity);
  writeResult(plan, result);
  return result;
}

/** The batch that a pipeline would run, and its neighbours, on the engine of the first frame rate. */
async function sensitivityOf(
  { request, paths }: StreamsPlan,
  { meter, emit }: StreamsEffects,
  { engines }: Sizing,
): Promise<StreamsResult['sensitivity']> {
  const [answer] = answersOf(request.limits, engines.map(stageOf));
  const chosen = engines.find(({ engine }) => engine.maxBatch === answer?.maxBatch);
  if (answer === undefined || chosen === undefined) return null;
  const batch = Math.max(answer.streams, 1);
  const measure = () => measureSensitivity(meter, chosen.engine, batch, { paths, fresh: request.fresh });
  return inPhase('sensitivity', emit, measure, `around batch ${batch}`);
}

const answersOf = ({ fps }: StreamsLimits, stages: readonly EngineStage[]): StreamsAnswer[] =>
  fps.flatMap((each) => answerFor(each, stages) ?? []);

type Stopped = Omit<Sizing, 'stop'> & { readonly stop: StreamsResult['stop'] };

function resultOf(
  { request, names, paths, inputs }: StreamsPlan,
  { builderName, meter }: StreamsEffects,
  sizing: Stopped,
  sensitivity: StreamsResult['sensitivity'],
): StreamsResult {
  const { engines, baseline, stop } = sizing;
  const extra = sensitivity ?? [];
  const body = bodyOf(names, paths, request.limits, {
    engines: engines.map(engineResult),
    stages: engines.map(stageOf),
    baseline,
    stop,
  });
  return withSummary(paths, {
    ...body,
    model: {
      ...body.model,
      onnx: request.model,
      input: inputs.image,
      layout: inputs.layout,
      channels: inputs.channels,
      height: inputs.height,
      width: inputs.width,
    },
    sensitivity,
    builder: builderName,
    meter: meter.tool,
    mode: { ...meter.mode },
    notes: [...body.notes, ...inputs.notes],
    warnings: unique([
      ...body.warnings,
      ...engines.flatMap(({ engine }) =>
        engine.warnings.map((why) => `Max batch ${engine.maxBatch}: ${why}`),
      ),
      ...sensitivityWarnings(extra),
    ]),
  });
}

interface Known {
  readonly engines: StreamsResult['engines'];
  readonly stages: readonly EngineStage[];
  readonly baseline: StreamsMeasurement | null;
  readonly stop: StreamsResult['stop'];
}

/** What measuring now and reading logs have in common. */
function bodyOf(
  names: StreamsNames,
  paths: StreamsPaths,
  limits: StreamsLimits,
  known: Known,
): Omit<StreamsResult, 'summary'> {
  const { engines, baseline, stop } = known;
  const answers = answersOf(limits, known.stages);
  const [first] = answers;
  const maxBatch = first?.maxBatch ?? null;
  return {
    schema: 'trtforge.streams/1',
    model: {
      name: names.modelName,
      file: names.modelFile,
      onnx: null,
      input: null,
      layout: null,
      channels: null,
      height: null,
      width: null,
    },
    root: names.root,
    engine: maxBatch === null ? null : paths.shownEngine(maxBatch),
    maxBatch,
    fps: limits.fps[0]!,
    peakGpuStreams: first?.peakGpuStreams ?? null,
    answers,
    baseline,
    engines: [...engines],
    stop,
    sensitivity: null,
    steps: stepSeconds(engines, baseline),
    builder: null,
    meter: null,
    mode: null,
    data: paths.data,
    notes: [...names.notes, ...baselineNote(baseline, maxBatch)],
    warnings: unique([
      ...(maxBatch !== null &&
      stop.reason !== 'enough' &&
      stop.reason !== 'from-logs' &&
      stop.reason !== 'unfinished'
        ? [`Stopped early: ${stop.text}`]
        : []),
      ...shortOf(answers),
      ...[...(baseline === null ? [] : [baseline]), ...engines.flatMap(({ peak }) => peak ?? [])].flatMap(
        (one) => one.warnings.map((why) => `Batch ${one.batch}: ${why}`),
      ),
      upperBoundWarning,
    ]),
    exitCode: maxBatch === null || stop.reason === 'failed' ? ExitCode.inconclusive : ExitCode.pass,
  };
}

/** opt = max: an engine's kernels are chosen for its largest batch, and batch 1 gets what is left. */
const baselineNote = (baseline: StreamsMeasurement | null, maxBatch: number | null): readonly string[] =>
  baseline === null || baseline.batch === maxBatch
    ? []
    : [
        `Batch 1 was measured on the engine of max batch ${baseline.engineMaxBatch ?? 'unknown'}, whose kernels are chosen for that batch: an engine built for batch 1 is faster there.`,
      ];

/** Rates whose PEAK no measured engine holds in one batch. */
const shortOf = (answers: readonly StreamsAnswer[]): readonly string[] =>
  answers.flatMap(({ fps, peakGpuStreams, maxBatch }) =>
    peakGpuStreams > maxBatch
      ? [
          `At ${fps} fps the GPU has room for ${peakGpuStreams} streams, and the engine's batch holds ${maxBatch}.`,
        ]
      : [],
  );

const unique = (sentences: readonly string[]): string[] => [...new Set(sentences)];

function engineResult({ engine, source, peak }: SizedEngine): StreamsResult['engines'][number] {
  const { maxBatch, path, bytes, sha256, identity, buildSeconds } = engine;
  return { maxBatch, path, bytes, sha256, identity, buildSeconds, source, peak };
}

/** Whenever it was done: step 4 is all building, step 5 all measuring. Unknown as soon as one part is. */
function stepSeconds(
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

const withSummary = (paths: StreamsPaths, result: Omit<StreamsResult, 'summary'>): StreamsResult => ({
  ...result,
  summary: summaryBlock(result, paths.shownModel()),
});

function writeResult({ paths }: Pick<StreamsPlan, 'paths'>, result: StreamsResult): void {
  writeBenchmarkData(paths.data, benchmarkData(result, readBenchmarkData(paths.data)));
}

export interface FromLogsRequest {
  /** Path of the ONNX model, which need not be there any more. */
  readonly model: string;
  readonly names: NameWishes;
  readonly limits: StreamsLimits;
}

/** Writes benchmark_data.json anew from the logs alone: no GPU, engine or model is needed. Errors: those of `sizingFromLogs`, TF_WRITE_FAILED. */
export function streamsFromLogs({ model, names: wishes, limits }: FromLogsRequest): StreamsResult {
  const names = streamsNames(model, wishes);
  const paths = new StreamsPaths(names);
  const { baseline, engines, warnings } = sizingFromLogs(paths);
  const stages = engines.map(({ maxBatch, buildSeconds, peak }) => ({
    maxBatch,
    buildSeconds,
    peak: {
      imagesPerSecond: peak.imagesPerSecond,
      seconds: peak.seconds,
      contextBytes: peak.contextBytes,
      gpuBytes: peak.gpuBytes,
      planBytes: null,
    },
  }));
  const body = bodyOf(names, paths, limits, {
    engines: engines.map(({ maxBatch, buildSeconds, peak }) => ({
      maxBatch,
      path: paths.engine(maxBatch),
      bytes: null,
      sha256: null,
      identity: null,
      buildSeconds,
      source: 'logs' as const,
      peak,
    })),
    stages,
    baseline,
    stop: { reason: 'from-logs', text: 'Everything was read from logs; nothing was built or measured.' },
  });
  const result = withSummary(paths, { ...body, warnings: unique([...warnings, ...body.warnings]) });
  writeResult({ paths }, result);
  return result;
}
