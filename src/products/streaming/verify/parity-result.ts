import { figuresOf, meanOf } from '../../../base/statistics.js';
import { plural } from '../../../base/text/quantity.js';
import {
  type CacheLengthRule,
  type Immutable,
  uncheckedSentences,
} from '../../../formats/contract/contract.js';
import type { Provenance } from '../../../formats/reference/reference.js';
import { type VerifyOutcome, worst } from '../../../quality/verify/outcome.js';
import { type Drift, type DriftCheck, driftOf, judgeDrift, policyFor } from '../compare/drift.js';
import type { TensorParity } from '../compare/tensor-parity.js';
import type { ChunkRunner, OpenCandidate } from './candidate.js';
import { explain } from './causes.js';
import type { ParityRequest } from './options.js';
import type { ChunkOutcome, StreamOutcome } from './outcome.js';
import { fedBackPairs, mainOutput, type StreamPlan } from './plan.js';
import { type Explanation, type ParityResult, parityResultSchema, type StreamTask } from './result.js';
import { reasonsOfTask } from './task.js';

/** A stream that was run: what was requested, what ran, and what was found. */
export interface ParityRun {
  readonly request: ParityRequest;
  readonly plan: StreamPlan;
  readonly candidate: Pick<OpenCandidate, 'backend' | 'built' | 'isFullFloat32'>;
  readonly runner: Pick<ChunkRunner, 'keepsState' | 'whyOnHost'>;
  readonly provenance: Provenance | null;
  readonly stream: StreamOutcome;
  readonly task: StreamTask;
  /** null: not judged. */
  readonly taskOutcome: VerifyOutcome | null;
  readonly gpuTimes: ParityResult['gpuTimes'];
  readonly memory: ParityResult['memory'];
  readonly profiles: ParityResult['profiles'];
  /** The rule of the contract that the lengths of the reference follow; null: none. */
  readonly cacheLengthRule: CacheLengthRule | null;
  /** Whether the candidate lacks a tensor of the contract, or has it with another type or shape. */
  readonly breaksContract: boolean;
  /** The explanations known beforehand: other weights, for one. */
  readonly explanations: readonly Explanation[];
  readonly warnings: readonly string[];
}

/** The result of a run: outputs, drift, verdicts and reasons out of what every chunk gave. The schema takes the fields of the result from these records. */
export function parityResult(run: ParityRun): ParityResult {
  const { plan, stream } = run;
  const { chunks } = stream;
  const drifts = floatDrifts(chunks);
  const times = timesOf(chunks);
  const outputs = outputsOf(chunks, plan, drifts);
  const drift = mainDrift(run, drifts, outputs, times);
  const checks = drift?.checks ?? [];
  const explanations = explanationsOf(run, drifts);
  const failures = chunks.flatMap(failuresOf);
  const passed = chunks.filter(({ pass }) => pass).length;
  const misses = missesOf(mainOutput(plan), failures, checks);
  const failing = failures.filter((each) => !misses.includes(each));
  const verdicts = {
    contract: contractVerdict(run, failures),
    numeric: numericVerdict(chunks, failing, checks, explanations),
    task: run.taskOutcome,
  };
  const isAllowed = misses.length > 0 && verdicts.numeric === 'pass';
  return parityResultSchema.parse({
    schema: 'trtforge.stream-verify/1',
    ...setupOf(run),
    chunks: chunks.length,
    passed,
    failed: chunks.length - passed,
    passRate: chunks.length === 0 ? 0 : passed / chunks.length,
    outputs,
    verdicts,
    task: run.task,
    violations: stream.violations,
    failures,
    drift,
    times,
    gpuTimes: run.gpuTimes,
    memory: run.memory,
    profiles: run.profiles,
    explanations,
    dumps: stream.dumps,
    series: chunks,
    warnings: [
      ...run.warnings,
      ...uncheckedSentences(plan.contract),
      ...stream.warnings,
      ...(isAllowed ? [missSentence(misses, chunks)] : []),
    ],
    outcome: worst(Object.values(verdicts).filter((verdict) => verdict !== null)),
    reasons: [
      ...reasonsOf(stream, isAllowed ? failing : failures, checks, explanations, verdicts.numeric),
      ...reasonsOfTask(run.task),
    ],
    repeat: null,
  } satisfies Immutable<ParityResult>);
}

/** What was compared, and how. */
const setupOf = (run: ParityRun) => {
  const { request, plan, candidate, provenance } = run;
  const { name, origin, notExecutable } = plan.contract;
  return {
    candidate: request.candidate,
    reference: request.reference,
    candidateBackend: candidate.backend,
    referenceBackend: provenance?.backend ?? null,
    built: candidate.built,
    mode: plan.mode,
    rule: plan.rule,
    contract: { name, ...origin, notExecutable },
    state: statePlace(run),
  };
};

/** The drift of the main output, judged where a policy is requested; null where the output is not compared as floating point. */
function mainDrift(
  { request: { policy }, plan, stream: { chunks } }: ParityRun,
  drifts: readonly Drift[],
  outputs: Immutable<ParityResult['outputs']>,
  times: Immutable<ParityResult['times']>,
) {
  const name = mainOutput(plan);
  const main = drifts.find(({ tensor }) => tensor === name);
  if (main === undefined) return null;
  const passRate = passRateOf(name, chunks);
  if (policy === null) return { ...main, passRate, checks: [] };
  const { absolute = 0 } = outputs.find(({ tensor }) => tensor === name)?.tolerance ?? {};
  const limits = { ...policyFor(absolute), ...policy };
  const checks = judgeDrift(main, limits, { passRate, latencyP95Ms: times.rest?.total.p95 ?? null });
  return { ...main, passRate, checks };
}

/** The explanations known beforehand, then those that the stream shows. */
const explanationsOf = (
  { explanations, plan, stream, candidate, cacheLengthRule, provenance }: ParityRun,
  drifts: readonly Drift[],
): readonly Explanation[] => [
  ...explanations,
  ...explain({
    mode: plan.mode,
    stream,
    main: mainOutput(plan),
    drifts,
    cacheLengthRule,
    isFullFloat32: candidate.isFullFloat32,
    referenceTf32: provenance?.tf32 ?? null,
  }),
];

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

const passRateOf = (main: string | null, chunks: readonly ChunkOutcome[]): number =>
  chunks.filter(({ tensors }) => tensors.some(({ tensor, pass }) => tensor === main && pass)).length /
  chunks.length;

/** The times of a stream: the first chunk by itself, then those for which nothing had to be prepared. */
function timesOf(chunks: readonly ChunkOutcome[]): Immutable<ParityResult['times']> {
  const ran = chunks.filter(({ error }) => error === null);
  const rest = ran.filter(({ isFirstOfSize }) => !isFirstOfSize);
  const column = (name: 'copyMs' | 'runMs' | 'stateMs' | 'totalMs') =>
    figuresOf(rest.map((each) => each[name]));
  const recorded = figuresOf(rest.flatMap(({ recordedMs }) => recordedMs ?? []));
  const isRecorded = rest.length > 0 && rest.every(({ recordedMs }) => recordedMs !== null);
  return {
    first: ran[0] ?? null,
    recorded: isRecorded ? recorded : null,
    overRecorded: isRecorded && recorded.p50 > 0 ? column('totalMs').p50 / recorded.p50 : null,
    rest:
      rest.length === 0
        ? null
        : {
            chunks: rest.length,
            copy: column('copyMs'),
            run: column('runMs'),
            state: column('stateMs'),
            total: column('totalMs'),
          },
  };
}

function outputsOf(
  chunks: readonly ChunkOutcome[],
  plan: StreamPlan,
  drifts: readonly Drift[],
): Immutable<ParityResult['outputs']> {
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
): Immutable<ParityResult['outputs'][number]> {
  const kind = found[0]?.kind ?? 'float';
  const compared = found.filter((each) => each.compared > 0);
  const count = (is: (each: TensorParity) => boolean) => found.filter(is).length;
  const sum = (of: (each: TensorParity) => number) => found.reduce((total, each) => total + of(each), 0);
  const errors = compared.map(({ maxAbs }) => maxAbs);
  const drift = drifts.find((each) => each.tensor === tensor) ?? driftOf(tensor, errors);
  return {
    tensor,
    kind,
    role: plan.contract.state.some(({ output }) => output === tensor) ? 'state' : 'result',
    tolerance: kind === 'exact' ? null : ((compared.at(-1) ?? found.at(-1))?.tolerance ?? null),
    chunks: found.length,
    passed: count(({ pass }) => pass),
    tensorRulePassed: count(({ tensorRule }) => tensorRule),
    allclosePassed: count(({ allclose }) => allclose),
    maxAbs: drift,
    meanAbs: meanOf(compared.map(({ meanAbs }) => meanAbs)),
    maxRel: compared.reduce(
      (most, { maxRel }) => Math.max(most, maxRel),
      compared.length > 0 ? 0 : Number.NaN,
    ),
    minCosine: compared.reduce(
      (least, { cosine }) => Math.min(least, cosine),
      compared.length > 0 ? 1 : Number.NaN,
    ),
    nonFinite: {
      candidate: sum((each) => each.nonFinite.candidate),
      reference: sum((each) => each.nonFinite.reference),
    },
    zerosPass: count(({ zerosPass, compared: elements }) => zerosPass && elements > 0),
    slope: drift.slope.robust,
    shape: drift.shape,
  };
}

function statePlace({ plan, runner }: ParityRun): Immutable<ParityResult['state']> {
  const pairs = fedBackPairs(plan);
  if (pairs.length === 0) return { place: 'none', why: null, pairs };
  if (plan.mode === 'functional') return { place: 'reference', why: null, pairs };
  return { place: runner.keepsState ? 'device' : 'host', why: runner.whyOnHost, pairs };
}

type Failure = ParityResult['failures'][number];

function failuresOf({ chunk, tensors, error }: ChunkOutcome): Failure[] {
  if (error !== null) return [{ chunk, tensor: '', kind: 'run', maxAbs: Number.NaN, reason: error }];
  return tensors
    .filter(({ pass }) => !pass)
    .map(({ tensor, failure, maxAbs, reason }) => ({
      chunk,
      tensor,
      kind: failure ?? 'run',
      maxAbs,
      reason: `${tensor}: ${reason ?? 'not compared'}`,
    }));
}

/** Explanations after which numbers that pass prove too little. */
const PROVES_NOTHING: ReadonlySet<string> = new Set([
  'tolerance-cannot-fail',
  'output-not-recorded',
  'state-not-in-contract',
  'pad-side-against-data',
]);

/** Failures that violate the contract's bindings and shapes, whatever the numbers are. */
const BREAKS_CONTRACT: ReadonlySet<string> = new Set(['missing', 'dtype', 'shape', 'run']);

/** A length that is not the recorded one makes every later number one of another place of the stream. */
function contractVerdict(run: ParityRun, failures: readonly Failure[]): VerifyOutcome {
  const { chunks, violations } = run.stream;
  if (chunks.length === 0) return 'inconclusive';
  const { outputs } = run.plan.contract;
  const lengths = new Set(outputs.filter(({ role }) => role.endsWith('length')).map(({ name }) => name));
  const isBroken =
    run.breaksContract ||
    violations.length > 0 ||
    failures.some(
      ({ kind, tensor }) => BREAKS_CONTRACT.has(kind) || (kind === 'differs' && lengths.has(tensor)),
    );
  return isBroken ? 'fail' : 'pass';
}

/** Chunks in which the main output is beyond its tolerance are judged as a stream: by how many there are and how far the worst is off. */
function missesOf(
  main: string | null,
  failures: readonly Failure[],
  checks: readonly DriftCheck[],
): readonly Failure[] {
  const isStream = checks.filter(({ name }) => name === 'pass-rate' || name === 'max').length === 2;
  return failures.filter(({ tensor, kind }) => isStream && tensor === main && kind === 'outside-tolerance');
}

function missSentence(misses: readonly Failure[], chunks: readonly ChunkOutcome[]): string {
  const worst = misses.reduce((most, each) => (Number(each.maxAbs) > Number(most.maxAbs) ? each : most));
  return `${worst.tensor} is beyond its tolerance in ${misses.length} of ${plural(chunks.length, 'chunk')}, within the limits of the drift (\`--drift\`); the worst is chunk ${worst.chunk}: ${worst.reason}.`;
}

function numericVerdict(
  chunks: readonly ChunkOutcome[],
  failures: readonly Failure[],
  checks: readonly DriftCheck[],
  explanations: readonly Explanation[],
): VerifyOutcome {
  const isCompared = chunks.some(({ tensors }) => tensors.some(({ compared }) => compared > 0));
  const isOff = failures.some(({ kind }) => !BREAKS_CONTRACT.has(kind));
  // An error is what a closed loop makes of a stream that does not go on: what follows the break was not recorded.
  const provesNothing = explanations.some(
    ({ id, severity }) => PROVES_NOTHING.has(id) || (id === 'stream-broken' && severity === 'error'),
  );
  return worst([
    !isCompared ? 'inconclusive' : isOff ? 'fail' : 'pass',
    provesNothing ? 'inconclusive' : 'pass',
    ...checks.map(({ outcome }) => outcome),
  ]);
}

/** Reasons named one by one; the result lists all. */
const MOST_REASONS = 5;

function reasonsOf(
  { chunks, violations, stopped }: StreamOutcome,
  failures: readonly Failure[],
  checks: readonly DriftCheck[],
  explanations: readonly Explanation[],
  numeric: VerifyOutcome,
): readonly string[] {
  const reasons = violations
    .slice(0, MOST_REASONS)
    .map(
      ({ chunk, tensor, found, sentence }) =>
        `Chunk ${chunk} breaks "${sentence}": ${sentence.includes(tensor) ? '' : `${tensor}: `}${found}.`,
    );
  if (violations.length > MOST_REASONS) reasons.push(`${violations.length} contract violations in all.`);
  reasons.push(...failures.slice(0, MOST_REASONS).map(({ chunk, reason }) => `Chunk ${chunk}: ${reason}`));
  if (failures.length > MOST_REASONS) reasons.push(`${failures.length} tensors failed in all.`);
  for (const { outcome, sentence } of checks) if (outcome !== 'pass') reasons.push(`Drift: ${sentence}`);
  if (stopped !== null) reasons.push(stopped);
  if (numeric === 'inconclusive' && chunks.length === 0) reasons.push('No chunk was run.');
  reasons.push(...explanations.filter(({ severity }) => severity !== 'note').map(({ sentence }) => sentence));
  return reasons;
}
