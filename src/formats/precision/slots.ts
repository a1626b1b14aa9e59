import { formalAt } from '../onnx/operators.js';
import type { Dtype } from '../tensor/dtype.js';
import { isFloat32, type Operation, operatorName } from './flow.js';
import { isFixedVariable, takesAnyType } from './operator-traits.js';

/** The types that one FP32 input or output of an operation may have when the operation is converted to a type. */
type Slot =
  /** Takes the format's type with the operation. */
  | 'follows'
  /** Is FP32 by definition, whatever the rest is. */
  | 'fixed'
  /** May have any type. */
  | 'any'
  /** Would have to follow, but the operator's version does not know the type. */
  | 'unsupported'
  /** Is not FP32, so nothing changes. */
  | 'other';

/** The slot of input `index`. Without a signature (plug-ins) an FP32 input is fixed. */
export function inputSlot(operation: Operation, index: number, dtype: Dtype): Slot {
  if (!isFloat32(operation.inputs[index])) return 'other';
  const formals = operation.signature?.inputs ?? [];
  if (!takesAnyType(operatorName(operation), index)) return slot(operation, formals, index, dtype);
  return formalAt(formals, index)?.allowed.has(dtype) === true ? 'any' : 'fixed';
}

/** The slot of output `index`. */
export function outputSlot(operation: Operation, index: number, dtype: Dtype): Slot {
  if (!isFloat32(operation.outputs[index])) return 'other';
  return slot(operation, operation.signature?.outputs ?? [], index, dtype);
}

function slot(
  operation: Operation,
  formals: NonNullable<Operation['signature']>['inputs'],
  index: number,
  dtype: Dtype,
): Slot {
  if (operation.node.opType === 'BitCast') return 'fixed';
  const formal = formalAt(formals, index);
  if (formal?.variable === undefined || isFixedVariable(operation.node.opType, formal.variable))
    return 'fixed';
  return formal.allowed.has(dtype) ? 'follows' : 'unsupported';
}

/** Slots of all inputs and outputs. */
export const slotsOf = (operation: Operation, dtype: Dtype): readonly Slot[] => [
  ...operation.inputs.map((_, index) => inputSlot(operation, index, dtype)),
  ...operation.outputs.map((_, index) => outputSlot(operation, index, dtype)),
];
