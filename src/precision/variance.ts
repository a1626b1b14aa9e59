import { plainDomain } from '../onnx/operators.js';
import { type Flow, isFloat32, type Operation } from './flow.js';

const squaring: ReadonlySet<string> = new Set(['Pow', 'ReduceSumSquare', 'ReduceL2']);
const towardsRoot: ReadonlySet<string> = new Set(
  'ReduceMean ReduceSum GlobalAveragePool Add Sub Mul Div Max Clip Identity Cast'.split(' '),
);
const afterRoot: ReadonlySet<string> = new Set(['Add', 'Max', 'Clip', 'Reciprocal', 'Div', 'Identity']);
/** A normalisation written out has at most this many steps from the square to the root. */
const LONGEST = 8;

/**
 * Operations of normalisations written out by hand (square, mean, add epsilon, root, divide): the square overflows FP16 from 256 on, and an
 * epsilon of 1e-12 is zero in it, so that a constant row would be divided by zero.
 */
export function varianceArithmetic(flow: Flow): ReadonlySet<Operation> {
  const marked = new Set<Operation>();
  for (const operation of flow.operations) {
    if (!isSquare(operation)) continue;
    const path = pathToRoot(operation, LONGEST);
    if (path === undefined) continue;
    for (const step of path) marked.add(step);
    const root = path.at(-1);
    if (root !== undefined) markDivision(root, marked);
  }
  return marked;
}

function isSquare({ node, inputs, outputs }: Operation): boolean {
  if (plainDomain(node.domain) !== '' || !outputs.some(isFloat32)) return false;
  return (
    squaring.has(node.opType) || (node.opType === 'Mul' && inputs[0] !== undefined && inputs[0] === inputs[1])
  );
}

/** The steps from a square to the Sqrt it ends in, both included, or undefined when it ends in none. A mean or sum must be among them. */
function pathToRoot(start: Operation, longest: number): readonly Operation[] | undefined {
  const visited = new Set<Operation>();
  const search = (operation: Operation, left: number, reduced: boolean): readonly Operation[] | undefined => {
    const type = operation.node.opType;
    if (type === 'Sqrt') return reduced ? [operation] : undefined;
    if (left === 0 || visited.has(operation)) return undefined;
    if (operation !== start && !towardsRoot.has(type)) return undefined;
    visited.add(operation);
    const now = reduced || type.startsWith('Reduce') || type === 'GlobalAveragePool';
    for (const next of readersOf(operation)) {
      const rest = search(next, left - 1, now);
      if (rest !== undefined) return [operation, ...rest];
    }
    return undefined;
  };
  return search(start, longest, false);
}

/** From the root on to the division by it. */
function markDivision(root: Operation, marked: Set<Operation>): void {
  for (const next of readersOf(root)) {
    if (!afterRoot.has(next.node.opType) || marked.has(next)) continue;
    marked.add(next);
    if (next.node.opType !== 'Div' && next.node.opType !== 'Reciprocal') markDivision(next, marked);
  }
}

function readersOf(operation: Operation): readonly Operation[] {
  return operation.outputs.flatMap((value) =>
    value === undefined || value.type !== 'float32'
      ? []
      : value.uses.flatMap((use) => (use.kind === 'input' ? [use.operation] : [])),
  );
}
