import { meanOf, medianOf } from '../../base/statistics.js';
import { holds } from '../../behaviour/facts.js';
import type { BenchRun, Doubt, GpuState, Valley } from './result.js';
import { spreadOf, type Times } from './times.js';

/** Everything that can speak against a measurement. */
export interface Evidence {
  /** Whose time it is. */
  readonly of: 'gpu' | 'host';
  readonly times: Times;
  readonly transfers: boolean;
  readonly graph: boolean;
  readonly spinWait: boolean;
  readonly streams: number;
  /** Before the engine was loaded: every process in it is somebody else's. */
  readonly before: GpuState | null;
  /** While it was measured, in order. */
  readonly during: readonly GpuState[];
  readonly after: GpuState | null;
  /** Processes that are this bench itself. */
  readonly ownPids: readonly number[];
}

/** Where each rule begins to speak. */
const limits = {
  samples: 50,
  /** trtexec's own threshold since 10.13. */
  variation: 0.025,
  drift: 0.02,
  /** The first samples against the median of all. */
  slowStart: 1.1,
  slowStartSamples: 10,
  clockDrop: 0.03,
  /** trtexec calls throughput enqueue-bound from this share of compute time on. */
  enqueueShare: 0.8,
  /** Waiting without spinning costs tens of microseconds, which shows below this. */
  shortMs: 1,
  busyPercent: 10,
} as const;

/** Sentences that say why a measurement is not to be trusted; none where nothing speaks against it. */
export function judgeTrust(evidence: Evidence): Doubt[] {
  return rules.flatMap((rule) => rule(evidence) ?? []);
}

/** Doubts as sentences for the reader; `what` is whose figures they are about. */
export const distrust = (what: string, doubts: readonly Doubt[]): string[] =>
  doubts.map(({ why }) => `Do not trust ${what} because ${why}`);

/** One engine measured in several rounds, each with contexts of its own: `medians` in milliseconds, in order. */
export function roundsDiffer(medians: readonly number[]): Doubt | undefined {
  const [least, most] = [Math.min(...medians), Math.max(...medians)];
  if (most <= least * (1 + limits.variation)) return undefined;
  return {
    rule: 'rounds-differ',
    why: `its rounds differ by ${percent(most / least - 1)} (${ms(least)} to ${ms(most)}): clocks, or what the GPU did before; measure more rounds (--rounds).`,
  };
}

/** Of a measurement after another one in the same process. */
export function followsAnother(backend: string, { computeMs }: Times): Doubt | undefined {
  const [, version] = /^TensorRT ([\d.]+)/.exec(backend) ?? [];
  const isSlow = version !== undefined && holds('slow-after-another', { product: 'tensorrt', version });
  if (!isSlow || medianOf(computeMs) >= limits.shortMs) return undefined;
  return {
    rule: 'follows-another',
    why: `another batch was measured before in the same process, and an engine of ${backend} with many small layers is up to a tenth slower then: measure this batch alone (--batch).`,
  };
}

/** Batches that are slower per item than a smaller one by more than both measurements vary, and than rounds of one engine differ. */
export function valleysOf(runs: readonly BenchRun[]): Valley[] {
  const rising = runs.filter(({ itemsPerSecond }) => itemsPerSecond > 0).sort((a, b) => a.batch - b.batch);
  const found = rising.flatMap((run) => {
    const [fastest] = rising
      .filter(({ batch }) => batch < run.batch)
      .sort((a, b) => b.itemsPerSecond - a.itemsPerSecond);
    if (fastest === undefined) return [];
    const slower = fastest.itemsPerSecond / run.itemsPerSecond - 1;
    const noise = Math.max(limits.variation, Math.hypot(variationOf(run), variationOf(fastest)));
    return slower > noise ? [{ run, fastest, slower }] : [];
  });
  return found.map(({ run: { batch, doubts }, fastest, slower }) => {
    const next = rising.find((other) => other.batch > batch && found.every(({ run }) => run !== other));
    const use = [fastest.batch, ...(next === undefined ? [] : [next.batch])];
    const isReliable = doubts.length + fastest.doubts.length === 0;
    const message = `Batch ${batch} is ${percent(slower)} slower per item than batch ${fastest.batch}: use ${use.join(' or ')}.${isReliable ? '' : ' Unreliable: read the warnings.'}`;
    return { batch, fastest: fastest.batch, slower, use, isReliable, message };
  });
}

const variationOf = ({ gpuMs, endToEndMs }: BenchRun): number =>
  (gpuMs ?? endToEndMs)?.coefficientOfVariation ?? 0;

type Rule = (evidence: Evidence) => Doubt | undefined;

const percent = (share: number): string => `${Number((share * 100).toPrecision(2))} %`;
const ms = (amount: number): string => `${Number(amount.toPrecision(3))} ms`;

const tooFew: Rule = ({ times }) => {
  const count = times.computeMs.length;
  if (count >= limits.samples) return undefined;
  return {
    rule: 'few-samples',
    why: `there are ${count} samples, too few for percentiles: measure longer (--duration) or more (--iterations).`,
  };
};

const unstable: Rule = ({ times, of }) => {
  const variation = spreadOf(times.computeMs)?.coefficientOfVariation ?? 0;
  if (variation <= limits.variation) return undefined;
  return {
    rule: 'unstable',
    why: `${of === 'gpu' ? 'GPU' : 'host'} time varies by ${percent(variation)} around its mean (more than ${percent(limits.variation)}): ${of === 'gpu' ? 'lock the clocks or free the GPU' : 'free the machine of other work'}.`,
  };
};

/** Medians of thirds in the order of time. Streams take turns in it, so a drift is no effect of theirs. */
const drift: Rule = ({ times, of }) => {
  const { computeMs } = times;
  const third = Math.floor(computeMs.length / 3);
  if (third < 10) return undefined;
  const inTime = byTime(times);
  const [first, last] = [medianOf(inTime.slice(0, third)), medianOf(inTime.slice(-third))];
  const change = last / first - 1;
  if (!(Math.abs(change) > limits.drift)) return undefined;
  const way = change > 0 ? 'slower' : 'faster';
  return {
    rule: 'drift',
    why: `the last third is ${percent(Math.abs(change))} ${way} than the first (${ms(last)} against ${ms(first)}): the ${of === 'gpu' ? 'GPU' : 'machine'} had not settled; warm up or measure longer.`,
  };
};

const slowStart: Rule = ({ times, streams }) => {
  const { computeMs } = times;
  const count = limits.slowStartSamples * streams;
  if (computeMs.length < 10 * count) return undefined;
  const inTime = byTime(times);
  const start = meanOf(inTime.slice(0, count));
  const median = medianOf(computeMs);
  if (start <= median * limits.slowStart) return undefined;
  return {
    rule: 'slow-start',
    why: `the first ${count} samples took ${ms(start)} on average where the median is ${ms(median)}: warm up longer (--warm-up).`,
  };
};

function byTime({ computeMs, startMs }: Times): Float64Array {
  const order = Uint32Array.from(computeMs.keys()).sort((a, b) => (startMs[a] ?? 0) - (startMs[b] ?? 0));
  return Float64Array.from(order, (at) => computeMs[at] ?? 0);
}

const enqueueBound: Rule = ({ times, graph }) => {
  if (times.enqueueMs.length === 0) return undefined;
  const [enqueue, compute] = [medianOf(times.enqueueMs), medianOf(times.computeMs)];
  if (enqueue <= compute * limits.enqueueShare) return undefined;
  const advice = graph ? 'use several streams (--streams) or a larger batch' : 'use a CUDA graph (--graph)';
  return {
    rule: 'enqueue-bound',
    why: `enqueueing takes ${ms(enqueue)} and computing ${ms(compute)}, so the host may be what was measured: ${advice}.`,
  };
};

const transferBound: Rule = ({ times, transfers }) => {
  if (!transfers || times.computeMs.length === 0) return undefined;
  const compute = medianOf(times.computeMs);
  const [input, output] = [medianOf(times.inputMs), medianOf(times.outputMs)];
  const [amount, what] =
    input >= output ? [input, 'copying inputs to the GPU'] : [output, 'copying outputs to the host'];
  if (amount <= compute) return undefined;
  return {
    rule: 'transfer-bound',
    why: `${what} takes ${ms(amount)} and computing ${ms(compute)}, so throughput is that of the bus: --no-data-transfers measures the GPU alone.`,
  };
};

const coarseWait: Rule = ({ times, spinWait, of }) => {
  if (of === 'host' || spinWait || times.computeMs.length === 0) return undefined;
  const compute = medianOf(times.computeMs);
  if (compute >= limits.shortMs) return undefined;
  return {
    rule: 'no-spin-wait',
    why: `an inference takes ${ms(compute)} and the host waits without spinning, which adds to every one of them: add --spin-wait.`,
  };
};

const manyStreams: Rule = ({ streams }) =>
  streams <= 1
    ? undefined
    : {
        rule: 'several-streams',
        why: `${streams} streams share the GPU, so times of single inferences overlap: use the throughput.`,
      };

/** Reasons that mean less speed than the GPU could give; idle and chosen clocks are no accident. */
const throttling = new Set([
  'software-power-cap',
  'hardware-slowdown',
  'software-thermal-slowdown',
  'hardware-thermal-slowdown',
  'hardware-power-brake',
  'sync-boost',
]);

const throttled: Rule = ({ during, after }) => {
  const states = [...during, ...(after === null ? [] : [after])];
  const reasons = new Set(
    states.flatMap((state) => (state.throttleReasons ?? []).filter((reason) => throttling.has(reason))),
  );
  if (reasons.size === 0) return undefined;
  const hottest = Math.max(...states.map((state) => state.temperatureC ?? 0));
  const power = Math.max(...states.map((state) => state.powerW ?? 0));
  const facts = [
    ...(hottest > 0 ? [`${hottest} °C`] : []),
    ...(power > 0 ? [`${Math.round(power)} W`] : []),
  ].join(', ');
  return {
    rule: 'throttled',
    why: `the GPU was throttled while it was measured: ${[...reasons].join(', ')}${facts === '' ? '' : ` (${facts})`}.`,
  };
};

const clocksDropped: Rule = ({ during }) => {
  const clocks = during.flatMap(({ smClockMHz }) => (smClockMHz === null ? [] : [smClockMHz]));
  const [highest, lowest] = [Math.max(...clocks), Math.min(...clocks)];
  if (clocks.length < 2 || highest - lowest <= highest * limits.clockDrop) return undefined;
  return {
    rule: 'clocks-moved',
    why: `the SM clock moved between ${lowest} and ${highest} MHz while it was measured: lock it (nvidia-smi --lock-gpu-clocks).`,
  };
};

const sharedBefore: Rule = ({ before }) => {
  if (before === null || (before.utilizationPercent ?? 0) < limits.busyPercent) return undefined;
  const who = before.processes ?? [];
  const names =
    who.length === 0 ? '' : ` (process${who.length > 1 ? 'es' : ''} ${who.map(({ pid }) => pid).join(', ')})`;
  return {
    rule: 'gpu-busy',
    why: `another process used the GPU before this bench began: it was ${before.utilizationPercent} % busy${names}.`,
  };
};

/** In a container NVML may tell pids of the host, where this process does not know its own: then one newcomer is taken for it. */
const newcomers: Rule = ({ before, during, after, ownPids }) => {
  const known = new Set([...(before?.processes ?? []).map(({ pid }) => pid), ...ownPids]);
  const seen = new Set(
    [...during, ...(after === null ? [] : [after])].flatMap(({ processes }) =>
      (processes ?? []).map(({ pid }) => pid),
    ),
  );
  if (before === null || before.processes === null) return undefined;
  const own = ownPids.filter((pid) => seen.has(pid)).length;
  const others = [...seen].filter((pid) => !known.has(pid)).slice(Math.max(0, ownPids.length - own));
  if (others.length === 0) return undefined;
  return {
    rule: 'gpu-shared',
    why: `another process came to the GPU while it was measured (${others.join(', ')}).`,
  };
};

const eccErrors: Rule = ({ before, after }) => {
  const more = (after?.eccErrorsUncorrected ?? 0) - (before?.eccErrorsUncorrected ?? 0);
  if (before === null || !(more > 0)) return undefined;
  return {
    rule: 'ecc-errors',
    why: `the GPU counted ${more} uncorrected memory errors meanwhile: look at nvidia-smi -q.`,
  };
};

const sliced: Rule = ({ before }) =>
  before?.migMode === true
    ? {
        rule: 'mig',
        why: 'the GPU is divided (MIG): its clocks, power and caches are shared with other slices.',
      }
    : undefined;

const rules: readonly Rule[] = [
  tooFew,
  unstable,
  drift,
  slowStart,
  enqueueBound,
  transferBound,
  coarseWait,
  manyStreams,
  throttled,
  clocksDropped,
  sharedBefore,
  newcomers,
  eccErrors,
  sliced,
];
