import { measure, type VerifyOutcome, worst } from '../../../quality/verify/result.js';
import type { TensorParity } from '../compare/chunk-compare.js';
import { type Drift, driftOf } from '../compare/drift.js';
import { meanOf, type Slope } from '../compare/drift-fit.js';
import { type DriftPolicy, defaultPolicy, judgeDrift } from '../compare/drift-policy.js';
import { fedBackPairs, mainOutput, type StreamPlan } from '../compare/plan.js';
import type { ParityRequest } from '../compare/request.js';
import type {
  Explanation,
  ParityDrift,
  ParityOutput,
  ParityResult,
  ParitySpread,
} from '../compare/result-schema.js';
import { type ChunkOutcome, type StreamOutcome, timesOfStream } from '../compare/stream-outcome.js';
import type { StreamTask } from '../compare/task-schema.js';
import { explain } from '../explain/explain-difference.js';
import { reasonsOfTask } from '../task/sentences.js';

/** What a run over a stream gave, beside its chunks. */
export interface ParityRun {
  readonly request: ParityRequest;
  readonly plan: StreamPlan;
  readonly stream: StreamOutcome;
  readonly task: StreamTask;
  /** null: not judged. */
  readonly taskOutcome: VerifyOutcome | null;
  readonly candidateBackend: string;
  readonly referenceBackend: string | null;
  readonly keepsState: boolean;
  readonly whyOnHost: string | null;
  readonly isFullFloat32: boolean;
  readonly built: ParityResult['built'];
  readonly sensitivity: ParityResult['sensitivity'];
  readonly stepsOf: (frames: number) => number;
  /** Whether the reference is a stream with lengths that can be. */
  readonly isReferenceSound: boolean;
  readonly gpuTimes: ParityResult['gpuTimes'];
  readonly profiles: ParityResult['profiles'];
  /** Whether the candidate lacks a tensor that the contract promises, or has it otherwise. */
  readonly breaksContract: boolean;
  /** What is known beforehand: other weights, for one. */
  readonly explanations: readonly Explanation[];
  readonly warnings: readonly string[];
}

/** The result of a run: outputs, drift, verdicts and reasons out of what every chunk gave. */
export function parityResult(run: ParityRun): ParityResult {
  const { request, plan, stream } = run;
  const { chunks } = stream;
  const times = timesOfStream(chunks);
  const drifts = floatDrifts(chunks);
  const mainName = mainOutput(plan);
  const main = drifts.find(({ tensor }) => tensor === mainName);
  const policy = request.policy === undefined ? defaultPolicy : request.policy;
  const drift = main === undefined ? null : driftResult(main, policy, times.rest?.total.p95 ?? null);
  const explanations = [
    ...run.explanations,
    ...explain({
      mode: plan.mode,
      stream,
      main: mainName,
      drifts,
      law: run.isReferenceSound ? plan.contract.law : null,
      stepsOf: run.stepsOf,
      isFullFloat32: run.isFullFloat32,
    }),
  ];
  const passed = chunks.filter(({ pass }) => pass).length;
  const verdicts = {
    ...verdictsOf(stream, drift, explanations, run.breaksContract),
    task: run.taskOutcome,
  };
  const outcome = worst(Object.values(verdicts).filter((verdict) => verdict !== null));
  return {
    schema: 'trtforge.parity/1',
    candidate: request.candidate,
    reference: request.reference,
    candidateBackend: run.candidateBackend,
    referenceBackend: run.referenceBackend,
    built: run.built,
    mode: plan.mode,
    rule: plan.rule,
    contract: {
      name: plan.contract.name,
      path: plan.contract.origin.path,
      form: plan.contract.origin.form,
    },
    state: statePlace(run),
    chunks: chunks.length,
    passed,
    failed: chunks.length - passed,
    passRate: chunks.length === 0 ? 0 : passed / chunks.length,
    outputs: outputsOf(chunks, plan, drifts),
    verdicts,
    task: run.task,
    violations: stream.violations.map((violation) => ({ ...violation })),
    failures: failuresOf(chunks),
    drift,
    times,
    gpuTimes: run.gpuTimes,
    profiles: run.profiles,
    sensitivity: run.sensitivity,
    explanations,
    dumps: [...stream.dumps],
    series: chunks.map(seriesEntry),
    warnings: [...run.warnings, ...stream.warnings],
    outcome,
    reasons: [...reasonsOf(stream, drift, explanations, verdicts), ...reasonsOfTask(run.task)],
    repeat: null,
  };
}

/** The error of every floating-point output, chunk by chunk. */
function floatDrifts(chunks: readonly ChunkOutcome[]): readonly Drift[] {
  const series = new Map<string, { readonly errors: number[]; readonly chunks: number[] }>();
  for (const { chunk, tensors } of chunks) {
    for (const { tensor, kind, maxAbs, compared } of tensors) {
      if (kind !== 'float' || compared === 0) continue;
      const column = series.get(tensor) ?? { errors: [], chunks: [] };
      column.errors.push(maxAbs);
      column.chunks.push(chunk);
      series.set(tensor, column);
    }
  }
  return [...series].map(([tensor, column]) => driftOf(tensor, column.errors, column.chunks));
}

function driftResult(drift: Drift, policy: DriftPolicy | null, latencyP95Ms: number | null): ParityDrift {
  const { tensor, chunks, worstChunk, thirds, outliers, shape } = drift;
  const checks = policy === null ? [] : judgeDrift(drift, policy, latencyP95Ms);
  return {
    tensor,
    chunks,
    ...spreadOf(drift),
    worstChunk,
    slope: { robust: slopeOf(drift.slope.robust), leastSquares: slopeOf(drift.slope.leastSquares) },
    thirds: { first: measure(thirds.first), last: measure(thirds.last), ratio: measure(thirds.ratio) },
    outliers: [...outliers],
    shape,
    checks: checks.map((check) => ({ ...check, measured: measure(check.measured) })),
  };
}

const spreadOf = ({ min, mean, p50, p95, p99, max }: Drift): ParitySpread => ({
  min: measure(min),
  mean: measure(mean),
  p50: measure(p50),
  p95: measure(p95),
  p99: measure(p99),
  max: measure(max),
});

const slopeOf = ({ perChunk, low, high }: Slope) => ({
  perChunk: measure(perChunk),
  low: measure(low),
  high: measure(high),
});

function outputsOf(
  chunks: readonly ChunkOutcome[],
  plan: StreamPlan,
  drifts: readonly Drift[],
): ParityOutput[] {
  const all = new Map<string, TensorParity[]>();
  for (const each of chunks.flatMap(({ tensors }) => tensors)) {
    const column = all.get(each.tensor) ?? [];
    column.push(each);
    all.set(each.tensor, column);
  }
  return [...all].map(([tensor, found]) => outputOf(tensor, found, plan, drifts));
}

function outputOf(
  tensor: string,
  found: readonly TensorParity[],
  plan: StreamPlan,
  drifts: readonly Drift[],
): ParityOutput {
  const kind = found[0]?.kind ?? 'float';
  const compared = found.filter((each) => each.compared > 0);
  const largest = (values: readonly number[]) => values.reduce((most, each) => Math.max(most, each), 0);
  const count = (is: (each: TensorParity) => boolean) => found.filter(is).length;
  const sum = (of: (each: TensorParity) => number) => found.reduce((total, each) => total + of(each), 0);
  const drift =
    drifts.find((each) => each.tensor === tensor) ??
    driftOf(
      tensor,
      compared.map(({ maxAbs }) => maxAbs),
    );
  const isExact = kind === 'exact';
  return {
    tensor,
    kind,
    role: plan.contract.state.some(({ output }) => output === tensor) ? 'state' : 'result',
    tolerance: isExact ? null : plan.toleranceOf(tensor),
    chunks: found.length,
    passed: count(({ pass }) => pass),
    tensorRulePassed: count(({ tensorRule }) => tensorRule),
    allclosePassed: count(({ allclose }) => allclose),
    maxAbs: spreadOf(drift),
    meanAbs: measure(meanOf(compared.map(({ meanAbs }) => meanAbs))),
    maxRel: measure(compared.length === 0 ? Number.NaN : largest(compared.map(({ maxRel }) => maxRel))),
    minCosine: measure(
      compared.length === 0 ? Number.NaN : compared.reduce((least, { cosine }) => Math.min(least, cosine), 1),
    ),
    nonFinite: {
      candidate: sum((each) => each.nonFinite.candidate),
      reference: sum((each) => each.nonFinite.reference),
    },
    zerosPass: count(({ zerosPass, compared: elements }) => zerosPass && elements > 0),
    slope: slopeOf(drift.slope.robust),
    shape: drift.shape,
  };
}

function statePlace({ plan, keepsState, whyOnHost }: ParityRun): ParityResult['state'] {
  const pairs = fedBackPairs(plan).map(({ input, output }) => ({ input, output }));
  if (pairs.length === 0) return { place: 'none', why: null, pairs };
  if (plan.mode === 'functional') return { place: 'reference', why: null, pairs };
  return keepsState ? { place: 'device', why: null, pairs } : { place: 'host', why: whyOnHost, pairs };
}

type Failure = ParityResult['failures'][number];

const failuresOf = (chunks: readonly ChunkOutcome[]): Failure[] => chunks.flatMap(failuresOfChunk);

function failuresOfChunk({ chunk, tensors, refused }: ChunkOutcome): Failure[] {
  if (refused !== null) return [{ chunk, tensor: '', kind: 'run', maxAbs: 'NaN', reason: refused }];
  return tensors
    .filter(({ pass }) => !pass)
    .map(({ tensor, failure, maxAbs, reason }) => ({
      chunk,
      tensor,
      kind: failure ?? 'run',
      maxAbs: measure(maxAbs),
      reason: `${tensor}: ${reason ?? 'not compared'}`,
    }));
}

const seriesEntry = ({ chunk, pass, copyMs, runMs, stateMs, totalMs, tensors }: ChunkOutcome) => ({
  chunk,
  pass,
  copyMs,
  runMs,
  stateMs,
  totalMs,
  tensors: tensors.map((each) => ({
    tensor: each.tensor,
    compared: each.compared,
    region: each.region,
    maxAbs: measure(each.maxAbs),
    meanAbs: measure(each.meanAbs),
    maxRel: measure(each.maxRel),
    cosine: measure(each.cosine),
    tensorRule: each.tensorRule,
    allclose: each.allclose,
    pass: each.pass,
  })),
});

/** Explanations after which numbers that pass say too little. */
const PROVES_NOTHING: ReadonlySet<string> = new Set([
  'tolerance-cannot-fail',
  'output-not-recorded',
  'pad-side-against-data',
]);

/** Failures that break what was promised of bindings and shapes, whatever the numbers say. */
const BREAKS_CONTRACT: ReadonlySet<string> = new Set(['missing', 'dtype', 'shape', 'run']);

function verdictsOf(
  { chunks, violations }: StreamOutcome,
  drift: ParityDrift | null,
  explanations: readonly Explanation[],
  breaksContract: boolean,
): Pick<ParityResult['verdicts'], 'contract' | 'numeric'> {
  const failures = failuresOf(chunks);
  const broken =
    breaksContract || violations.length > 0 || failures.some(({ kind }) => BREAKS_CONTRACT.has(kind));
  const compared = chunks.some(({ tensors }) => tensors.some((tensor) => tensor.compared > 0));
  const numeric: VerifyOutcome[] = [
    !compared ? 'inconclusive' : failures.some(({ kind }) => !BREAKS_CONTRACT.has(kind)) ? 'fail' : 'pass',
    ...(drift?.checks.map(({ outcome }) => outcome) ?? []),
  ];
  // An error is what a closed loop makes of a stream that does not go on: what follows the break was not recorded.
  const provesNothing = explanations.some(
    ({ id, severity }) => PROVES_NOTHING.has(id) || (id === 'stream-broken' && severity === 'error'),
  );
  if (provesNothing) numeric.push('inconclusive');
  return {
    contract: chunks.length === 0 ? 'inconclusive' : broken ? 'fail' : 'pass',
    numeric: worst(numeric),
  };
}

/** Reasons named one by one; the result lists all. */
const MOST_REASONS = 5;

function reasonsOf(
  { chunks, violations, stopped }: StreamOutcome,
  drift: ParityDrift | null,
  explanations: readonly Explanation[],
  verdicts: ParityResult['verdicts'],
): string[] {
  const reasons = violations
    .slice(0, MOST_REASONS)
    .map(
      ({ chunk, tensor, found, sentence }) =>
        `Chunk ${chunk} breaks «${sentence}»: ${sentence.includes(tensor) ? '' : `${tensor}: `}${found}.`,
    );
  if (violations.length > MOST_REASONS)
    reasons.push(`${violations.length} promises of the contract were broken in all.`);
  const failures = failuresOf(chunks);
  reasons.push(...failures.slice(0, MOST_REASONS).map(({ chunk, reason }) => `Chunk ${chunk}: ${reason}`));
  if (failures.length > MOST_REASONS) reasons.push(`${failures.length} tensors failed in all.`);
  for (const { outcome, sentence } of drift?.checks ?? [])
    if (outcome !== 'pass') reasons.push(`Drift: ${sentence}`);
  if (stopped !== null) reasons.push(stopped);
  if (verdicts.numeric === 'inconclusive' && chunks.length === 0) reasons.push('No chunk was run.');
  reasons.push(...explanations.filter(({ severity }) => severity !== 'note').map(({ sentence }) => sentence));
  return reasons;
}
