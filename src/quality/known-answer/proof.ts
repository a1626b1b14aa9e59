import { existsSync } from 'node:fs';
import { canonicalJson, sha256 } from '../../base/files/digest.js';
import { shellLine } from '../../base/text/shell-line.js';
import { passportPath } from '../../engines/identity/engine-name.js';
import { readPassport } from '../../engines/identity/passport.js';
import { planDigest, readPlanHeader } from '../../engines/plan/header.js';
import type { PlanFacts } from '../../engines/runtime/tensorrt/load-engine.js';
import type { EngineSessionOptions } from '../../engines/runtime/tensorrt/options.js';
import { askEngine } from '../../engines/runtime/tensorrt/supervised-engine.js';
import { isSignatureRequired } from '../../engines/store/trust.js';
import { worst } from '../verify/outcome.js';
import { hasOutputs, type KnownAnswer, readAnswer, uncovered } from './answer.js';
import type { Observed } from './observe-loaded.js';
import type { AnswerCheck, EngineCheck } from './result.js';

/** A plan and what it has to give. */
export interface Proof extends Pick<EngineCheck, 'planSha256' | 'answerSha256'> {
  readonly plan: PlanFacts;
  /** Undefined where none was recorded. */
  readonly answer: KnownAnswer | undefined;
  readonly mustBeSigned: boolean;
}

/** `passed` is an answer in place of its own. Throws TF_PLAN_INVALID, TF_PASSPORT_INVALID. */
export function proofOf(path: string, environment: NodeJS.ProcessEnv, passed?: KnownAnswer): Proof {
  const passport = existsSync(passportPath(path)) ? readPassport(path) : null;
  const plan = { path, header: readPlanHeader(path), passport };
  return proofOfPlan(plan, isSignatureRequired({}, environment), passed);
}

/** The same of a plan that is read already. Where signatures are required, a file beside it counts neither way: nobody signed it. */
export function proofOfPlan(plan: PlanFacts, mustBeSigned: boolean, passed?: KnownAnswer): Proof {
  const planSha256 = plan.passport?.plan.sha256 ?? planDigest(plan.header);
  const answer = passed ?? readAnswer(plan.path, plan.passport, planSha256, mustBeSigned);
  const answerSha256 = answer === undefined ? null : sha256(canonicalJson(answer));
  return { plan, planSha256, answer, answerSha256, mustBeSigned };
}

/** The line that records an answer of an engine: beside it, or where that has to be signed in the passport of a build. The model is the one in the passport, as it would lie in the working folder. */
export const recordLine = (path: string, name = 'model', mustBeSigned: boolean): string =>
  shellLine([
    'trtforge',
    ...(mustBeSigned
      ? ['build', `${name}.onnx`, '--force-rebuild', '--known-answer']
      : ['engine', 'check', path, '--record', '--against', `${name}.onnx`]),
  ]);

/** The result of the checks: without a known answer nothing shows that an engine's outputs are right. */
export function resultOf(
  { plan: { path, passport }, planSha256, answer, answerSha256, mustBeSigned }: Proof,
  observed: Observed | null,
  {
    recorded = null,
    more = [],
  }: { readonly recorded?: string | null; readonly more?: readonly AnswerCheck[] } = {},
): EngineCheck {
  const { gpu = null, driver = null, library = null, ms = 0 } = observed ?? {};
  const checks = [...(observed?.checks ?? []), ...more];
  const isProof = answer !== undefined && hasOutputs(answer) && observed !== null;
  const outcome = worst([
    isProof ? 'pass' : 'inconclusive',
    ...checks.flatMap((check) => check.outcome ?? []),
  ]);
  const model = `${passport?.model.name ?? 'model'}.onnx`;
  return {
    schema: 'trtforge.engine-check/1',
    engine: path,
    planSha256,
    answerSha256,
    answer: answer === undefined ? null : passport?.knownAnswer === answer ? 'passport' : 'file',
    reference: answer?.reference ?? null,
    gpu,
    driver,
    library,
    checks,
    outcome,
    reasons: [
      ...checks.flatMap((check) => (check.outcome === 'pass' || check.outcome === null ? [] : check.reasons)),
      ...(answer === undefined
        ? [
            `${path} has no known answer. Record one from its model: ${recordLine(path, passport?.model.name, mustBeSigned)}`,
          ]
        : []),
      ...(answer !== undefined && !hasOutputs(answer) ? [`The known answer of ${path} has no outputs.`] : []),
      ...(observed === null ? [`${path} was not checked: it does not run on this machine.`] : []),
    ],
    left: answer === undefined ? [] : [...uncovered(answer)],
    recorded,
    builtOn: answer?.builtOn ?? null,
    ms,
    at: new Date().toISOString(),
    next:
      outcome === 'fail' ? shellLine(['trtforge', 'bisect', path, '--against', model, '-o', 'bisect']) : null,
  };
}

/** The request that `check-child` is sent, besides those of loading. */
export interface Asked extends Pick<Proof, 'answer'> {
  /** Number of runs of the same inputs; default 3. */
  readonly repeat?: number;
}

const childModule = new URL('../../../dist/quality/known-answer/check-child.js', import.meta.url);

/** Checks an engine in a child process. Throws what `askEngine` throws. */
export async function observeEngine(
  { plan: { path }, answer }: Proof,
  { repeat, ...options }: EngineSessionOptions & Pick<Asked, 'repeat'>,
): Promise<Observed> {
  const asked: Asked = { answer, repeat };
  return (await askEngine(childModule, path, options, `checking ${path}`, asked)) as Observed;
}
