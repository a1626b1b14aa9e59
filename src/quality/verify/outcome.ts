export type VerifyOutcome = 'pass' | 'fail' | 'inconclusive';

/** The worst last. */
export const outcomesBySeverity: readonly VerifyOutcome[] = ['pass', 'inconclusive', 'fail'];

/** The worst of some outcomes: fail before inconclusive before pass; of none it is inconclusive. */
export const worst = (outcomes: readonly VerifyOutcome[]): VerifyOutcome =>
  outcomes.length === 0
    ? 'inconclusive'
    : outcomes.reduce((least, outcome) =>
        outcomesBySeverity.indexOf(outcome) > outcomesBySeverity.indexOf(least) ? outcome : least,
      );
