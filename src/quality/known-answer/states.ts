import { canFeed, pairStates } from '../../formats/contract/state.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import type { KnownAnswer } from './answer.js';
import { type MadeInput, madeInputs } from './made-inputs.js';

/** The output that each input which is a state by its name comes back as, without being cut or filled up. */
export function statesAmong(
  inputs: readonly MadeInput[],
  outputs: NamedTensors,
): Readonly<Record<string, string>> {
  const named = [...outputs].map(([name, { dtype, shape }]) => ({ name, dtype, shape }));
  return Object.fromEntries(pairStates(inputs, named, canFeed).map(({ input, output }) => [input, output]));
}

/** The outputs of the last of several runs, each of which gets other inputs and the states that the run before gave. */
export async function runSteps(
  run: (inputs: NamedTensors) => Promise<NamedTensors>,
  {
    seed,
    inputs,
    steps,
    state,
  }: Pick<KnownAnswer, 'seed' | 'state'> & { readonly inputs: readonly MadeInput[]; readonly steps: number },
  make: (tensors: NamedTensors) => NamedTensors = (tensors) => tensors,
): Promise<NamedTensors> {
  let outputs: NamedTensors = new Map();
  for (let step = 0; step < steps; step++) {
    const fed = Object.entries(state).flatMap(([input, output]) => {
      const tensor = outputs.get(output);
      return tensor === undefined ? [] : [[input, tensor] as const];
    });
    outputs = await run(new Map([...make(madeInputs({ seed }, inputs, step)), ...fed]));
  }
  return outputs;
}
