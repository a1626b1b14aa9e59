import { dtypeFromOnnx } from '../tensor/dtype.js';
import type { ValueFacts } from './model-facts.js';
import type { GraphProto, ModelProto, TensorShapeProto, TypeProto, ValueInfoProto } from './onnx_pb.js';

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
