import type { EngineDiff, EngineLayer, LayersResult, LayerTensor } from './result.js';
import { computes } from './summary.js';

type Change = EngineDiff['changed'][number]['changes'][number];
type Pair<L = EngineLayer> = readonly [L, L];

/** What layers are matched by. */
type Matchable = Pick<EngineLayer, 'name' | 'onnxNodes' | 'profile'>;

/** The layers of two engines that belong together. */
export interface MatchedLayers<L extends Matchable> {
  readonly pairs: readonly Pair<L>[];
  /** The same ONNX nodes, put together into other layers. */
  readonly fusions: readonly {
    readonly nodes: readonly string[];
    readonly a: readonly L[];
    readonly b: readonly L[];
  }[];
  readonly onlyA: readonly L[];
  readonly onlyB: readonly L[];
}

/**
 * Matches layers of two engines of one model: when they stand for the same ONNX nodes, or have the same name where they stand for none; where the nodes overlap in
 * part, they were fused in another way. Every layer is in the result once.
 */
export function matchLayers<L extends Matchable>(a: readonly L[], b: readonly L[]): MatchedLayers<L> {
  const { pairs, restA, restB } = matched(a, b);
  return { pairs, ...regrouped(restA, restB) };
}

/** Two engines of one model, layer by layer. Copies and constants are only counted: they follow from the rest. */
export function diffEngines(a: LayersResult, b: LayersResult): EngineDiff {
  const { pairs, fusions, onlyA, onlyB } = matchLayers(a.layers.filter(computes), b.layers.filter(computes));
  const names = (layers: readonly EngineLayer[]) => layers.map(({ name }) => name);
  const compared = pairs.map((pair) => ({ pair, changes: changesOf(pair) }));
  const changed = compared.filter(({ changes }) => changes.length > 0);
  return {
    schema: 'trtforge.engine-diff/1',
    kind: 'diff',
    a: sideOf(a),
    b: sideOf(b),
    matched: pairs.length,
    same: pairs.length - changed.length,
    changed: changed.map(({ pair: [one, other], changes }) => ({
      a: one.name,
      b: other.name,
      onnxNodes: one.onnxNodes,
      changes,
    })),
    fusions: fusions.map((group) => ({ onnxNodes: [...group.nodes], a: names(group.a), b: names(group.b) })),
    onlyA: names(onlyA),
    onlyB: names(onlyB),
  };
}

const sideOf = ({
  file,
  layersFrom,
  planBytes,
  planSha256,
  loaded,
  detail,
  summary,
}: LayersResult): EngineDiff['a'] => ({
  file,
  layersFrom,
  planBytes,
  planSha256,
  loaded,
  detail,
  summary,
});

const keyOf = ({ profile, onnxNodes, name }: Matchable): string =>
  JSON.stringify([profile, ...(onnxNodes.length > 0 ? onnxNodes.toSorted() : ['', name])]);

/** Several layers may stand for the same nodes; they are paired in order. */
function matched<L extends Matchable>(a: readonly L[], b: readonly L[]) {
  const waiting = new Map<string, L[]>();
  for (const layer of b) {
    const key = keyOf(layer);
    const same = waiting.get(key);
    if (same === undefined) waiting.set(key, [layer]);
    else same.push(layer);
  }
  for (const layers of waiting.values()) layers.reverse();
  const pairs: Pair<L>[] = [];
  const restA: L[] = [];
  const taken = new Set<L>();
  for (const layer of a) {
    const other = waiting.get(keyOf(layer))?.pop();
    if (other === undefined) restA.push(layer);
    else {
      pairs.push([layer, other]);
      taken.add(other);
    }
  }
  return { pairs, restA, restB: b.filter((layer) => !taken.has(layer)) };
}

/** Layers that share nodes, directly or through others, make one group; a group with layers of one engine only has no counterpart. */
function regrouped<L extends Matchable>(a: readonly L[], b: readonly L[]) {
  const groups = new Groups();
  for (const layer of [...a, ...b])
    for (const node of layer.onnxNodes) groups.join(layer.onnxNodes[0] ?? node, node);
  const byRoot = new Map<string, { nodes: Set<string>; a: L[]; b: L[] }>();
  const only: { a: L[]; b: L[] } = { a: [], b: [] };
  const place = (layer: L, side: 'a' | 'b') => {
    const [first] = layer.onnxNodes;
    if (first === undefined) {
      only[side].push(layer);
      return;
    }
    const root = groups.root(first);
    const group = byRoot.get(root) ?? { nodes: new Set<string>(), a: [], b: [] };
    byRoot.set(root, group);
    group[side].push(layer);
    for (const node of layer.onnxNodes) group.nodes.add(node);
  };
  for (const layer of a) place(layer, 'a');
  for (const layer of b) place(layer, 'b');
  const fusions: { nodes: string[]; a: L[]; b: L[] }[] = [];
  for (const group of byRoot.values()) {
    if (group.a.length > 0 && group.b.length > 0) fusions.push({ ...group, nodes: [...group.nodes] });
    else {
      only.a.push(...group.a);
      only.b.push(...group.b);
    }
  }
  return { fusions, onlyA: only.a, onlyB: only.b };
}

/** Sets of names that grow together. */
class Groups {
  readonly #parent = new Map<string, string>();

  root(name: string): string {
    let root = name;
    for (let up = this.#parent.get(root); up !== undefined; up = this.#parent.get(root)) root = up;
    // Shortened on the way, so that long chains are walked once.
    for (let at = name; at !== root; ) {
      const up = this.#parent.get(at) ?? root;
      this.#parent.set(at, root);
      at = up;
    }
    return root;
  }

  join(one: string, other: string): void {
    const [a, b] = [this.root(one), this.root(other)];
    if (a !== b) this.#parent.set(b, a);
  }
}

/** What differs between two layers that belong together. */
export function changesOf([a, b]: Pair): Change[] {
  const facts: readonly (readonly [Change['what'], string, string])[] = [
    ['type', a.type ?? 'unknown', b.type ?? 'unknown'],
    ['precision', a.precision ?? 'unknown', b.precision ?? 'unknown'],
    ['tactic', tacticOf(a), tacticOf(b)],
    ['inputs', formatsOf(a.inputs), formatsOf(b.inputs)],
    ['outputs', formatsOf(a.outputs), formatsOf(b.outputs)],
    ['weights', `${a.weightBytes} bytes`, `${b.weightBytes} bytes`],
  ];
  return facts
    .filter(([, one, other]) => one !== other)
    .map(([what, one, other]) => ({ what, a: one, b: other }));
}

/** The name where there is one: numbers of tactics mean nothing across versions. The compiler's names end in a hash of their own. */
const tacticOf = ({ tactic }: EngineLayer): string =>
  tactic.name?.replace(/^(__myl_\w*)_0x[0-9a-f]+$/, '$1') ?? tactic.value ?? 'none';

/** Layout and type, not shape: engines of other batch sizes are still alike. */
const formatsOf = (tensors: readonly LayerTensor[]): string =>
  tensors.map(({ format, dtype }) => format ?? dtype ?? 'unknown').join('; ') || 'none';
