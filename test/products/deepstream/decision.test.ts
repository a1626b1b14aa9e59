import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  answerFor,
  type EngineStage,
  nextStep,
  type PeakMeasurement,
  peakStreams,
  type Step,
  type StreamsState,
} from '../../../src/products/deepstream/decision.js';
import type { StreamsLimits } from '../../../src/products/deepstream/options.js';

const limits: StreamsLimits = {
  fps: [30],
  firstMaxBatch: 64,
  maxBatchLimit: 1024,
  minGainPercent: -5,
  timeLimitSeconds: null,
};
const GIB = 2 ** 30;

const peak = (imagesPerSecond: number, more: Partial<PeakMeasurement> = {}): PeakMeasurement => ({
  imagesPerSecond,
  seconds: 11,
  contextBytes: null,
  gpuBytes: null,
  planBytes: null,
  isShared: false,
  ...more,
});
const engine = (maxBatch: number, measured: PeakMeasurement | null): EngineStage => ({
  maxBatch,
  buildSeconds: 60,
  peak: measured,
});
const state = (more: Partial<StreamsState>): StreamsState => ({
  limits,
  engines: [],
  isBaselineMeasured: true,
  elapsedSeconds: 0,
  failure: null,
  ...more,
});

/** Runs the decision against a GPU that gives so many images per second at a batch; every step takes 10 s. */
function search(imagesAt: (batch: number) => number, chosen: StreamsLimits, fails?: number) {
  const steps: Step[] = [];
  const engines: EngineStage[] = [];
  let isBaselineMeasured = false;
  let failure: StreamsState['failure'] = null;
  for (let elapsedSeconds = 0; ; elapsedSeconds += 10) {
    const step = nextStep({ limits: chosen, engines, isBaselineMeasured, elapsedSeconds, failure });
    steps.push(step);
    if (step.do === 'stop') return { steps, engines, stop: step };
    if (step.maxBatch === fails) failure = { maxBatch: fails, kind: 'memory', text: 'no room' };
    else if (step.do === 'build') engines.push(engine(step.maxBatch, null));
    else if (step.batch === 1 && !isBaselineMeasured) {
      isBaselineMeasured = true;
      if (step.maxBatch === 1) engines.splice(-1, 1, engine(1, peak(imagesAt(1))));
    } else engines.splice(-1, 1, engine(step.maxBatch, peak(imagesAt(step.batch))));
    if (steps.length > 100) throw new Error('the search does not end');
  }
}

describe('the order of things', () => {
  test('one engine is enough for a slow model: build, batch 1, batch 64, stop', () => {
    expect(search(() => 1280, limits).steps).toEqual([
      { do: 'build', maxBatch: 64 },
      { do: 'measure', maxBatch: 64, batch: 1 },
      { do: 'measure', maxBatch: 64, batch: 64 },
      { do: 'stop', reason: 'enough', text: 'PEAK_GPU_STREAMS (42) <= max batch (64).' },
    ]);
  });

  test.each<[string, number, readonly number[]]>([
    ['transformer detector', 1900, [64]],
    ['exactly as many streams as the batch holds', 64 * 30, [64]],
    ['one stream more', 65 * 30, [64, 128]],
    ['mid model', 3000, [64, 128]],
    ['fast model', 7000, [64, 128, 256]],
    ['very fast nano model', 12_000, [64, 128, 256, 512]],
  ])('%s at %d images/s: engines %j', (_what, images, batches) => {
    expect(search(() => images, limits).engines.map(({ maxBatch }) => maxBatch)).toEqual(batches);
  });

  test('batch 1 is measured once, on the first engine', () => {
    const { steps } = search(() => 7000, limits);
    expect(steps.filter((step) => step.do === 'measure' && step.batch === 1)).toEqual([
      { do: 'measure', maxBatch: 64, batch: 1 },
    ]);
  });
});

describe('every stop names its reason', () => {
  test.each<[string, Partial<StreamsState>, string, RegExp]>([
    [
      'the next batch passes the limit',
      { engines: [engine(1024, peak(1e6))] },
      'max-batch-limit',
      /2048 .* 1024/,
    ],
    [
      'the doubling made it slower',
      { engines: [engine(64, peak(10_000)), engine(128, peak(9000))] },
      'gain',
      /128 .* -10\.0 %/,
    ],
    [
      'the memory would not be there',
      { engines: [engine(64, peak(10_000, { contextBytes: 12 * GIB, gpuBytes: 24 * GIB, planBytes: GIB }))] },
      'memory-estimate',
      /128 .* 25\.0 GiB .* 24\.0 GiB/,
    ],
    [
      'the memory would not be there for the plan twice, where processor and GPU share it',
      {
        engines: [
          engine(
            64,
            peak(1e4, { contextBytes: 7 * GIB, gpuBytes: 16 * GIB, planBytes: GIB, isShared: true }),
          ),
        ],
      },
      'memory-estimate',
      /128 .* 16\.0 GiB .* 16\.0 GiB/,
    ],
    [
      'the memory was not there',
      { engines: [engine(64, peak(10_000))], failure: { maxBatch: 128, kind: 'memory', text: 'no room' } },
      'memory',
      /128: no room/,
    ],
    [
      'a build failed',
      { engines: [engine(64, peak(10_000))], failure: { maxBatch: 128, kind: 'other', text: 'no kernel' } },
      'failed',
      /128 .* no kernel/,
    ],
    [
      'the next engine does not fit into the time',
      {
        engines: [engine(64, peak(10_000))],
        elapsedSeconds: 100,
        limits: { ...limits, timeLimitSeconds: 160 },
      },
      'time',
      /100 s of 160 s .* 71 s.* max batch 128/,
    ],
    [
      'no time was given at all',
      { limits: { ...limits, timeLimitSeconds: 0 } },
      'time',
      /building max batch 64 is not begun/,
    ],
  ])('%s', (_what, more, reason, text) => {
    expect(nextStep(state(more))).toMatchObject({ do: 'stop', reason, text: expect.stringMatching(text) });
  });

  test('noise of a few percent is no loss, and -100 never stops for one', () => {
    const engines = [engine(64, peak(10_000)), engine(128, peak(9700))];
    expect(nextStep(state({ engines }))).toEqual({ do: 'build', maxBatch: 256 });
    const halved = [engine(64, peak(20_000)), engine(128, peak(10_000))];
    const patient = { ...limits, minGainPercent: -100 };
    expect(nextStep(state({ engines: halved, limits: patient }))).toEqual({ do: 'build', maxBatch: 256 });
  });

  test('unknown memory stops nothing', () => {
    const engines = [engine(64, peak(10_000, { contextBytes: 20 * GIB, gpuBytes: null }))];
    expect(nextStep(state({ engines }))).toEqual({ do: 'build', maxBatch: 128 });
  });
});

describe('whatever the GPU is like', () => {
  const anyLimits = fc.record({
    fps: fc.uniqueArray(fc.double({ min: 0.1, max: 240, noNaN: true }), { minLength: 1, maxLength: 3 }),
    firstMaxBatch: fc.integer({ min: 1, max: 300 }),
    maxBatchLimit: fc.integer({ min: 300, max: 5000 }),
    minGainPercent: fc.double({ min: -100, max: 100, noNaN: true }),
    timeLimitSeconds: fc.option(fc.integer({ min: 0, max: 300 })),
  });
  const anyRates = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 20, maxLength: 20 });
  const anyFailure = fc.option(fc.integer({ min: 0, max: 10 }));

  test('the search ends, doubles strictly and passes no limit', () => {
    fc.assert(
      fc.property(anyLimits, anyRates, anyFailure, (chosen, rates, failing) => {
        const rateAt = (batch: number) => rates[Math.round(Math.log2(batch / chosen.firstMaxBatch))] ?? 0;
        const fails = failing === null ? undefined : chosen.firstMaxBatch * 2 ** (failing + 1);
        const { steps, engines } = search(
          (batch) => rateAt(Math.max(batch, chosen.firstMaxBatch)),
          chosen,
          fails,
        );
        const built = steps.flatMap((step) => (step.do === 'build' ? [step.maxBatch] : []));
        expect(built).toEqual(built.map((_, index) => chosen.firstMaxBatch * 2 ** index));
        expect(Math.max(0, ...built)).toBeLessThanOrEqual(chosen.maxBatchLimit);
        const last = steps.at(-1);
        if (last?.do === 'stop' && last.reason === 'enough') {
          const { maxBatch, peak: measured } = engines.at(-1)!;
          const slowest = Math.min(...chosen.fps);
          expect(Math.floor(measured!.imagesPerSecond / slowest)).toBeLessThanOrEqual(maxBatch);
        }
      }),
    );
  });

  test('PEAK is the floor: that number of streams fits, one more does not', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1e7, noNaN: true }),
        fc.integer({ min: 1, max: 240 }),
        (images, fps) => {
          const streams = peakStreams(images, fps);
          expect(streams * fps).toBeLessThanOrEqual(images);
          expect((streams + 1) * fps).toBeGreaterThan(images);
        },
      ),
    );
  });

  test('the answer to several rates is the one each would have got alone', () => {
    fc.assert(
      fc.property(
        anyRates,
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 1, max: 60 }),
        (rates, one, other) => {
          const free = { ...limits, minGainPercent: -100, maxBatchLimit: 4096 };
          const rateAt = (batch: number) => rates[Math.round(Math.log2(batch))] ?? 0;
          const together = search(rateAt, { ...free, fps: [one, other] });
          for (const fps of [one, other]) {
            const alone = search(rateAt, { ...free, fps: [fps] });
            const settled = alone.stop.reason === 'enough';
            if (settled) expect(answerFor(fps, together.engines)).toEqual(answerFor(fps, alone.engines));
          }
        },
      ),
    );
  });
});

describe('the answer', () => {
  test('rests on the first engine whose batch holds its PEAK', () => {
    const engines = [engine(64, peak(3000)), engine(128, peak(3300)), engine(256, peak(3500))];
    expect(answerFor(30, engines)).toEqual({ fps: 30, peakGpuStreams: 110, maxBatch: 128, streams: 110 });
    expect(answerFor(60, engines)).toEqual({ fps: 60, peakGpuStreams: 50, maxBatch: 64, streams: 50 });
  });

  test('else on the engine that serves most streams in one batch', () => {
    const engines = [engine(64, peak(12_000)), engine(128, peak(9000))];
    expect(answerFor(30, engines)).toEqual({ fps: 30, peakGpuStreams: 300, maxBatch: 128, streams: 128 });
  });

  test('is absent without a measurement', () => {
    expect(answerFor(30, [engine(64, null)])).toBeNull();
  });
});
