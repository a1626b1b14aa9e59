import { usedNames } from './graph.js';
import type { NodeProto } from './onnx_pb.js';

interface NodeOrder {
  /** Every node once, each after the nodes that make what it (or a body inside it) uses. Nodes that are in order already keep their places. */
  readonly nodes: readonly NodeProto[];
  /** Nodes that wait for each other; empty where there are none. */
  readonly cycle: readonly NodeProto[];
}

/** The nodes of one graph, body or function in an order of use. ONNX demands one, but files without it are common, and every runtime takes them. */
export function inOrder(nodes: readonly NodeProto[]): NodeOrder {
  const makers = new Map<string, number>();
  for (const [index, { output }] of nodes.entries())
    for (const name of output) if (name !== '' && !makers.has(name)) makers.set(name, index);
  const states = new Array<'waiting' | 'placed' | undefined>(nodes.length);
  const placed: NodeProto[] = [];
  const path: { readonly index: number; readonly node: NodeProto; readonly uses: Iterator<string> }[] = [];
  let cycle: readonly NodeProto[] = [];
  const enter = (index: number, node: NodeProto) => {
    states[index] = 'waiting';
    path.push({ index, node, uses: usedNames(node)[Symbol.iterator]() });
  };
  for (const [start, first] of nodes.entries()) {
    if (states[start] === undefined) enter(start, first);
    for (let at = path.at(-1); at !== undefined; at = path.at(-1)) {
      const { done, value } = at.uses.next();
      if (done === true) {
        states[at.index] = 'placed';
        placed.push(at.node);
        path.pop();
        continue;
      }
      const maker = makers.get(value);
      const node = maker === undefined ? undefined : nodes[maker];
      if (maker === undefined || node === undefined || states[maker] === 'placed') continue;
      if (states[maker] === undefined) enter(maker, node);
      else if (cycle.length === 0)
        cycle = path.slice(path.findIndex(({ index }) => index === maker)).map((step) => step.node);
    }
  }
  return { nodes: placed, cycle };
}
