import { type Dtype, dtypeFromOnnx, dtypes } from '../tensor/dtype.js';
import type { ValueFacts } from './model-facts.js';
import type {
  GraphProto,
  ModelProto,
  TensorShapeProto,
  TensorShapeProto_Dimension,
  TypeProto,
  ValueInfoProto,
} from './onnx_pb.js';

/** Name, dtype and shape of a declared value. Some exporters write a negative size for a dimension that is open: here it is null. */
export function valueFacts(value: ValueInfoProto): ValueFacts {
  const { shape, ...facts } = factsAsWritten(value);
  return {
    ...facts,
    shape: shape?.map((size) => (typeof size === 'number' && size < 0 ? null : size)) ?? null,
  };
}

/** The same as the file has it, negative sizes included: for reports on the file itself. */
export function factsAsWritten(value: ValueInfoProto): ValueFacts {
  return {
    name: value.name,
    dtype: value.type === undefined ? null : typeName(value.type),
    shape: value.type === undefined ? null : shapeOf(value.type),
  };
}

/** The dimensions that a tensor declares, to be read or changed; none where it declares no shape, or is no tensor. */
export const dimensionsOf = ({ type }: ValueInfoProto): readonly TensorShapeProto_Dimension[] =>
  type?.value.case === 'tensorType' ? (type.value.value.shape?.dim ?? []) : [];

/** What a dimension states: a size, a name, or nothing where it is open. */
export const dimensionValue = (size: number | string | null): TensorShapeProto_Dimension['value'] =>
  size === null
    ? { case: undefined }
    : typeof size === 'number'
      ? { case: 'dimValue', value: BigInt(size) }
      : { case: 'dimParam', value: size };

/** The inputs that a caller feeds and the outputs, as a model declares them. */
export const interfaceOf = ({ graph }: ModelProto) => ({
  inputs: feedInputs(graph!).map(valueFacts),
  outputs: graph!.output.map(valueFacts),
});

/** The inputs a caller feeds: those that no initializer gives a value (old IR versions list weights as inputs). */
export function feedInputs(graph: GraphProto): ValueInfoProto[] {
  const initialized = new Set(graph.initializer.map((tensor) => tensor.name));
  for (const sparse of graph.sparseInitializer) initialized.add(sparse.values?.name ?? '');
  return graph.input.filter((input) => !initialized.has(input.name));
}

/** `float32`, `sequence(float32)`, `optional(int64)`, `map(string, float32)`; null where the model leaves it open. */
function typeName(type: TypeProto): string | null {
  const inner = (element: TypeProto | undefined) =>
    (element === undefined ? null : typeName(element)) ?? 'unknown';
  switch (type.value.case) {
    case 'tensorType':
      return elementName(type.value.value.elemType);
    case 'sparseTensorType':
      return `sparse(${elementName(type.value.value.elemType) ?? 'unknown'})`;
    case 'sequenceType':
      return `sequence(${inner(type.value.value.elemType)})`;
    case 'optionalType':
      return `optional(${inner(type.value.value.elemType)})`;
    case 'mapType':
      return `map(${elementName(type.value.value.keyType) ?? 'unknown'}, ${inner(type.value.value.valueType)})`;
    default:
      return null;
  }
}

const elementName = (number: number): string | null =>
  number === 0 ? null : (dtypeFromOnnx(number) ?? `onnx type ${number}`);

function shapeOf(type: TypeProto): ValueFacts['shape'] {
  const { value } = type;
  if (value.case !== 'tensorType' && value.case !== 'sparseTensorType') return null;
  return value.value.shape === undefined ? null : dimensions(value.value.shape);
}

const dimensions = (shape: TensorShapeProto) =>
  shape.dim.map(({ value }) => {
    if (value.case === 'dimValue') return Number(value.value);
    return value.case === 'dimParam' && value.value !== '' ? value.value : null;
  });

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
