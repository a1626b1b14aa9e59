import type { Passport } from '../../../engines/identity/passport.js';
import { inTypesOf } from '../../../engines/run/input-dtype.js';
import { TrtforgeError } from '../../../errors.js';
import { filledTensor } from '../../../formats/contract/state.js';
import { dtypes } from '../../../formats/tensor/dtype.js';
import type { NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import { madeInputs } from '../../../quality/known-answer/made-inputs.js';
import { dtypeOf, innerDims, isBatched, type ModelConfig } from '../model-config.js';

/** Inputs by the types of the configuration. Throws TF_RUN_FAILED for one that no engine has. */
export const bindingsOf = ({ input = [] }: ModelConfig) =>
  input.map(({ name = '', data_type }) => {
    const dtype = dtypeOf(data_type);
    if (dtype !== undefined) return { name, dtype, shape: null };
    throw new TrtforgeError('TF_RUN_FAILED', `${name} is of ${data_type}, which is not tried.`);
  });

/** One row of inputs: what the known answer makes, else sizes of the warm-up or the least ones, of ones and, where integers may be indices, zeros. */
export function inputsOf(config: ModelConfig, answer: Answer | undefined): NamedTensors {
  const warm = config.model_warmup?.[0]?.inputs ?? {};
  const isRow = ({ shape }: { readonly shape: readonly number[] }) => !isBatched(config) || shape[0] === 1;
  const fitting = answer?.cases.find(({ inputs }) => inputs.every(isRow));
  const own = answer && fitting ? madeInputs(answer, fitting.inputs) : new Map<string, Tensor>();
  const bindings = bindingsOf(config);
  const made = reshaped(inTypesOf(bindings, own, 'the known answer'), config.input, 'triton');
  const plain = bindings.map(({ name, dtype }, at): [string, Tensor] => {
    const dims = warm[name]?.dims ?? config.input?.[at]?.dims ?? [];
    const sizes = dims.map((size) => Math.max(1, size));
    const shape = isBatched(config) ? [1, ...sizes] : sizes;
    return [name, filledTensor(dtype, shape, dtypes[dtype].kind === 'float' ? 1 : 0)];
  });
  return new Map([...plain, ...made]);
}

/**
 * A tensor of rows alone has an axis more in Triton, which its configuration takes away (`reshape`): from the engine's shape to Triton's, or back.
 */
export function reshaped(
  tensors: NamedTensors,
  list: ModelConfig['input'] = [],
  to: 'triton' | 'engine',
): NamedTensors {
  return new Map(
    [...tensors].map(([name, tensor]) => {
      const own = list.find((one) => one.name === name);
      if (own?.reshape === undefined) return [name, tensor];
      const rest = to === 'triton' ? (own.dims ?? []) : innerDims(own);
      return [name, { ...tensor, shape: [...tensor.shape.slice(0, 1), ...rest] }];
    }),
  );
}

export type Answer = NonNullable<Passport['knownAnswer']>;
