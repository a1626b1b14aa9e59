import { qualifiedOpType } from '../../formats/onnx/graph.js';
import type { NodeProto } from '../../formats/onnx/onnx_pb.js';

export interface MatchedNodes {
  readonly pairs: readonly (readonly [a: NodeProto, b: NodeProto])[];
  readonly onlyA: readonly NodeProto[];
  readonly onlyB: readonly NodeProto[];
}

const nameOf = (node: NodeProto): string => node.name;
const outputOf = (node: NodeProto): string => node.output.find((name) => name !== '') ?? '';
/** With the operator: exporters that number their names give a number to another operator as soon as a node is inserted. */
const withOperator = (key: (node: NodeProto) => string) => (node: NodeProto) =>
  key(node) === '' ? '' : JSON.stringify([qualifiedOpType(node), key(node)]);

/**
 * Pairs the nodes of two graphs: those of one operator by name, then by the tensor they make, then by operator and position; at last those whose operator
 * was replaced, by name or tensor. Names that one graph has twice pair nothing. Pairs are in the order of A.
 */
export function matchNodes(a: readonly NodeProto[], b: readonly NodeProto[]): MatchedNodes {
  const matched = new Map<NodeProto, NodeProto>();
  const taken = new Set<NodeProto>();
  const rest = () => [a.filter((node) => !matched.has(node)), b.filter((node) => !taken.has(node))] as const;
  const pair = (one: NodeProto, other: NodeProto) => {
    matched.set(one, other);
    taken.add(other);
  };
  const pairByKey = (key: (node: NodeProto) => string) => {
    const [restA, restB] = rest();
    const others = uniqueKeys(restB, key);
    for (const [text, one] of uniqueKeys(restA, key)) {
      const other = others.get(text);
      if (one !== undefined && other !== undefined) pair(one, other);
    }
  };
  pairByKey(withOperator(nameOf));
  pairByKey(withOperator(outputOf));
  for (const [one, other] of alignedByOperator(...rest())) pair(one, other);
  pairByKey(nameOf);
  pairByKey(outputOf);
  const [onlyA, onlyB] = rest();
  const pairs = a.flatMap((one) => {
    const other = matched.get(one);
    return other === undefined ? [] : [[one, other] as const];
  });
  return { pairs, onlyA, onlyB };
}

/** Nodes by key; undefined where several share it. */
function uniqueKeys(nodes: readonly NodeProto[], key: (node: NodeProto) => string) {
  const found = new Map<string, NodeProto | undefined>();
  for (const node of nodes) {
    const text = key(node);
    if (text !== '') found.set(text, found.has(text) ? undefined : node);
  }
  return found;
}

/** Equal operators at the beginning and at the end of both; between them the first of an operator with the first, the second with the second. */
function* alignedByOperator(
  a: readonly NodeProto[],
  b: readonly NodeProto[],
): Generator<readonly [NodeProto, NodeProto]> {
  const alike = (i: number, j: number) => qualifiedOpType(a[i]!) === qualifiedOpType(b[j]!);
  const least = Math.min(a.length, b.length);
  let start = 0;
  while (start < least && alike(start, start)) start++;
  let end = 0;
  while (end < least - start && alike(a.length - 1 - end, b.length - 1 - end)) end++;
  for (let i = 0; i < start; i++) yield [a[i]!, b[i]!];
  for (let i = 1; i <= end; i++) yield [a[a.length - i]!, b[b.length - i]!];
  const waiting = new Map<string, NodeProto[]>();
  for (const node of b.slice(start, b.length - end).reverse()) {
    const op = qualifiedOpType(node);
    const same = waiting.get(op);
    if (same === undefined) waiting.set(op, [node]);
    else same.push(node);
  }
  for (const node of a.slice(start, a.length - end)) {
    const other = waiting.get(qualifiedOpType(node))?.pop();
    if (other !== undefined) yield [node, other];
  }
}
