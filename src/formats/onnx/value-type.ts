import { type Dtype, dtypeFromOnnx, dtypes } from '../tensor/dtype.js';
import type { TypeProto } from './onnx_pb.js';

/**
 * The type of a value without its shape: a tensor's is its dtype (`float32`), others wrap one (`seq(float32)`, `optional(seq(int64))`).
 * A map is `map(int64,float32)`, a sparse tensor `sparse`. Undefined stands for a type that is not known.
 */
export type ValueType = string;

/** The type an ONNX `TensorProto.DataType` number names, as a value type; undefined for 0 and for numbers that ONNX does not define. */
export const tensorType = (onnxNumber: number): ValueType | undefined => dtypeFromOnnx(onnxNumber);

/** The ONNX number of a tensor type. */
export const onnxNumber = (dtype: Dtype): number => dtypes[dtype].onnx;

/** The type that a `TypeProto` declares, or undefined where it declares none. */
export function declaredType(type: TypeProto | undefined): ValueType | undefined {
  const value = type?.value;
  switch (value?.case) {
    case 'tensorType':
      return tensorType(value.value.elemType);
    case 'sequenceType':
      return wrap('seq', declaredType(value.value.elemType));
    case 'optionalType':
      return wrap('optional', declaredType(value.value.elemType));
    case 'mapType': {
      const [key, inner] = [tensorType(value.value.keyType), declaredType(value.value.valueType)];
      return key === undefined || inner === undefined ? undefined : `map(${key},${inner})`;
    }
    case 'sparseTensorType':
      return 'sparse';
    default:
      return undefined;
  }
}

/** `wrap('seq', 'float32')` is `seq(float32)`; of an unknown type the wrapped type is unknown too. */
export const wrap = (kind: 'seq' | 'optional', inner: ValueType | undefined): ValueType | undefined =>
  inner === undefined ? undefined : `${kind}(${inner})`;

/** The element type of a sequence or an optional; a plain tensor type stands for itself. */
export function unwrap(kind: 'seq' | 'optional', type: ValueType | undefined): ValueType | undefined {
  if (type === undefined || !type.startsWith(`${kind}(`)) return type;
  return type.slice(kind.length + 1, -1);
}
