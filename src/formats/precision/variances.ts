import { plainDomain } from '../onnx/operators.js';
import { type Flow, isFloat32, type Operation } from './flow.js';

const squaring: ReadonlySet<string> = new Set(['Pow', 'ReduceSumSquare', 'ReduceL2']);
/** Steps between a square and its root, and moves that change no value. */
const towardsRoot: ReadonlySet<string> = new Set(
  `ReduceMean ReduceSum GlobalAveragePool Add Sub Mul Div Max Clip Identity Cast Reshape Expand Squeeze Unsqueeze Transpose Flatten`.split(
    ' ',
  ),
);
const afterRoot: ReadonlySet<string> = new Set(['Add', 'Max', 'Clip', 'Reciprocal', 'Div', 'Identity']);

/**
 * Operations of normalisations written out by hand (square, mean, add epsilon, root, divide): the square overflows FP16 from 256 on, and an
 * epsilon of 1e-12 is zero in it, so that a constant row would be divided by zero.
 */
export function varianceArithmetic(flow: Flow): ReadonlySet<Operation> {
  const marked = new Set<Operation>();
  const squares = flow.operations.filter(isSquare);
  for (const square of squares) {
    const path = pathTo(({ node }) => node.opType === 'Sqrt', square);
    const root = path.at(-1);
    if (root === undefined || !path.some(isReduction)) continue;
    for (const step of path) marked.add(step);
    markDivision(root, marked);
  }
  // The mean's own square, as in E[x²] - E[x]²: the difference is as exact as both are.
  for (const square of squares) {
    const mean = marked.has(square) ? [] : pathBackToReduction(square);
    if (mean.length === 0) continue;
    const path = pathTo((step) => step.node.opType === 'Sub' && marked.has(step), square);
    if (path.length > 0) for (const step of [...mean, ...path]) marked.add(step);
  }
  return marked;
}

const isReduction = ({ node }: Operation): boolean =>
  node.opType.startsWith('Reduce') || node.opType === 'GlobalAveragePool';

function isSquare({ node, inputs, outputs }: Operation): boolean {
  if (plainDomain(node.domain) !== '' || !outputs.some(isFloat32)) return false;
  return (
    squaring.has(node.opType) || (node.opType === 'Mul' && inputs[0] !== undefined && inputs[0] === inputs[1])
  );
}

/** The fewest steps from a square to an end, both included; none when it reaches no such end before another square. */
function pathTo(isEnd: (operation: Operation) => boolean, start: Operation): readonly Operation[] {
  const before = new Map<Operation, Operation | undefined>([[start, undefined]]);
  for (const operation of before.keys()) {
    if (isEnd(operation)) {
      const path: Operation[] = [];
      for (let at: Operation | undefined = operation; at !== undefined; at = before.get(at)) path.unshift(at);
      return path;
    }
    if (operation !== start && (!towardsRoot.has(operation.node.opType) || isSquare(operation))) continue;
    for (const next of readersOf(operation)) if (!before.has(next)) before.set(next, operation);
  }
  return [];
}

/** The path from the input of a square back to the sum or mean that it is made from; empty where there is none. */
function pathBackToReduction(square: Operation): readonly Operation[] {
  const path: Operation[] = [];
  for (
    let at = square.inputs[0]?.producer;
    at !== undefined && towardsRoot.has(at.node.opType);
    at = at.inputs.find((value) => value?.producer !== undefined && isFloat32(value))?.producer
  ) {
    path.push(at);
    if (isReduction(at)) return path;
  }
  return [];
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
