import type { OptionsOf } from '../../../base/options/option.js';
import { TrtforgeError } from '../../../errors.js';
import type { onlyLoadOptions } from '../../../tensorrt/trtexec/request.js';

type Load = OptionsOf<typeof onlyLoadOptions>;

/** Rejects a budget for an engine whose weights are not streamed; `subject` begins the sentence: `model.engine was`. Throws TF_OPTION_UNSUPPORTED. */
export function assertStreamed(subject: string, isStreamed: boolean, { weightBudget }: Load): void {
  if (weightBudget === undefined || isStreamed) return;
  throw new TrtforgeError(
    'TF_OPTION_UNSUPPORTED',
    `${subject} not built with weight streaming, so a budget for its weights has no effect.`,
    { remedy: 'Leave the budget out, or build the engine with --builder-config flags=weight-streaming.' },
  );
}

/** The addon would take any word for `automatic` and any number for bytes. Throws TF_SIZE_INVALID. */
export function checkWeightBudget({ weightBudget: budget }: Load): void {
  if (budget === undefined || budget === 'automatic') return;
  if (Number.isSafeInteger(budget) && budget >= 0) return;
  throw new TrtforgeError(
    'TF_SIZE_INVALID',
    `A weight budget of ${budget} is neither bytes nor "automatic".`,
  );
}

/** For the result of a measurement. */
export const askedBudget = ({ weightBudget }: Load) =>
  weightBudget === undefined ? {} : { weightBudgetAsked: weightBudget };
