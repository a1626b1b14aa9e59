import { type Dtype, dtypes } from '../../formats/tensor/dtype.js';

/** An input or output, as far as it is known. */
export interface Named {
  readonly name: string;
  readonly dtype: Dtype | null;
  readonly shape: readonly (number | string | null)[] | null;
}

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

export const isStateLike = (name: string): boolean => partsOf(name).some((part) => STATE.test(part));
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
export const sameStem = (input: Named, outputs: readonly Named[]): readonly Named[] =>
  outputs
    .filter(({ name }) => name !== input.name && stemOf(name) !== '' && stemOf(name) === stemOf(input.name))
    .filter((output) => canFeed(output, input))
    .toSorted((a, b) => partsOf(b.name).length - partsOf(a.name).length);

/** One type and rank, where they are known; a state may have another size along the axis of its positions. */
export function canFeed(output: Named, input: Named): boolean {
  if (output.dtype !== null && input.dtype !== null && output.dtype !== input.dtype) return false;
  if (output.shape === null || input.shape === null) return true;
  const { shape } = input;
  const other = output.shape.filter(
    (size, at) => typeof size === 'number' && typeof shape[at] === 'number' && size !== shape[at],
  );
  return output.shape.length === shape.length && other.length <= (isStateLike(input.name) ? 1 : 0);
}

export const isLength = ({ name, dtype }: Named): boolean =>
  /len(?:gth)?s?(?:_(?:in|out|next))?$/i.test(name) && (dtype === null || isInteger(dtype));

const isInteger = (dtype: NonNullable<Named['dtype']>): boolean =>
  dtypes[dtype].kind === 'int' || dtypes[dtype].kind === 'uint';
