import { GraphUses, nodesReached } from '../../../formats/onnx/graph.js';
import type { GraphProto, NodeProto } from '../../../formats/onnx/onnx_pb.js';
import { madeTensors } from '../made-tensors.js';

/** Nodes at fault in a model that fails. */
export interface Suspected {
  /** Of which one may fail alone, the likeliest first. */
  readonly single: readonly string[];
  /** That may fail with what lies between and around them. */
  readonly together: readonly string[];
}

/** Steps around the nodes, until the part fails; then the part is too large to help anybody. */
const RADII = [0, 1, 2, 4, 8];

/** So many nodes are tried alone. */
const MOST_SINGLE = 3;

/** Sets of node names, smallest first. */
export function* partsOf(graph: GraphProto, { single, together }: Suspected): Generator<ReadonlySet<string>> {
  const around = new Neighbourhood(graph);
  const nodesOf = (names: readonly string[]) => graph.node.filter((node) => holdsAny(node, new Set(names)));
  for (const node of nodesOf(single).slice(0, MOST_SINGLE)) yield around.closed(new Set([node]));
  if (together.length === 0) return;
  const between = around.between(new Set(nodesOf(together)));
  for (const radius of RADII) yield around.closed(around.grown(between, radius));
}

/** Whether a node has one of these names, or a body with such a node: it is cut out with its bodies. */
const holdsAny = (node: NodeProto, names: ReadonlySet<string>): boolean =>
  names.has(node.name) ||
  node.attribute.some(({ g, graphs }) =>
    [...(g === undefined ? [] : [g]), ...graphs].some((body) =>
      body.node.some((inner) => holdsAny(inner, names)),
    ),
  );

/** The names of the same nodes in another conversion of the model, with the casts at their border there. */
export const partOf = (graph: GraphProto, names: ReadonlySet<string>): ReadonlySet<string> =>
  new Neighbourhood(graph).closed(new Set(graph.node.filter(({ name }) => names.has(name))));

/** Nodes that multiply FP32 tensors, in the order of the graph: what TF32 shortens. Throws what opening a model throws. */
export const float32Products = (path: string): readonly string[] =>
  madeTensors(path)
    .filter(({ op, dtype }) => products.has(op) && dtype === 'float32')
    .map(({ node }) => node);

const products: ReadonlySet<string> = new Set(['MatMul', 'Gemm', 'Conv', 'ConvTranspose']);

class Neighbourhood extends GraphUses {
  readonly #nodes: readonly NodeProto[];

  constructor(graph: GraphProto) {
    super(graph);
    this.#nodes = graph.node;
  }

  grown(part: ReadonlySet<NodeProto>, steps: number): ReadonlySet<NodeProto> {
    let all = part;
    for (let step = 0; step < steps; step++)
      all = new Set([...all].flatMap((node) => [node, ...this.before(node), ...this.after(node)]));
    return all;
  }

  /** The nodes on all ways from one of the part to another. */
  between(part: ReadonlySet<NodeProto>): ReadonlySet<NodeProto> {
    const after = nodesReached(part, this.after);
    const before = nodesReached(part, this.before);
    return new Set(this.#nodes.filter((node) => after.has(node) && before.has(node)));
  }

  /** Names with the casts at the border, so that it lies at values of the FP32 model, and with nodes that read nothing but weights. */
  closed(part: ReadonlySet<NodeProto>): ReadonlySet<string> {
    const all = new Set(part);
    for (const node of all) {
      const sources = this.before(node).filter((maker) => this.before(maker).length === 0 && isFree(maker));
      const casts = [...this.before(node), ...this.after(node)].filter(({ opType }) => opType === 'Cast');
      for (const more of [...sources, ...casts]) all.add(more);
    }
    return new Set([...all].map(({ name }) => name));
  }
}

/** Whether a node reads nothing that could be cut. */
const isFree = ({ input }: NodeProto): boolean => input.length === 0;
