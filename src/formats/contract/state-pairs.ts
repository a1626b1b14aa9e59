import type { StatePair } from './contract.js';

/** An input or output, as far as it is known. */
export interface Named {
  readonly name: string;
  readonly dtype: string | null;
  /** Symbols of open axes, null for those without. */
  readonly shape: readonly (number | string | null)[] | null;
}

/** Parts that exporters add to the name of a state, to distinguish its input from its output. */
const AFFIX =
  /^(?:in|input|prev|previous|last|past|old|init|initial|out|output|next|new|updated|present|cur|current|n)$/;
/** Parts of a name that only states have, and those that only what is streamed has. */
const STATE =
  /^(?:.*(?:states?|cache[sd]?|hidden|memory)|mem|past|prev|previous|rnn|lstm|gru|buf|buffers?|[hc][nx]?)$/;
const SIGNAL =
  /^(?:audio|signal|wave(?:form)?|wav|pcm|speech|noisy|mix(?:ture)?|feats?|features?|frames?|mels?|fbank|spec(?:trogram)?|stft|images?|tokens?|ids|text|src|source|chunk|samples?|sr|x|y|len(?:gth)?s?)$/;

/** `past_key_values.0.key` is past, 0, key; `stateN` state, n; `h0` h, 0. */
const partsOf = (name: string): readonly string[] =>
  name
    .replace(/(past|present)_key_values?/i, '$1')
    .replace(/([a-z])([A-Z\d])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z\d]+/);

/** The common part of a state's names on both sides; empty where they have nothing else than affixes. */
function stemOf(name: string): string {
  const parts = partsOf(name).filter((part) => !AFFIX.test(part));
  const kept = parts.length > 1 && parts.at(-1) === '0' ? parts.slice(0, -1) : parts;
  return kept.map((part) => part.replace(/^([a-z])n$/, '$1')).join('_');
}

export const isStateLike = (name: string): boolean => partsOf(name).some((part) => STATE.test(part));
const isSignalLike = (name: string): boolean =>
  !isStateLike(name) && partsOf(name).some((part) => SIGNAL.test(part));

/** An output that becomes an input of the next step as it is; zeros before the first. */
export const statePair = (input: string, output: string): StatePair => ({
  ...{ input, output, initial: 0, axis: null, capacity: null },
  ...{ padSide: 'right', fillValue: 0, validLength: null },
});

/**
 * Pairs inputs with outputs by type, shape and the stem of their names; no output feeds two inputs. A name that does not read like a state counts only where
 * the shapes are the same and another input is left that is streamed. `feeds`: by default also outputs that must be cut or filled up between steps.
 */
export function pairStates(
  inputs: readonly Named[],
  outputs: readonly Named[],
  feeds = mayFeed,
): readonly StatePair[] {
  const fed = new Map<Named, Named>();
  const pair = (input: Named) => {
    const found = sameStem(input, outputs, feeds).find((output) => ![...fed.values()].includes(output));
    if (found !== undefined) fed.set(input, found);
  };
  const isState = ({ name }: Named) => isStateLike(name);
  for (const input of inputs.filter(isState)) pair(input);
  for (const input of inputs.filter((each) => !isState(each) && !isSignalLike(each.name)))
    if (inputs.some((each) => each !== input && !isLength(each) && !fed.has(each))) pair(input);
  return inputs.flatMap((input) => (fed.has(input) ? [fittedPair(input, fed.get(input)!)] : []));
}

/** Filled up along the axis on which the input has a number and the output has not. */
function fittedPair(input: Named, output: Named): StatePair {
  const pair = statePair(input.name, output.name);
  const sizes = isLength(input) || output.shape === null ? [] : (input.shape ?? []);
  const axis = sizes.findIndex(
    (size, at) => typeof size === 'number' && typeof output.shape?.[at] !== 'number',
  );
  return axis < 0 ? pair : { ...pair, axis, capacity: sizes[axis] as number };
}

/** Outputs that an input may come back as by its name, the one with most affixes first: `h_in` is the next `h_out`, not `h`. */
export const sameStem = (
  input: Named,
  outputs: readonly Named[],
  feeds: typeof mayFeed = mayFeed,
): readonly Named[] =>
  outputs
    .filter(({ name }) => name !== input.name && stemOf(name) !== '' && stemOf(name) === stemOf(input.name))
    .filter((output) => feeds(output, input))
    .toSorted((a, b) => partsOf(b.name).length - partsOf(a.name).length);

/** As `canFeed`; a state may have another size along the axis of its positions, and is cut or filled up. */
export const mayFeed = (output: Named, input: Named): boolean =>
  unequalSizes(output, input) <= (isStateLike(input.name) ? 1 : 0);

/** Whether an output is the next content of an input as it is: one type, rank and size, where they are known. */
export const canFeed = (output: Named, input: Named): boolean => unequalSizes(output, input) === 0;

/** Axes whose sizes are known and differ; infinitely many where types or ranks do. */
function unequalSizes(output: Named, input: Named): number {
  if (output.dtype !== null && input.dtype !== null && output.dtype !== input.dtype) return Infinity;
  const { shape } = input;
  if (output.shape === null || shape === null) return 0;
  if (output.shape.length !== shape.length) return Infinity;
  return output.shape.filter(
    (size, at) => typeof size === 'number' && typeof shape[at] === 'number' && size !== shape[at],
  ).length;
}

export const isLength = ({ name, dtype }: Named): boolean =>
  /len(?:gth)?s?(?:_(?:in|out|next))?$/i.test(name) && (dtype === null || /^u?int/.test(dtype));
