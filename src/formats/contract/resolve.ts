import { dtypes } from '../tensor/dtype.js';
import type {
  Assertion,
  CacheLengthRule,
  ChunkSchedule,
  Contract,
  ContractBinding,
  DimensionRange,
  FirstAndRest,
  StatePair,
  UndecidedState,
} from './contract.js';
import { rulesOfSentences, type SentenceSubjects } from './sentences.js';
import { isLength, isStateLike, mayFeed, pairStates, sameStem } from './state.js';

/** The common part of the forms of contract, before anything is concluded. */
export interface StatedContract {
  readonly name: string;
  readonly origin: Contract['origin'];
  readonly inputs: readonly Omit<ContractBinding, 'role'>[];
  readonly outputs: readonly Omit<ContractBinding, 'role'>[];
  /** Output to how it is fitted before it is fed back. */
  readonly padding?: ReadonlyMap<string, StatedPadding>;
  readonly cacheLengthRule?: CacheLengthRule | null;
  readonly chunk?: FirstAndRest | null;
  readonly shift?: FirstAndRest | null;
  /** Frames of the chunk before that are put in front. */
  readonly preEncode?: FirstAndRest | null;
  readonly statedSizes?: readonly number[];
  readonly validOutLength?: number | null;
  /** Dimension key (`audio_signal.T`, `B`) to range. */
  readonly profiles?: readonly {
    readonly name: string;
    readonly dimensions: ReadonlyMap<string, DimensionRange>;
  }[];
  /** Rules in words: `NAME == 1`, or prose. */
  readonly sentences?: readonly string[];
  readonly tolerances?: Contract['tolerances'];
  readonly ignored?: readonly string[];
}

export interface StatedPadding {
  readonly axis: number | null;
  readonly capacity: number | null;
  readonly side: 'right' | 'left';
  readonly fillValue: number;
}

/** Draws the conclusions: what is fed back, which tensors are lengths, how long chunks are, what can be checked. */
export function resolveContract(stated: StatedContract): Contract {
  const pairs = pairStates(stated.inputs, stated.outputs);
  const lengths = lengthsAmong(stated.inputs, stated.outputs, pairs);
  const signal = signalAmong(stated.inputs, pairs);
  const outputs = withRoles(stated.outputs, pairs, lengths, null, 'outputs');
  const results = outputs.filter(({ role }) => role === 'result').map(({ name }) => name);
  const implied = impliedAssertions(stated, lengths.result, lengths.stateOut, results[0] ?? null);
  const said = rulesOfSentences(stated.sentences ?? [], subjectsOf(stated, lengths.stateOut), implied);
  return {
    schema: 'trtforge.contract/1',
    name: stated.name,
    origin: stated.origin,
    inputs: withRoles(stated.inputs, pairs, lengths, signal?.name ?? null, 'inputs'),
    outputs,
    state: pairs.map((pair) => fittedAsStated(pair, stated, lengths.stateOut)),
    lengths,
    cacheLengthRule: stated.cacheLengthRule ?? null,
    schedule: signal === null ? null : scheduleOf(stated, signal),
    profiles: (stated.profiles ?? []).map((profile) => resolveProfile(stated.inputs, profile)),
    assertions: [...implied, ...said.assertions],
    tolerances: stated.tolerances ?? [],
    notExecutable: said.notExecutable,
    ignored: stated.ignored ?? [],
  };
}

function subjectsOf(stated: StatedContract, stateLength: string | null): SentenceSubjects {
  const capacity = stated.cacheLengthRule?.capacity;
  const result = stated.validOutLength;
  return {
    tensors: [...stated.outputs, ...stated.inputs],
    numbers: {
      ...{ cache_size: capacity, capacity, saturated: capacity, full: capacity },
      ...{ valid_out_len: result, valid_out_len_expected: result },
    },
    stateLength,
  };
}

function fittedAsStated(
  pair: StatePair,
  { inputs, padding }: StatedContract,
  stateLength: string | null,
): StatePair {
  const isCounted = stateLength !== pair.output && stateLength?.startsWith(`${pair.input}_len`);
  const counted = { ...pair, validLength: isCounted ? stateLength : null };
  const stated = padding?.get(pair.output);
  const input = inputs.find(({ name }) => name === pair.input);
  if (stated === undefined || input === undefined || isLength(input)) return counted;
  const axis = stated.axis ?? pair.axis;
  const size = axis === null ? null : input.shape?.[axis];
  const capacity = stated.capacity ?? (typeof size === 'number' ? size : null);
  return { ...counted, axis, capacity, padSide: stated.side, fillValue: stated.fillValue };
}

function scheduleOf(stated: StatedContract, signal: Omit<ContractBinding, 'role'>): ChunkSchedule | null {
  const axis = openAxis(signal);
  const { chunk = null, shift = null, preEncode, statedSizes = [] } = stated;
  if (axis === null || (chunk === null && statedSizes.length === 0)) return null;
  const [firstStated = 0, restStated = firstStated] = statedSizes;
  return {
    tensor: signal.name,
    axis,
    first: chunk === null ? firstStated : chunk.first + (preEncode?.first ?? 0),
    rest: chunk === null ? restStated : chunk.rest + (preEncode?.rest ?? 0),
    shift,
    preEncode: preEncode ?? { first: 0, rest: 0 },
    stated: statedSizes,
  };
}

/** The assertions that follow from numbers in the contract. */
function impliedAssertions(
  { validOutLength = null, cacheLengthRule }: StatedContract,
  resultLength: string | null,
  stateLength: string | null,
  result: string | null,
): readonly Assertion[] {
  const time: readonly Assertion[] =
    validOutLength === null || result === null
      ? []
      : [
          {
            id: `${result}-time-${validOutLength}`,
            tensor: result,
            ...{ kind: 'dimension-equals', axis: -1, value: validOutLength },
            sentence: `The last dimension of ${result} is ${validOutLength}.`,
          },
        ];
  const capacity = cacheLengthRule?.capacity;
  return [
    ...isAlways(resultLength, validOutLength),
    ...time,
    ...(stateLength === null || capacity === undefined ? [] : [isBounded(stateLength, capacity)]),
  ];
}

const isAlways = (tensor: string | null, value: number | null): readonly Assertion[] =>
  tensor === null || value === null
    ? []
    : [{ id: `${tensor}-equal-${value}`, tensor, kind: 'equal', value, sentence: `${tensor} is ${value}.` }];

/** The length of a state is within its capacity. */
export const isBounded = (tensor: string, capacity: number): Assertion => ({
  ...{ id: `${tensor}-bounded`, tensor, kind: 'bounded-by-capacity', capacity },
  sentence: `${tensor} is 0 to ${capacity}.`,
});

/** Keys are `tensor.Symbol`, or a bare symbol for every tensor that uses it. An input with a symbol that has no range is left out. */
function resolveProfile(
  inputs: StatedContract['inputs'],
  { name, dimensions }: NonNullable<StatedContract['profiles']>[number],
): Contract['profiles'][number] {
  const ranges = inputs.flatMap(({ name: input, shape }): [string, readonly DimensionRange[]][] => {
    const found = (shape ?? []).map((size): DimensionRange | undefined => {
      if (typeof size === 'number') return { min: size, opt: size, max: size };
      return size === null ? undefined : (dimensions.get(`${input}.${size}`) ?? dimensions.get(size));
    });
    return shape !== null && found.every((range) => range !== undefined) ? [[input, found]] : [];
  });
  return { name, ranges: Object.fromEntries(ranges) };
}

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
function lengthsAmong(
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
function withRoles(
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
