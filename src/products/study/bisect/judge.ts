import { runShellLine } from '../../../base/process/command.js';
import { TrtforgeError } from '../../../errors.js';
import { severityOf } from '../../../quality/verify/checks.js';
import { failedOutputs, judgeRuns, outcomesOf } from '../../../quality/verify/judge-runs.js';
import type { VerifyContext, VerifyRequest } from '../../../quality/verify/options.js';
import { codesOfBoth, weightsCost } from '../../../quality/verify/precision.js';
import { reachingOutputs } from '../../../quality/verify/reached-by.js';
import type { VerifyPrecision } from '../../../quality/verify/result.js';
import { mostSamples, type ReferenceRun, SampleRuns } from '../../../quality/verify/sample-runs.js';
import {
  assertDecides,
  assertRepeats,
  OwnNoises,
  reasonsOf,
  unrepeatable,
} from '../../../quality/verify/stability.js';
import type { Outcome } from '../search.js';
import { checkLine, hasPlace, type JudgedFiles } from './check-line.js';
import type { BisectContext, BisectRequest } from './options.js';
import type { BisectResult } from './result.js';

/** A check may run a whole evaluation. */
const CHECK_LIMIT_MS = 6 * 3_600_000;

export interface Judgement {
  readonly outcome: Outcome;
  readonly reasons: readonly string[];
  /** The largest share of a limit that an output used; beyond 1 it failed. */
  readonly used: number;
  /** The back end that ran it; null where a command judged. */
  readonly backend: string | null;
  /** The first sample that failed. */
  readonly sample: number;
  /** Whether the model takes inputs in 16 bits. */
  readonly inputs: ReferenceRun['inputs'];
}

/** The judge of a model or an engine. */
export interface Judge {
  readonly kind: BisectResult['judge'];
  /** The reference's run; null where a command judges. */
  readonly reference: ReferenceRun | null;
  readonly seed: number;
  readonly samples: number;
  /** The judge by all samples that `verify` may draw; null where these are all. */
  wider?(): Promise<Judge | null>;
  /** Throws what running throws, and TF_CANCELLED; a comparison without result is `unresolved`. */
  judge(files: JudgedFiles): Promise<Judgement>;
}

/**
 * Opens the judge of a request's candidates. The reference is checked against itself first: it runs twice.
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
  const by = async (reference: ReferenceRun): Promise<Judge> => ({
    kind: 'model',
    reference,
    seed,
    samples: reference.outputs.length,
    wider: async () => {
      const to = mostSamples({ reference, candidate: reference }, reference.plan);
      return to <= reference.outputs.length ? null : by(await runs.reference(() => {}, { from: 0, to }));
    },
    judge: await comparing(request, precision, runs, reference, context),
  });
  const reference = await runs.reference(() => {});
  await assertRepeats(request, precision, runs, reference, reference.outputs.length);
  return by(reference);
}

/** Judges by what the reference gave on its samples. `doubts` is why a failure of an output shows nothing, where that is known. Throws TF_BISECT_REFERENCE. */
export async function comparing(
  request: VerifyRequest,
  precision: VerifyPrecision,
  runs: SampleRuns,
  reference: ReferenceRun,
  context: VerifyContext,
  doubts?: ReadonlyMap<string, string>,
): Promise<Judge['judge']> {
  const range = { from: 0, to: reference.outputs.length };
  const alike = {
    codes: codesOfBoth(request),
    reaching: reachingOutputs(request.reference),
    plant: false,
    weightsCost: await weightsCost(request, precision, runs, reference, context),
  };
  const noises = new OwnNoises(request, precision, runs, reference, alike);
  let known = doubts;
  return async ({ model, engine }) => {
    const candidate = await runs.candidate(engine ?? model, reference, () => {}, range);
    const first = judgeRuns(request, precision, reference, candidate, alike);
    const noise = await noises.of(first);
    const judged = noise ? judgeRuns(request, precision, reference, candidate, { ...alike, noise }) : first;
    const failed = failedOutputs(judged);
    // The reference repeats, so what was found of it for the first failure holds for all.
    if (known === undefined && failed.length > 0)
      known = await unrepeatable(request, precision, judged, runs, { reference, candidate });
    assertDecides(request.reference, failed, known ?? noDoubts);
    const { contract, numeric } = outcomesOf(judged, known ?? noDoubts);
    return {
      outcome: contract === 'fail' || numeric === 'fail' ? 'fail' : 'pass',
      reasons: reasonsOf(judged),
      used:
        contract === 'fail'
          ? Number.POSITIVE_INFINITY
          : Math.max(0, ...judged.judged.flatMap(({ output }) => output.checks.map(severityOf))),
      backend: candidate.backend,
      sample: failed[0]?.sample ?? 0,
      inputs: candidate.inputs,
    };
  };
}

const noDoubts: ReadonlyMap<string, string> = new Map();

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
        used: Number(exitCode !== 0),
        reasons: exitCode === 0 ? [] : [[ended, last].filter((text) => text !== '').join(' ')],
        backend: null,
        sample: 0,
        inputs: [],
      };
    },
  };
}
