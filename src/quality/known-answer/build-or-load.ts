import { onDevice, visibleGpus } from '../../addon/gpus.js';
import { closing } from '../../base/files/byte-source.js';
import { protectingInputs } from '../../base/files/user-files.js';
import * as is from '../../base/options/kinds.js';
import { needed, type OptionsOf } from '../../base/options/option.js';
import { formatMs } from '../../base/text/quantity.js';
import { obtainEngine } from '../../engines/builder/obtain-engine.js';
import {
  type Answered,
  type AnswerMaker,
  type BuildContext,
  type BuildOptions,
  type BuildSeams,
  buildOptions,
} from '../../engines/builder/options.js';
import { refittingBuilder, resolveRefit } from '../../engines/builder/refit-plan.js';
import { resolveBuild } from '../../engines/builder/resolve-build.js';
import type { ObtainedEngine } from '../../engines/builder/result.js';
import { whyNotRun } from '../../engines/identity/target.js';
import { carriesHostCode } from '../../engines/plan/loads.js';
import { buildInstead, isStripped, skeletonOf } from '../../engines/plan/refit.js';
import { openSession } from '../../engines/runtime/open-session.js';
import { readPlanOnDisk, toolchainForPlan } from '../../engines/runtime/tensorrt/load-engine.js';
import { loadOptions } from '../../engines/runtime/tensorrt/options.js';
import { openStores } from '../../engines/store/open-stores.js';
import { signatureOptions } from '../../engines/store/trust.js';
import { TrtforgeError } from '../../errors.js';
import { inPhase } from '../../events.js';
import { formatNamed, quantizedFormatNamed } from '../../formats/precision/formats/index.js';
import type { VerifyPrecision } from '../verify/result.js';
import type { KnownAnswer } from './answer.js';
import { judgeCase } from './judge.js';
import type { Observed } from './observe-loaded.js';
import { observeEngine, proofOf } from './proof.js';
import { type AnswerContext, recordAnswer, withMeasured } from './record.js';
import { type Checked, runChecks, sessionRunner } from './run-checks.js';

/** Of the build's time, which the reference may take where nobody asked for it. */
const SHARE = 0.2;

/**
 * Makes known answers: with true however long that takes, by default of what is built, in a fifth of its build's time. A build does not fail because its reference does
 * not run, unless it is a size of a profile that does not. What this process built runs with the code that it carries; what was found only where that is allowed.
 */
export function answerMaker(
  knownAnswer: boolean | undefined,
  { allowHostCode = false }: { readonly allowHostCode?: boolean | undefined } = {},
): AnswerMaker | undefined {
  if (knownAnswer === false) return undefined;
  return async (build, engine, context) => {
    const { isFound, passport } = engine;
    if (isFound && knownAnswer !== true) return 'it was found without one; --known-answer records it';
    if (isStripped(passport))
      return 'it has no weights yet; `trtforge engine refit` puts them in, and records one';
    const isAllowed = allowHostCode || !isFound;
    if (!isAllowed && carriesHostCode(passport.identity.document.recipe))
      return 'it was found in a store and carries its own runtime, which is code and does not run; --force-rebuild builds it again, and records one';
    const isText = (made: Answered | string) => (typeof made === 'string' ? made : undefined);
    // A refit takes less than its reference, and needs it more than a build.
    const isWhole = knownAnswer === true || passport.built.refitted !== undefined;
    const work = async () => {
      const made = await madeAnswer(isWhole, isAllowed, build, engine, context);
      if (typeof made !== 'string' && made.wrong !== null) throw new WrongAnswer(made);
      return made;
    };
    return inPhase('known answer', context.emit, work, undefined, undefined, isText).catch((error) => {
      if (error instanceof WrongAnswer) return error.made;
      throw error;
    });
  };
}

/** Ends the phase as failed. */
class WrongAnswer extends Error {
  constructor(readonly made: Answered) {
    super();
  }
}

async function madeAnswer(
  isWhole: boolean,
  allowHostCode: boolean,
  ...[build, { modelPath, planPath, passport }, work]: Parameters<AnswerMaker>
): ReturnType<AnswerMaker> {
  const { built, identity, model } = passport;
  const limitMs = SHARE * built.ms;
  const { emit: _, ...quiet } = work;
  const { signal } = work;
  const limit = isWhole ? undefined : AbortSignal.timeout(Math.ceil(limitMs));
  const stop = AbortSignal.any([signal, limit].flatMap((each) => each ?? []));
  const { recipe } = identity.document;
  const precision = precisionOf(recipe, model.precisions);
  try {
    const request = { reference: build.modelPath, precision, profiles: recipe.profiles };
    const answer = await recordAnswer(request, { signal, limit });
    const gpus = onDevice(visibleGpus(), build.device ?? 0);
    if (whyNotRun(gpus, identity.document) === null) {
      const { device, toolchain, pluginPaths: plugins } = build;
      const loading = { device, toolchain, plugins, allowHostCode, ...quiet, limit };
      const { answer: own, observed } = await measured(answer, planPath, loading);
      const judged = own.cases.flatMap((each, at) => judgeCase(each, observed?.found[at] ?? []));
      const wrong = observed && judged.find(({ outcome }) => outcome === 'fail');
      if (wrong && built.refitted !== undefined) {
        const message = `The engine does not give its known answer: ${wrong.reason}`;
        throw new TrtforgeError('TF_REFIT_FAILED', message, {
          remedy: buildInstead({ planPath, passport }, build.modelPath),
        });
      }
      return { answer: own, wrong: wrong?.reason ?? null };
    }
    const isCoded = quantizedFormatNamed(precision) !== undefined;
    const isTyped = isCoded && modelPath !== build.modelPath;
    return { answer: isTyped ? await simulated(answer, modelPath, stop) : answer, wrong: null };
  } catch (error) {
    const isFault =
      !(error instanceof TrtforgeError) || ['TF_PROFILE_INVALID', 'TF_REFIT_FAILED'].includes(error.code);
    if (isFault || signal?.aborted === true) throw error;
    return error.code === 'TF_CANCELLED'
      ? `the reference takes longer than ${formatMs(limitMs)}, a fifth of the build; --known-answer waits for it`
      : error.message;
  }
}

/** The precision an engine computes in by its recipe: its conversion's or model's; products of FP32 are TF32 unless the recipe states otherwise. */
export function precisionOf(
  { precision, flags }: { readonly precision: string; readonly flags: readonly string[] },
  ofModel: readonly VerifyPrecision[] = [],
): VerifyPrecision {
  const lowest = formatNamed(precision)?.id ?? ofModel[0] ?? 'fp32';
  return lowest === 'fp32' && !flags.includes('no-tf32') ? 'tf32' : lowest;
}

/** The answer with what the engine gives here, and what was observed; null where it does not run, or not before `limit`. Throws TF_CANCELLED of `signal`. */
export async function measured(
  answer: KnownAnswer,
  planPath: string,
  { limit, ...options }: Parameters<typeof observeEngine>[1] & Pick<AnswerContext, 'limit'>,
  widens = true,
): Promise<{ readonly answer: KnownAnswer; readonly observed: Observed | null }> {
  const { signal, environment = process.env } = options;
  const stop = AbortSignal.any([signal, limit].flatMap((each) => each ?? []));
  try {
    const observed = await observeEngine(proofOf(planPath, environment, answer), {
      ...options,
      signal: stop,
    });
    const { gpu, driver, library, found } = observed;
    return { answer: withMeasured(answer, { gpu: gpu.name, driver, library }, found, widens), observed };
  } catch (error) {
    if (error instanceof TrtforgeError && signal?.aborted !== true) return { answer, observed: null };
    throw error;
  }
}

/** The answer with what codes are off on the CPU, for an engine that does not run here. */
async function simulated(answer: KnownAnswer, model: string, signal: AbortSignal): Promise<KnownAnswer> {
  const { found } = await runAnswer(model, answer, { signal });
  return withMeasured(answer, null, found);
}

/** The checks that a model has on any back end: its answers, the same inputs again, rows that are the same. Throws what opening throws, TF_CANCELLED. */
export async function runAnswer(
  file: string,
  answer: KnownAnswer,
  { backEnds, ...work }: Omit<AnswerContext, 'limit'> = {},
): Promise<Checked> {
  await using session = await openSession(file, {}, work, backEnds);
  return await runChecks(sessionRunner(session, work.signal), answer);
}

/**
 * An engine for a model: from the stores when the same was built before, else built, checked and kept, with a known answer in its passport. While this process lives,
 * eviction leaves the engine in the store alone.
 *
 * ```ts
 * const { engine, source, passport } = await buildOrLoad({ model: 'resnet50.onnx', precision: 'fp16', target: 'tensorrt-rtx:sm_89' });
 * ```
 * Errors: those of `openStores`, `resolveBuild` and `obtainEngine`.
 */
export async function buildOrLoad(
  requested: BuildOptions,
  context: BuildSeams = {},
): Promise<ObtainedEngine> {
  const { model, plugins = [], trustKeys = [], signKey, knownAnswer } = requested;
  const full = { answer: answerMaker(knownAnswer), ...context };
  return protectingInputs([model, ...plugins, ...trustKeys, signKey], async () => {
    return closing(await openStores(requested, context.environment), async (stores) => {
      return await obtainEngine(await resolveBuild(requested, full), stores, full);
    });
  });
}

/** The engine to refit, the model whose weights it is to have, and where it is written. */
export const refitOptions = {
  /** Path of an engine that was built with `refit`, with its passport beside it. */
  engine: needed(is.text),
  /** Path of an ONNX model with the engine's graph. */
  model: needed(is.text),
  /** Path of the refitted engine. */
  output: needed(is.text, {
    flags: '-o, --output <file>',
    describe: 'where the refitted engine goes, its passport beside it',
    writes: ['a TensorRT plan'],
    required: '-o new.engine',
  }),
  device: { ...buildOptions.device, describe: 'which visible GPU refits the engine (default: 0)' },
  plugins: loadOptions.plugins,
  toolchain: buildOptions.toolchain,
  allowHostCode: loadOptions.allowHostCode,
  identity: loadOptions.identity,
  ...signatureOptions,
};

/**
 * An engine with the weights of another model in place of a new build, on the GPU that runs it: its recipe and target are the engine's, its known answer is that of the
 * model. The engine stays as it is, and nothing is written where that fails.
 * Errors: those of `readPlanOnDisk` and `resolveBuild`; TF_ENGINE_NOT_REFITTABLE; TF_REFIT_MODEL_MISMATCH before any work on the GPU; TF_OPTION_UNSUPPORTED;
 * TF_REFIT_FAILED, also where the engine does not give its known answer.
 */
export async function refitEngine(
  {
    engine,
    identity,
    allowHostCode = false,
    requireSignature,
    trustKeys = [],
    signKey,
    ...requested
  }: OptionsOf<typeof refitOptions>,
  context: BuildContext = {},
): Promise<ObtainedEngine> {
  const { model, plugins = [] } = requested;
  const { environment = process.env } = context;
  return protectingInputs([model, engine, ...plugins, ...trustKeys, signKey], async () => {
    const keys = { requireSignature, trustKeys, signKey };
    const stores = await openStores({ store: false, remote: false, ...keys }, environment);
    // What is signed is made only of what was signed, and that nobody else can change meanwhile.
    const { required, signingKey } = stores.trust;
    const trust = { ...stores.trust, required: required || signingKey !== null };
    using plan = await readPlanOnDisk(engine, { requirePassport: true, identity, trust });
    const skeleton = skeletonOf(plan);
    const build = await resolveRefit(skeleton, requested, context);
    await toolchainForPlan(plan, { toolchain: build.toolchain, allowHostCode, environment });
    return await obtainEngine(build, stores, {
      ...context,
      build: refittingBuilder(skeleton, { planPath: plan.loadPath, load: { allowHostCode } }),
      phase: 'refit',
      areSizesKnown: true,
      answer: answerMaker(true, { allowHostCode }),
    });
  });
}
