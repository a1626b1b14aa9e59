import type {
  AttributeProto,
  FunctionProto,
  GraphProto,
  ModelProto,
  NodeProto,
  SparseTensorProto,
  TensorProto,
} from './onnx_pb.js';

/** A list of nodes with a scope of names: the model's graph, a body (If, Loop, Scan, …) inside a node, a function, or a training graph. */
export interface GraphView {
  readonly kind: 'graph' | 'body' | 'function' | 'training';
  /** Where it is, for messages: `graph`, `graph/If "gate".then_branch`, `function ai.acme::Gelu`. */
  readonly path: string;
  readonly nodes: readonly NodeProto[];
  /** The messages it is made of: one of the two is there. */
  readonly graph: GraphProto | undefined;
  readonly function: FunctionProto | undefined;
  /** The scope whose values a body may use without naming them as inputs. */
  readonly parent: GraphView | undefined;
  /** The node and attribute that hold a body. */
  readonly owner: { readonly node: NodeProto; readonly attribute: AttributeProto } | undefined;
}

/** Where a tensor stands in a model. */
export interface TensorPlace {
  readonly tensor: TensorProto;
  readonly role: 'initializer' | 'attribute' | 'sparse-values' | 'sparse-indices';
  readonly view: GraphView;
  /** The node whose attribute holds it; undefined for initializers and default attributes of functions. */
  readonly node: NodeProto | undefined;
  readonly attribute: AttributeProto | undefined;
  readonly sparse: SparseTensorProto | undefined;
}

/** Every graph of a model, outer before inner: the graph and its bodies, then functions, then training graphs. */
export function* visitGraphs(model: ModelProto): Generator<GraphView> {
  if (model.graph !== undefined) yield* withBodies(graphView('graph', 'graph', model.graph));
  for (const definition of model.functions) yield* withBodies(functionView(definition));
  for (const [index, training] of model.trainingInfo.entries()) {
    for (const [name, graph] of [
      ['initialization', training.initialization],
      ['algorithm', training.algorithm],
    ] as const) {
      if (graph !== undefined) yield* withBodies(graphView('training', `training ${index} ${name}`, graph));
    }
  }
}

/** The model's graph and the bodies inside it, without functions and training graphs. */
export function* visitMainGraphs(model: ModelProto): Generator<GraphView> {
  for (const view of visitGraphs(model)) if (isMain(view)) yield view;
}

/** Whether a graph is the model's own or a body inside it. */
export function isMain(view: GraphView): boolean {
  let root = view;
  while (root.parent !== undefined) root = root.parent;
  return root.kind === 'graph';
}

/** Every node of a model with the graph it is in. */
export function* visitNodes(model: ModelProto): Generator<{ node: NodeProto; view: GraphView }> {
  for (const view of visitGraphs(model)) for (const node of view.nodes) yield { node, view };
}

/** Every TensorProto of a model: initializers, attributes, sparse tensors, in bodies, functions and training graphs too. */
export function* visitTensors(model: ModelProto): Generator<TensorPlace> {
  for (const view of visitGraphs(model)) yield* tensorsOf(view);
}

/** The tensors of one graph, without those of its bodies. */
export function* tensorsOf(view: GraphView): Generator<TensorPlace> {
  const nowhere = { view, node: undefined, attribute: undefined, sparse: undefined };
  for (const tensor of view.graph?.initializer ?? []) {
    yield { tensor, role: 'initializer', view, node: undefined, attribute: undefined, sparse: undefined };
  }
  for (const sparse of view.graph?.sparseInitializer ?? []) yield* sparseParts(sparse, nowhere);
  for (const attribute of view.function?.attributeProto ?? []) {
    yield* attributeTensors(attribute, { ...nowhere, attribute });
  }
  for (const node of view.nodes) {
    for (const attribute of node.attribute) {
      if (holdsTensors(attribute)) yield* attributeTensors(attribute, { ...nowhere, node, attribute });
    }
  }
}

/** Nearly every node has none. */
const NO_BODIES: readonly GraphView[] = [];

/** The bodies directly inside a node: then_branch and else_branch of If, body of Loop and Scan, any graph attribute. */
export function bodiesOf(node: NodeProto, view: GraphView): readonly GraphView[] {
  if (!node.attribute.some(({ g, graphs }) => g !== undefined || graphs.length > 0)) return NO_BODIES;
  const bodies: GraphView[] = [];
  for (const attribute of node.attribute) {
    const graphs = attribute.g === undefined ? attribute.graphs : [attribute.g, ...attribute.graphs];
    for (const [index, graph] of graphs.entries()) {
      const place = graphs.length > 1 ? `${attribute.name}[${index}]` : attribute.name;
      bodies.push({
        kind: 'body',
        path: `${view.path}/${nodeLabel(node)}.${place}`,
        nodes: graph.node,
        graph,
        function: undefined,
        parent: view,
        owner: { node, attribute },
      });
    }
  }
  return bodies;
}

/** The name of a node in messages: `Conv "layer1/conv"`, or with its first output when it has no name. */
export const nodeLabel = (node: NodeProto): string =>
  `${node.opType} "${node.name !== '' ? node.name : (node.output[0] ?? '')}"`;

/** What a node is called where it is named by its name alone: one without is by its operator and its first output. */
export const nodeName = ({ name, opType, output }: NodeProto): string =>
  name === '' ? `${opType}:${output[0] ?? ''}` : name;

/** An op type in one text: plain for the ONNX domain, `domain::Type` for others. */
export const qualifiedOpType = (node: NodeProto): string =>
  isOnnxDomain(node.domain) ? node.opType : `${node.domain}::${node.opType}`;

/** The default domain has two spellings. */
export const isOnnxDomain = (domain: string): boolean => domain === '' || domain === 'ai.onnx';

/** Operators whose output has the values of their first input, elsewhere or more often; other inputs are places and sizes. */
export const rearrangers =
  'Identity Reshape Flatten Squeeze Unsqueeze Transpose Slice Gather Expand Tile'.split(' ');

/** Names that a graph itself gives values to: inputs, initializers, node outputs. */
export function definedNames(view: Pick<GraphView, 'nodes' | 'graph' | 'function'>): Set<string> {
  const names = new Set<string>(view.function?.input ?? []);
  for (const input of view.graph?.input ?? []) names.add(input.name);
  for (const tensor of view.graph?.initializer ?? []) names.add(tensor.name);
  for (const sparse of view.graph?.sparseInitializer ?? []) names.add(sparse.values?.name ?? '');
  for (const node of view.nodes) for (const output of node.output) names.add(output);
  names.delete('');
  return names;
}

/** Every name that stands for a value, in any graph of a model. */
export const valueNames = (proto: ModelProto): Set<string> =>
  new Set([...visitGraphs(proto)].flatMap((view) => [...definedNames(view)]));

/** A name that is not among the names, to which it is added. */
export function freeName(names: Set<string>, stem: string): string {
  let name = stem;
  for (let count = 2; names.has(name); count++) name = `${stem}_${count}`;
  names.add(name);
  return name;
}

/** Names of outer values that a body uses (itself or through bodies inside it), in order of first use. */
export function capturedNames(body: Pick<GraphView, 'nodes' | 'graph' | 'function'>): Set<string> {
  const own = definedNames(body);
  const captured = new Set<string>();
  const use = (name: string) => {
    if (name !== '' && !own.has(name)) captured.add(name);
  };
  for (const node of body.nodes) usedNames(node).forEach(use);
  for (const output of body.graph?.output ?? []) use(output.name);
  return captured;
}

/** Names of the values that a node uses: its inputs, and what its bodies take from the graph around them. */
export function usedNames(node: NodeProto): readonly string[] {
  const bodies = node.attribute.flatMap(({ g, graphs }) => (g === undefined ? graphs : [g, ...graphs]));
  if (bodies.length === 0) return node.input;
  const captured = bodies.flatMap((graph) => [
    ...capturedNames({ nodes: graph.node, graph, function: undefined }),
  ]);
  return [...node.input, ...captured];
}

/** Who makes and who reads the values of graphs, by name. A node that holds a body reads what the body takes from outside. */
export class GraphUses {
  readonly constants = new Map<string, TensorProto>();
  readonly producers = new Map<string, NodeProto>();
  readonly #readers = new Map<string, NodeProto[]>();

  constructor(...graphs: readonly GraphProto[]) {
    for (const { node, initializer } of graphs) {
      for (const tensor of initializer) this.constants.set(tensor.name, tensor);
      for (const each of node) this.#add(each);
    }
  }

  #add(node: NodeProto): void {
    const stored =
      node.opType === 'Constant' ? node.attribute.find(({ name }) => name === 'value')?.t : undefined;
    if (stored !== undefined) this.constants.set(node.output[0] ?? '', stored);
    for (const name of node.output) if (name !== '') this.producers.set(name, node);
    for (const name of usedNames(node)) {
      if (name === '') continue;
      const known = this.#readers.get(name);
      if (known === undefined) this.#readers.set(name, [node]);
      else known.push(node);
    }
  }

  /** The nodes that read a value, as often as they do. */
  readers(name: string): readonly NodeProto[] {
    return this.#readers.get(name) ?? [];
  }

  /** The nodes that make what a node reads. */
  before = (node: NodeProto): readonly NodeProto[] =>
    usedNames(node).flatMap((name) => this.producers.get(name) ?? []);

  /** The nodes that read what a node makes. */
  after = (node: NodeProto): readonly NodeProto[] => node.output.flatMap((name) => this.readers(name));
}

/** Nodes, those that a step leads to from them, and those that further steps do. */
export function nodesReached(
  from: Iterable<NodeProto>,
  step: (node: NodeProto) => readonly NodeProto[],
): ReadonlySet<NodeProto> {
  const all = new Set(from);
  const queue = [...all];
  for (let node = queue.pop(); node !== undefined; node = queue.pop())
    for (const next of step(node)) {
      if (all.has(next)) continue;
      all.add(next);
      queue.push(next);
    }
  return all;
}

function* withBodies(view: GraphView): Generator<GraphView> {
  yield view;
  for (const node of view.nodes) {
    for (const body of bodiesOf(node, view)) yield* withBodies(body);
  }
}

const graphView = (kind: 'graph' | 'training', path: string, graph: GraphProto): GraphView => ({
  kind,
  path,
  nodes: graph.node,
  graph,
  function: undefined,
  parent: undefined,
  owner: undefined,
});

const functionView = (definition: FunctionProto): GraphView => ({
  kind: 'function',
  path: `function ${definition.domain}::${definition.name}`,
  nodes: definition.node,
  graph: undefined,
  function: definition,
  parent: undefined,
  owner: undefined,
});

type Place = Omit<TensorPlace, 'tensor' | 'role'>;

const holdsTensors = ({ t, tensors, sparseTensor, sparseTensors }: AttributeProto): boolean =>
  t !== undefined || tensors.length > 0 || sparseTensor !== undefined || sparseTensors.length > 0;

function* attributeTensors(attribute: AttributeProto, place: Place): Generator<TensorPlace> {
  if (attribute.t !== undefined) yield { ...place, tensor: attribute.t, role: 'attribute' };
  for (const tensor of attribute.tensors) yield { ...place, tensor, role: 'attribute' };
  if (attribute.sparseTensor !== undefined) yield* sparseParts(attribute.sparseTensor, place);
  for (const sparse of attribute.sparseTensors) yield* sparseParts(sparse, place);
}

function* sparseParts(sparse: SparseTensorProto, place: Place): Generator<TensorPlace> {
  if (sparse.values !== undefined) yield { ...place, sparse, tensor: sparse.values, role: 'sparse-values' };
  if (sparse.indices !== undefined)
    yield { ...place, sparse, tensor: sparse.indices, role: 'sparse-indices' };
}

/** Domain to version, the ONNX domain under its full name. Where a domain is imported twice, the newer version counts. */
export function opsets(proto: ModelProto): Record<string, number> {
  const versions = new Map<string, number>();
  for (const { domain, version } of proto.opsetImport) {
    const name = isOnnxDomain(domain) ? 'ai.onnx' : domain;
    versions.set(name, Math.max(versions.get(name) ?? 0, Number(version)));
  }
  return Object.fromEntries(versions);
}

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

/** Reads of some values under other names, in a graph and in the bodies that take them from outside. */
export function redirect(graph: GraphProto, names: ReadonlyMap<string, string>): void {
  if (names.size === 0) return;
  for (const node of graph.node) redirectNode(node, names);
}

function redirectNode(node: NodeProto, names: ReadonlyMap<string, string>): void {
  node.input = node.input.map((name) => names.get(name) ?? name);
  for (const { g, graphs } of node.attribute)
    for (const body of g === undefined ? graphs : [g, ...graphs]) {
      const own = definedNames({ graph: body, nodes: body.node, function: undefined });
      const visible = new Map([...names].filter(([name]) => !own.has(name)));
      redirect(body, visible);
      for (const output of body.output) output.name = visible.get(output.name) ?? output.name;
    }
}
