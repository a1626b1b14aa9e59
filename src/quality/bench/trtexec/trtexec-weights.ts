import type { Passport } from '../../../engines/identity/passport-file.js';
import { notStreamed } from '../../../engines/runtime/tensorrt/weight-budget.js';
import type { TrtexecLog } from '../../../tensorrt/trtexec/log/result.js';
import type { BenchRequest } from '../request.js';
import type { BenchSubject } from '../result.js';

/** Refuses a budget for weights that are not streamed, where the passport says so. Throws TF_OPTION_UNSUPPORTED. */
export function checkStreamable({ engine, weightBudget }: BenchRequest, passport: Passport | null): void {
  if (weightBudget === undefined || passport === null) return;
  if (!passport.identity.document.recipe.flags.includes('weight-streaming')) throw notStreamed(engine);
}

/** The same by the log: to a budget for weights that are not streamed trtexec says nothing at all. Throws TF_OPTION_UNSUPPORTED. */
export function requireStreamed({ engine, weightBudget }: BenchRequest, log: TrtexecLog): void {
  if (weightBudget !== undefined && log.engine.weightBudget === null) throw notStreamed(engine);
}

/** What a log says of streamed weights. How many can be streamed it says only where no budget was asked for: then all of them stay on the GPU. */
export function weightFacts(
  { weightBudget: asked }: BenchRequest,
  { engine: { weightBudget: set } }: TrtexecLog,
): Pick<BenchSubject, 'streamableWeightsBytes' | 'weightBudgetBytes' | 'weightBudgetAsked'> {
  return {
    ...(typeof set === 'number' && asked === undefined ? { streamableWeightsBytes: set } : {}),
    ...(typeof set === 'number' ? { weightBudgetBytes: set } : {}),
    ...(asked === undefined ? {} : { weightBudgetAsked: asked }),
  };
}
