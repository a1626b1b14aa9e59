import { plural } from '../../../base/text/quantity.js';
import { functionKey, inferDtypes, opsetsOf } from '../../../formats/onnx/dtype-inference.js';
import { GraphUses, nodeLabel, nodesReached, usedNames, visitNodes } from '../../../formats/onnx/graph.js';
import { neededIrVersion } from '../../../formats/onnx/ir-version.js';
import { attributeOf } from '../../../formats/onnx/node-types.js';
import type { NodeProto } from '../../../formats/onnx/onnx_pb.js';
import { operatorSignature, plainDomain } from '../../../formats/onnx/operators.js';
import { inlineFunctions } from '../../../formats/precision/inline-functions.js';
import { hasChanged, raiseOpset } from '../../../formats/precision/raise-opset.js';
import { type Done, type Editing, impossible } from '../editing.js';

/** Removes nodes that no output needs, with the weights, functions and optional outputs that nothing reads. */
export function dropDead(editing: Editing): Done {
  const { graph } = editing;
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

/** Replaces calls of the model's functions by their nodes. */
export function inline({ model }: Editing): Done {
  const calls = inlineFunctions(model.proto);
  return calls === 0 ? null : plural(calls, 'call');
}

/** From here on the table of changes and the one below have what became of every operator. */
const OLDEST = 13;
const NEWEST = 25;

/** Attributes that came with a version of an operator: before it, a node with one of them has no equivalent. */
const attributesSince: Readonly<Record<number, Readonly<Record<string, readonly string[]>>>> = {
  14: {
    Reshape: ['allowzero'],
    GRU: ['layout'],
    LSTM: ['layout'],
    RNN: ['layout'],
    BatchNormalization: ['training_mode'],
  },
  15: { Shape: ['start', 'end'] },
  16: { ScatterElements: ['reduction'], ScatterND: ['reduction'] },
  18: { Resize: ['axes', 'antialias', 'keep_aspect_ratio_policy'], Split: ['num_outputs'] },
  19: {
    AveragePool: ['dilations'],
    Cast: ['saturate'],
    CastLike: ['saturate'],
    QuantizeLinear: ['saturate'],
  },
  21: { QuantizeLinear: ['block_size', 'output_dtype'], DequantizeLinear: ['block_size'] },
  23: { QuantizeLinear: ['precision'], DequantizeLinear: ['output_dtype'] },
  24: { Cast: ['round_mode'], CastLike: ['round_mode'], Attention: ['qk_matmul_output_mode'] },
};

/** Moves the model to another opset of ONNX's operators. Throws TF_EDIT_IMPOSSIBLE where an operator has no equivalent there. */
export function setOpset({ model }: Editing, to: number): Done {
  const { proto } = model;
  const domain = proto.opsetImport.find((entry) => plainDomain(entry.domain) === '');
  const from = Number(domain?.version ?? 0);
  const rejected = (why: string, remedy?: string) =>
    impossible(`The model cannot move from opset ${from} to ${to}: ${why}.`, remedy);
  if (domain === undefined) throw rejected("it uses none of ONNX's operators");
  if (from === to) return null;
  if (to < OLDEST || to > NEWEST) throw rejected(`moves end at ${OLDEST} and ${NEWEST}`);
  if (proto.functions.length > 0)
    throw rejected('its functions are written for the old one', 'Replace them first: --inline.');
  if (to > from) {
    const obstacle = raiseOpset(model, to);
    if (obstacle !== undefined) throw rejected(obstacle);
    return `${from} → ${to}`;
  }
  for (const { node } of visitNodes(proto)) {
    const why = plainDomain(node.domain) === '' ? cannotLower(node, from, to) : undefined;
    if (why !== undefined) throw rejected(`${nodeLabel(node)} ${why}`);
  }
  domain.version = BigInt(to);
  const [clash] = inferDtypes(proto).violations;
  if (clash !== undefined) {
    domain.version = BigInt(from);
    throw rejected(`${clash.where}: ${clash.message}`);
  }
  return `${from} → ${to}`;
}

function cannotLower(node: NodeProto, from: number, to: number): string | undefined {
  const { opType } = node;
  const [now, then] = [from, to].map((opset) => operatorSignature('', opType, opset));
  if (now === undefined) return 'is no operator of the old opset';
  if (then === undefined) return `came with opset ${now.since}`;
  if (now.since === then.since) return undefined;
  if (hasChanged(opType, to, from)) return 'means something else there';
  if (node.input.length > then.inputs.length && then.inputs.at(-1)?.variadic === 'no')
    return 'has more inputs than there';
  const added = Object.entries(attributesSince).flatMap(([since, operators]) =>
    Number(since) > to && Number(since) <= from ? (operators[opType] ?? []) : [],
  );
  const used = added.find((name) => attributeOf(node, name) !== undefined);
  return used && `has the attribute ${used}, which there is not`;
}

/** The newest that ONNX has released. */
const NEWEST_IR = 13;

/** States another IR version. Throws TF_EDIT_IMPOSSIBLE where the content of the model needs a newer one. */
export function setIr({ model: { proto } }: Editing, to: number): Done {
  const needed = Number(neededIrVersion(proto));
  const from = Number(proto.irVersion);
  if (to === from) return null;
  if (to < needed || to > NEWEST_IR)
    throw impossible(
      `IR version ${to} is not possible: the model needs ${needed}, and ${NEWEST_IR} is the newest.`,
    );
  proto.irVersion = BigInt(to);
  return `${from} → ${to}`;
}
