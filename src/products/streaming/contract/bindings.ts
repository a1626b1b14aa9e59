import type { ContractBinding } from '../../../formats/contract/contract.js';
import type { Dtype } from '../../../formats/tensor/dtype.js';

/** Names, dtypes and shapes of a model, an engine or a session; a session is one as it is. */
export interface ModelBindings {
  readonly inputs: readonly ModelBinding[];
  readonly outputs: readonly ModelBinding[];
}

export interface ModelBinding {
  readonly name: string;
  readonly dtype: Dtype | null;
  readonly shape: ContractBinding['shape'];
  /** Engines: dimensions per optimization profile; empty where any will do. */
  readonly profiles?: readonly { readonly min: readonly number[]; readonly max: readonly number[] }[];
}
