import { isDeepStrictEqual } from 'node:util';
import { meanOf, medianOf, studentT975 } from '../../base/statistics.js';
import { isCopy } from '../../engines/layers/read-layers.js';
import { timesByOperator } from '../../engines/layers/summary.js';
import { TrtforgeError } from '../../errors.js';
import { inPhase } from '../../events.js';
import type { ModeRequest } from '../../tensorrt/trtexec/options.js';
import { gpuOf, measureLayers, noPassport, type OpenSubject, subjectOf, withEngine } from './bench-engine.js';
import { benchRun } from './bench-run.js';
import { checkRequest } from './check-request.js';
import { distrust, roundsDiffer } from './doubts.js';
import { namedState } from './gpu.js';
import { measureInChild, type StartMeasurer } from './measurer.js';
import { type BenchCompareRequest, type BenchContext, type BenchRequest, benchContext } from './options.js';
import type { BenchComparison, BenchRun, ComparedSide, LayerTimes } from './result.js';
import { type ShapeCase, shapeCases, withFileShapes } from './shape-cases.js';
import { spreadOf, type Times } from './times.js';

interface Side {
  readonly request: BenchRequest;
  readonly subject: OpenSubject;
  readonly shapeCase: ShapeCase;
  readonly rounds: { readonly run: BenchRun; readonly times: Times }[];
}

/**
 * Measures two engines in turns (A B, B A, A B, …) on one GPU, each in a process of its own, and gives the ratio of their times with its interval.
 * Each round takes the requests' duration divided by the number of rounds. Errors: those of `benchEngine`; TF_USAGE for two GPUs, lists of batches and
 * samples.
 */
export async function benchCompare(
  { candidate, reference, rounds, failAbove }: BenchCompareRequest,
  given?: Partial<Omit<BenchContext, 'trtexecLog'>>,
  start: StartMeasurer = measureInChild,
): Promise<BenchComparison> {
  checkComparison({ candidate, reference, rounds, failAbove });
  const context = benchContext(given);
  const leasing = { ...candidate, wait: candidate.wait || reference.wait };
  return withEngine(leasing, context, start, (first) =>
    withEngine(
      reference,
      context,
      start,
      async (second) => {
        const a = sideOf(candidate, first);
        const b = sideOf(sameShapes(reference, a, second.opened), second);
        const pids = [first.found.pid, second.found.pid];
        for (let round = 0; round < rounds; round++) {
          for (const side of round % 2 === 0 ? [a, b] : [b, a])
            side.rounds.push(await measureRound(side, { round, rounds, pids, first }, context));
        }
        const layers = candidate.layers || reference.layers ? await layersOf(a, b, context) : null;
        return { ...resultOf(a, b, rounds, failAbove), layers };
      },
      true,
    ),
  );
}

function sideOf(request: BenchRequest, subject: OpenSubject): Side {
  const { inputs } = subject.opened;
  const [shapeCase] = shapeCases(inputs, withFileShapes(inputs, request));
  return { request, subject, shapeCase, rounds: [] };
}

/**
 * Both run the same shapes unless the reference asks for others of its own: two engines may have different optima. Of inputs with other names nothing but
 * the batch can be the same.
 */
function sameShapes(
  reference: BenchRequest,
  { request: candidate, shapeCase: { shapes } }: Side,
  { inputs }: OpenSubject['opened'],
): BenchRequest {
  const isAlike =
    isDeepStrictEqual(reference.inputs.files, candidate.inputs.files) &&
    (reference.shapes.kind === 'optimum' || isDeepStrictEqual(reference.shapes, candidate.shapes));
  const isSame = inputs.length === shapes.length && inputs.every(({ name }) => isAmong(shapes, name));
  if (!isAlike || (reference.shapes.kind === 'batches' && !isSame)) return reference;
  const asked = shapes.map(({ name, shape, values }) => [name, values ?? shape] as const);
  return { ...reference, shapes: { kind: 'shapes', shapes: new Map(asked) } };
}

const isAmong = (named: readonly { readonly name: string }[], wanted: string): boolean =>
  named.some(({ name }) => name === wanted);

/** After the first round a side is warm but for its fresh contexts. */
function roundMode(mode: ModeRequest, round: number, rounds: number): ModeRequest {
  const warmUpMs = round === 0 ? mode.warmUpMs : Math.min(mode.warmUpMs, 100);
  return { ...mode, warmUpMs, durationMs: mode.durationMs / rounds };
}

interface RoundPlace {
  readonly round: number;
  readonly rounds: number;
  readonly pids: readonly number[];
  /** Opened first: how it found the GPU is how it was before any of this. */
  readonly first: OpenSubject;
}

function measureRound(
  { request, subject, shapeCase }: Side,
  { round, rounds, pids, first }: RoundPlace,
  { emit }: BenchContext,
): Promise<{ run: BenchRun; times: Times }> {
  const { engine, inputs: fill, percentiles } = request;
  const { profile, shapes } = shapeCase;
  const mode = roundMode(request.mode, round, rounds);
  return inPhase(
    'measure',
    emit,
    async () => {
      const { inputs } = subject.opened;
      const measured = await subject.measurer.measure({ engine, inputs, profile, shapes, fill, mode });
      const before = first.found.state === null ? null : namedState(first.found.state);
      return benchRun(measured, { engine, shapeCase, mode, percentiles, before, ownPids: pids });
    },
    `round ${round + 1} of ${rounds}: ${engine}`,
  );
}

/** Layers are timed once each, after the rounds: profiling makes an engine slower. */
async function layersOf(
  a: Side,
  b: Side,
  context: BenchContext,
): Promise<NonNullable<BenchComparison['layers']>> {
  const measured = ({ subject, request, shapeCase }: Side) =>
    measureLayers(subject, request, context, shapeCase);
  const [candidate, reference] = [await measured(a), await measured(b)];
  const timed = (times: LayerTimes | null) =>
    (times?.layers ?? []).map((layer) => ({
      ...layer,
      copies: isCopy(layer.name, layer.type, layer.tactic),
    }));
  return { candidate, reference, operators: timesByOperator([timed(candidate), timed(reference)]) };
}

function resultOf(a: Side, b: Side, rounds: number, failAbove: number | undefined): BenchComparison {
  const ratioOf = (value: (round: Side['rounds'][number]) => number) =>
    pairedRatio(a.rounds.map(value), b.rounds.map(value));
  const { transfers, streams } = a.request.mode;
  const withCopies = transfers && b.request.mode.transfers;
  const ratios = {
    gpuMs: ratioOf(({ times }) => medianOf(times.computeMs)),
    endToEndMs: withCopies ? ratioOf(({ times }) => medianOf(times.latencyMs)) : null,
    'time-per-inference': ratioOf(({ run }) => 1 / run.qps),
  };
  const several = streams > 1 || b.request.mode.streams > 1;
  const metric = several ? 'time-per-inference' : withCopies ? 'endToEndMs' : 'gpuMs';
  const decisive = ratios[metric] ?? ratios.gpuMs;
  const [candidate, reference] = [sideResult(a), sideResult(b)];
  return {
    schema: 'trtforge.bench-compare/1',
    candidate,
    reference,
    gpu: gpuOf(a.subject.found),
    batch: a.shapeCase.batch,
    rounds,
    metric,
    ratios,
    verdict: verdictOf(decisive),
    gate: failAbove === undefined ? null : gateOf(decisive, failAbove),
    warnings: warningsOf(a, b, [candidate, reference]),
  };
}

function sideResult({ request, subject, shapeCase, rounds }: Side): ComparedSide {
  const together = (column: 'computeMs' | 'latencyMs') =>
    spreadOf(
      Float64Array.from(rounds.flatMap(({ times }) => Array.from(times[column]))),
      request.percentiles,
    ) ?? null;
  const qps = rounds.reduce((sum, { run }) => sum + run.qps, 0) / rounds.length;
  const roundMs = rounds.map(({ times }) => medianOf(times.computeMs));
  // Rounds are short, so what asks for longer measuring is not compared with one of them.
  const doubts = rounds
    .flatMap(({ run }) => run.doubts)
    .filter(({ rule }) => rule !== 'few-samples' && rule !== 'slow-start')
    .concat(roundsDiffer(roundMs) ?? []);
  const last = rounds.at(-1)?.run.mode;
  const { warmUpMs, durationMs } = request.mode;
  return {
    subject: subjectOf(request, subject.opened),
    backend: subject.opened.backend,
    gpuMs: together('computeMs'),
    endToEndMs: request.mode.transfers ? together('latencyMs') : null,
    roundMs,
    qps,
    itemsPerSecond: qps * shapeCase.batch,
    mode: {
      kind: request.mode.transfers ? 'with-transfers' : 'gpu-only',
      graph: last?.graph ?? null,
      graphFallback: last?.graphFallback ?? null,
      spinWait: request.mode.spinWait,
      streams: request.mode.streams,
      warmUpMs,
      durationMs,
      iterations: request.mode.iterations,
      idleMs: request.mode.idleMs,
    },
    doubts: [...new Map(doubts.map((doubt) => [doubt.rule, doubt])).values()],
  };
}

function warningsOf(a: Side, b: Side, sides: readonly ComparedSide[]): string[] {
  const batches =
    a.shapeCase.batch === b.shapeCase.batch
      ? []
      : [
          `The batches differ (${a.shapeCase.batch} and ${b.shapeCase.batch}), and times are per inference, not per item.`,
        ];
  const unknown = [a, b]
    .filter(({ subject }) => subject.opened.passport === null)
    .map(({ request }) => noPassport(request.engine));
  const lease = a.subject.leaseWarning === null ? [] : [a.subject.leaseWarning];
  const doubts = sides.flatMap(({ subject, doubts: list }) => distrust(subject.path, list));
  const fallbacks = sides.flatMap(({ subject, mode: { graphFallback } }) =>
    graphFallback === null ? [] : [`${subject.path} ran without a CUDA graph: ${graphFallback}`],
  );
  return [...new Set([...batches, ...unknown, ...lease, ...fallbacks, ...doubts])];
}

/**
 * Rejects a comparison without a ratio of engines, before the first of them is opened: the second is opened when the GPU is in use already. Throws
 * TF_USAGE and what `checkRequest` throws.
 */
export function checkComparison({ candidate, reference, rounds, failAbove }: BenchCompareRequest): void {
  if (!(Number.isSafeInteger(rounds) && rounds >= 2))
    throw new TrtforgeError('TF_USAGE', `${rounds} rounds have no interval: a comparison needs two or more.`);
  if (failAbove !== undefined && !(Number.isFinite(failAbove) && failAbove > 0))
    throw new TrtforgeError('TF_USAGE', `failAbove is ${failAbove}, and must be a multiple above 0.`);
  for (const side of [candidate, reference]) {
    checkRequest(side);
    rejectViews(side);
  }
  if (candidate.device === reference.device) return;
  throw new TrtforgeError(
    'TF_USAGE',
    `${candidate.engine} would be measured on GPU ${candidate.device} and ${reference.engine} on GPU ${reference.device}: a ratio across two GPUs compares the GPUs too.`,
    { remedy: 'Pass the same device for both; to compare GPUs, measure one engine on each.' },
  );
}

/** Rejects views of one engine's measurement that a comparison has no place for. */
function rejectViews({ samples, cold, shapes }: BenchRequest): void {
  const isList = shapes.kind === 'batches' && shapes.batches.length > 1;
  if (samples === undefined && cold !== true && !isList) return;
  throw new TrtforgeError(
    'TF_USAGE',
    isList
      ? 'A comparison of two engines measures one batch, not a list of them.'
      : `A comparison of two engines cannot honour ${cold === true ? '--cold' : '--samples'}.`,
    { remedy: 'Leave it out here and measure each engine with it.' },
  );
}

/** An interval that holds 1 shows equality only when it reaches no further than this to either side. */
const EQUAL_WITHIN = 0.02;
/** Two processes with the same engine differ by this much, each steadily: where their memory lies, say. */
const SAME_ENGINE = 0.005;

export function verdictOf({ low, high }: Ratio): BenchComparison['verdict'] {
  const within = (margin: number) => low >= 1 - margin && high <= 1 + margin;
  if (within(SAME_ENGINE)) return 'equal';
  if (high < 1) return 'faster';
  if (low > 1) return 'slower';
  return within(EQUAL_WITHIN) ? 'equal' : 'inconclusive';
}

/** Fails only when the whole interval is above the limit, passes only when none of it is. */
export function gateOf(ratio: Ratio, limit: number): NonNullable<BenchComparison['gate']> {
  const range = `the ratio is ${fourDigits(ratio.ratio)} (${fourDigits(ratio.low)} to ${fourDigits(ratio.high)})`;
  if (ratio.low > limit) return { limit, outcome: 'fail', reason: `${range}, above ${limit}` };
  if (ratio.high <= limit) return { limit, outcome: 'pass', reason: `${range}, within ${limit}` };
  return {
    limit,
    outcome: 'inconclusive',
    reason: `${range}, which includes the limit ${limit}: measure more rounds or longer`,
  };
}

const fourDigits = (value: number): string => String(Number(value.toPrecision(4)));

/** A ratio with the interval that holds the true one in 95 of 100 such comparisons. */
interface Ratio {
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
}

/**
 * The ratio of two things measured in rounds, one value of each per round. Rounds are paired, so what slows both (heat, clocks) cancels:
 * Student's t interval of the mean of `ln(a / b)`, taken back by exp. Needs two rounds or more and positive values.
 */
export function pairedRatio(a: readonly number[], b: readonly number[]): Ratio {
  const logs = Float64Array.from(a, (value, round) => Math.log(value / (b[round] ?? Number.NaN)));
  const mean = meanOf(logs);
  const freedom = logs.length - 1;
  let squares = 0;
  for (const log of logs) squares += (log - mean) ** 2;
  const half = studentT975(freedom) * Math.sqrt(squares / freedom / logs.length);
  return { ratio: Math.exp(mean), low: Math.exp(mean - half), high: Math.exp(mean + half) };
}
