import { openSession } from '../../engines/runtime/open-session.js';
import type { KnownAnswer } from './answer.js';
import type { AnswerContext } from './record.js';
import { type Checked, runChecks } from './run-checks.js';
import { sessionRunner } from './runner.js';

/** The checks that a model has on any back end: its answers, the same inputs again, rows that are the same. Throws what opening throws, TF_CANCELLED. */
export async function runAnswer(
  file: string,
  answer: KnownAnswer,
  { emit, signal, backEnds }: Omit<AnswerContext, 'limit'> = {},
): Promise<Checked> {
  await using session = await openSession(file, {}, { emit, signal }, backEnds);
  return await runChecks(sessionRunner(session, signal), answer);
}
