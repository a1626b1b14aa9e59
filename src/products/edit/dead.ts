import { plural } from '../../base/text/quantity.js';
import { functionKey, opsetsOf } from '../../formats/onnx/dtype-inference.js';
import { GraphUses, nodesReached, usedNames, visitNodes } from '../../formats/onnx/graph.js';
import type { NodeProto } from '../../formats/onnx/onnx_pb.js';
import { operatorSignature, plainDomain } from '../../formats/onnx/operators.js';
import type { Done, Editing } from './edited-model.js';

/** Removes nodes that no output needs, with the weights, functions and optional outputs that nothing reads; of a body where one is passed, whose inputs stay. */
export function dropDead(editing: Editing, graph = editing.graph): Done {
  const { proto } = editing.model;
  const uses = new GraphUses(graph);
  const makers = graph.output.flatMap(({ name }) => uses.producers.get(name) ?? []);
  const needed = nodesReached(makers, uses.before);
  const counts = () =>
    [
      graph.node.length,
      graph.initializer.length + graph.sparseInitializer.length,
      proto.functions.length,
    ] as const;
  const before = counts();
  graph.node = graph.node.filter((node) => needed.has(node));
  const read = new Set([...graph.output.map(({ name }) => name), ...graph.node.flatMap(usedNames)]);
  graph.initializer = graph.initializer.filter(({ name }) => read.has(name));
  graph.sparseInitializer = graph.sparseInitializer.filter(({ values }) => read.has(values?.name ?? ''));
  if (graph === editing.graph)
    graph.input = graph.input.filter(({ name }) => editing.inputs.has(name) || read.has(name));
  const opset = opsetsOf(proto.opsetImport).get('') ?? 0;
  const outputs = graph.node.reduce((sum, node) => sum + dropUnread(node, read, opset), 0);
  const made = new Set(graph.node.flatMap(({ output }) => output));
  graph.valueInfo = graph.valueInfo.filter(({ name }) => made.has(name));
  const called = new Set([...visitNodes(proto)].map(({ node }) => functionKey(node)));
  proto.functions = proto.functions.filter((fn) => called.has(functionKey(fn)));
  const [nodes, weights, functions] = counts().map((count, at) => before[at]! - count);
  const gone = { node: nodes, weight: weights, function: functions, 'unread output': outputs };
  const texts = Object.entries(gone).flatMap(([what, count = 0]) =>
    count === 0 ? [] : [plural(count, what)],
  );
  return texts.length === 0 ? null : `removed ${texts.join(', ')}`;
}

/** Leaves optional outputs out that nothing reads, and returns how many. */
function dropUnread(node: NodeProto, read: ReadonlySet<string>, opset: number): number {
  if (plainDomain(node.domain) !== '') return 0;
  const formals = operatorSignature('', node.opType, opset)?.outputs ?? [];
  let dropped = 0;
  node.output = node.output.map((name, index) => {
    if (name === '' || read.has(name) || formals[index]?.optional !== true) return name;
    dropped++;
    return '';
  });
  while (node.output.length > 1 && node.output.at(-1) === '') node.output.pop();
  return dropped;
}
