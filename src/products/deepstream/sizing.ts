import { throwIfCancelled } from '../../base/process/cancel.js';
import { isIntegrated } from '../../behaviour/facts.js';
import { knownGpu } from '../../engines/identity/target.js';
import { TrtforgeError } from '../../errors.js';
import { inPhase, type Work } from '../../events.js';
import {
  certainSteps,
  type EngineStage,
  nextStep,
  type Step,
  type Stop,
  type StreamsState,
} from './decision.js';
import type { StreamsBuilder, StreamsEngine, StreamsMeter } from './effects.js';
import type { StreamsPaths } from './names.js';
import type { StreamsLimits } from './options.js';
import { measureAndRecord, storedMeasurement } from './record.js';
import type { StreamsEngineResult, StreamsMeasurement } from './result.js';

interface SizingRequest {
  readonly limits: StreamsLimits;
  readonly paths: StreamsPaths;
  /** Believe nothing that lies there. */
  readonly fresh: boolean;
}

export interface SizingEffects {
  readonly builder: StreamsBuilder;
  readonly meter: StreamsMeter;
  readonly work: Work;
  /** Milliseconds of a clock that only goes forward. */
  readonly now: () => number;
}

export interface SizedEngine {
  readonly engine: StreamsEngine;
  readonly source: StreamsEngineResult['source'];
  readonly peak: StreamsMeasurement | null;
}

export interface Sizing {
  readonly engines: readonly SizedEngine[];
  readonly baseline: StreamsMeasurement | null;
  readonly stop: Omit<Stop, 'do'>;
}

/**
 * Builds and measures until the decision reports stop. What earlier calls left on disk is taken over as long as it is what this call would have done
 * next: the engine sound and of the same identity, its log whole and of the same engine, tool, mode and GPU model.
 * Errors: those of the first build and of measuring on the first engine, and TF_CANCELLED; beyond the first engine a failure is a reason to stop.
 */
export async function sizeStreams(request: SizingRequest, effects: SizingEffects): Promise<Sizing> {
  return new SizingRun(request, effects).go();
}

/** A sizing before anything is built or measured. */
export interface DecidedSizing {
  /** The engines that earlier calls left and this one takes over. */
  readonly engines: readonly SizedEngine[];
  readonly baseline: StreamsMeasurement | null;
  /** The steps that follow, as far as they depend on no measurement. */
  readonly due: readonly Step[];
}

/** Takes over what earlier calls left, and decides what is due; writes nothing. */
export async function decideSizing(request: SizingRequest, effects: SizingEffects): Promise<DecidedSizing> {
  const run = new SizingRun(request, effects);
  await run.takeStored();
  return run.decided();
}

class SizingRun {
  readonly #request: SizingRequest;
  readonly #effects: SizingEffects;
  readonly #started: number;
  readonly #engines: SizedEngine[] = [];
  #baseline: StreamsMeasurement | null = null;
  #failure: StreamsState['failure'] = null;

  constructor(request: SizingRequest, effects: SizingEffects) {
    this.#request = request;
    this.#effects = effects;
    this.#started = effects.now();
  }

  async go(): Promise<Sizing> {
    for (;;) {
      throwIfCancelled(this.#effects.work.signal, 'sizing streams');
      await this.takeStored();
      const step = nextStep(this.#state(this.#request.limits));
      if (step.do === 'stop') {
        const { reason, text } = step;
        return { engines: [...this.#engines], baseline: this.#baseline, stop: { reason, text } };
      }
      await this.#attempt(step);
    }
  }

  /** Takes over all that lies on disk up to the next step. It costs no time, so the time limit does not hold for it. */
  async takeStored(): Promise<void> {
    const { limits, fresh } = this.#request;
    for (;;) {
      const wanted = nextStep(this.#state({ ...limits, timeLimitSeconds: null }));
      if (wanted.do === 'stop' || fresh || !(await this.#isTaken(wanted))) return;
    }
  }

  decided(): DecidedSizing {
    const due = certainSteps(this.#state(this.#request.limits));
    return { engines: [...this.#engines], baseline: this.#baseline, due };
  }

  async #isTaken(step: Exclude<Step, Stop>): Promise<boolean> {
    const { builder, meter } = this.#effects;
    if (step.do === 'build') {
      const engine = await builder.find(step.maxBatch);
      if (engine !== null) this.#engines.push({ engine, source: 'disk', peak: null });
      return engine !== null;
    }
    const { engine } = this.#last();
    const stored = storedMeasurement(engine, step.batch, meter, this.#request.paths.log(step.batch));
    if (stored !== null) this.#keep(step.batch, stored);
    return stored !== null;
  }

  async #attempt(step: Exclude<Step, Stop>): Promise<void> {
    try {
      if (step.do === 'build') await this.#build(step.maxBatch);
      else await this.#measure(step.batch);
    } catch (error) {
      // Without a first engine there is no answer; cancelled work has none either.
      const isFirst = step.maxBatch === this.#request.limits.firstMaxBatch;
      if (!(error instanceof TrtforgeError) || isFirst || error.code === 'TF_CANCELLED') throw error;
      const kind = isOutOfMemory(error) ? 'memory' : 'other';
      this.#failure = { maxBatch: step.maxBatch, kind, text: `${error.code} ${error.message}` };
    }
  }

  async #build(maxBatch: number): Promise<void> {
    const { builder, work } = this.#effects;
    const engine = await inPhase('engine', work.emit, () => builder.build(maxBatch), `max batch ${maxBatch}`);
    this.#engines.push({ engine, source: 'built', peak: null });
  }

  async #measure(batch: number): Promise<void> {
    const { meter, work } = this.#effects;
    const { engine } = this.#last();
    const log = this.#request.paths.log(batch);
    const measure = () => measureAndRecord(meter, engine, batch, log);
    this.#keep(batch, await inPhase('measure', work.emit, measure, `batch ${batch}`));
  }

  #keep(batch: number, measurement: StreamsMeasurement): void {
    const last = this.#last();
    // An engine for batch 1 only has one measurement, which is both.
    if (this.#engines.length === 1 && batch === 1) this.#baseline = measurement;
    if (batch === last.engine.maxBatch) this.#engines.splice(-1, 1, { ...last, peak: measurement });
  }

  #last(): SizedEngine {
    const last = this.#engines.at(-1);
    if (last === undefined)
      throw new TrtforgeError('TF_INTERNAL', 'A measurement was due before any engine.');
    return last;
  }

  #state(limits: StreamsLimits): StreamsState {
    return {
      limits,
      engines: this.#engines.map(stageOf),
      isBaselineMeasured: this.#baseline !== null,
      elapsedSeconds: (this.#effects.now() - this.#started) / 1000,
      failure: this.#failure,
    };
  }
}

/** An engine as the decision sees it. */
export const stageOf = ({ engine, peak }: SizedEngine): EngineStage => ({
  maxBatch: engine.maxBatch,
  buildSeconds: engine.buildSeconds,
  peak:
    peak === null
      ? null
      : {
          imagesPerSecond: peak.imagesPerSecond,
          seconds: peak.seconds,
          contextBytes: peak.contextBytes,
          gpuBytes: peak.gpuBytes,
          planBytes: engine.bytes,
          isShared: isIntegrated(knownGpu(peak.gpu ?? '')?.capability ?? 0),
        },
});

/** The GPU's memory, or what the library reports when its kernels find no room in it. */
const isOutOfMemory = ({ code, message }: TrtforgeError): boolean =>
  code === 'TF_GPU_MEMORY' || message.split('\n').some((line) => NO_ROOM.test(line) && !/tactic/i.test(line));

/** A tactic that is only left out for want of memory is no reason: builds pass with it. */
const NO_ROOM = /out of memory|OutOfMemory|insufficient (?:workspace|memory)|cudaErrorMemoryAllocation/i;
