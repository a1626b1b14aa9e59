import type { z } from 'zod';
import type { madeInputSchema } from '../../engines/identity/passport.js';
import { drawInput } from '../../engines/run/drawn-inputs.js';
import { canFeed, pairStates } from '../../formats/contract/state.js';
import { type Dtype, dtypes, elementCount, packedBytes } from '../../formats/tensor/dtype.js';
import {
  type IntegerDtype,
  integerTensor,
  type NamedTensors,
  type Tensor,
} from '../../formats/tensor/tensor.js';
import type { KnownAnswer } from './answer.js';

export type MadeInput = z.infer<typeof madeInputSchema>;

/** So many floats are drawn, and repeat: drawing a batch of images would take longer than running it. A prime, so that no two rows are the same. */
const DRAWN = 65_521;

/** An input by its recipe, in the reference's type. The same on every machine. */
function madeInput({ name, dtype: type, shape, spread }: MadeInput, seed: number, sample: number): Tensor {
  const dtype = type as Dtype;
  if (spread.kind === 'values') return integerTensor(dtype as IntegerDtype, shape, spread.values);
  const range = { spread, reason: '' };
  const isLong = elementCount(shape) > DRAWN && dtypes[dtype].kind === 'float' && spread.kind !== 'mask';
  if (!isLong) return drawInput({ name, dtype }, shape, range, seed, sample);
  const { bytes: block } = drawInput({ name, dtype }, [DRAWN], range, seed, sample);
  const bytes = Buffer.allocUnsafe(packedBytes(dtype, elementCount(shape)));
  for (let at = 0; at < bytes.length; at += block.length) bytes.set(block.subarray(0, bytes.length - at), at);
  return { dtype, shape, bytes };
}

/** The answer without inputs that the engine does not have: they are not drawn. */
export const ofEngine = (
  answer: KnownAnswer,
  { inputs: own }: { readonly inputs: readonly { readonly name: string }[] },
): KnownAnswer => ({
  ...answer,
  cases: answer.cases.map((each) => ({
    ...each,
    inputs: each.inputs.filter(({ name }) => own.some((input) => input.name === name)),
  })),
});

/** All inputs of a case; samples other than 0 have other values. */
export const madeInputs = (
  { seed }: Pick<KnownAnswer, 'seed'>,
  inputs: readonly MadeInput[],
  sample = 0,
): NamedTensors => new Map(inputs.map((input) => [input.name, madeInput(input, seed, sample)]));

/** Number of rows in the inputs of a case; undefined where they have no first axis of one size, of two at least. */
export function rowsOf(inputs: readonly MadeInput[]): number | undefined {
  const [rows, ...others] = new Set(
    inputs.flatMap(({ shape, spread }) => (spread.kind === 'values' ? [] : [shape[0] ?? 0])),
  );
  return rows !== undefined && rows > 1 && others.length === 0 ? rows : undefined;
}

/** Every row of each input is its first one. */
export const sameRows = (tensors: NamedTensors, inputs: readonly MadeInput[]): NamedTensors =>
  new Map(
    inputs.map(({ name, spread }) => {
      const tensor = tensors.get(name)!;
      if (spread.kind === 'values') return [name, tensor];
      const [rows = 1] = tensor.shape;
      const row = tensor.bytes.subarray(0, tensor.bytes.length / rows);
      return [name, { ...tensor, bytes: Buffer.concat(Array.from({ length: rows }, () => row)) }];
    }),
  );

/** The rows of an output of so many; undefined where it has another first axis. */
export function outputRows({ dtype, shape, bytes }: Tensor, rows: number): readonly Tensor[] | undefined {
  if (shape[0] !== rows || bytes.length % rows !== 0) return undefined;
  const width = bytes.length / rows;
  return Array.from({ length: rows }, (_, row) => ({
    dtype,
    shape: shape.slice(1),
    bytes: bytes.subarray(row * width, (row + 1) * width),
  }));
}

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
