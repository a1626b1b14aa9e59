import { TrtforgeError } from '../../errors.js';
import type { StreamsLimits } from './options.js';

/** Throws TF_USAGE for limits that contradict each other, or that no doubling would ever meet. */
export function checkLimits({ fps, firstMaxBatch, maxBatchLimit }: StreamsLimits): void {
  if (fps.length === 0 || fps.some((each) => !(each > 0 && Number.isFinite(each))))
    throw new TrtforgeError('TF_USAGE', `"${fps.join(', ')}" are not valid frame rates.`, {
      remedy: 'Pass at least one frame rate above 0: 30.',
    });
  const wrong = [firstMaxBatch, maxBatchLimit].find((batch) => !Number.isSafeInteger(batch) || batch < 1);
  if (wrong !== undefined)
    throw new TrtforgeError('TF_USAGE', `"${wrong}" is not a valid batch.`, {
      remedy: 'Pass whole numbers from 1 on.',
    });
  if (firstMaxBatch > maxBatchLimit)
    throw new TrtforgeError(
      'TF_USAGE',
      `The first engine's max batch ${firstMaxBatch} is above the limit of ${maxBatchLimit}.`,
      { remedy: 'Begin with a smaller batch (--max-batch), or raise the limit (--max-batch-limit).' },
    );
}

/** One engine as far as it has come. */
export interface EngineStage {
  readonly maxBatch: number;
  readonly buildSeconds: number | null;
  /** At its largest batch; null until measured. */
  readonly peak: PeakMeasurement | null;
}

export interface PeakMeasurement {
  readonly imagesPerSecond: number;
  readonly seconds: number | null;
  /** Device memory of the context and all the GPU has, bytes; null where nobody stated. */
  readonly contextBytes: number | null;
  readonly gpuBytes: number | null;
  readonly planBytes: number | null;
  /** The GPU has no memory of its own. */
  readonly isShared: boolean;
}

export interface StreamsState {
  readonly limits: StreamsLimits;
  /** In the order of their batches; each but the last is measured. */
  readonly engines: readonly EngineStage[];
  /** Batch 1, on the first engine. */
  readonly isBaselineMeasured: boolean;
  /** Of this call, not of calls before it. */
  readonly elapsedSeconds: number;
  /** Why the last build or measurement of an engine beyond the first ended without a result. */
  readonly failure: {
    readonly maxBatch: number;
    readonly kind: 'memory' | 'other';
    readonly text: string;
  } | null;
}

export const stopReasons = [
  'enough',
  'max-batch-limit',
  'memory-estimate',
  'memory',
  'failed',
  'time',
  'gain',
] as const;
export type StopReason = (typeof stopReasons)[number];

export interface Stop {
  readonly do: 'stop';
  readonly reason: StopReason;
  /** One sentence with the numbers. */
  readonly text: string;
}

export type Step =
  | { readonly do: 'build'; readonly maxBatch: number }
  | { readonly do: 'measure'; readonly maxBatch: number; readonly batch: number }
  | Stop;

/** Share of a GPU's memory that a context, its weights and the driver's own needs may fill. */
const USABLE_SHARE = 0.95;

/** floor(images per second / fps). */
export const peakStreams = (imagesPerSecond: number, fps: number): number =>
  Math.floor(imagesPerSecond / fps);

/** The next step. Ends for every input: each `build` doubles the batch, and no batch passes the limit. */
export function nextStep(state: StreamsState): Step {
  const { limits, engines, isBaselineMeasured } = state;
  const last = engines.at(-1);
  if (state.failure !== null) return failed(state.failure);
  const due = dueStep(limits, last, engines.length === 1 && !isBaselineMeasured);
  const late = due === undefined ? undefined : outOfTime(state, due);
  return late ?? due ?? decide(state);
}

/**
 * The steps that are due whatever they measure: up to the measurement of an engine at its largest batch, on which the next step depends; or the reason to
 * stop, alone.
 */
export function certainSteps(state: StreamsState): readonly Step[] {
  const step = nextStep(state);
  if (step.do === 'stop' || (step.do === 'measure' && step.batch === step.maxBatch)) return [step];
  const { engines } = state;
  const after =
    step.do === 'build'
      ? { ...state, engines: [...engines, { maxBatch: step.maxBatch, buildSeconds: null, peak: null }] }
      : { ...state, isBaselineMeasured: true };
  return [step, ...certainSteps(after)];
}

/** The step that a begun engine still lacks, or the build of the first. */
function dueStep(
  limits: StreamsLimits,
  last: EngineStage | undefined,
  needsBaseline: boolean,
): Step | undefined {
  if (last === undefined) return { do: 'build', maxBatch: limits.firstMaxBatch };
  if (needsBaseline) return { do: 'measure', maxBatch: last.maxBatch, batch: 1 };
  if (last.peak === null) return { do: 'measure', maxBatch: last.maxBatch, batch: last.maxBatch };
  return undefined;
}

function decide(state: StreamsState): Step {
  const { limits, engines } = state;
  const { maxBatch, peak } = engines.at(-1)!;
  const [slowest] = [...limits.fps].sort((a, b) => a - b);
  const streams = peakStreams(peak!.imagesPerSecond, slowest!);
  const next: Step = { do: 'build', maxBatch: maxBatch * 2 };
  if (streams <= maxBatch) return stop('enough', `PEAK_GPU_STREAMS (${streams}) <= max batch (${maxBatch}).`);
  return (
    tooLarge(limits, next.maxBatch) ??
    noGain(limits, engines) ??
    tooMuchMemory(peak!, maxBatch) ??
    outOfTime(state, next) ??
    next
  );
}

const stop = (reason: StopReason, text: string): Stop => ({ do: 'stop', reason, text });

const failed = ({ maxBatch, kind, text }: NonNullable<StreamsState['failure']>): Stop =>
  kind === 'memory'
    ? stop('memory', `The GPU's memory has no room for max batch ${maxBatch}: ${text}`)
    : stop('failed', `Max batch ${maxBatch} could not be built or measured: ${text}`);

const tooLarge = ({ maxBatchLimit }: StreamsLimits, next: number): Stop | undefined =>
  next > maxBatchLimit
    ? stop('max-batch-limit', `Max batch ${next} would pass the limit of ${maxBatchLimit}.`)
    : undefined;

function noGain({ minGainPercent }: StreamsLimits, engines: readonly EngineStage[]): Stop | undefined {
  const [before, now] = engines.slice(-2).map(({ peak }) => peak?.imagesPerSecond);
  if (before === undefined || now === undefined || before <= 0) return undefined;
  const gain = (now / before - 1) * 100;
  if (gain >= minGainPercent) return undefined;
  return stop(
    'gain',
    `Doubling the batch to ${engines.at(-1)!.maxBatch} changed images per second by ${gain.toFixed(1)} %, less than the requested ${minGainPercent} %.`,
  );
}

/** A doubled batch doubles the context's memory, and the weights stay what they are: twice where the process reads the plan into memory that the GPU shares. */
function tooMuchMemory(peak: PeakMeasurement, maxBatch: number): Stop | undefined {
  const { contextBytes, gpuBytes, planBytes, isShared } = peak;
  if (contextBytes === null || gpuBytes === null) return undefined;
  const needed = 2 * contextBytes + (planBytes ?? 0) * (isShared ? 2 : 1);
  if (needed <= gpuBytes * USABLE_SHARE) return undefined;
  return stop(
    'memory-estimate',
    `Max batch ${maxBatch * 2} would need about ${gibibytes(needed)} of device memory, and the GPU has ${gibibytes(gpuBytes)}${isShared ? ', which it shares with the processor' : ''}.`,
  );
}

const gibibytes = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`;

/** Only a step that is known not to fit, by what the engine before took, is left out: half the work is no answer. */
function outOfTime({ limits, engines, elapsedSeconds }: StreamsState, step: Step): Stop | undefined {
  const limit = limits.timeLimitSeconds;
  if (limit === null || step.do === 'stop') return undefined;
  const done = engines.findLast(({ peak }) => peak !== null);
  const expected =
    step.do === 'build' && done !== undefined ? (done.buildSeconds ?? 0) + (done.peak?.seconds ?? 0) : 0;
  if (elapsedSeconds + expected < limit) return undefined;
  const next = step.do === 'build' ? `building max batch ${step.maxBatch}` : `measuring batch ${step.batch}`;
  const estimate = expected > 0 ? ` and the next engine takes about ${Math.round(expected)} s` : '';
  return stop(
    'time',
    `${Math.round(elapsedSeconds)} s of ${limit} s have passed${estimate}, so ${next} is not begun.`,
  );
}

/** The answer for one frame rate from the measured engines. */
export interface StreamsAnswer {
  readonly fps: number;
  readonly peakGpuStreams: number;
  /** Of the engine this rests on. */
  readonly maxBatch: number;
  /** Streams in one batch of that engine: at most its largest batch. */
  readonly streams: number;
}

/** The first engine whose PEAK its batch holds, as the doubling would have ended for this rate alone; else the one that serves most streams. */
export function answerFor(fps: number, engines: readonly EngineStage[]): StreamsAnswer | null {
  const answers = engines.flatMap(({ maxBatch, peak }) => {
    if (peak === null) return [];
    const peakGpuStreams = peakStreams(peak.imagesPerSecond, fps);
    return [{ fps, peakGpuStreams, maxBatch, streams: Math.min(peakGpuStreams, maxBatch) }];
  });
  const settled = answers.find(({ peakGpuStreams, maxBatch }) => peakGpuStreams <= maxBatch);
  return (
    settled ?? answers.sort((a, b) => b.streams - a.streams || b.peakGpuStreams - a.peakGpuStreams)[0] ?? null
  );
}
