import { describe, expect, it } from 'vitest';
import { type Evidence, judgeTrust, valleysOf } from '../../../src/quality/bench/doubts.js';
import { throttleReasons } from '../../../src/quality/bench/gpu.js';
import type { BenchRun, GpuState } from '../../../src/quality/bench/result.js';
import type { Times } from '../../../src/quality/bench/times.js';
import { benchResult } from '../../fakes/deepstream.js';

const state = (more: Partial<GpuState> = {}): GpuState => ({
  smClockMHz: 1980,
  memoryClockMHz: 2619,
  maxSmClockMHz: 1980,
  maxMemoryClockMHz: 2619,
  temperatureC: 40,
  slowdownTemperatureC: 85,
  powerW: 300,
  powerLimitW: 700,
  throttleReasons: [],
  utilizationPercent: 0,
  memoryUsedBytes: 1 << 30,
  memoryTotalBytes: 2 ** 37,
  persistenceMode: true,
  migMode: false,
  eccErrorsUncorrected: 0,
  processes: [],
  ...more,
});

/** Steady times, 2 ms each, one after another. */
function times(count: number, compute: (at: number) => number = () => 2, more: Partial<Times> = {}): Times {
  const column = (value: (at: number) => number) =>
    Float64Array.from({ length: count }, (_, at) => value(at));
  return {
    streams: new Int32Array(count),
    startMs: column((at) => at * 2),
    inputMs: column(() => 0),
    computeMs: column(compute),
    outputMs: column(() => 0),
    latencyMs: column(compute),
    enqueueMs: column(() => 0.01),
    wallMs: count * 2,
    ...more,
  };
}

const good: Evidence = {
  of: 'gpu',
  times: times(1000),
  transfers: false,
  graph: true,
  spinWait: true,
  streams: 1,
  before: state(),
  during: [state(), state(), state()],
  after: state(),
  ownPids: [100],
};

const rulesOf = (more: Partial<Evidence>) => judgeTrust({ ...good, ...more }).map(({ rule }) => rule);
const all = (count: number, ms: number) => new Float64Array(count).fill(ms);
const processes = (...pids: number[]) => pids.map((pid) => ({ pid, usedBytes: 1 << 20 }));

describe('what makes a measurement unreliable', () => {
  it('is nothing where all is well, and nothing where NVML does not answer', () => {
    expect(judgeTrust(good)).toEqual([]);
    expect(judgeTrust({ ...good, before: null, during: [], after: null })).toEqual([]);
  });

  it('of a host’s times is about the host, and about nothing that only a GPU has', () => {
    const short = times(300, (at) => (at > 10 && at % 10 === 0 ? 0.3 : 0.1));
    const doubts = judgeTrust({
      ...good,
      of: 'host',
      times: { ...short, enqueueMs: new Float64Array(0) },
      graph: false,
      spinWait: false,
      before: null,
      during: [],
      after: null,
    });
    expect(doubts).toMatchObject([
      {
        rule: 'unstable',
        why: expect.stringMatching(/^host time varies by .*: free the machine of other work/),
      },
    ]);
  });

  it.each<[string, Partial<Evidence>, string]>([
    ['49 samples', { times: times(49) }, 'few-samples'],
    ['times that vary by 5 %', { times: times(1000, (at) => (at % 2 ? 2.1 : 1.9)) }, 'unstable'],
    ['a last third 3 % slower', { times: times(999, (at) => (at < 666 ? 2 : 2.06)) }, 'drift'],
    ['a last third 3 % faster', { times: times(999, (at) => (at < 333 ? 2.06 : 2)) }, 'drift'],
    ['slow first samples', { times: times(5000, (at) => (at < 10 ? 2.4 : 2)) }, 'slow-start'],
    [
      'enqueueing as long as computing',
      { times: times(1000, () => 2, { enqueueMs: all(1000, 2) }) },
      'enqueue-bound',
    ],
    [
      'inputs that take longer than computing',
      { transfers: true, times: times(1000, () => 2, { inputMs: all(1000, 3) }) },
      'transfer-bound',
    ],
    [
      'half a millisecond without spin wait',
      { spinWait: false, times: times(1000, () => 0.5) },
      'no-spin-wait',
    ],
    ['two streams', { streams: 2 }, 'several-streams'],
    [
      'thermal slowdown in the middle',
      { during: [state(), state({ throttleReasons: ['hardware-thermal-slowdown'] })] },
      'throttled',
    ],
    ['the power cap at the end', { after: state({ throttleReasons: ['software-power-cap'] }) }, 'throttled'],
    ['a clock that falls', { during: [state(), state({ smClockMHz: 1700 })] }, 'clocks-moved'],
    ['a busy GPU before', { before: state({ utilizationPercent: 60, processes: processes(7) }) }, 'gpu-busy'],
    ['a process that comes', { after: state({ processes: processes(100, 8) }) }, 'gpu-shared'],
    ['memory errors', { after: state({ eccErrorsUncorrected: 2 }) }, 'ecc-errors'],
    ['a slice of a GPU', { before: state({ migMode: true }) }, 'mig'],
  ])('%s', (_, more, rule) => {
    expect(rulesOf(more)).toContain(rule);
  });

  it.each<[string, Partial<Evidence>]>([
    ['the bench itself among the processes', { after: state({ processes: processes(100) }) }],
    ['the bench under a number of the host', { after: state({ processes: processes(4711) }) }],
    [
      'a process that was there before and idles',
      { before: state({ processes: processes(7) }), after: state({ processes: processes(7, 100) }) },
    ],
    [
      'idle and chosen clocks',
      { after: state({ throttleReasons: ['gpu-idle', 'applications-clocks-setting'] }) },
    ],
    ['a slow clock before, when the GPU was idle', { before: state({ smClockMHz: 345 }) }],
    ['a lone slow sample in many', { times: times(5000, (at) => (at === 2500 ? 3 : 2)) }],
    ['long waits without spinning', { spinWait: false }],
  ])('not %s', (_, more) => {
    expect(rulesOf(more)).toEqual([]);
  });

  it('contains what to do', () => {
    const [doubt] = judgeTrust({
      ...good,
      graph: false,
      times: times(1000, () => 2, { enqueueMs: all(1000, 2) }),
    });
    expect(doubt?.why).toBe(
      'enqueueing takes 2 ms and computing 2 ms, so the host may be what was measured: use a CUDA graph (--graph).',
    );
  });
});

it.each([
  [0, []],
  [0x1, ['gpu-idle']],
  [0x24, ['software-power-cap', 'software-thermal-slowdown']],
  [
    0x1ff,
    [
      'gpu-idle',
      'applications-clocks-setting',
      'software-power-cap',
      'hardware-slowdown',
      'sync-boost',
      'software-thermal-slowdown',
      'hardware-thermal-slowdown',
      'hardware-power-brake',
      'display-clock-setting',
    ],
  ],
  [0x204, ['software-power-cap', 'reason-0x200']],
])('the bits %i of NVML are %j', (bits, names) => {
  expect(throttleReasons(bits)).toEqual(names);
});

describe('valleys of a sweep', () => {
  const sweep = (
    rates: Readonly<Record<number, number>>,
    change: (run: BenchRun) => BenchRun = (run) => run,
  ) => valleysOf(Object.entries(rates).map(([batch, rate]) => change(benchResult(Number(batch), rate).run)));
  const varying = (share: number) => (run: BenchRun) => ({
    ...run,
    gpuMs: { ...run.gpuMs!, coefficientOfVariation: share },
  });

  it('are batches that are slower per item than a smaller one, with the batches to use', () => {
    const found = sweep({ 1: 300, 4: 900, 8: 1140, 12: 1000, 16: 1200 });
    expect(found).toMatchObject([{ batch: 12, fastest: 8, use: [8, 16], isReliable: true }]);
    expect(found[0]!.slower).toBeCloseTo(0.14);
    expect(found[0]!.message).toContain('14 %');
  });

  it('are found in any order of the batches, and the next batch is no valley itself', () => {
    const [first, second] = sweep({ 32: 1500, 17: 500, 19: 480, 16: 1400 });
    expect([first, second]).toMatchObject([
      { batch: 17, fastest: 16, use: [16, 32] },
      { batch: 19, fastest: 16, use: [16, 32] },
    ]);
  });

  it('at the end of a sweep leave the smaller batch', () => {
    expect(sweep({ 8: 1000, 16: 700 })).toMatchObject([{ batch: 16, use: [8] }]);
  });

  it('are not within the noise: of rounds of one engine, and of both measurements', () => {
    expect(sweep({ 8: 1000, 12: 980 })).toEqual([]);
    const rates = { 8: 1000, 12: 890 };
    expect(sweep(rates, varying(0.1))).toEqual([]);
    expect(sweep(rates, varying(0.05))).toHaveLength(1);
  });

  it('are unreliable where a measurement is', () => {
    const doubts = [{ rule: 'clocks', why: 'the clocks changed' }];
    const found = sweep({ 8: 1000, 12: 700 }, (run) => (run.batch === 8 ? { ...run, doubts } : run));
    expect(found).toMatchObject([{ batch: 12, isReliable: false }]);
  });

  it('are none of one batch, of rising rates, and of runs without one', () => {
    const sweeps: readonly Readonly<Record<number, number>>[] = [
      { 8: 1000 },
      { 1: 100, 2: 200, 4: 400 },
      { 1: 0, 2: 0 },
    ];
    for (const rates of sweeps) expect(sweep(rates)).toEqual([]);
  });
});
