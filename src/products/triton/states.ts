import { z } from 'zod';
import type { Passport } from '../../engines/identity/passport.js';
import { pairByName } from '../../engines/run/state-names.js';
import type { Dtype } from '../../formats/tensor/dtype.js';

/** What is read of a contract (`trtforge.contract/1`); `stream check` checks the whole of it. */
export const contractSchema = z.looseObject({
  schema: z.literal('trtforge.contract/1'),
  inputs: z
    .array(
      z.looseObject({
        name: z.string(),
        shape: z
          .array(z.union([z.number(), z.string(), z.null()]))
          .nullable()
          .default(null),
      }),
    )
    .default([]),
  state: z
    .array(
      z.looseObject({
        input: z.string(),
        output: z.string(),
        /** Of every element before the first request. */
        initial: z.number().default(0),
      }),
    )
    .default([]),
});
export type Contract = Pick<z.infer<typeof contractSchema>, 'inputs' | 'state'>;

/** An output that becomes an input of the next step. */
export type StatePair = Pick<Contract['state'][number], 'input' | 'output' | 'initial'>;

/** What the known answer of an engine feeds back. */
export const knownStates = ({ knownAnswer }: Passport): readonly StatePair[] =>
  Object.entries(knownAnswer?.state ?? {}).map(([input, output]) => ({ input, output, initial: 0 }));

/** Pairs by the names of inputs and outputs. */
export const statesByName = ({ plan }: Passport): readonly StatePair[] => {
  const typed = (tensors: Passport['plan']['inputs']) =>
    tensors.map((tensor) => ({ ...tensor, dtype: tensor.dtype as Dtype }));
  return pairByName(typed(plan.inputs), typed(plan.outputs)).map((pair) => ({ ...pair, initial: 0 }));
};

/** The output that is fed into each input: core goes through both side by side, each sorted by name (`SequenceStates::OutputState`), whatever the configuration pairs. */
export function fedByOrder(
  pairs: readonly Pick<StatePair, 'input' | 'output'>[],
): ReadonlyMap<string, string> {
  const outputs = pairs.map(({ output }) => output).toSorted();
  const inputs = pairs.map(({ input }) => input).toSorted();
  return new Map(inputs.map((input, at) => [input, outputs[at]!]));
}
