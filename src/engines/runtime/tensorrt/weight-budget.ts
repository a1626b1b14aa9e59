import { TrtforgeError } from '../../../errors.js';

/** A budget for an engine whose recipe streams no weights, known before it is built. Throws TF_SIZE_INVALID, TF_OPTION_UNSUPPORTED. */
export function requireStreaming(
  subject: string,
  flags: readonly string[],
  budget: number | 'automatic' | undefined,
): void {
  checkWeightBudget(budget);
  if (budget === undefined || flags.includes('weight-streaming')) return;
  throw notStreamed(`The engine of ${subject}`, 'is');
}

export const notStreamed = (engine: string, verb: 'is' | 'was' = 'was'): TrtforgeError =>
  new TrtforgeError(
    'TF_OPTION_UNSUPPORTED',
    `${engine} ${verb} not built with weight streaming, so a budget for its weights has no effect.`,
    { remedy: 'Leave the budget out, or build the engine with --builder-config flags=weight-streaming.' },
  );

/** The addon would take any word for `automatic` and any number for bytes. Throws TF_SIZE_INVALID. */
export function checkWeightBudget(budget: number | 'automatic' | undefined): void {
  if (budget === undefined || budget === 'automatic') return;
  if (Number.isSafeInteger(budget) && budget >= 0) return;
  throw new TrtforgeError(
    'TF_SIZE_INVALID',
    `A weight budget of ${budget} is neither bytes nor "automatic".`,
  );
}
