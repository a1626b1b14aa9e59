import { plural } from '../base/text/quantity.js';
import { describedInput } from '../engines/run/inputs.js';
import type { SamplePlan } from '../quality/verify/sample-plan.js';
import { type PlanStep, step } from './plan.js';

interface PlannedSide {
  readonly file: string;
  readonly backend: string;
}

/** Both sides on the same samples: each input with its shape and where its values come from, then the runs. */
export const verificationSteps = (
  reference: PlannedSide & { readonly plan: SamplePlan },
  candidate: PlannedSide,
  { seed }: { readonly seed: number },
): readonly PlanStep[] => [
  ...reference.plan.inputs.map((input) => {
    const { name, dtype, shape, from } = describedInput(input);
    return step('input', name, { detail: `${dtype} [${shape.join(', ')}], ${from}` });
  }),
  ...[reference, candidate].map(({ file, backend }) =>
    step('run', file, { detail: `${backend}; ${plural(reference.plan.firstRound, 'sample')}, seed ${seed}` }),
  ),
];
