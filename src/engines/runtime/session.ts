import type { Dtype } from '../../formats/tensor/dtype.js';
import type { ByName, NamedTensors, Tensor } from '../../formats/tensor/tensor.js';

/** One named input or output of a session. */
export interface Binding {
  readonly name: string;
  readonly dtype: Dtype;
  /** Numbers, symbols (`batch`), null for a dimension the model leaves open; the whole is null when even the rank is open. */
  readonly shape: readonly (number | string | null)[] | null;
}

export interface RunOptions {
  /** Aborting ends the run with TF_CANCELLED; the session may not be usable afterwards and must still be closed. */
  readonly signal?: AbortSignal;
}

/** Something that runs named tensors: a TensorRT engine, or a model on ONNX Runtime. Runs are answered in the order of their calls. */
export interface Session extends AsyncDisposable {
  /** The back end, for reports: `ONNX Runtime 1.30.0 (CPU)`. */
  readonly backend: string;
  readonly inputs: readonly Binding[];
  readonly outputs: readonly Binding[];
  /** Takes one tensor for each input by its name (`{ images: tensor(…) }` or a Map), returns one for each output. Throws TF_SESSION_INPUT for names, dtypes or shapes that do not fit. */
  run(inputs: ByName<Tensor>, options?: RunOptions): Promise<NamedTensors>;
  /** Ends the session and frees its memory; also what `await using` calls. */
  close(): Promise<void>;
}
