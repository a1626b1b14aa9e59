import { TrtforgeError } from '../../../errors.js';
import { numbersOf } from '../../tensor/tensor.js';
import { attributeOf } from '../attributes.js';
import type { GraphView } from '../graph.js';
import type { ModelLike } from '../model.js';
import type { NodeProto, TensorProto } from '../onnx_pb.js';
import { tensorType, type ValueType } from '../values.js';
import { isSmall, type ShapedValue } from './rule-input.js';

/** A weight: its shape stands in the model; of small ones the elements are read when a rule asks for them. */
export function storedValue(model: ModelLike, tensor: TensorProto): ShapedValue {
  const shape = tensor.dims.map(Number);
  let elements: ShapedValue['elements'] | null = null;
  return {
    type: tensorType(tensor.dataType),
    shape: shape.every((size) => Number.isSafeInteger(size) && size >= 0) ? shape : undefined,
    isConstant: true,
    get elements() {
      elements = elements === null ? readElements(model, tensor, shape) : elements;
      return elements;
    },
  };
}

function readElements(
  model: ModelLike,
  tensor: TensorProto,
  shape: readonly number[],
): readonly number[] | undefined {
  if (!isSmall(shape)) return undefined;
  try {
    const { dtype, chunks } = model.weight(tensor);
    const [bytes = new Uint8Array(0)] = chunks();
    return [...numbersOf({ dtype, shape, bytes })];
  } catch (error) {
    // A weight that cannot be read decides no size; lint reports it.
    if (error instanceof TrtforgeError || error instanceof RangeError) return undefined;
    throw error;
  }
}

/** The value that a Constant node holds. */
export function constantValue(
  model: ModelLike,
  { attribute: [attribute] }: NodeProto,
): ShapedValue | undefined {
  const numbers = (type: ValueType, elements: readonly (number | bigint)[], shape: readonly number[]) => ({
    type,
    shape,
    elements: elements.map(Number),
    isConstant: true,
  });
  switch (attribute?.name) {
    case 'value':
      return attribute.t && storedValue(model, attribute.t);
    case 'value_int':
      return numbers('int64', [attribute.i], []);
    case 'value_ints':
      return numbers('int64', attribute.ints, [attribute.ints.length]);
    case 'value_float':
      return numbers('float32', [attribute.f], []);
    case 'value_floats':
      return numbers('float32', attribute.floats, [attribute.floats.length]);
    case 'value_string':
      return { type: 'string', shape: [], elements: undefined, isConstant: true };
    case 'value_strings':
      return { type: 'string', shape: [attribute.strings.length], elements: undefined, isConstant: true };
    case 'sparse_value':
      return {
        type: tensorType(attribute.sparseTensor?.values?.dataType ?? 0),
        shape: attribute.sparseTensor?.dims.map(Number),
        elements: undefined,
        isConstant: true,
      };
    default:
      return undefined;
  }
}

const [INT32, INT64] = [6, 7];

/** The values of a small constant of integers, where the exporter wrote them into the file; undefined for other types and places. */
export function smallIntegers(tensor: TensorProto | undefined): readonly number[] | undefined {
  if (tensor?.dataType !== INT32 && tensor?.dataType !== INT64) return undefined;
  if (tensor.int64Data.length > 0) return tensor.int64Data.map(Number);
  if (tensor.int32Data.length > 0) return tensor.int32Data;
  const bytes = tensor.rawData;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return tensor.dataType === INT32
    ? Array.from({ length: bytes.byteLength >> 2 }, (_, index) => view.getInt32(index * 4, true))
    : Array.from({ length: bytes.byteLength >> 3 }, (_, index) => Number(view.getBigInt64(index * 8, true)));
}

/** The tensor that a name stands for in a graph or those around it: an initializer, or what a Constant node holds; undefined for anything computed. */
export function constantTensor(view: GraphView, name: string): TensorProto | undefined {
  const stored = view.graph?.initializer.find((tensor) => tensor.name === name);
  if (stored !== undefined) return stored;
  const producer = view.nodes.find(({ output }) => output.includes(name));
  if (producer !== undefined)
    return producer.opType === 'Constant' ? attributeOf(producer, 'value')?.t : undefined;
  return view.parent === undefined ? undefined : constantTensor(view.parent, name);
}
