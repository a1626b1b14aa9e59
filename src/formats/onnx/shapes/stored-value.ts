import { TrtforgeError } from '../../../errors.js';
import { numbersOf } from '../../tensor/values.js';
import type { ModelLike } from '../model.js';
import type { NodeProto, TensorProto } from '../onnx_pb.js';
import { tensorType, type ValueType } from '../value-type.js';
import { isSmall, type ShapedValue } from './call.js';

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
