import { TrtforgeError } from '../../errors.js';
import { inOrder, usedNames, visitMainGraphs } from './graph.js';
import type { FunctionProto, GraphProto, ModelProto, NodeProto } from './onnx_pb.js';
import {
  formalAt,
  nodeOutputTypes,
  type OperatorSignature,
  operatorSignature,
  plainDomain,
} from './operators.js';
import { declaredType, tensorType, unwrap, type ValueType, wrap } from './values.js';

/** A place where the types in a model contradict an operator's definition, a declaration, or each other. */
export interface TypeViolation {
  /** The node's name, or its first output where it has none; for a declaration the value's name. */
  readonly where: string;
  readonly message: string;
}

/** The types of one graph's values, and of the graphs in its nodes' attributes. */
export interface GraphTypes {
  readonly types: ReadonlyMap<string, ValueType>;
  /** The types of If, Loop, Scan and SequenceMap bodies, by the body itself. */
  readonly bodies: ReadonlyMap<GraphProto, GraphTypes>;
}

interface ModelTypes {
  readonly graph: GraphTypes;
  readonly violations: readonly TypeViolation[];
}

/** Calls deeper than this are taken for a cycle (ONNX forbids recursion). */
const MAX_CALL_DEPTH = 32;

/** Finds the element type of every value in a model: graph, bodies, and through calls of the model's own functions. Shapes are not looked at. */
export function inferDtypes(model: ModelProto): ModelTypes {
  const violations: TypeViolation[] = [];
  const functions = new Map(model.functions.map((fn) => [functionKey(fn), fn]));
  if (model.graph === undefined) return { graph: { types: new Map(), bodies: new Map() }, violations };
  const walk: Walk = {
    functions,
    opsets: opsetsOf(model.opsetImport),
    depth: 0,
    calls: new Map(),
    report: (where, message) => violations.push({ where, message }),
  };
  return { graph: graphTypes(model.graph, undefined, [], walk), violations };
}

/**
 * Throws TF_ONNX_GRAPH_INVALID where ONNX Runtime and TensorRT would reject a model for its types: an operator is passed a type that it does not take,
 * a declaration contradicts the value, or nodes wait for each other, so that they have no types. Operators and opsets that ONNX does not define prove nothing.
 */
export function assertWellTyped(path: string, model: ModelProto): void {
  for (const { path: graph, nodes } of visitMainGraphs(model)) {
    const { cycle } = inOrder(nodes);
    if (cycle.length > 0) {
      const names = cycle.slice(0, 5).map(nodeLabel).join(', ');
      throw new TrtforgeError(
        'TF_ONNX_GRAPH_INVALID',
        `The nodes of ${graph} of ${path} form a cycle: ${names}.`,
      );
    }
  }
  const { violations } = inferDtypes(model);
  const [first] = violations;
  if (first === undefined) return;
  const more = violations.length === 1 ? '' : ` (and ${violations.length - 1} more)`;
  throw new TrtforgeError(
    'TF_ONNX_GRAPH_INVALID',
    `${path} is not well typed: ${first.where}: ${first.message}${more}.`,
    { details: { violations: violations.slice(0, 20) } },
  );
}

/** The name by which a node calls a model's function: domain, name and overload. */
export const functionKey = (called: {
  readonly domain: string;
  readonly overload: string;
  readonly name?: string;
  readonly opType?: string;
}): string => `${plainDomain(called.domain)}::${called.opType ?? called.name ?? ''}::${called.overload}`;

/** Domain to version; the default domain is the empty string. */
export function opsetsOf(
  imports: readonly { readonly domain: string; readonly version: bigint }[],
): ReadonlyMap<string, number> {
  return new Map(imports.map(({ domain, version }) => [plainDomain(domain), Number(version)]));
}

/** The label of a node: its name, or its first output where it has none. */
export const nodeLabel = (node: NodeProto): string =>
  node.name || `${node.opType} → ${node.output.find((name) => name !== '') ?? 'nothing'}`;

interface Walk {
  readonly functions: ReadonlyMap<string, FunctionProto>;
  readonly opsets: ReadonlyMap<string, number>;
  readonly depth: number;
  /** The results for a function and the types it was passed, so that functions that call each other twice do not double the work each time. */
  readonly calls: Map<string, readonly (ValueType | undefined)[]>;
  readonly report: (where: string, message: string) => void;
}

interface Scope {
  readonly types: Map<string, ValueType>;
  /** Inputs, initializers and constants: runtimes take their types from them and overlook what else is declared for them. */
  readonly stated: Set<string>;
  readonly bodies: Map<GraphProto, GraphTypes>;
  readonly parent: Scope | undefined;
}

function lookUp(scope: Scope | undefined, name: string): ValueType | undefined {
  for (let at = scope; at !== undefined; at = at.parent) {
    const type = at.types.get(name);
    if (type !== undefined) return type;
  }
  return undefined;
}

/** `given` are the types of the graph's inputs as the node around it passes them, where it does. */
function graphTypes(
  graph: GraphProto,
  parent: Scope | undefined,
  given: readonly (ValueType | undefined)[],
  walk: Walk,
): Scope {
  const scope: Scope = { types: new Map(), stated: new Set(), bodies: new Map(), parent };
  const set = (name: string, type: ValueType | undefined) => {
    if (type !== undefined && name !== '') scope.types.set(name, type);
    if (type !== undefined) scope.stated.add(name);
  };
  for (const tensor of graph.initializer) set(tensor.name, tensorType(tensor.dataType));
  for (const sparse of graph.sparseInitializer)
    set(sparse.values?.name ?? '', tensorType(sparse.values?.dataType ?? 0));
  for (const [index, input] of graph.input.entries()) {
    const declared = declaredType(input.type);
    const passed = given[index];
    if (declared !== undefined && passed !== undefined && declared !== passed)
      walk.report(input.name, `the body's input is declared ${declared} but receives ${passed}`);
    const initial = scope.types.get(input.name);
    if (declared !== undefined && initial !== undefined && declared !== initial)
      walk.report(input.name, `the input is declared ${declared} but its initializer is ${initial}`);
    set(input.name, declared ?? passed ?? initial);
  }
  // Of several declarations the last counts, and that of an output before any other.
  const declared = new Map(
    [...graph.valueInfo, ...graph.output].map((info) => [info.name, declaredType(info.type)]),
  );
  typeNodes(graph.node, scope, walk, declared);
  checkDeclarations(graph, declared, scope, walk);
  return scope;
}

function typeNodes(
  nodes: readonly NodeProto[],
  scope: Scope,
  walk: Walk,
  declared?: ReadonlyMap<string, ValueType | undefined>,
): void {
  for (const node of inOrder(nodes).nodes) {
    for (const [index, found] of typesOfNode(node, scope, walk).entries()) {
      const name = node.output[index] ?? '';
      const type = found ?? declared?.get(name);
      if (type === undefined || name === '') continue;
      scope.types.set(name, type);
      if (node.opType === 'Constant') scope.stated.add(name);
    }
  }
}

function checkDeclarations(
  graph: GraphProto,
  declarations: ReadonlyMap<string, ValueType | undefined>,
  scope: Scope,
  walk: Walk,
): void {
  for (const [name, declared] of declarations) {
    const actual = lookUp(scope, name);
    if (declared === undefined || actual === undefined || declared === actual) continue;
    // Runtimes overlook what a body declares of values around it that it does not use.
    const counts = scope.types.has(name)
      ? !scope.stated.has(name)
      : graph.node.some((node) => usedNames(node).includes(name));
    if (counts) walk.report(name, `is declared ${declared} but is ${actual}`);
  }
}

function typesOfNode(node: NodeProto, scope: Scope, walk: Walk): readonly (ValueType | undefined)[] {
  const inputs = node.input.map((name) => (name === '' ? undefined : lookUp(scope, name)));
  const fn = walk.functions.get(functionKey(node));
  if (fn !== undefined) return functionTypes(fn, inputs, walk);
  const opset = walk.opsets.get(plainDomain(node.domain)) ?? 0;
  const signature = operatorSignature(node.domain, node.opType, opset);
  if (signature !== undefined) checkInputs(node, inputs, signature, walk);
  const bodies = node.attribute.flatMap((attribute) => (attribute.g === undefined ? [] : [attribute.g]));
  const fromBodies = bodies.length > 0 ? bodyTypes(node, bodies, inputs, signature, scope, walk) : undefined;
  if (fromBodies !== undefined) return fromBodies;
  return signature === undefined
    ? node.output.map(() => undefined)
    : nodeOutputTypes(node, inputs, signature);
}

function typesIntoBody(
  operator: string,
  inputs: readonly (ValueType | undefined)[],
  signature: OperatorSignature | undefined,
): readonly (ValueType | undefined)[] {
  if (operator === 'Loop') return ['int64', 'bool', ...inputs.slice(2)];
  if (operator === 'Scan') return inputs.slice((signature?.since ?? 0) < 9 ? 1 : 0);
  return operator === 'SequenceMap' ? inputs.map((type) => unwrap('seq', type)) : [];
}

/** Types what is in the bodies of a node; gives the types of its outputs where they are those of its bodies. */
function bodyTypes(
  node: NodeProto,
  bodies: readonly GraphProto[],
  inputs: readonly (ValueType | undefined)[],
  signature: OperatorSignature | undefined,
  scope: Scope,
  walk: Walk,
): readonly (ValueType | undefined)[] | undefined {
  // Only ONNX reports how the bodies of its operators are called; those of other operators stand alone.
  const operator = signature === undefined ? '' : node.opType;
  const passed = typesIntoBody(operator, inputs, signature);
  const outputsOf = bodies.map((body) => {
    const types = graphTypes(body, scope, passed, walk);
    scope.bodies.set(body, types);
    return body.output.map((output) => lookUp(types, output.name) ?? declaredType(output.type));
  });
  const first = outputsOf[0] ?? [];
  if (operator === 'If') checkBranches(node, outputsOf, walk);
  if (operator === 'SequenceMap') return first.map((type) => wrap('seq', type));
  if (operator === 'If' || operator === 'Scan') return node.output.map((_, index) => first[index]);
  if (operator !== 'Loop') return undefined;
  const results = first.slice(1);
  for (const [index, type] of inputs.slice(2).entries()) {
    const carried = results[index];
    if (type === undefined || carried === undefined) continue;
    // A value that may be missing at first and is there after the first turn changes its type so.
    if (unwrap('optional', type) !== unwrap('optional', carried))
      walk.report(nodeLabel(node), `loop-carried value ${index} enters as ${type} and leaves as ${carried}`);
  }
  return node.output.map((_, index) => results[index]);
}

function checkBranches(
  node: NodeProto,
  branches: readonly (readonly (ValueType | undefined)[])[],
  walk: Walk,
): void {
  const [one = [], other = []] = branches;
  for (const [index, type] of one.entries()) {
    const counterpart = other[index];
    if (type !== undefined && counterpart !== undefined && type !== counterpart)
      walk.report(
        nodeLabel(node),
        `output ${index} is ${type} in one branch and ${counterpart} in the other`,
      );
  }
}

function functionTypes(
  fn: FunctionProto,
  inputs: readonly (ValueType | undefined)[],
  walk: Walk,
): readonly (ValueType | undefined)[] {
  if (walk.depth >= MAX_CALL_DEPTH) return fn.output.map(() => undefined);
  const call = `${functionKey(fn)}(${inputs.join()})`;
  const known = walk.calls.get(call);
  if (known !== undefined) return known;
  const scope: Scope = { types: new Map(), stated: new Set(), bodies: new Map(), parent: undefined };
  const inside: Walk = {
    ...walk,
    opsets: fn.opsetImport.length === 0 ? walk.opsets : opsetsOf(fn.opsetImport),
    depth: walk.depth + 1,
  };
  for (const [index, name] of fn.input.entries()) {
    const type = inputs[index];
    if (type !== undefined) scope.types.set(name, type);
  }
  typeNodes(fn.node, scope, inside);
  const outputs = fn.output.map((name) => scope.types.get(name));
  walk.calls.set(call, outputs);
  return outputs;
}

function checkInputs(
  node: NodeProto,
  inputs: readonly (ValueType | undefined)[],
  signature: OperatorSignature,
  walk: Walk,
): void {
  const bound = new Map<string, ValueType>();
  for (const [index, type] of inputs.entries()) {
    const formal = formalAt(signature.inputs, index);
    if (type === undefined || formal === undefined) continue;
    if (!formal.allowed.has(type)) {
      const wanted = formal.allowed.size > 6 ? '' : ` (it takes ${[...formal.allowed].join(', ')})`;
      walk.report(
        nodeLabel(node),
        `${node.opType} cannot take ${type} for input ${index}, "${node.input[index]}"${wanted}`,
      );
    }
    if (formal.variable === undefined || formal.variadic === 'mixed') continue;
    const other = bound.get(formal.variable);
    if (other !== undefined && other !== type)
      walk.report(
        nodeLabel(node),
        `${node.opType} requires one type for its ${formal.variable} inputs but gets ${other} and ${type} ("${node.input[index]}")`,
      );
    else bound.set(formal.variable, type);
  }
}
