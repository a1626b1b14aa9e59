import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { visibleGpus } from '../../addon/chosen-gpu.js';
import { removeIfThere } from '../../base/files/files.js';
import { makeScratch } from '../../base/files/scratch.js';
import { digestModelFile } from '../../engines/identity/model-digest.js';
import { passportPath, readPassport } from '../../engines/identity/passport.js';
import type { ProfileRange } from '../../engines/identity/recipe.js';
import { isEngineFile, planDigest, readPlanHeader } from '../../engines/plan/header.js';
import type { Profile } from '../../engines/profiles/profile.js';
import { openSession } from '../../engines/runtime/open-session.js';
import type { EngineLoadOptions } from '../../engines/runtime/tensorrt/engine-options.js';
import { TrtforgeError } from '../../errors.js';
import { type EventListener, ignoreEvents } from '../../events.js';
import { convertModel } from '../../formats/precision/convert.js';
import { CandidateEngines } from '../study/engines.js';
import type { VerifyPrecision } from '../verify/result.js';
import { type KnownAnswer, readAnswer, writeAnswer } from './answer.js';
import { measured, precisionOf } from './at-build.js';
import { type CheckOptions, checkEngine } from './check-engine.js';
import { type CheckedEngine, concluded } from './check-loaded.js';
import { judgeAnswer } from './judge.js';
import { recordAnswer } from './record.js';
import type { AnswerCheck, EngineCheck } from './result.js';

/** What `engineCheck` is asked. */
export interface EngineCheckRequest extends Omit<EngineLoadOptions, 'cudaGraph'> {
  readonly engine: string;
  readonly device?: number;
  /** How often the same inputs run; default 3. */
  readonly repeat?: number;
  /** The FP32 model: to record an answer from, or to build the engine again. */
  readonly against?: string;
  /** Run `against` and write what it gives beside the plan, for an engine whose passport has no answer. */
  readonly record?: boolean;
  /** What the limits of a recorded answer are for; default: what the passport states. */
  readonly precision?: VerifyPrecision;
  /** Build the engine again from `against`, as its passport states it, and compare. */
  readonly rebuild?: boolean;
}

export interface EngineCheckContext {
  readonly emit?: EventListener;
  readonly signal?: AbortSignal;
  readonly environment?: NodeJS.ProcessEnv;
}

/**
 * Lets an engine prove itself on this GPU: see `runChecks`. Throws TF_USAGE, TF_GPU_UNAVAILABLE where it does not run (a recorded answer is written all the same, and
 * not checked), and what loading, reading the model and building throw.
 */
export async function engineCheck(
  request: EngineCheckRequest,
  context: EngineCheckContext = {},
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
  const options: CheckOptions = { ...request, ...context };
  const checked = record
    ? await recorded({ ...request, against: against! }, options)
    : await checkEngine(engine, options);
  if (!rebuild) return checked.result;
  const check = await compareRebuilt(checked, { ...request, against: against! }, options);
  const { result } = checked;
  const all = concluded(
    engine,
    [...result.checks, check],
    result.answer !== null,
    passportOf(engine)?.model.name,
  );
  return { ...result, ...all };
}

const passportOf = (engine: string) => (existsSync(passportPath(engine)) ? readPassport(engine) : null);

type WithModel = EngineCheckRequest & { readonly against: string };

/** Records an answer of the model, and checks the engine by it where that runs here. */
async function recorded(request: WithModel, options: CheckOptions): Promise<CheckedEngine> {
  const { engine, against } = request;
  const { emit = ignoreEvents, signal } = options;
  const passport = passportOf(engine);
  const planSha256 = passport?.plan.sha256 ?? planDigest(readPlanHeader(engine));
  const precision =
    request.precision ??
    (passport === null
      ? undefined
      : precisionOf(passport.identity.document.recipe, passport.model.precisions));
  if (precision === undefined)
    throw new TrtforgeError('TF_USAGE', `${engine} has no passport: what it computes in is not known.`, {
      remedy: 'Pass it: --precision fp32, tf32, fp16 or bf16',
    });
  const profiles = passport?.identity.document.recipe.profiles ?? (await profilesOf(engine, options));
  const answer = await recordAnswer({ reference: against, precision, profiles }, { emit, signal });
  const { answer: own, result } = await measured(answer, engine, options);
  const path = writeAnswer(engine, planSha256, own);
  if (result !== null) return { result: { ...result, answer: 'file', recorded: path }, found: [] };
  const { reason } = visibleGpus();
  const none = `${engine} was not checked: ${reason ?? 'it does not run on this GPU'}.`;
  return { result: unchecked(engine, planSha256, own, path, none), found: [] };
}

const unchecked = (
  engine: string,
  planSha256: string,
  answer: KnownAnswer,
  path: string,
  why: string,
): EngineCheck => ({
  schema: 'trtforge.engine-check/1',
  engine,
  planSha256,
  answerSha256: null,
  answer: 'file',
  reference: answer.reference,
  gpu: null,
  driver: null,
  library: null,
  checks: [],
  outcome: 'inconclusive',
  reasons: [why],
  recorded: path,
  builtOn: null,
  ms: 0,
  at: new Date().toISOString(),
  next: null,
});

/** Of an engine without passport, which states them when it is loaded. */
async function profilesOf(engine: string, options: CheckOptions): Promise<readonly Profile[]> {
  const { emit, signal, environment, device, toolchain, plugins, allowHostCode, weightBudget } = options;
  const loading = { device, toolchain, plugins, allowHostCode, weightBudget };
  await using session = await openSession(engine, loading, { emit, signal, environment });
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
  checked: CheckedEngine,
  { engine, against, device, plugins, toolchain }: WithModel,
  options: CheckOptions,
): Promise<AnswerCheck> {
  const started = performance.now();
  const folder = makeScratch('rebuild');
  try {
    const { environment, signal, emit = ignoreEvents } = options;
    const named = typeof toolchain === 'string' ? toolchain : undefined;
    const build = {
      store: false,
      remote: false,
      forceRebuild: true,
      device,
      plugins,
      toolchain: named,
    } as const;
    const wanted = { candidate: engine, reference: against, output: folder, build };
    const engines = (await CandidateEngines.decide(wanted, { environment, signal }))!;
    const conversion = engines.conversion(await digestModelFile(against, { signal }));
    const typed = join(folder, 'typed.onnx');
    if (conversion !== null)
      await convertModel(
        against,
        typed,
        { ...conversion.options, precision: conversion.precision },
        { emit, signal },
      );
    const { path } = await engines.build(
      conversion === null ? against : typed,
      join(folder, 'rebuilt.engine'),
    );
    const passport = passportOf(engine);
    const answer = readAnswer(engine, passport, checked.result.planSha256);
    const again = await checkEngine(path, { ...options, answer });
    const first = checked.found.length > 0 ? checked : await checkEngine(engine, { ...options, answer });
    const judged = (answer?.cases ?? []).flatMap((each, at) =>
      each.outputs.map((output) => {
        const [own, other] = [first, again].map(({ found }) =>
          found[at]?.find(({ name }) => name === output.name),
        );
        return {
          isSame: own?.sha256 === other?.sha256,
          ...judgeAnswer({ ...output, ...own, limit: output.limit, measured: null }, other),
        };
      }),
    );
    const failed = judged.filter(({ outcome }) => outcome !== 'pass');
    const [worst] = failed.toSorted((a) => (a.outcome === 'fail' ? -1 : 1));
    return {
      id: 'rebuild',
      case: null,
      outcome: worst?.outcome ?? (again.result.outcome === 'fail' ? 'fail' : 'pass'),
      ms: performance.now() - started,
      bitwise: judged.length === 0 ? null : judged.every(({ isSame }) => isSame),
      reasons: [
        ...failed.flatMap(({ reason }) => (reason === null ? [] : [`rebuilt: ${reason}`])),
        ...(again.result.outcome === 'fail'
          ? again.result.reasons.map((reason) => `rebuilt: ${reason}`)
          : []),
      ],
      wrong: worst?.wrong ?? null,
    };
  } finally {
    removeIfThere(folder);
  }
}
