import { GraphUses, nodesReached, usedNames } from './graph.js';
import type { GraphProto, NodeProto } from './onnx_pb.js';

/** Nodes at fault in a model that fails. */
interface Suspected {
  /** Of which one may fail alone, the likeliest first. */
  readonly single: readonly NodeProto[];
  /** That may fail with what lies between and around them. */
  readonly together: readonly NodeProto[];
}

/** Steps around the nodes, until the part fails; then the part is too large to help anybody. */
const RADII = [0, 1, 2, 4, 8];

/** So many nodes are tried alone. */
const MOST_SINGLE = 3;

/** Parts that may fail by themselves, smallest first. */
export function* partsOf(
  graph: GraphProto,
  { single, together }: Suspected,
): Generator<ReadonlySet<NodeProto>> {
  const around = new Neighbourhood(graph);
  for (const node of single.slice(0, MOST_SINGLE)) yield around.closed(new Set([node]));
  if (together.length === 0) return;
  const between = around.between(new Set(together));
  for (const radius of RADII) yield around.closed(around.grown(between, radius));
}

/** The nodes of these names in a graph, and those with such a node in a body. */
export const nodesNamed = (graph: GraphProto, names: readonly string[]): readonly NodeProto[] =>
  graph.node.filter((node) => holdsAny(node, new Set(names)));

/** Whether a node has one of these names, or a body with such a node: it is cut out with its bodies. */
const holdsAny = (node: NodeProto, names: ReadonlySet<string>): boolean =>
  names.has(node.name) ||
  node.attribute.some(({ g, graphs }) =>
    [...(g === undefined ? [] : [g]), ...graphs].some((body) =>
      body.node.some((inner) => holdsAny(inner, names)),
    ),
  );

/** Nodes of a graph with the casts at their border, and with what is computed of weights alone. */
export const closedPart = (graph: GraphProto, nodes: Iterable<NodeProto>): ReadonlySet<NodeProto> =>
  new Neighbourhood(graph).closed(new Set(nodes));

class Neighbourhood extends GraphUses {
  readonly #nodes: readonly NodeProto[];
  readonly #constant = new Map<NodeProto, boolean>();

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

  /** With the casts at the border, so that it lies at values of the FP32 model, and with nodes that read nothing but weights. */
  closed(part: ReadonlySet<NodeProto>): ReadonlySet<NodeProto> {
    const all = new Set(part);
    for (const node of all) {
      const sources = this.before(node).filter((maker) => this.#readsWeightsAlone(maker));
      const casts = [...this.before(node), ...this.after(node)].filter(({ opType }) => opType === 'Cast');
      for (const more of [...sources, ...casts]) all.add(more);
    }
    return all;
  }

  #readsWeightsAlone(node: NodeProto): boolean {
    const known = this.#constant.get(node);
    if (known !== undefined) return known;
    const isConstant = usedNames(node).every((name) => {
      const maker = this.producers.get(name);
      return maker === undefined ? name === '' || this.constants.has(name) : this.#readsWeightsAlone(maker);
    });
    this.#constant.set(node, isConstant);
    return isConstant;
  }
}
