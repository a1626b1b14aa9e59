import { join } from 'node:path';
import { removeIfAllowed } from '../../base/files/files.js';
import { makeScratch } from '../../base/files/folders.js';
import { digestModelFile } from '../../engines/identity/model-digest.js';
import { readPassport } from '../../engines/identity/passport.js';
import type { ProfileRange } from '../../engines/identity/recipe.js';
import { isEngineFile } from '../../engines/plan/header.js';
import type { Profile } from '../../engines/profiles/profile.js';
import { openSession } from '../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { convertModel } from '../../formats/precision/convert.js';
import type { VerifyPrecision } from '../verify/result.js';
import { writeAnswer } from './answer.js';
import { measured, precisionOf } from './build-or-load.js';
import { CandidateEngines } from './candidate-engines.js';
import { judgeAnswer } from './judge.js';
import type { Observed } from './observe-loaded.js';
import { rememberCheck } from './past-checks.js';
import { observeEngine, type Proof, proofOf, recordLine, resultOf } from './proof.js';
import { recordAnswer } from './record.js';
import type { AnswerCheck, EngineCheck } from './result.js';

type Checking = Parameters<typeof observeEngine>[1];

/** The request of `checkEngine`. */
interface EngineCheckRequest extends Omit<Checking, keyof WorkContext> {
  readonly engine: string;
  /** The FP32 model: to record an answer from, or to build the engine again. */
  readonly against?: string;
  /** Run `against` and write what it gives beside the plan, for an engine whose passport has no answer. */
  readonly record?: boolean;
  /** The precision that the limits of a recorded answer are for; default: the passport's. */
  readonly precision?: VerifyPrecision;
  /** Build the engine again from `against`, as its passport states it, and compare. */
  readonly rebuild?: boolean;
}

/**
 * Lets an engine prove itself on this GPU: see `runChecks`. Throws TF_USAGE, TF_GPU_UNAVAILABLE where it does not run (a recorded answer is written all the same, and
 * not checked), and what loading, reading the model and building throw.
 */
export async function checkEngine(
  request: EngineCheckRequest,
  context: WorkContext = {},
): Promise<EngineCheck> {
  const { engine, against, record = false, rebuild = false } = request;
  if (!isEngineFile(engine))
    throw new TrtforgeError('TF_USAGE', `${engine} is not an engine.`, {
      remedy: `A model is compared with its original: trtforge verify ${engine} --against model.onnx`,
    });
  if ((record || rebuild) && against === undefined)
    throw new TrtforgeError('TF_USAGE', `--${record ? 'record' : 'rebuild'} needs the model of the engine.`, {
      remedy: 'Pass it: --against model.onnx',
    });
  if (!record && ((!rebuild && against !== undefined) || request.precision !== undefined))
    throw new TrtforgeError(
      'TF_USAGE',
      `--${request.precision === undefined ? 'against' : 'precision'} has no effect on a check of the known answer that the engine has.`,
      { remedy: 'Add --record to record an answer from the model, or --rebuild to build the engine again.' },
    );
  const options: Checking = { ...request, ...context };
  const model = against!;
  // Loading tells too, but an answer that is recorded survives an engine that does not load here.
  if (request.identity !== undefined) readPassport(engine, request.identity);
  const recorded = record ? await recordBeside({ ...request, against: model }, options) : null;
  const proof = proofOf(engine, options.environment ?? process.env);
  const observed = recorded === null ? await observeEngine(proof, options) : recorded.observed;
  const more = rebuild && observed !== null ? [await compareRebuilt(proof, observed, model, options)] : [];
  const result = resultOf(proof, observed, { recorded: recorded?.path ?? null, more });
  rememberCheck(result, context.environment ?? process.env);
  return result;
}

type WithModel = EngineCheckRequest & { readonly against: string };

/** Writes an answer of the model beside an engine, with what the engine gives where it runs here. */
async function recordBeside(
  request: WithModel,
  options: Checking,
): Promise<{ readonly path: string; readonly observed: Observed | null }> {
  const { engine, against } = request;
  const { plan, planSha256, mustBeSigned } = proofOf(engine, options.environment ?? process.env);
  if (plan.passport?.knownAnswer !== undefined)
    throw new TrtforgeError('TF_USAGE', `The passport of ${engine} has a known answer, which counts.`, {
      remedy: `Check the engine by it: trtforge engine check ${engine}`,
    });
  if (mustBeSigned)
    throw new TrtforgeError(
      'TF_USAGE',
      'Signatures are required, and nobody signs a file beside an engine: it would not count.',
      {
        remedy: `Record it in a signed passport, with the options of its build: ${recordLine(engine, plan.passport?.model.name, true)}`,
      },
    );
  const { recipe } = plan.passport?.identity.document ?? {};
  const precision = request.precision ?? (recipe && precisionOf(recipe, plan.passport?.model.precisions));
  if (precision === undefined)
    throw new TrtforgeError('TF_USAGE', `${engine} has no passport: what it computes in is not known.`, {
      remedy: 'Pass it: --precision fp32, tf32, fp16 or bf16',
    });
  const profiles = recipe?.profiles ?? (await profilesOf(engine, options));
  const answer = await recordAnswer({ reference: against, precision, profiles }, options);
  const { answer: own, observed } = await measured(answer, engine, options, false);
  return { path: writeAnswer(engine, planSha256, own), observed };
}

/** Of an engine without passport, which states them when it is loaded. */
async function profilesOf(engine: string, options: Checking): Promise<readonly Profile[]> {
  await using session = await openSession(engine, options, options);
  if (session.kind !== 'engine') return [];
  const { inputs } = session;
  const fixed = ({ shape }: (typeof inputs)[number]) => ({ min: shape, opt: shape, max: shape });
  const count = Math.max(1, ...inputs.map(({ profiles }) => profiles.length));
  return Array.from({ length: count }, (_, profile) =>
    Object.fromEntries(
      inputs.map((input) => {
        const { min, opt, max } = input.profiles[profile] ?? fixed(input);
        const range = { min: [...min], opt: [...opt], max: [...max], values: input.hostValues };
        return [input.name, range as ProfileRange];
      }),
    ),
  );
}

/** Builds the engine again, checks that, and compares what both give to the same inputs. */
async function compareRebuilt(
  { plan, answer }: Proof,
  first: Observed,
  against: string,
  options: Checking,
): Promise<AnswerCheck> {
  const started = performance.now();
  const folder = makeScratch('rebuild');
  try {
    const { environment, signal, device, plugins } = options;
    const toolchain = typeof options.toolchain === 'string' ? options.toolchain : undefined;
    const build = { store: false, remote: false, forceRebuild: true, device, plugins, toolchain } as const;
    const wanted = { candidate: plan.path, reference: against, output: folder, build };
    const engines = (await CandidateEngines.decide(wanted, { environment, signal }))!;
    const conversion = engines.conversion(await digestModelFile(against, { signal }));
    const typed = join(folder, 'typed.onnx');
    if (conversion !== null)
      await convertModel(against, typed, { ...conversion.options, precision: conversion.precision }, options);
    const { path } = await engines.build(
      conversion === null ? against : typed,
      join(folder, 'rebuilt.engine'),
    );
    const again = await observeEngine(proofOf(path, options.environment ?? process.env, answer), {
      ...options,
      identity: undefined,
    });
    const pairs = (answer?.cases ?? []).flatMap(({ outputs }, at) =>
      outputs.map((output) => {
        const [own, other] = [first, again].map(({ found }) =>
          found[at]?.find(({ name }) => name === output.name),
        );
        const judged = judgeAnswer({ ...output, ...own, limit: output.limit, measured: null }, other);
        return { ...judged, isSame: own?.sha256 === other?.sha256 };
      }),
    );
    const failed = pairs.find(({ outcome }) => outcome !== 'pass');
    const wrong = again.checks.filter(({ outcome }) => outcome === 'fail').flatMap(({ reasons }) => reasons);
    const none = pairs.length === 0 ? ['without a known answer nothing is compared'] : [];
    return {
      id: 'rebuild',
      case: null,
      outcome: wrong.length > 0 ? 'fail' : none.length > 0 ? 'inconclusive' : (failed?.outcome ?? 'pass'),
      ms: performance.now() - started,
      bitwise: pairs.length === 0 ? null : pairs.every(({ isSame }) => isSame),
      reasons: [failed?.reason ?? [], wrong, none].flat().map((reason) => `rebuilt: ${reason}`),
      wrong: failed?.wrong ?? null,
    };
  } finally {
    removeIfAllowed(folder);
  }
}
