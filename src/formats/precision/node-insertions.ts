import type { GraphProto, NodeProto } from '../onnx/onnx_pb.js';
import type { Flow } from './flow.js';

/** New nodes of a model and their names, until the graphs are rewritten. */
export class NodeInsertions {
  readonly #flow: Flow;
  readonly #names: Set<string>;
  /** New nodes by the node they follow; those under the graph itself come first in it. */
  readonly #after = new Map<NodeProto | GraphProto, NodeProto[]>();

  constructor(flow: Flow) {
    this.#flow = flow;
    this.#names = new Set(
      flow.scopes.flatMap(({ values, graph }) => [...values.keys(), ...graph.node.map(({ name }) => name)]),
    );
  }

  /** A name that no value and no node has, from now on taken. */
  unique(wanted: string): string {
    let name = wanted;
    for (let count = 2; this.#names.has(name); count++) name = `${wanted}_${count}`;
    this.#names.add(name);
    return name;
  }

  /** Behind what was inserted there before. A new node may be such a place as well. */
  insertAfter(place: NodeProto | GraphProto, node: NodeProto): void {
    const list = this.#after.get(place);
    if (list === undefined) this.#after.set(place, [node]);
    else list.push(node);
  }

  /** Writes the nodes into their graphs, in order of use, without those dropped. */
  apply(dropped: ReadonlySet<NodeProto>): void {
    const following = (place: NodeProto | GraphProto): readonly NodeProto[] =>
      (this.#after.get(place) ?? []).flatMap((node) => [node, ...following(node)]);
    for (const { graph, nodes } of this.#flow.scopes)
      graph.node = [
        ...following(graph),
        ...nodes.flatMap((node) => [...(dropped.has(node) ? [] : [node]), ...following(node)]),
      ];
  }
}
