import { plainDomain } from '../onnx/operators.js';
import type { Operation, Scope, Value } from './flow.js';

/** The relation of a body's input or output, or of an input of the operation around it, to values. */
export type Link =
  /** Goes round a loop: enters, leaves and comes back in one type. */
  | { readonly kind: 'carried' }
  /** Is the same value on the other side of the body's wall. */
  | { readonly kind: 'same'; readonly values: readonly Value[] }
  /** Nothing known about it. */
  | { readonly kind: 'opaque' };

const opaque: Link = { kind: 'opaque' };
const carried: Link = { kind: 'carried' };

/** Whether an operation is an If, Loop or Scan as they are today: the Scan of opset 8 counted its inputs otherwise. */
export const isControl = ({ node, bodies, signature }: Operation): boolean =>
  bodies.length > 0 &&
  plainDomain(node.domain) === '' &&
  ['If', 'Loop', 'Scan'].includes(node.opType) &&
  !(node.opType === 'Scan' && (signature?.since ?? 9) < 9);

/** Where the value of a body's input comes from. */
export function bodyInput(scope: Scope, index: number): Link {
  const owner = scope.owner;
  if (owner === undefined || !isControl(owner)) return opaque;
  if (owner.node.opType === 'Loop') return index < 2 ? opaque : carried;
  if (owner.node.opType === 'Scan') return index < scanStates(owner) ? carried : same(owner.inputs[index]);
  return opaque;
}

/** Where a body's output goes to. */
export function bodyOutput(scope: Scope, index: number): Link {
  const owner = scope.owner;
  if (owner === undefined || !isControl(owner)) return opaque;
  if (owner.node.opType === 'If') return same(owner.outputs[index]);
  if (owner.node.opType === 'Loop') return index === 0 ? opaque : outerOutput(owner, index - 1);
  return outerOutput(owner, index);
}

/** Where an output of an If, Loop or Scan comes from: one value per branch. */
export function controlOutput(operation: Operation, index: number): Link {
  if (operation.node.opType === 'If') return same(...operation.bodies.map((body) => body.outputs[index]));
  if (index < states(operation)) return carried;
  return same(operation.bodies[0]?.outputs[operation.node.opType === 'Loop' ? index + 1 : index]);
}

/** The relation of an input of an If, Loop or Scan to its body. */
export function controlInput(operation: Operation, index: number): Link {
  if (operation.node.opType === 'Loop') return index < 2 ? opaque : carried;
  if (operation.node.opType !== 'Scan') return opaque;
  return index < scanStates(operation) ? carried : same(operation.bodies[0]?.inputs[index]);
}

const same = (...values: (Value | undefined)[]): Link =>
  values.includes(undefined) ? opaque : { kind: 'same', values: values as Value[] };

const outerOutput = (owner: Operation, index: number): Link =>
  index < states(owner) ? carried : same(owner.outputs[index]);

const states = (operation: Operation): number =>
  operation.node.opType === 'Loop' ? Math.max(0, operation.inputs.length - 2) : scanStates(operation);

function scanStates({ node, inputs }: Operation): number {
  const scanned = node.attribute.find(({ name }) => name === 'num_scan_inputs');
  return Math.max(0, inputs.length - Number(scanned?.i ?? 0));
}
