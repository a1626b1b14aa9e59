import { attributeOf } from '../../onnx/attributes.js';
import { isFloat32, isStored, type Operation, operatorName, original, type Value } from '../flow.js';

/** A weight as an operation reads it. */
export interface WeightOperand {
  readonly value: Value;
  /** Whether the operation reads it through a Transpose. */
  readonly isBehindTranspose: boolean;
  readonly dims: readonly number[];
  /** The axis of output channels: TensorRT computes with codes only where scales are along it. */
  readonly channelAxis: number;
  /** The axis that is summed over; undefined for convolutions, which sum over several. */
  readonly sumAxis: number | undefined;
}

export const isTransposed = ({ node }: Operation, name: 'transA' | 'transB'): boolean =>
  Number(attributeOf(node, name)?.i ?? 0) !== 0;

/** The constant second operand of a convolution or a matrix product; undefined where it is computed, or of a rank that scales per channel do not fit. */
export function weightOperand(operation: Operation): WeightOperand | undefined {
  const read = operation.inputs[1];
  if (read === undefined || !isFloat32(read)) return undefined;
  const { producer } = original(read);
  const isBehindTranspose = producer !== undefined && isTranspose(producer);
  const source = isBehindTranspose ? producer.inputs[0] : read;
  const value = source && original(source);
  const tensor = value === undefined || !isStored(value) ? undefined : value.tensor;
  if (value === undefined || tensor === undefined) return undefined;
  const dims = tensor.dims.map(Number);
  if (dims.some((dim) => dim < 1)) return undefined;
  const operand = { value, isBehindTranspose, dims };
  if (operatorName(operation) === 'Conv')
    return !isBehindTranspose && dims.length >= 3
      ? { ...operand, channelAxis: 0, sumAxis: undefined }
      : undefined;
  if (dims.length !== 2) return undefined;
  const turned =
    (operatorName(operation) === 'Gemm' && isTransposed(operation, 'transB') ? 1 : 0) ^
    (isBehindTranspose ? 1 : 0);
  return { ...operand, channelAxis: turned === 1 ? 0 : 1, sumAxis: turned };
}

const isTranspose = (operation: Operation): boolean => {
  if (operatorName(operation) !== 'Transpose') return false;
  const perm = attributeOf(operation.node, 'perm')?.ints.map(Number) ?? [1, 0];
  return perm.length === 2 && perm[0] === 1;
};
