import { attributeOf } from '../../onnx/node-types.js';
import { declaredShape } from '../declared-shape.js';
import { type Flow, isStored, type Operation, operatorName, type Value } from '../flow.js';
import type { QuantizedFormat } from '../formats/format.js';
import { isConstant, readers } from './operands.js';

/** softmax(Q·K)·V, with what scales and masks the scores between. */
interface AttentionBlock {
  readonly scores: Operation;
  readonly softmax: Value;
  readonly mixed: Operation;
}

/** The attention blocks of a model, as far as they are fused in a format. */
export class AttentionBlocks {
  readonly #fused = new Map<Operation, AttentionBlock>();
  readonly #whyNot = new Map<Operation, string>();

  constructor(flow: Flow, format: QuantizedFormat) {
    const isPinned = flow.root.inputs
      .filter((value) => !isStored(value))
      .every((value) => declaredShape(value)?.every((dim) => typeof dim === 'number') === true);
    for (const operation of flow.operations) {
      const block = blockAround(operation);
      if (block === undefined) continue;
      const why = notFused(block, format, isPinned);
      for (const product of [block.scores, block.mixed])
        if (why === undefined) this.#fused.set(product, block);
        else this.#whyNot.set(product, why);
    }
  }

  has(product: Operation): boolean {
    return this.#fused.has(product);
  }

  /** The other product of the block: both have pairs, or none. */
  partner(product: Operation): Operation | undefined {
    const block = this.#fused.get(product);
    return block?.scores === product ? block.mixed : block?.scores;
  }

  /** Whether a value is the result of the Softmax of a block: its range is 0 to 1 by definition. */
  isProbability(value: Value): boolean {
    return [...this.#fused.values()].some(({ softmax }) => softmax === value);
  }

  whyNot(product: Operation): string | undefined {
    if (this.#fused.has(product)) return undefined;
    return (
      this.#whyNot.get(product) ?? 'it multiplies two activations outside of an attention that TensorRT fuses'
    );
  }
}

function notFused(
  { mixed }: AttentionBlock,
  { label, activations, attention }: QuantizedFormat,
  isPinned: boolean,
): string | undefined {
  if (!activations) return `${label} is for weights alone`;
  if (!attention)
    return `TensorRT's attention in ${label} is less exact than its codes, in the time that it takes in 16 bits`;
  if (mixed.scope.owner !== undefined) return 'it is in a body, whose values have no range';
  return isPinned
    ? undefined
    : `TensorRT fuses attention in ${label} only where all shapes are fixed, and an input of the model has an open dimension`;
}

function blockAround(operation: Operation): AttentionBlock | undefined {
  if (operatorName(operation) !== 'Softmax') return undefined;
  const rank = declaredShape(operation.outputs[0])?.length;
  const axis = Number(attributeOf(operation.node, 'axis')?.i ?? -1);
  if (axis !== -1 && axis !== (rank ?? 0) - 1 && axis !== 3) return undefined;
  const scores = productBehind(operation.inputs[0], 4);
  const softmax = operation.outputs[0];
  const [mixed, ...others] = readers(softmax);
  if (scores === undefined || softmax === undefined || mixed === undefined || others.length > 0)
    return undefined;
  const isMixed =
    mixed.node.opType === 'MatMul' && mixed.inputs[0] === softmax && isComputed(mixed.inputs[1]);
  return isMixed ? { scores, softmax, mixed } : undefined;
}

/** The product of two activations from which the argument of a Softmax is computed by scaling and masking. */
function productBehind(value: Value | undefined, depth: number): Operation | undefined {
  const producer = value?.producer;
  if (value === undefined || producer === undefined || depth === 0 || value.uses.length !== 1)
    return undefined;
  const { node, inputs } = producer;
  if (node.opType === 'MatMul') return inputs.every(isComputed) ? producer : undefined;
  if (node.opType === 'Mul' || node.opType === 'Div')
    return inputs.slice(1).every((other) => other !== undefined && isScalarLike(other))
      ? productBehind(inputs[0], depth - 1)
      : undefined;
  if (node.opType === 'Add')
    return productBehind(inputs[0], depth - 1) ?? productBehind(inputs[1], depth - 1);
  if (node.opType === 'Cast') return productBehind(inputs[0], depth - 1);
  return undefined;
}

const isComputed = (value: Value | undefined): boolean => value !== undefined && !isConstant(value);

/** A constant, or a number computed from shapes (1 / sqrt(head size)). */
const isScalarLike = (value: Value): boolean =>
  isConstant(value) || (declaredShape(value)?.length ?? 0) === 0;
