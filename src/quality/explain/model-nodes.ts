import { behaviour, seenOn } from '../../behaviour/facts.js';
import { originOfLayer } from '../../engines/plan/layer-names.js';
import { TrtforgeError } from '../../errors.js';
import { fixingAll } from '../../formats/onnx/edit-steps.js';
import {
  GraphUses,
  type GraphView,
  isOnnxDomain,
  nodesReached,
  qualifiedOpType,
  visitMainGraphs,
} from '../../formats/onnx/graph.js';
import { factsOfModel } from '../../formats/onnx/inspect.js';
import { rejections } from '../../formats/onnx/lint/findings.js';
import { viewModel } from '../../formats/onnx/model.js';
import type { Finding } from '../../formats/onnx/model-facts.js';
import type { ModelProto, NodeProto } from '../../formats/onnx/onnx_pb.js';
import { valueFacts } from '../../formats/onnx/values.js';
import { dtypeFromOnnx } from '../../formats/tensor/dtype.js';
import type { ModelNode, ModelPlace } from './explained-issue.js';

/** Stands for the file of a model in a line to run. */
export const NO_FILE = 'MODEL.onnx';

/** Number of nodes of a place that are listed. */
const LISTED_NODES = 50;

type Value = ModelNode['inputs'][number];

/** The nodes of a model, looked up as error lines name them. */
export interface ModelNodes {
  /** The file; its name in messages where it is in memory alone. */
  readonly path: string;
  /** Steps of `trtforge edit` that fix every dimension that the inputs leave open. */
  fixing(): readonly string[];
  /** Nodes by the name in a line: a node's own, `node_of_` an output, a layer fused of several, or a number in the graph's order. */
  named(mention: string): ModelPlace | null;
  /** All that lies between two nodes: what the compiler took as one when it prints `ForeignNode[first...last]`. */
  between(first: string, last: string): ModelPlace | null;
  /** The nodes of any graph that are picked out. */
  struck(find: (view: GraphView) => readonly NodeProto[]): ModelPlace | null;
  /** Findings of `inspect` in the model that TensorRT is known to reject. */
  rejections(): readonly Finding[];
}

/** Opens a model for look-ups; undefined where it cannot be read, since the failure at hand matters more. */
export function openModelNodes(path: string): ModelNodes | undefined {
  try {
    return viewModel(path, (model) => {
      let found: readonly Finding[] | undefined;
      return modelNodes(
        model.proto,
        () => {
          found ??= factsOfModel(path).findings.filter(({ code }) => rejections.has(code));
          return found;
        },
        path,
      );
    });
  } catch (error) {
    if (error instanceof TrtforgeError) return undefined;
    throw error;
  }
}

interface NodePlace {
  readonly view: GraphView;
  readonly index: number;
}

/** The same over a model in memory. */
export function modelNodes(
  proto: ModelProto,
  rejected: ModelNodes['rejections'] = () => [],
  path = NO_FILE,
): ModelNodes {
  const views = [...visitMainGraphs(proto)];
  const byName = new Map<string, NodePlace>();
  for (const view of views) {
    for (const [index, node] of view.nodes.entries()) {
      if (node.name !== '' && !byName.has(node.name)) byName.set(node.name, { view, index });
    }
    for (const [index, { output }] of view.nodes.entries()) {
      for (const name of output)
        for (const key of [name, `node_of_${name}`])
          if (name !== '' && !byName.has(key)) byName.set(key, { view, index });
    }
  }
  const find = (name: string): NodePlace | undefined => byName.get(name) ?? byNumber(name, views[0]);
  return {
    path,
    fixing: () => fixingAll(proto),
    rejections: rejected,
    named: (mention) => {
      const names = byName.has(mention) ? [mention] : originOfLayer(mention, null, null).onnxNodes;
      return place(
        'name',
        names.flatMap((name) => find(name) ?? []),
      );
    },
    between: (first, last) => {
      const [from, to] = [find(first), find(last)];
      if (from === undefined || to === undefined || from.view !== to.view) return null;
      return region(from.view, from.index, to.index);
    },
    struck: (pick) =>
      place(
        'name',
        views.flatMap((view) => pick(view).map((node) => ({ view, index: view.nodes.indexOf(node) }))),
      ),
  };
}

function byNumber(text: string, view: GraphView | undefined): NodePlace | undefined {
  if (view === undefined || !/^\d{1,9}$/.test(text) || Number(text) >= view.nodes.length) return undefined;
  return { view, index: Number(text) };
}

/** The nodes that the first one leads to and the last one needs; where no path joins them, those that stand between them. */
function region(view: GraphView, first: number, last: number): ModelPlace | null {
  const uses = new GraphUses(view.graph!);
  const led = nodesReached([view.nodes[first]!], uses.after);
  const needed = nodesReached([view.nodes[last]!], uses.before);
  const indices = [...view.nodes.entries()].flatMap(([index, node]) =>
    led.has(node) && needed.has(node) ? [index] : [],
  );
  if (indices.length > 0)
    return place(
      'path',
      indices.map((index) => ({ view, index })),
    );
  const [low, high] = [Math.min(first, last), Math.max(first, last)];
  return place(
    'order',
    Array.from({ length: high - low + 1 }, (_, offset) => ({ view, index: low + offset })),
  );
}

function place(found: ModelPlace['found'], places: readonly NodePlace[]): ModelPlace | null {
  if (places.length === 0) return null;
  const nodes = places.map(({ view, index }) => view.nodes[index]!);
  const values = new Map([...new Set(places.map(({ view }) => view))].map((view) => [view, valuesOf(view)]));
  return {
    found,
    total: nodes.length,
    nodes: places
      .slice(0, LISTED_NODES)
      .map(({ view, index }) => describe(view.nodes[index]!, view, values.get(view)!)),
    operators: counted(nodes.map(qualifiedOpType)),
    suspects: suspectsAmong(nodes),
  };
}

function describe(node: NodeProto, view: GraphView, values: ReadonlyMap<string, Value>): ModelNode {
  const value = (name: string): Value => values.get(name) ?? { name, dtype: null, shape: null };
  return {
    name: node.name !== '' ? node.name : (node.output[0] ?? ''),
    operator: qualifiedOpType(node),
    graph: view.path,
    inputs: node.input.filter((name) => name !== '').map(value),
    outputs: node.output.filter((name) => name !== '').map(value),
  };
}

/** The values that a graph and those around it declare. */
function valuesOf(view: GraphView): Map<string, Value> {
  const values = view.parent === undefined ? new Map<string, Value>() : valuesOf(view.parent);
  const { graph } = view;
  for (const info of [...(graph?.valueInfo ?? []), ...(graph?.input ?? []), ...(graph?.output ?? [])])
    values.set(info.name, valueFacts(info));
  for (const { name, dims, dataType } of graph?.initializer ?? [])
    values.set(name, { name, dtype: dtypeFromOnnx(dataType) ?? null, shape: dims.map(Number) });
  return values;
}

function counted(types: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const type of types) counts.set(type, (counts.get(type) ?? 0) + 1);
  return Object.fromEntries([...counts].sort(([a, many], [b, few]) => few - many || (a < b ? -1 : 1)));
}

/** Number of nodes of one suspicion that are named. */
const NAMED = 5;

/** A pattern in the graph that TensorRT is known to stumble over. */
interface Suspicion {
  /** The nodes that show it, among those of the place. */
  readonly find: (nodes: readonly NodeProto[]) => readonly NodeProto[];
  readonly why: string;
}

const ofType =
  (...types: readonly string[]) =>
  (nodes: readonly NodeProto[]) =>
    nodes.filter((node) => types.includes(qualifiedOpType(node)));

/** Patterns that users of TensorRT met behind a failed region, the most telling first. */
const suspicions: readonly Suspicion[] = [
  {
    find: maskOfDetr,
    why: `A mask is cast, resized and used again (Cast, Resize, Sigmoid): the shape of DETR models that ${seenOn('detr-masks', 'tensorrt')} finds no kernel for. Export with the dynamo exporter and a batch Dim, or fold it under a fixed size: one engine a batch.`,
  },
  {
    find: ofType('GridSample'),
    why: `GridSample of deformable attention has no kernel inside a fused region in several versions from ${behaviour['grid-sample-wrong'].tensorrt.since} on, and wrong results in others: use MultiscaleDeformableAttnPlugin_TRT or a Gather form, and verify.`,
  },
  {
    find: (nodes) => nodes.filter((node) => !isOnnxDomain(node.domain)),
    why: 'An operator of another domain needs a plug-in that is loaded at build and at run time.',
  },
  {
    find: ofType('NonZero', 'NonMaxSuppression', 'Unique', 'Compress'),
    why: 'The size of its output depends on the data, which few kernels can be fused around.',
  },
  {
    find: ofType('If', 'Loop', 'Scan', 'SequenceMap'),
    why: 'Control flow inside the region: fold it away with fixed shapes where the condition is known.',
  },
  {
    find: ofType('ConvTranspose'),
    why: `${behaviour['conv-transpose-kernels'].holds} in ${behaviour['conv-transpose-kernels'].tensorrt.since}: keep it in FP32.`,
  },
  {
    find: ofType('TopK'),
    why: `${behaviour['top-k-limit'].holds} before TensorRT ${behaviour['top-k-limit'].tensorrt.until}.`,
  },
  {
    find: ofType('Softmax', 'Attention', 'Einsum'),
    why: 'Attention is fused whole and its kernels need scratch memory: pass a large --workspace first.',
  },
];

/** Nodes among these that are known to cause failures of compiled regions, and why. */
const suspectsAmong = (nodes: readonly NodeProto[]): ModelPlace['suspects'] =>
  suspicions.flatMap(({ find, why }) => {
    const found = find(nodes).map((node) => (node.name !== '' ? node.name : (node.output[0] ?? '')));
    return found.length === 0 ? [] : [{ nodes: found.slice(0, NAMED), why }];
  });

/** Resize fed by a Cast, in a region that goes on to a Sigmoid. */
function maskOfDetr(nodes: readonly NodeProto[]): readonly NodeProto[] {
  const casts = new Set(ofType('Cast')(nodes).flatMap(({ output }) => output));
  // Unsqueeze and the like may stand between the cast and the resize.
  for (const { opType, input, output } of nodes)
    if (['Unsqueeze', 'Reshape', 'Squeeze', 'Expand'].includes(opType) && casts.has(input[0] ?? ''))
      for (const name of output) casts.add(name);
  const resizes = ofType('Resize')(nodes).filter(({ input }) => casts.has(input[0] ?? ''));
  return ofType('Sigmoid')(nodes).length > 0 ? resizes : [];
}
