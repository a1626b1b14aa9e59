import { shellLine } from '../../base/process/shell-quote.js';
import { sessionOf } from '../../engines/runtime/tensorrt/engine-session.js';
import type { LoadedEngine } from '../../engines/runtime/tensorrt/load-engine.js';
import type { KnownAnswer } from './answer.js';
import { bareAnswer } from './bare-answer.js';
import { placed } from './checked.js';
import type { AnswerCheck, EngineCheck } from './result.js';
import { runChecks } from './run-checks.js';
import { EngineRunner } from './runner.js';
import type { Sketch } from './sketch.js';

export interface LoadedCheckOptions {
  /** Default: that of the passport or of the file beside the plan. */
  readonly answer?: KnownAnswer;
  readonly repeat?: number;
  readonly signal?: AbortSignal;
}

/** What the check of an engine found, and what it gave, for a comparison with another. */
export interface CheckedEngine {
  readonly result: EngineCheck;
  readonly found: readonly (readonly Sketch[])[];
}

/** Checks an engine that is loaded, in this process; it stays open. Throws TF_PASSPORT_INVALID, TF_CANCELLED. */
export async function checkLoaded(
  engine: LoadedEngine,
  { answer: passed, repeat, signal }: LoadedCheckOptions = {},
): Promise<CheckedEngine> {
  const { plan } = engine;
  const { answer: own, ...place } = placed(plan, { ...engine, driver: engine.addon.gpus().driverVersion });
  const answer = passed ?? own;
  const started = performance.now();
  // Closing a session closes its engine, which is the caller's.
  const session = sessionOf({ ...engine, close: async () => {} }, {});
  const runner = new EngineRunner(session, signal);
  const { checks, found } = await runChecks(runner, answer ?? bareAnswer(session.inputs), repeat).finally(
    async () => {
      await runner[Symbol.asyncDispose]();
      await session.close();
    },
  );
  return {
    found,
    result: {
      schema: 'trtforge.engine-check/1',
      engine: plan.path,
      ...place,
      answer: answer === undefined ? null : plan.passport?.knownAnswer === answer ? 'passport' : 'file',
      reference: answer?.reference ?? null,
      ...concluded(plan.path, checks, answer !== undefined, plan.passport?.model.name),
      recorded: null,
      builtOn: answer?.builtOn ?? null,
      ms: performance.now() - started,
      at: new Date().toISOString(),
    },
  };
}

/** The verdict over all checks: without a known answer nothing says that what an engine gives is right. */
export function concluded(
  planPath: string,
  checks: readonly AnswerCheck[],
  isAnswered: boolean,
  model: string | undefined,
): Pick<EngineCheck, 'checks' | 'outcome' | 'reasons' | 'next'> {
  const reasons = checks.flatMap((check) =>
    check.outcome === 'pass' || check.outcome === null ? [] : check.reasons,
  );
  const isWrong = checks.some(({ outcome }) => outcome === 'fail');
  const isOpen = !isAnswered || checks.some(({ outcome }) => outcome === 'inconclusive');
  const none = `${planPath} has no known answer. Record one from its model: ${shellLine(['trtforge', 'engine', 'check', planPath, '--record', '--against', 'model.onnx'])}`;
  return {
    checks: [...checks],
    outcome: isWrong ? 'fail' : isOpen ? 'inconclusive' : 'pass',
    reasons: isAnswered ? reasons : [...reasons, none],
    next: isWrong
      ? shellLine(['trtforge', 'bisect', planPath, '--against', `${model ?? 'model'}.onnx`, '-o', 'bisect'])
      : null,
  };
}
