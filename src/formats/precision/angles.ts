import { plainDomain } from '../onnx/operators.js';
import { type Flow, isFloat, isFloat32, isStored, type Operation, type Value } from './flow.js';
import { movers } from './operator-traits.js';

/** Searches over the whole graph for arithmetic that 16 bits do not carry: angles and hand-written variances. */

const angleSteps: ReadonlySet<string> = new Set(
  'Add Sub Mul Div Neg Cast Identity Reciprocal Floor Mod'.split(' '),
);

/** Position times frequency, as rotary embeddings are exported: followed only where no activation flows in. */
const products: ReadonlySet<string> = new Set(['MatMul', 'Einsum']);

/**
 * Operations that compute the argument of Sin, Cos or Tan: positions times frequencies, timesteps, phases. A position of 3000 in FP16 is
 * known to the nearest 2, so the angle would be meaningless however exact the sine is.
 */
export function angleArithmetic(flow: Flow): ReadonlySet<Operation> {
  const marked = new Set<Operation>();
  const positional = positionalValues(flow);
  for (const operation of flow.operations) {
    if (!isTrigonometric(operation)) continue;
    const queue = [operation.inputs[0]];
    while (queue.length > 0) {
      const producer = queue.pop()?.producer;
      if (producer === undefined || marked.has(producer) || plainDomain(producer.node.domain) !== '')
        continue;
      const type = producer.node.opType;
      const follow =
        angleSteps.has(type) ||
        movers.has(type) ||
        (products.has(type) &&
          producer.outputs.every((value) => value === undefined || positional.has(value)));
      if (!follow || !producer.outputs.some(isFloat32)) continue;
      marked.add(producer);
      queue.push(...producer.inputs);
    }
  }
  return marked;
}

const isTrigonometric = ({ node }: Operation): boolean =>
  plainDomain(node.domain) === '' && ['Sin', 'Cos', 'Tan'].includes(node.opType);

/** Float values computed from integers and constants alone. */
function positionalValues(flow: Flow): ReadonlySet<Value> {
  const values = new Set<Value>();
  for (const operation of flow.operations) {
    const inputs = operation.inputs.filter((value) => value !== undefined);
    const known = inputs.every(
      (value) => values.has(value) || isStored(value) || (value.type !== undefined && !isFloat(value.type)),
    );
    if (!known || inputs.length === 0) continue;
    for (const output of operation.outputs) if (output !== undefined) values.add(output);
  }
  return values;
}
