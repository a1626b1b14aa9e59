import type { EngineBinding } from '../../engines/runtime/tensorrt/engine-interface.js';
import { dtypes } from '../../formats/tensor/dtype.js';
import type { KnownAnswer } from './answer.js';
import type { MadeInput } from './made-inputs.js';

/** Inputs for an engine that has no known answer, at the optimum of its first profile: what it gives can only be compared with itself. */
export function bareAnswer(inputs: readonly EngineBinding[]): KnownAnswer {
  const hasProfiles = inputs.some(({ profiles }) => profiles.length > 0);
  const made = inputs.map(({ name, dtype, shape, hostValues, profiles: [range] }): MadeInput => {
    if (hostValues)
      return {
        name,
        dtype,
        shape: [...shape] as number[],
        spread: { kind: 'values', values: [...range!.opt] },
      };
    // Small integers are indices of any table.
    const spread =
      dtypes[dtype].kind === 'float'
        ? ({ kind: 'normal', mean: 0, deviation: 1 } as const)
        : ({ kind: 'uniform', low: 0, high: 1 } as const);
    return { name, dtype, shape: [...(range?.opt ?? (shape as number[]))], spread };
  });
  const one = { name: hasProfiles ? 'profile 0, opt' : 'fixed shapes', profile: hasProfiles ? 0 : null };
  return {
    schema: 'trtforge.known-answer/1',
    reference: '',
    precision: 'tf32',
    seed: 0,
    generator: 1,
    cases: [{ ...one, steps: 1, inputs: made, outputs: [] }],
    rows: null,
    state: {},
    left: [],
    builtOn: null,
  };
}
