import type { Dtype } from '../../../formats/tensor/dtype.js';

/**
 * What a streaming model promises, resolved: every reader ends here and everything after works with this plain data. It crosses processes and becomes
 * JSON (`trtforge.contract/1`) as it is.
 */
export interface Contract {
  readonly schema: 'trtforge.contract/1';
  /** The model's name in the contract. */
  readonly name: string;
  readonly origin: ContractOrigin;
  readonly inputs: readonly ContractBinding[];
  readonly outputs: readonly ContractBinding[];
  /** Outputs that become inputs of the next step, lengths of state included. */
  readonly state: readonly StatePair[];
  /** The tensors that count the valid part of another one; null where the contract names none. */
  readonly lengths: ContractLengths;
  /** Parameters of the cache-length rule; null where the contract does not have them all. */
  readonly cacheLengthRule: CacheLengthRule | null;
  /** Lengths of the signal along its time axis, the first chunk's and every later one's; null when unknown. */
  readonly schedule: ChunkSchedule | null;
  readonly profiles: readonly ContractProfile[];
  readonly assertions: readonly Assertion[];
  readonly tolerances: readonly ContractTolerance[];
  /** Sentences of the file that cannot be checked, each with the reason. */
  readonly notExecutable: readonly { readonly sentence: string; readonly why: string }[];
  /** Fields of the file that have no effect, as paths: `validation.parity_test`. */
  readonly ignored: readonly string[];
}

export interface ContractOrigin {
  /** Where it was read from; null for one drafted from a model. */
  readonly path: string | null;
  readonly form: 'trtforge' | 'encoder' | 'whole-model' | 'draft';
}

export interface ContractBinding {
  readonly name: string;
  /** null: any. */
  readonly dtype: Dtype | null;
  /** Numbers, symbols that stand for one number throughout (`B`, `T`), null for any size; the whole null when the rank is open. */
  readonly shape: readonly (number | string | null)[] | null;
  readonly role: BindingRole;
}

/** signal: what is cut into chunks. length: how much of the signal (or of the main output) counts. state: fed back. state-length: how full the state is. */
export type BindingRole = 'signal' | 'length' | 'state' | 'state-length' | 'result' | 'other';

export interface StatePair {
  readonly input: string;
  readonly output: string;
  /** What every element of the input is before the first chunk. */
  readonly initial: number;
  /** The axis that positions lie along, and how many fit; null for state that is always full, and for lengths. */
  readonly axis: number | null;
  readonly capacity: number | null;
  /** Where an output that is too short along `axis` is filled up (and one that is too long is cut), and with what. */
  readonly padSide: 'right' | 'left';
  readonly fillValue: number;
  /** The output that counts the valid positions along `axis`; null when all are. */
  readonly validLength: string | null;
}

export interface ContractLengths {
  /** Input: valid frames of the signal. */
  readonly signal: string | null;
  /** Output: valid frames of the main result. */
  readonly result: string | null;
  /** Input and output: valid positions of the state. */
  readonly stateIn: string | null;
  readonly stateOut: string | null;
}

/** How long the state of a cache-aware encoder is after a chunk of T frames: `min(capacity, before + steps(T) - dropExtra - drop)`; steps: `fastconformer.ts`. */
export interface CacheLengthRule {
  readonly capacity: number;
  /** `drop_extra_pre_encoded`: steps of the overlap that are thrown away again. */
  readonly dropExtra: number;
  /** `cache_drop_size`: steps at the end that look ahead and are not kept. */
  readonly drop: number;
}

export interface ChunkSchedule {
  /** Input whose axis is cut, and which axis. */
  readonly tensor: string;
  readonly axis: number;
  readonly first: number;
  readonly rest: number;
  /** Frames that are new in each chunk; the others repeat the end of the chunk before. null when unknown. */
  readonly shift: { readonly first: number; readonly rest: number } | null;
  /** Frames among those of a chunk that belong to the chunk before and only feed the convolutions; 0 where the contract names none. */
  readonly preEncode: { readonly first: number; readonly rest: number };
  /** Sizes that the contract names elsewhere (`typical_values`); empty where it names none. */
  readonly stated: readonly number[];
}

export interface ContractProfile {
  readonly name: string;
  /** Input to one range per dimension. */
  readonly ranges: Readonly<Record<string, readonly DimensionRange[]>>;
}

export interface DimensionRange {
  readonly min: number;
  readonly opt: number;
  readonly max: number;
}

export interface ContractTolerance {
  /** null: every floating-point output. */
  readonly tensor: string | null;
  readonly absolute: number | null;
  readonly relative: number | null;
}

/** A rule that is checked after every step. */
export type Assertion = {
  /** Stable within the contract: `encoded-lengths-equal-3`. */
  readonly id: string;
  readonly tensor: string;
  readonly sentence: string;
} & (
  | { readonly kind: 'equal'; readonly value: number }
  /** Ends are included; null: open. */
  | { readonly kind: 'range'; readonly min: number | null; readonly max: number | null }
  /** Not less than `than` (an input of the same step); with null, than the same tensor one step before. Not checked once `until` is reached. */
  | { readonly kind: 'monotonic'; readonly than: string | null; readonly until: number | null }
  /** 0 to `capacity`. */
  | { readonly kind: 'bounded-by-capacity'; readonly capacity: number }
  /** `axis` may count from the end (-1: the last). */
  | { readonly kind: 'dimension-equals'; readonly axis: number; readonly value: number }
);
export type AssertionKind = Assertion['kind'];

/** One contract violation. */
export interface Violation {
  readonly assertion: string;
  readonly kind: AssertionKind;
  readonly tensor: string;
  readonly chunk: number;
  /** What was found, in words and numbers: `[4] where 3 was promised`. */
  readonly found: string;
  readonly sentence: string;
}
