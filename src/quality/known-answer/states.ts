import { pairByName } from '../../engines/run/state-names.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import type { KnownAnswer } from './answer.js';
import { type MadeInput, madeInputs } from './made-inputs.js';

/** Inputs that are states by their names, and the outputs of the same type and shape that become them. */
export function pairStates(
  inputs: readonly MadeInput[],
  outputs: NamedTensors,
): Readonly<Record<string, string>> {
  const named = [...outputs].map(([name, { dtype, shape }]) => ({ name, dtype, shape }));
  const own = inputs.map(({ name, dtype, shape }) => ({ name, dtype: dtype as Tensor['dtype'], shape }));
  const isSame = (input: string, output: string) =>
    own.find(({ name }) => name === input)?.shape.join() === outputs.get(output)?.shape.join();
  return Object.fromEntries(
    pairByName(own, named).flatMap(({ input, output }) => (isSame(input, output) ? [[input, output]] : [])),
  );
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
