import { dtypes } from '../../../formats/tensor/dtype.js';
import type { Contract, ContractBinding } from './contract.js';

type Named = Omit<ContractBinding, 'role'>;

/** An input and the output that becomes its next content, by their names. */
export interface NamedPair {
  readonly input: string;
  readonly output: string;
}

/** What exporters add to the name of a state, to distinguish what goes in from what comes back. */
const AFFIX =
  /^(?:in|input|prev|previous|last|past|old|init|initial|out|output|next|new|updated|present|cur|current|n)$/;
/** Parts of a name that only states have, and those that only what is streamed has. */
const STATE =
  /^(?:states?|caches?|hidden|mem|memory|past|prev|previous|rnn|lstm|gru|buf|buffers?|[hc][nx]?)$/;
const SIGNAL =
  /^(?:audio|signal|wave(?:form)?|wav|pcm|speech|noisy|mix(?:ture)?|feats?|features?|frames?|mels?|fbank|spec(?:trogram)?|stft|images?|tokens?|ids|text|src|source|chunk|samples?|sr|x|y|len(?:gth)?s?)$/;

/** `past_key_values.0.key` is past, 0, key; `stateN` state, n; `h0` h, 0. */
const partsOf = (name: string): readonly string[] =>
  name
    .replace(/(past|present)_key_values?/i, '$1')
    .replace(/([a-z])([A-Z\d])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z\d]+/);

/** What the names of a state have in common on both sides; empty where they have nothing else than affixes. */
function stemOf(name: string): string {
  const parts = partsOf(name).filter((part) => !AFFIX.test(part));
  const kept = parts.length > 1 && parts.at(-1) === '0' ? parts.slice(0, -1) : parts;
  return kept.map((part) => part.replace(/^([a-z])n$/, '$1')).join('_');
}

const isStateLike = (name: string): boolean => partsOf(name).some((part) => STATE.test(part));
const isSignalLike = (name: string): boolean =>
  !isStateLike(name) && partsOf(name).some((part) => SIGNAL.test(part));

/**
 * Pairs inputs with outputs by type, shape and the stem of their names; no output feeds two inputs. A name that does not read like a state counts only where
 * the shapes are the same and another input is left that is streamed.
 */
export function pairByName(inputs: readonly Named[], outputs: readonly Named[]): readonly NamedPair[] {
  const taken = new Map<string, string>();
  const pair = (input: Named) => {
    const found = sameStem(input, outputs).find(({ name }) => !taken.has(name));
    if (found !== undefined) taken.set(found.name, input.name);
  };
  const isState = ({ name }: Named) => isStateLike(name);
  for (const input of inputs.filter(isState)) pair(input);
  for (const input of inputs.filter((each) => !isState(each) && !isSignalLike(each.name)))
    if (inputs.some((each) => each !== input && !isLength(each) && ![...taken.values()].includes(each.name)))
      pair(input);
  return inputs.flatMap(({ name: input }) =>
    [...taken].flatMap(([output, name]) => (name === input ? [{ input, output }] : [])),
  );
}

/** Outputs that an input may come back as by its name, the one with most affixes first: `h_in` is the next `h_out`, not `h`. */
const sameStem = (input: Named, outputs: readonly Named[]): readonly Named[] =>
  outputs
    .filter(({ name }) => name !== input.name && stemOf(name) !== '' && stemOf(name) === stemOf(input.name))
    .filter((output) => canFeed(output, input))
    .toSorted((a, b) => partsOf(b.name).length - partsOf(a.name).length);

/** One type and rank, where they are known; a state may have another size along the axis of its positions. */
function canFeed(output: Named, input: Named): boolean {
  if (output.dtype !== null && input.dtype !== null && output.dtype !== input.dtype) return false;
  if (output.shape === null || input.shape === null) return true;
  const { shape } = input;
  const other = output.shape.filter(
    (size, at) => typeof size === 'number' && typeof shape[at] === 'number' && size !== shape[at],
  );
  return output.shape.length === shape.length && other.length <= (isStateLike(input.name) ? 1 : 0);
}

/** An input that may be a state: what it could come back as, and why nothing was decided. */
interface Undecided {
  readonly input: string;
  /** Outputs of its type and shape that feed nothing. */
  readonly candidates: string[];
  readonly reason: 'no-name' | 'reads-like-signal' | 'shape-only';
}

/** The inputs without a pair that read like a state, have an output of their name, or one of their shape beside another input that is streamed. */
export function undecidedStates(
  inputs: readonly Named[],
  outputs: readonly Named[],
  pairs: readonly NamedPair[],
): readonly Undecided[] {
  const left = outputs.filter(({ name }) => !pairs.some(({ output }) => output === name));
  const signal = signalAmong(inputs, pairs)?.name;
  return inputs.flatMap((input): Undecided[] => {
    if (pairs.some((pair) => pair.input === input.name)) return [];
    const candidates = left.filter((output) => canFeed(output, input));
    const named = sameStem(input, left);
    const of = (found: readonly Named[], reason: Undecided['reason']) =>
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
