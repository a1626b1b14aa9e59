import { runShellLine } from '../../base/process/group.js';
import { inDtype } from '../../engines/run/inputs.js';
import { openSession } from '../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../errors.js';
import { readNpz } from '../../formats/tensor/npz.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import {
  failedOutputs,
  judgeRuns,
  type Outputs,
  outcomesOf,
  type RunsJudgement,
} from '../verify/judge-runs.js';
import { unrepeatable } from '../verify/repeatable.js';
import type { VerifyPrecision } from '../verify/result.js';
import type { SamplePlan } from '../verify/sample-plan.js';
import { type OpenedSide, type ReferenceRun, SampleRuns } from '../verify/sample-runs.js';
import { checkLine, hasPlace, type JudgedFiles } from './check-line.js';
import type { BisectContext, BisectRequest } from './request.js';
import type { BisectResult } from './result.js';
import type { Outcome } from './search.js';

/** A check may run a whole evaluation. */
const CHECK_LIMIT_MS = 6 * 3_600_000;

export interface Judgement {
  readonly outcome: Outcome;
  readonly reasons: readonly string[];
  /** What ran it; null where a command judged. */
  readonly backend: string | null;
  /** The first sample that failed. */
  readonly sample: number;
  /** Whether the model takes inputs in 16 bits. */
  readonly inputs: ReferenceRun['inputs'];
}

/** What decides about a model or an engine. */
export interface Judge {
  readonly kind: BisectResult['judge'];
  /** What the reference computed, or what was recorded; null where a command judges. */
  readonly reference: ReferenceRun | null;
  readonly seed: number;
  readonly samples: number;
  /** Throws what running throws, and TF_CANCELLED; a comparison without result is `unresolved`. */
  judge(files: JudgedFiles): Promise<Judgement>;
}

/**
 * What judges the candidates of a request. The reference is checked against itself first: it runs twice, or its FP32 model against the recording.
 * Throws TF_BISECT_REFERENCE, TF_USAGE, and what opening and running the reference throw.
 */
export async function openJudge(
  request: BisectRequest,
  precision: VerifyPrecision,
  context: BisectContext,
): Promise<Judge> {
  if (request.check !== undefined) return checkJudge(request, request.check, context);
  const runs = new SampleRuns(request, context);
  const { seed } = runs;
  const { recording } = request;
  const reference =
    recording === undefined
      ? await runs.reference(() => {})
      : await recordedReference(request, recording, context);
  const samples = reference.outputs.length;
  const again = await runs.referenceAgain(reference, samples);
  assertAgrees(request, judgeRuns(request, precision, reference, { ...reference, outputs: again }));
  let doubts: ReadonlyMap<string, string> | undefined;
  return {
    kind: recording === undefined ? 'model' : 'recording',
    reference,
    seed,
    samples,
    judge: async ({ model, engine }) => {
      const path = engine ?? model;
      const candidate = await runs.candidate(path, reference, () => {});
      const judged = judgeRuns(request, precision, reference, candidate);
      const failed = failedOutputs(judged);
      // The reference repeats, so what was found of it for the first failure holds for all.
      if (doubts === undefined && failed.length > 0)
        doubts = await unrepeatable(request, precision, judged, reference, candidate.seedsRepeat, (count) =>
          runs.referenceAgain(reference, count),
        );
      assertDecides(request, failed, doubts ?? noDoubts);
      const { contract, numeric } = outcomesOf(judged, doubts ?? noDoubts);
      return {
        outcome: contract === 'fail' || numeric === 'fail' ? 'fail' : 'pass',
        reasons: reasonsOf(judged),
        backend: candidate.backend,
        sample: failed[0]?.sample ?? 0,
        inputs: candidate.inputs,
      };
    },
  };
}

/** A judge before it has judged. */
export interface DecidedJudge {
  readonly kind: Judge['kind'];
  /** The open sides; null where a command judges. `candidate` is null where the candidate is not built. */
  readonly reference: (OpenedSide & Pick<ReferenceRun, 'plan'>) | null;
  readonly candidate: OpenedSide | null;
  readonly seed: number;
  readonly samples: number;
}

/** Opens what `openJudge` runs and closes it: nothing runs. Throws what it throws before the first run. */
export async function lookAtJudge(
  request: BisectRequest,
  { isBuilt }: { readonly isBuilt: boolean },
  context: BisectContext,
): Promise<DecidedJudge> {
  const { check, recording } = request;
  if (check !== undefined) {
    const { kind, seed, samples } = checkJudge(request, check, context);
    return { kind, reference: null, candidate: null, seed, samples };
  }
  const runs = new SampleRuns(request, context);
  const reference =
    recording === undefined
      ? await runs.lookAtReference()
      : await recordedReference(request, recording, context);
  return {
    kind: recording === undefined ? 'model' : 'recording',
    reference,
    candidate: isBuilt ? await runs.lookAtCandidate(reference) : null,
    seed: runs.seed,
    samples: reference.plan.firstRound,
  };
}

const noDoubts: ReadonlyMap<string, string> = new Map();

const reasonsOf = ({ judged, broken }: RunsJudgement): readonly string[] => [
  ...broken.map(({ reason }) => reason),
  ...judged.filter(({ output }) => output.outcome === 'fail').flatMap(({ output }) => output.reasons),
];

/** The reference judges others only where it passes itself. */
function assertAgrees({ reference, recording }: BisectRequest, judgement: RunsJudgement): void {
  const [first] = failedOutputs(judgement);
  if (first === undefined) return;
  const [why = ''] = reasonsOf(judgement);
  throw recording === undefined
    ? new TrtforgeError(
        'TF_BISECT_REFERENCE',
        `${reference} fails against itself: in a second run on the same inputs its output ${first.name} differs. ${why}`,
        { details: { tensor: first.name } },
      )
    : new TrtforgeError(
        'TF_BISECT_REFERENCE',
        `${reference} in FP32 fails against ${recording}: its output ${first.name} differs. ${why}`,
        {
          remedy: `Record the outputs of ${reference} again, with the same weights and inputs, or pass wider limits: --atol ${first.name}:1e-2.`,
          details: { tensor: first.name },
        },
      );
}

/** Where every output that failed depends on random numbers, no candidate can pass or fail. */
function assertDecides(
  { reference }: BisectRequest,
  failed: readonly { readonly name: string }[],
  doubts: ReadonlyMap<string, string>,
): void {
  const [first] = failed;
  const doubt = first && doubts.get(first.name);
  if (doubt === undefined || failed.some(({ name }) => !doubts.has(name))) return;
  throw new TrtforgeError('TF_BISECT_REFERENCE', `${reference} cannot judge a candidate: ${doubt}`, {
    details: { tensor: first?.name },
  });
}

/** Inputs and outputs as an npz file has them, in the types of the model. */
async function recordedReference(
  { reference, threads }: BisectRequest,
  recording: string,
  context: BisectContext,
): Promise<ReferenceRun> {
  const recorded = readNpz(recording);
  const session = await openSession(reference, { threads }, context, context.backEnds);
  try {
    const tensor = (name: string) => {
      const found = recorded.get(name);
      if (found !== undefined) return found;
      throw new TrtforgeError(
        'TF_BISECT_REFERENCE',
        `${recording} has no tensor ${name}, which ${reference} has; it has ${[...recorded.keys()].join(', ') || 'none'}.`,
        {
          remedy: 'Write an npz file with every input and output of the model, under their names.',
          details: { tensor: name },
        },
      );
    };
    const values = session.inputs.map(
      (input) => [input.name, inDtype(input, tensor(input.name), recording)] as const,
    );
    const plan: SamplePlan = {
      inputs: values.map(([name, { dtype, shape }]) => ({ name, dtype, shape, from: recording })),
      ...{ firstRound: 1, most: 1, available: 1 },
      info: () => ({ origin: recording, kind: 'data' }),
      tensors: () => new Map(values),
    };
    const outputs: NamedTensors = new Map(session.outputs.map(({ name }) => [name, tensor(name)]));
    const side: Outputs = { bindings: session.outputs, outputs: [outputs] };
    return {
      ...side,
      samples: [{ origin: recording, kind: 'data' }],
      plan,
      inputs: session.inputs,
      backend: session.backend,
      seedsRepeat: session.seedsRepeat,
      arithmetic: session.arithmetic,
      roundedValues: 0,
    };
  } finally {
    await session.close();
  }
}

function checkJudge(request: BisectRequest, check: string, context: BisectContext): Judge {
  if (!hasPlace(check))
    throw new TrtforgeError(
      'TF_USAGE',
      '--check-command has no {} in the place of the path of the candidate.',
      {
        remedy: "For example: --check-command 'trtforge stream verify {} --reference clip.jsonl'",
      },
    );
  return {
    kind: 'check',
    reference: null,
    seed: request.seed ?? 0,
    samples: 0,
    judge: async ({ model, engine }) => {
      const { exitCode, outcome, stdout, stderr } = await runShellLine(checkLine(check, { model, engine }), {
        timeoutMs: CHECK_LIMIT_MS,
        environment: context.environment ?? process.env,
        signal: context.signal,
        doing: 'checking a candidate',
      });
      const last = `${stdout}\n${stderr}`.trim().split('\n').at(-1) ?? '';
      const ended =
        exitCode === null ? `The check ${outcome}.` : `The check ended with exit code ${exitCode}.`;
      return {
        outcome: exitCode === 0 ? 'pass' : exitCode === 1 ? 'fail' : 'unresolved',
        reasons: exitCode === 0 ? [] : [[ended, last].filter((text) => text !== '').join(' ')],
        backend: null,
        sample: 0,
        inputs: [],
      };
    },
  };
}
