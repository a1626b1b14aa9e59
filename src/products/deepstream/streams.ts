import { agree } from '../../behaviour/versions.js';
import { ExitCode, TrtforgeError } from '../../errors.js';
import { inPhase } from '../../events.js';
import { factsOfModel } from '../../formats/onnx/inspect.js';
import { answersOf, baselineNote, finishResult, shortOf, stepSeconds, unique } from './assemble.js';
import { checkLimits } from './decision.js';
import type { StreamsEffects, StreamsEngine, StreamsMeter } from './effects.js';
import { type StreamsInputs, streamsInputs } from './input.js';
import { type StreamsNames, StreamsPaths, streamsNames } from './names.js';
import type { StreamsRequest } from './options.js';
import { measureAndRecord, storedMeasurement } from './record.js';
import {
  type StreamsBody,
  type StreamsResult,
  type StreamsSensitivity,
  upperBoundWarning,
} from './result.js';
import {
  type DecidedSizing,
  decideSizing,
  type SizedEngine,
  type Sizing,
  sizeStreams,
  stageOf,
} from './sizing.js';

/** Everything decided before the first build: the model is read, nothing is written. */
export interface StreamsPlan {
  readonly request: StreamsRequest;
  readonly names: StreamsNames;
  readonly paths: StreamsPaths;
  readonly inputs: StreamsInputs;
}

/** Derives names, places and shapes. Errors: those of `checkLimits`, `streamsNames`, `factsOfModel` and `streamsInputs`. */
export function planStreams(request: StreamsRequest): StreamsPlan {
  checkLimits(request.limits);
  const names = streamsNames(request.model, request.names);
  const inputs = streamsInputs(factsOfModel(request.model), request.input);
  return { request, names, paths: new StreamsPaths(names), inputs };
}

/**
 * Counts the streams a GPU serves with a model, using the method of DeepStream's skill: engines of doubling batch, measured at batch 1 and at the largest, until
 * PEAK_GPU_STREAMS fits into one batch. A kill loses one step at most: what was built and measured lies on disk and is taken over by the next call.
 * Errors: those of `sizeStreams`.
 */
export async function streams(plan: StreamsPlan, effects: StreamsEffects): Promise<StreamsResult> {
  const { request, paths } = plan;
  const sizing = await sizeStreams(...sizingOf(plan, effects));
  const sensitivity = request.sensitivity ? await sensitivityOf(plan, effects, sizing) : null;
  return finishResult(paths, resultOf(plan, effects, sizing, sensitivity));
}

/** The work that `streams` would take over and do first. Throws what resolving a build throws. */
export const decideStreams = (plan: StreamsPlan, effects: StreamsEffects): Promise<DecidedSizing> =>
  decideSizing(...sizingOf(plan, effects));

const sizingOf = (
  { request: { limits, fresh }, paths }: StreamsPlan,
  { builder, meter, work, now = () => performance.now() }: StreamsEffects,
): Parameters<typeof sizeStreams> => [
  { limits, paths, fresh },
  { builder, meter, work, now },
];

/** The batches beside, or why they could not be measured: the sizing stands without them. */
type Beside = StreamsResult['sensitivity'] | TrtforgeError;

/** The batch that a pipeline would run, and its neighbours, on the engine of the first frame rate. */
async function sensitivityOf(
  { request, paths }: StreamsPlan,
  { meter, work }: StreamsEffects,
  { engines }: Sizing,
): Promise<Beside> {
  const [answer] = answersOf(request.limits, engines.map(stageOf));
  const chosen = engines.find(({ engine }) => engine.maxBatch === answer?.maxBatch);
  if (answer === undefined || chosen === undefined) return null;
  const batch = Math.max(answer.streams, 1);
  const measure = () => measureSensitivity(meter, chosen.engine, batch, { paths, fresh: request.fresh });
  try {
    return await inPhase('sensitivity', work.emit, measure, `around batch ${batch}`);
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
    return error;
  }
}

function resultOf(
  { request, names, paths, inputs }: StreamsPlan,
  { builderName, meter, deepstreamLibraries = [] }: StreamsEffects,
  sizing: Sizing,
  beside: Beside,
): StreamsBody {
  const { engines: sized, baseline, stop } = sizing;
  const failure = beside instanceof TrtforgeError ? beside : null;
  const sensitivity = beside instanceof TrtforgeError ? null : beside;
  const engines = sized.map(engineResult);
  const answers = answersOf(request.limits, sized.map(stageOf));
  const [first] = answers;
  const maxBatch = first?.maxBatch ?? null;
  const measured = [...(baseline === null ? [] : [baseline]), ...engines.flatMap(({ peak }) => peak ?? [])];
  const isWhole = maxBatch !== null && stop.reason !== 'failed' && failure === null;
  const { layout, channels, height, width, image } = inputs;
  return {
    schema: 'trtforge.deepstream-size/1',
    model: {
      ...{ name: names.modelName, file: names.modelFile, onnx: request.model, input: image },
      ...{ layout, channels, height, width },
    },
    root: names.root,
    engine: maxBatch === null ? null : paths.shownEngine(maxBatch),
    maxBatch,
    fps: request.limits.fps[0]!,
    peakGpuStreams: first?.peakGpuStreams ?? null,
    answers,
    baseline,
    engines,
    stop,
    sensitivity,
    steps: stepSeconds(engines, baseline),
    builder: builderName,
    meter: meter.tool,
    mode: { ...meter.mode },
    notes: [...names.notes, ...baselineNote(baseline, maxBatch), ...inputs.notes],
    warnings: unique([
      ...(maxBatch !== null && stop.reason !== 'enough' ? [`Stopped early: ${stop.text}`] : []),
      ...shortOf(answers),
      ...measured.flatMap((one) => one.warnings.map((why) => `Batch ${one.batch}: ${why}`)),
      upperBoundWarning,
      ...sized.flatMap(({ engine }) => engine.warnings.map((why) => `Max batch ${engine.maxBatch}: ${why}`)),
      ...otherLibrary(sized, deepstreamLibraries),
      ...sensitivityWarnings(sensitivity ?? []),
      ...(failure === null
        ? []
        : [`The batches beside could not be measured: ${failure.code} ${failure.message}`]),
    ]),
    exitCode: isWhole ? ExitCode.pass : ExitCode.inconclusive,
  };
}

/** Engines of a library that DeepStream on this machine does not load: it waits for them without an error. */
function otherLibrary(engines: readonly SizedEngine[], loaded: readonly string[]): readonly string[] {
  const built = engines.map(({ engine }) => engine.library);
  const isLoaded = (library: string) =>
    loaded.some(
      (version) => library.startsWith('tensorrt ') && agree(version, library.slice('tensorrt '.length)),
    );
  return loaded.length === 0
    ? []
    : built
        .filter((library) => !isLoaded(library))
        .map(
          (library) =>
            `DeepStream on this machine loads TensorRT ${loaded.join(', ')}, and cannot load engines of ${library}: name that TensorRT with --toolchain.`,
        );
}

function engineResult({ engine, source, peak }: SizedEngine): StreamsResult['engines'][number] {
  const { maxBatch, path, bytes, sha256, identity, buildSeconds } = engine;
  return { maxBatch, path, bytes, sha256, identity, buildSeconds, source, peak };
}

/** The distance of the neighbours from the batch in use. */
const DISTANCE = 8;

/** A larger batch that serves this much fewer images than a smaller one is reported. */
const NOTABLE_LOSS_PERCENT = 10;

/** The batches N − 8, N and N + 8 that the engine can run. */
const sensitivityBatches = (batch: number, maxBatch: number): readonly number[] =>
  [batch - DISTANCE, batch, batch + DISTANCE].filter((each) => each >= 1 && each <= maxBatch);

/**
 * Measures the neighbours of a batch: engines with dynamic shapes can be much slower at some batches than at the next (attention layers at 17 to 19, by
 * DeepStream's skill), so one figure reports little of the one beside it.
 */
async function measureSensitivity(
  meter: StreamsMeter,
  engine: StreamsEngine,
  batch: number,
  { paths, fresh }: { readonly paths: StreamsPaths; readonly fresh: boolean },
): Promise<StreamsSensitivity[]> {
  const results: StreamsSensitivity[] = [];
  for (const each of sensitivityBatches(batch, engine.maxBatch)) {
    const log = paths.sensitivityLog(each);
    const stored = fresh ? null : storedMeasurement(engine, each, meter, log);
    const { imagesPerSecond, gpuMeanMs } = stored ?? (await measureAndRecord(meter, engine, each, log));
    const best = Math.max(...results.map((one) => one.imagesPerSecond));
    results.push({
      batch: each,
      imagesPerSecond,
      gpuMeanMs,
      changePercent: results.length === 0 ? null : (imagesPerSecond / best - 1) * 100,
      log,
    });
  }
  return results;
}

/** A sentence for each batch that is notably slower than a smaller one. */
const sensitivityWarnings = (results: readonly StreamsSensitivity[]): readonly string[] =>
  results.flatMap(({ batch, changePercent }) =>
    changePercent !== null && changePercent <= -NOTABLE_LOSS_PERCENT
      ? [
          `Batch ${batch} has ${(-changePercent).toFixed(0)} % fewer images per second than a smaller batch beside it: choose another number of streams before concluding that the GPU is full.`,
        ]
      : [],
  );
