import { dtypes } from '../../../formats/tensor/dtype.js';
import type { Contract, ContractBinding } from './contract.js';

type Named = Omit<ContractBinding, 'role'>;

/** An input and the output that becomes its next content, by their names. */
export interface NamedPair {
  readonly input: string;
  readonly output: string;
}

/** The names that exporters have for an output that is fed back into `name`. */
function outputNames(name: string): readonly string[] {
  const stem = name.replace(/(?:[_.](?:in|input|prev|previous|last)|^(?:prev|previous|past|old)[_.])/i, '');
  const past = name.replace(/\bpast(?:_key_values|_key_value)?\b/, 'present');
  const stems = [...new Set([name, stem])];
  return [
    ...stems.flatMap((each) => [
      `${each}_out`,
      `${each}_next`,
      `${each}_output`,
      `${each}_new`,
      `${each}.out`,
    ]),
    ...stems.flatMap((each) => [`next_${each}`, `new_${each}`, `out_${each}`, `present_${each}`]),
    ...(past === name ? [] : [past, past.replace('present', 'present_key_values')]),
    ...(stem === name ? [] : [stem]),
  ];
}

/** Pairs inputs with outputs by name; both must be of one dtype and rank where these are known, and no output feeds two inputs. */
export function pairByName(inputs: readonly Named[], outputs: readonly Named[]): readonly NamedPair[] {
  const taken = new Set<string>();
  return inputs.flatMap((input): NamedPair[] => {
    const output = outputNames(input.name)
      .filter((name) => name !== input.name && !taken.has(name))
      .map((name) => outputs.find((candidate) => candidate.name === name))
      .find((candidate) => candidate !== undefined && canFeed(candidate, input));
    if (output === undefined) return [];
    taken.add(output.name);
    return [{ input: input.name, output: output.name }];
  });
}

const canFeed = (output: Named, input: Named): boolean =>
  (output.dtype === null || input.dtype === null || output.dtype === input.dtype) &&
  (output.shape === null || input.shape === null || output.shape.length === input.shape.length);

/** Which tensors are lengths: of integers, and called so. */
export function lengthsAmong(
  inputs: readonly Named[],
  outputs: readonly Named[],
  pairs: readonly NamedPair[],
): Contract['lengths'] {
  const [fedBack, feeding] = [pairs.map(({ input }) => input), pairs.map(({ output }) => output)];
  const plain = (tensors: readonly Named[], others: readonly string[]): string | null =>
    tensors.find((tensor) => isLength(tensor) && !others.includes(tensor.name))?.name ?? null;
  const state = pairs.find(({ input }) => isLength(named(inputs, input)));
  return {
    signal: plain(inputs, fedBack),
    result: plain(outputs, feeding),
    stateIn: state?.input ?? null,
    stateOut: state?.output ?? null,
  };
}

export const isLength = ({ name, dtype }: Named): boolean =>
  /len(?:gth)?s?(?:_(?:in|out|next))?$/i.test(name) && (dtype === null || isInteger(dtype));

const isInteger = (dtype: NonNullable<Named['dtype']>): boolean =>
  dtypes[dtype].kind === 'int' || dtypes[dtype].kind === 'uint';

/** The input that is cut into chunks: floating point, not state, with an axis besides the batch that is open. */
export function signalAmong(inputs: readonly Named[], pairs: readonly NamedPair[]): Named | null {
  const candidates = inputs.filter(
    ({ name, dtype }) =>
      !pairs.some(({ input }) => input === name) && (dtype === null || dtypes[dtype].kind === 'float'),
  );
  return candidates.find((candidate) => openAxis(candidate) !== null) ?? candidates[0] ?? null;
}

/** The last axis without a number, the batch excepted; null where there is none. */
export function openAxis({ shape }: Named): number | null {
  if (shape === null) return null;
  const axis = shape.findLastIndex((size, at) => typeof size !== 'number' && at > 0);
  return axis < 0 ? null : axis;
}

/** Every binding with its role. */
export function withRoles(
  bindings: readonly Named[],
  pairs: readonly NamedPair[],
  lengths: Contract['lengths'],
  signal: string | null,
  side: 'inputs' | 'outputs',
): readonly ContractBinding[] {
  const roleOf = (binding: Named): ContractBinding['role'] => {
    const { name, dtype } = binding;
    const isState = pairs.some(({ input, output }) => name === (side === 'inputs' ? input : output));
    if (isState) return isLength(binding) ? 'state-length' : 'state';
    if (name === lengths.signal || name === lengths.result) return 'length';
    if (name === signal) return 'signal';
    return side === 'outputs' && (dtype === null || dtypes[dtype].kind === 'float') ? 'result' : 'other';
  };
  return bindings.map((binding) => ({ ...binding, role: roleOf(binding) }));
}

function named(bindings: readonly Named[], name: string): Named {
  return bindings.find((binding) => binding.name === name) ?? { name, dtype: null, shape: null };
}
