import { z } from 'zod';
import { type Dtype, dtypes } from '../tensor/dtype.js';

const dtype = z.enum(Object.keys(dtypes) as [Dtype, ...Dtype[]]);
const whole = z.number().int();
const optionalName = z.string().nullable().default(null);

const binding = z.strictObject({
  name: z.string().min(1),
  /** null: any. */
  dtype: dtype.nullable().default(null),
  /** Numbers, symbols that stand for one number throughout (`B`, `T`), null for any size; the whole null when the rank is open. */
  shape: z
    .array(z.union([whole.nonnegative(), z.string(), z.null()]))
    .max(32)
    .nullable()
    .default(null),
  /** signal: what is cut into chunks. length: how much of the signal (or of the main output) counts. state: fed back. state-length: how full the state is. */
  role: z.enum(['signal', 'length', 'state', 'state-length', 'result', 'other']).default('other'),
});

const statePair = z.strictObject({
  input: z.string(),
  output: z.string(),
  /** The value of every element of the input before the first chunk. */
  initial: z.number().default(0),
  /** The axis that positions lie along, and how many fit; null for state that is always full, and for lengths. */
  axis: whole.nonnegative().nullable().default(null),
  capacity: whole.nonnegative().nullable().default(null),
  /** Where an output that is too short along `axis` is padded (and one that is too long is cut), and with what. */
  padSide: z.enum(['right', 'left']).default('right'),
  fillValue: z.number().default(0),
  /** The output that counts the valid positions along `axis`; null when all are. */
  validLength: optionalName,
});

/** State length of a cache-aware encoder after T frames: `min(capacity, before + steps(T) - dropExtra - drop)`; steps: `fastconformer.ts`. */
const cacheLengthRule = z.strictObject({
  capacity: whole.nonnegative(),
  /** `drop_extra_pre_encoded`: steps of the overlap that are thrown away again. */
  dropExtra: whole,
  /** `cache_drop_size`: steps at the end that look ahead and are not kept. */
  drop: whole,
});

/** Of the first chunk, and of every later one. */
const firstAndRest = z.strictObject({ first: whole, rest: whole });
export type FirstAndRest = Immutable<z.infer<typeof firstAndRest>>;
/** One number for both, or one for each. */
export const firstAndRestOf = (value: number | readonly [number, number]): FirstAndRest =>
  typeof value === 'number' ? { first: value, rest: value } : { first: value[0], rest: value[1] };

const schedule = z.object({
  /** Input whose axis is cut, and which axis. */
  tensor: z.string(),
  axis: whole.nonnegative(),
  first: whole.positive(),
  rest: whole.positive(),
  /** Frames that are new in each chunk; the others repeat the end of the chunk before. null when unknown. */
  shift: firstAndRest.nullable().default(null),
  /** Frames among those of a chunk that belong to the chunk before and only feed the convolutions; 0 where the contract names none. */
  preEncode: firstAndRest.default({ first: 0, rest: 0 }),
  /** Sizes that the contract names elsewhere (`typical_values`); empty where it names none. */
  stated: z.array(whole).default([]),
});

const range = z.strictObject({
  min: whole.nonnegative(),
  opt: whole.nonnegative(),
  max: whole.nonnegative(),
});

/** `id` is stable within the contract: `encoded-lengths-equal-3`. */
const about = { id: z.string().min(1), tensor: z.string(), sentence: z.string().default('') };
const bound = z.number().nullable().default(null);

/** A rule that is checked after every step. */
const assertion = z.discriminatedUnion('kind', [
  z.strictObject({ ...about, kind: z.literal('equal'), value: z.number() }),
  /** Ends are included; null: open. */
  z.strictObject({ ...about, kind: z.literal('range'), min: bound, max: bound }),
  /** Not less than `than` (an input of the same step); with null, than the same tensor one step before. Not checked once `until` is reached. */
  z.strictObject({ ...about, kind: z.literal('monotonic'), than: optionalName, until: bound }),
  /** 0 to `capacity`. */
  z.strictObject({ ...about, kind: z.literal('bounded-by-capacity'), capacity: whole }),
  /** `axis` may count from the end (-1: the last). */
  z.strictObject({ ...about, kind: z.literal('dimension-equals'), axis: whole, value: whole }),
]);

/** `trtforge.contract/1`, the file; `docs/contracts.md` explains it. A key that is misspelt would never be checked, so unknown ones are rejected. */
export const contractSchema = z.strictObject({
  schema: z.literal('trtforge.contract/1'),
  /** The model's name in the contract. */
  name: z.string(),
  inputs: z.array(binding),
  outputs: z.array(binding),
  /** Outputs that become inputs of the next step, lengths of state included. */
  state: z.array(statePair).default([]),
  /** The tensors that count the valid part of another one; null where the contract names none. */
  lengths: z
    .object({
      /** Input: valid frames of the signal. */
      signal: optionalName,
      /** Output: valid frames of the main result. */
      result: optionalName,
      /** Input and output: valid positions of the state. */
      stateIn: optionalName,
      stateOut: optionalName,
    })
    .default({ signal: null, result: null, stateIn: null, stateOut: null }),
  /** null where the contract does not have all of its numbers. */
  cacheLengthRule: cacheLengthRule.nullable().default(null),
  /** Lengths of the signal along its time axis, the first chunk's and every later one's; null when unknown. */
  schedule: schedule.nullable().default(null),
  /** Input to one range per dimension. */
  profiles: z
    .array(z.strictObject({ name: z.string(), ranges: z.record(z.string(), z.array(range)) }))
    .default([]),
  assertions: z.array(assertion).default([]),
  /** `tensor` null: every floating-point output. */
  tolerances: z.array(z.strictObject({ tensor: optionalName, absolute: bound, relative: bound })).default([]),
  /** Sentences of the file that cannot be checked, each with the reason. */
  notExecutable: z.array(z.strictObject({ sentence: z.string(), why: z.string() })).default([]),
});
export type ContractFile = z.infer<typeof contractSchema>;

/** The same data, read only throughout. */
export type Immutable<T> = T extends object ? { readonly [K in keyof T]: Immutable<T[K]> } : T;

/**
 * The contract of a streaming model, resolved: every reader ends here and everything after works with this plain data. It crosses processes and
 * becomes JSON (`trtforge.contract/1`) as it is.
 */
export type Contract = Immutable<ContractFile> & {
  /** Where it was read from; null for one drafted from a model. */
  readonly origin: {
    readonly path: string | null;
    readonly form: 'trtforge' | 'encoder' | 'draft';
  };
  /** Fields of the file that have no effect, as paths: `validation.parity_test`. */
  readonly ignored: readonly string[];
};
export type ContractBinding = Contract['inputs'][number];
export type StatePair = Contract['state'][number];
export type CacheLengthRule = Immutable<z.infer<typeof cacheLengthRule>>;
export type ChunkSchedule = Immutable<z.infer<typeof schedule>>;
export type DimensionRange = Immutable<z.infer<typeof range>>;
export type Assertion = Contract['assertions'][number];

/** An input that may be a state: outputs of its type and shape that feed nothing, and why none was decided for. */
export const undecidedSchema = z.object({
  input: z.string(),
  candidates: z.array(z.string()),
  reason: z.enum(['no-name', 'reads-like-signal', 'shape-only']),
});
export type UndecidedState = z.infer<typeof undecidedSchema>;

/** One contract violation: an assertion that a step of a run or a recording violates. */
export const violationSchema = z.object({
  assertion: z.string(),
  kind: z.enum(assertion.options.map(({ shape }) => shape.kind.value)),
  tensor: z.string(),
  chunk: z.number(),
  /** The observed value: `[4] where 3 was promised`. */
  found: z.string(),
  sentence: z.string(),
});
export type Violation = Immutable<z.infer<typeof violationSchema>>;

/** The sentences of a contract that are never checked: for every command and guard that executes its rules. */
export const uncheckedSentences = ({ notExecutable }: Pick<Contract, 'notExecutable'>): readonly string[] =>
  notExecutable.map(({ sentence, why }) => `Not checked: "${sentence}": ${why}.`);
