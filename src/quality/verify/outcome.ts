import type { VerifyOutcome } from './result.js';

const severity: readonly VerifyOutcome[] = ['pass', 'inconclusive', 'fail'];

/** fail before inconclusive before pass; nothing at all is inconclusive. */
export const worst = (outcomes: readonly VerifyOutcome[]): VerifyOutcome =>
  outcomes.length === 0
    ? 'inconclusive'
    : outcomes.reduce((least, outcome) =>
        severity.indexOf(outcome) > severity.indexOf(least) ? outcome : least,
      );
