import { dtypes } from '../tensor/dtype.js';
import type { Contract, ContractBinding, StatePair, UndecidedState } from './contract.js';
import { isLength, isStateLike, mayFeed, sameStem } from './state.js';

type Named = Omit<ContractBinding, 'role'>;

/** The inputs without a pair that read like a state, have an output of their name, or one of their shape beside another input that is streamed. */
export function undecidedStates(
  inputs: readonly Named[],
  outputs: readonly Named[],
  pairs: readonly StatePair[],
): UndecidedState[] {
  const left = outputs.filter(({ name }) => !pairs.some(({ output }) => output === name));
  const signal = signalAmong(inputs, pairs)?.name;
  return inputs.flatMap((input): UndecidedState[] => {
    if (pairs.some((pair) => pair.input === input.name)) return [];
    const candidates = left.filter((output) => mayFeed(output, input));
    const named = sameStem(input, left);
    const of = (found: readonly { readonly name: string }[], reason: UndecidedState['reason']) =>
      found.length === 0 ? [] : [{ input: input.name, candidates: found.map(({ name }) => name), reason }];
    if (isStateLike(input.name)) return of(candidates, 'no-name');
    if (named.length > 0) return of(named, 'reads-like-signal');
    const isFixed = openAxis(input) === null && (input.shape?.length ?? 0) > 1 && input.name !== signal;
    return isFixed ? of(candidates.filter(sameSizes(input)), 'shape-only') : [];
  });
}

const sameSizes =
  ({ shape }: Named) =>
  (output: Named): boolean =>
    shape?.every((size, at) => at === 0 || size === output.shape?.[at]) === true;

/** Which tensors are lengths: of integers, and called so. */
export function lengthsAmong(
  inputs: readonly Named[],
  outputs: readonly Named[],
  pairs: readonly StatePair[],
): Contract['lengths'] {
  const [fedBack, feeding] = [pairs.map(({ input }) => input), pairs.map(({ output }) => output)];
  const plain = (tensors: readonly Named[], others: readonly string[]): string | null =>
    tensors.find((tensor) => isLength(tensor) && !others.includes(tensor.name))?.name ?? null;
  const state = pairs.find(({ input }) => inputs.some((each) => each.name === input && isLength(each)));
  return {
    signal: plain(inputs, fedBack),
    result: plain(outputs, feeding),
    stateIn: state?.input ?? null,
    stateOut: state?.output ?? null,
  };
}

/** The input that is cut into chunks: floating point, not state, with an axis besides the batch that is open. */
export function signalAmong(inputs: readonly Named[], pairs: readonly StatePair[]): Named | null {
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
  pairs: readonly StatePair[],
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
