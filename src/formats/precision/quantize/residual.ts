import type { Operation, Value } from '../flow.js';
import { isConstant } from './operands.js';

/** Branches longer than this are not followed. */
const LONGEST_BRANCH = 64;

/**
 * Which operand of an addition is the residual: the one that the quantized convolution of the other branch is not fused with. Where both branches end in a
 * quantized convolution, the longer branch is the one fused (as ModelOpt has it). Undefined where no branch ends in one.
 */
export function residualInput(
  add: Operation,
  isQuantized: (operation: Operation) => boolean,
): number | undefined {
  const [left, right] = add.inputs;
  if (left === undefined || right === undefined || left === right || isConstant(left) || isConstant(right))
    return undefined;
  const [fromLeft, fromRight] = [left, right].map((value) => convolutionBehind(value, isQuantized));
  if (fromLeft === undefined) return fromRight === undefined ? undefined : 0;
  if (fromRight === undefined) return 1;
  return branchLength(left) >= branchLength(right) ? 1 : 0;
}

/** The quantized convolution whose result, read by nothing else, reaches a value by what is fused into it. */
function convolutionBehind(
  value: Value,
  isQuantized: (operation: Operation) => boolean,
): Operation | undefined {
  const { producer } = value;
  if (producer === undefined || value.uses.length !== 1) return undefined;
  const { node, inputs } = producer;
  if (node.opType === 'Conv') return isQuantized(producer) ? producer : undefined;
  const [first, ...others] = inputs;
  const isFused =
    node.opType === 'BatchNormalization' ||
    ((node.opType === 'Add' || node.opType === 'Mul') &&
      others.every((other) => other !== undefined && isConstant(other)));
  return isFused && first !== undefined ? convolutionBehind(first, isQuantized) : undefined;
}

/** Operations back to where the branches part: the first value that more than one reads. */
function branchLength(value: Value): number {
  let length = 0;
  for (let at: Value | undefined = value; at !== undefined && length < LONGEST_BRANCH; length++) {
    if (length > 0 && at.uses.length > 1) return length;
    at = at.producer?.inputs.find((input) => input !== undefined && !isConstant(input));
  }
  return length;
}
