import type { OpenContext, OpenOptions } from '../../engines/runtime/back-end.js';
import { openSession } from '../../engines/runtime/open-session.js';
import type { KnownAnswer } from './answer.js';
import { type Checked, runChecks } from './run-checks.js';
import { sessionRunner } from './runner.js';

/** The checks that a model has on any back end: its answers, the same inputs again, rows that are the same. Throws what opening throws, TF_CANCELLED. */
export async function runAnswer(
  file: string,
  answer: KnownAnswer,
  { signal, ...context }: OpenContext = {},
  options: OpenOptions = {},
): Promise<Checked> {
  await using session = await openSession(file, options, { ...context, signal });
  return runChecks(sessionRunner(session, signal), answer);
}
