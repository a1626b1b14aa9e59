import { type Flow, isFloat32, type Operation, operatorName } from './flow.js';
import { leavesRange, movers } from './operator-traits.js';
import type { ResolvedConversion } from './options.js';

/** Hand on values that are as large as what they read. */
const carriers: ReadonlySet<string> = new Set([
  ...movers,
  ...'Add Sub Sum Mean ReduceMean AveragePool GlobalAveragePool'.split(' '),
]);
/** Bring large values back into range, or may. */
const endings: ReadonlySet<string> = new Set('Mul Div Sqrt Log Reciprocal Sigmoid Tanh'.split(' '));

/**
 * Operations between one that stays FP32 because its result may leave the format's range and what makes that result small again, the latter included: a sum of
 * squares that is cast to it on its way to the division by their number would be infinite there. None where the format has the range of FP32.
 */
export function largeValues(flow: Flow, options: ResolvedConversion): ReadonlySet<Operation> {
  const marked = new Set<Operation>();
  if (!options.format.narrowRange) return marked;
  const grows = (operation: Operation) => {
    const name = operatorName(operation);
    return !options.convertOps.has(name) && leavesRange(name, operation.node);
  };
  const isLarge = new Set<Operation>();
  const readsLarge = ({ inputs }: Operation) =>
    inputs.some((value) => isFloat32(value) && value?.producer !== undefined && isLarge.has(value.producer));
  for (const operation of flow.operations) {
    if (grows(operation)) isLarge.add(operation);
    else if (!readsLarge(operation) || !operation.outputs.some(isFloat32)) continue;
    else if (endsRange(operation)) marked.add(operation);
    else if (carriers.has(operatorName(operation)) || isProduct(operation)) isLarge.add(operation);
  }
  // Back from the ends: what leads to none is cast sooner or later anyway.
  for (const operation of flow.operations.toReversed()) {
    if (!isLarge.has(operation) || grows(operation)) continue;
    const uses = operation.outputs.flatMap((value) => value?.uses ?? []);
    const leads = uses.some(
      (use) => use.kind === 'input' && (marked.has(use.operation) || grows(use.operation)),
    );
    if (leads) marked.add(operation);
  }
  return marked;
}

const isProduct = (operation: Operation): boolean => operatorName(operation) === 'Mul';

/** A product of a value with itself is larger still. */
const endsRange = (operation: Operation): boolean =>
  endings.has(operatorName(operation)) &&
  !(isProduct(operation) && operation.inputs[0] === operation.inputs[1]);
