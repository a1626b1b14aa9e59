import { formalAt } from '../onnx/operators.js';
import { isFloat32, type Operation, operatorName } from './flow.js';
import { isFixedVariable, takesAnyType } from './operator-traits.js';
import type { LowType } from './options.js';

/** What one FP32 input or output of an operation may become when the operation is converted. */
type Slot =
  /** Takes the 16-bit type with the operation. */
  | 'follows'
  /** Is FP32 by definition, whatever the rest is. */
  | 'fixed'
  /** May have any type. */
  | 'any'
  /** Would have to follow, but the operator's version does not know the 16-bit type. */
  | 'refused'
  /** Is not FP32, so nothing changes. */
  | 'other';

/** The slot of input `index`. Without a signature (plug-ins) an FP32 input is fixed. */
export function inputSlot(operation: Operation, index: number, low: LowType): Slot {
  if (!isFloat32(operation.inputs[index])) return 'other';
  const formals = operation.signature?.inputs ?? [];
  if (!takesAnyType(operatorName(operation), index)) return slot(operation, formals, index, low);
  return formalAt(formals, index)?.allowed.has(low) === true ? 'any' : 'fixed';
}

/** The slot of output `index`. */
export function outputSlot(operation: Operation, index: number, low: LowType): Slot {
  if (!isFloat32(operation.outputs[index])) return 'other';
  return slot(operation, operation.signature?.outputs ?? [], index, low);
}

function slot(
  operation: Operation,
  formals: NonNullable<Operation['signature']>['inputs'],
  index: number,
  low: LowType,
): Slot {
  if (operation.node.opType === 'BitCast') return 'fixed';
  const formal = formalAt(formals, index);
  if (formal?.variable === undefined || isFixedVariable(operation.node.opType, formal.variable))
    return 'fixed';
  return formal.allowed.has(low) ? 'follows' : 'refused';
}

/** Slots of all inputs and outputs. */
export const slotsOf = (operation: Operation, low: LowType): readonly Slot[] => [
  ...operation.inputs.map((_, index) => inputSlot(operation, index, low)),
  ...operation.outputs.map((_, index) => outputSlot(operation, index, low)),
];
