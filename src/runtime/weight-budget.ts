import { TrtforgeError } from '../errors.js';

/** The addon would take any word for «automatic» and any number for bytes. Throws TF_SIZE_INVALID. */
export function checkWeightBudget(budget: number | 'automatic' | undefined): void {
  if (budget === undefined || budget === 'automatic') return;
  if (Number.isSafeInteger(budget) && budget >= 0) return;
  throw new TrtforgeError(
    'TF_SIZE_INVALID',
    `A weight budget of ${budget} is neither bytes nor «automatic».`,
  );
}
