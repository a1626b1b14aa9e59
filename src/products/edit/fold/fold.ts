import { createHash } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { plural } from '../../../base/text/quantity.js';
import { attributeOf } from '../../../formats/onnx/attributes.js';
import { definedNames, isOnnxDomain, redirect, visitMainGraphs } from '../../../formats/onnx/graph.js';
import {
  AttributeProtoSchema,
  type NodeProto,
  NodeProtoSchema,
  type TensorProto,
} from '../../../formats/onnx/onnx_pb.js';
import { isNumber } from '../../../formats/onnx/shapes/size.js';
import { type IntegerDtype, integerTensor, isIntegerDtype } from '../../../formats/tensor/tensor.js';
import { dropDead } from '../dead.js';
import type { Done, EditContext, Editing } from '../edited-model.js';
import { evaluate, isRepeatable } from './evaluate.js';
import { dtypeIs, type Rewrite, Round } from './round.js';
import { rules } from './rules.js';

/** Each round leaves fewer nodes, or larger ones; chains of them end long before. */
const MOST_ROUNDS = 200;

/**
 * Computes what is constant once, on ONNX Runtime, with sizes that shapes decide; leaves nodes out that do nothing, merges those that others can do, and takes one
 * of several that are the same. Throws TF_CANCELLED, and what writing models throws.
 */
export async function fold(editing: Editing, context: EditContext): Promise<Done> {
  const { proto } = editing.model;
  const nodes = () => [...visitMainGraphs(proto)].reduce((sum, view) => sum + view.nodes.length, 0);
  const before = nodes();
  const stuck = new Set<string>();
  const steps: readonly ((round: Round) => boolean | Promise<boolean>)[] = [
    storeConstants,
    storeSizes,
    (round) => evaluate(round, stuck, context),
    rewrite,
    mergeSame,
  ];
  let isChanged = dropDead(editing) !== null;
  let isDone = false;
  for (let count = 0; !isDone && count < MOST_ROUNDS; count++) {
    isDone = true;
    for (const round of Round.all(editing)) {
      for (const step of steps) {
        if (!(await step(round))) continue;
        isDone = false;
        break;
      }
      dropDead(editing, round.graph);
    }
    isChanged ||= !isDone;
  }
  return isChanged ? `${plural(before, 'node')} → ${nodes()}` : null;
}

/** What Constant nodes hold becomes weights. */
function storeConstants({ graph, outputs }: Round): boolean {
  const before = graph.node.length;
  graph.node = graph.node.filter((node) => {
    const [name = ''] = node.output;
    const tensor =
      node.opType === 'Constant' && isOnnxDomain(node.domain) ? attributeOf(node, 'value')?.t : undefined;
    if (tensor === undefined || outputs.has(name)) return true;
    tensor.name = name;
    graph.initializer.push(tensor);
    return false;
  });
  return graph.node.length < before;
}

/** Whole numbers that shapes decide become weights. */
function storeSizes(round: Round): boolean {
  const { editing, graph, outputs } = round;
  const before = graph.node.length;
  graph.node = graph.node.filter((node) => {
    const values = node.output.flatMap((name) => {
      const [type, shape, elements] = [round.types.get(name), round.shape(name), round.elements(name)];
      if (!dtypeIs(type) || !(isIntegerDtype(type) || type === 'bool') || outputs.has(name)) return [];
      if (!elements?.every(isSafe) || shape?.every(isNumber) !== true) return [];
      const numbers = elements.map(Number);
      const tensor = integerTensor(
        (type === 'bool' ? 'uint8' : type) as IntegerDtype,
        shape as number[],
        numbers,
      );
      return [[name, { ...tensor, dtype: type }] as const];
    });
    if (values.length === 0 || values.length < node.output.length) return true;
    for (const [name, tensor] of values) editing.storeWeight(name, tensor, graph);
    return false;
  });
  return graph.node.length < before;
}

const isSafe = (size: unknown): size is number => Number.isSafeInteger(size);

/** Applies the rules of the operators to every node once. */
function rewrite(round: Round): boolean {
  const { editing, graph } = round;
  const aliases: [string, string][] = [];
  let isChanged = false;
  graph.node = graph.node.flatMap((node) => {
    const rewritten = isOnnxDomain(node.domain)
      ? (branch(node, round) ?? rules[node.opType]?.(node, round))
      : undefined;
    if (rewritten === undefined || (rewritten.rounds && editing.isExact)) return [node];
    if ('nodes' in rewritten) isChanged = true;
    else if (canAlias(round, node, rewritten.alias)) aliases.push([node.output[0]!, rewritten.alias]);
    else return [node];
    if (rewritten.rounds) editing.isRounded = true;
    return 'nodes' in rewritten ? rewritten.nodes : [];
  });
  alias(round, aliases);
  return isChanged || aliases.length > 0;
}

/** A value that is an output of the model needs a node that makes it: that of the other value, which then has its name. */
function canAlias(
  { outputs, producers }: Round,
  { output: [name = '', ...others] }: NodeProto,
  other: string,
): boolean {
  if (other === '' || others.some((each) => outputs.has(each))) return false;
  return !outputs.has(name) || (producers.has(other) && !outputs.has(other));
}

/** Lets values stand for others everywhere. */
function alias({ graph, outputs }: Round, pairs: readonly (readonly [string, string])[]): void {
  const names = new Map<string, string>();
  const resolve = (name: string): string => {
    const next = names.get(name);
    return next === undefined ? name : resolve(next);
  };
  const made: [string, string][] = [];
  for (const [name, other] of pairs) {
    const target = resolve(other);
    if (!outputs.has(name)) names.set(name, target);
    else if (outputs.has(target)) made.push([target, name]);
    else names.set(target, name);
  }
  const all = new Map([...names.keys()].map((name) => [name, resolve(name)]));
  redirect(graph, all);
  for (const node of graph.node)
    node.output = node.output.map((name) => (outputs.has(all.get(name) ?? '') ? all.get(name)! : name));
  for (const [input, output] of made)
    graph.node.push(
      create(NodeProtoSchema, {
        opType: 'Identity',
        name: `${output}_identity`,
        input: [input],
        output: [output],
      }),
    );
}

/** An If whose condition is constant is the nodes of that branch. */
function branch(node: NodeProto, round: Round): Rewrite {
  const condition = node.opType === 'If' ? round.only(node.input[0]) : undefined;
  if (condition === undefined) return undefined;
  const body = attributeOf(node, condition === 0 ? 'else_branch' : 'then_branch')?.g;
  if (body === undefined || body.sparseInitializer.length > 0) return undefined;
  const names = new Map(
    [...definedNames({ graph: body, nodes: body.node, function: undefined })].map((name) => [
      name,
      round.name(name),
    ]),
  );
  redirect(body, names);
  for (const inner of body.node) inner.output = inner.output.map((name) => names.get(name) ?? name);
  for (const tensor of body.initializer) tensor.name = names.get(tensor.name)!;
  round.graph.initializer.push(...body.initializer);
  const results = body.output.map(({ name }, index) =>
    create(NodeProtoSchema, {
      opType: 'Identity',
      name: `${node.output[index]}_identity`,
      input: [names.get(name) ?? name],
      output: [node.output[index]!],
    }),
  );
  return { nodes: [...body.node, ...results] };
}

/** One of several nodes, or weights, that are the same stands for all. */
function mergeSame(round: Round): boolean {
  const { graph } = round;
  const aliases: [string, string][] = [];
  const known = new Map<string, NodeProto>();
  graph.node = graph.node.filter((node) => {
    const isPlain = node.attribute.every(({ g, graphs }) => g === undefined && graphs.length === 0);
    if (!isPlain || !isRepeatable(node) || node.output.some((name) => round.outputs.has(name))) return true;
    const attributes = node.attribute
      .map((each) => Buffer.from(toBinary(AttributeProtoSchema, each)).toString('latin1'))
      .sort();
    const key = JSON.stringify([
      node.domain,
      node.opType,
      node.input,
      node.output.map((name) => name === ''),
      attributes,
    ]);
    const first = known.get(key);
    if (first === undefined) {
      known.set(key, node);
      return true;
    }
    for (const [index, name] of node.output.entries())
      if (name !== '') aliases.push([name, first.output[index]!]);
    return false;
  });
  aliases.push(...sameWeights(round));
  alias(round, aliases);
  return aliases.length > 0;
}

const digests = new WeakMap<TensorProto, string>();

/** Names of weights with those that have the same values. */
function sameWeights({ editing, graph, outputs }: Round): readonly [string, string][] {
  const { initializer } = graph;
  const kind = ({ dataType, dims }: TensorProto) => `${dataType} ${dims}`;
  const counts = new Map<string, number>();
  for (const tensor of initializer) counts.set(kind(tensor), (counts.get(kind(tensor)) ?? 0) + 1);
  const known = new Map<string, string>();
  return initializer.flatMap((tensor): readonly [string, string][] => {
    if (outputs.has(tensor.name) || counts.get(kind(tensor)) === 1) return [];
    const key = `${kind(tensor)} ${digestOf(editing, tensor)}`;
    const first = known.get(key);
    if (first === undefined) known.set(key, tensor.name);
    return first === undefined ? [] : [[tensor.name, first]];
  });
}

function digestOf(editing: Editing, tensor: TensorProto): string {
  const known = digests.get(tensor);
  if (known !== undefined) return known;
  const hash = createHash('sha256');
  for (const chunk of editing.weight(tensor).chunks()) hash.update(chunk);
  const digest = hash.digest('hex');
  digests.set(tensor, digest);
  return digest;
}
