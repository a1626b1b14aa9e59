import { type GraphTypes, inferDtypes, nodeLabel, opsetsOf } from '../onnx/dtype-inference.js';
import { inOrder } from '../onnx/graph.js';
import type { GraphProto, ModelProto, NodeProto, TensorProto } from '../onnx/onnx_pb.js';
import { type OperatorSignature, operatorSignature, plainDomain } from '../onnx/operators.js';
import type { ValueType } from '../onnx/values.js';

/** Where a value comes from. `weight`: an initializer; `constant`: a Constant node; `fixed`: something whose type cannot be changed. */
type Origin = 'input' | 'weight' | 'constant' | 'operation' | 'fixed';

/** A named tensor (or sequence, …) of the model as it was read. */
export interface Value {
  readonly name: string;
  readonly scope: Scope;
  readonly type: ValueType | undefined;
  readonly origin: Origin;
  /** The operation that makes it; undefined for inputs and weights. */
  readonly producer: Operation | undefined;
  /** The weight's tensor, for initializers and Constant nodes that hold one. */
  readonly tensor: TensorProto | undefined;
  readonly uses: Use[];
}

/** One place that reads a value: an operation's input, or an output of a graph or body. */
export type Use =
  | { readonly kind: 'input'; readonly operation: Operation; readonly index: number }
  | { readonly kind: 'output'; readonly scope: Scope; readonly index: number };

/** A node with its values resolved. Values captured from an outer graph are resolved like any other. */
export interface Operation {
  readonly node: NodeProto;
  readonly label: string;
  readonly scope: Scope;
  readonly opset: number;
  /** Undefined for operators that neither ONNX defines nor the user declares (plug-ins, other domains). */
  readonly signature: OperatorSignature | undefined;
  readonly inputs: readonly (Value | undefined)[];
  readonly outputs: readonly (Value | undefined)[];
  readonly bodies: readonly Scope[];
}

/** A graph or the body of an If, Loop, Scan or SequenceMap. */
export interface Scope {
  readonly graph: GraphProto;
  /** The graph's nodes in order of use, however the file lists them. */
  readonly nodes: readonly NodeProto[];
  readonly parent: Scope | undefined;
  /** The operation this is a body of; undefined for the model's own graph. */
  readonly owner: Operation | undefined;
  readonly values: Map<string, Value>;
  readonly inputs: readonly Value[];
  /** Undefined where an output names nothing. */
  readonly outputs: readonly (Value | undefined)[];
}

/** A model as values and the operations between them. */
export interface Flow {
  readonly root: Scope;
  /** In an order in which every operation stands after what it reads; those of a body before the operation the body belongs to. */
  readonly operations: readonly Operation[];
  readonly scopes: readonly Scope[];
}

export const isFloat32 = (value: Value | undefined): boolean => value?.type === 'float32';

/** True for weights and Constant nodes, whose type can be chosen for free. */
export const isStored = (value: Value): boolean => value.origin === 'weight' || value.origin === 'constant';

export const operatorName = (operation: Operation): string => {
  const domain = plainDomain(operation.node.domain);
  return domain === '' ? operation.node.opType : `${domain}::${operation.node.opType}`;
};

/** Resolves a model's names into values and operations. Bodies of model-local functions are not entered. `declared` is asked for operators that ONNX does not define. */
export function readFlow(
  model: ModelProto,
  declared: (node: NodeProto) => OperatorSignature | undefined = () => undefined,
): Flow {
  const operations: Operation[] = [];
  const scopes: Scope[] = [];
  const opsets = opsetsOf(model.opsetImport);
  const graph = model.graph;
  if (graph === undefined) throw new RangeError('A model without a graph has no flow.');
  const root = readScope(graph, inferDtypes(model).graph, undefined, undefined, {
    opsets,
    operations,
    scopes,
    declared,
  });
  return { root, operations, scopes };
}

interface Reading {
  readonly opsets: ReadonlyMap<string, number>;
  readonly operations: Operation[];
  readonly scopes: Scope[];
  readonly declared: (node: NodeProto) => OperatorSignature | undefined;
}

function readScope(
  graph: GraphProto,
  types: GraphTypes,
  parent: Scope | undefined,
  owner: Operation | undefined,
  reading: Reading,
): Scope {
  const inputs: Value[] = [];
  const outputs: (Value | undefined)[] = [];
  const { nodes } = inOrder(graph.node);
  const scope: Scope = { graph, nodes, parent, owner, values: new Map(), inputs, outputs };
  reading.scopes.push(scope);
  const add = (name: string, more: Pick<Value, 'origin' | 'producer' | 'tensor'>): Value => {
    const value: Value = { name, scope, type: types.types.get(name), uses: [], ...more };
    scope.values.set(name, value);
    return value;
  };
  for (const tensor of graph.initializer) add(tensor.name, { origin: 'weight', producer: undefined, tensor });
  for (const sparse of graph.sparseInitializer)
    add(sparse.values?.name ?? '', { origin: 'fixed', producer: undefined, tensor: undefined });
  for (const { name } of graph.input) {
    const weight = scope.values.get(name);
    inputs.push(weight ?? add(name, { origin: 'input', producer: undefined, tensor: undefined }));
  }
  for (const node of nodes) readOperation(node, scope, types, reading, add);
  for (const [index, { name }] of graph.output.entries()) {
    const value = resolve(scope, name);
    value?.uses.push({ kind: 'output', scope, index });
    outputs.push(value);
  }
  return scope;
}

function readOperation(
  node: NodeProto,
  scope: Scope,
  types: GraphTypes,
  reading: Reading,
  add: (name: string, more: Pick<Value, 'origin' | 'producer' | 'tensor'>) => Value,
): void {
  const opset = reading.opsets.get(plainDomain(node.domain)) ?? 0;
  const outputs: (Value | undefined)[] = [];
  const bodies: Scope[] = [];
  const operation: Operation = {
    node,
    label: nodeLabel(node),
    scope,
    opset,
    signature: operatorSignature(node.domain, node.opType, opset) ?? reading.declared(node),
    inputs: node.input.map((name) => (name === '' ? undefined : resolve(scope, name))),
    outputs,
    bodies,
  };
  for (const [index, value] of operation.inputs.entries())
    value?.uses.push({ kind: 'input', operation, index });
  for (const { g: body } of node.attribute) {
    const bodyTypes = body === undefined ? undefined : types.bodies.get(body);
    if (body !== undefined && bodyTypes !== undefined)
      bodies.push(readScope(body, bodyTypes, scope, operation, reading));
  }
  const tensor = node.opType === 'Constant' ? node.attribute[0]?.t : undefined;
  const origin = isConstantNode(node) ? 'constant' : 'operation';
  for (const name of node.output)
    outputs.push(name === '' ? undefined : add(name, { origin, producer: operation, tensor }));
  reading.operations.push(operation);
}

/** A Constant whose value can be stored in another type: a dense tensor, not a function's parameter. */
const isConstantNode = (node: NodeProto): boolean =>
  node.opType === 'Constant' &&
  plainDomain(node.domain) === '' &&
  node.attribute[0]?.refAttrName === '' &&
  node.attribute[0].name === 'value';

function resolve(scope: Scope, name: string): Value | undefined {
  for (let at: Scope | undefined = scope; at !== undefined; at = at.parent) {
    const value = at.values.get(name);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** The value whose elements another value has: exporters put an Identity before a weight that several modules share. */
export function original(value: Value): Value {
  for (let at = value; ; ) {
    const from =
      at.producer === undefined || operatorName(at.producer) !== 'Identity'
        ? undefined
        : at.producer.inputs[0];
    if (from === undefined) return at;
    at = from;
  }
}

/** A weight or a constant, perhaps behind an Identity. */
export const isConstant = (value: Value): boolean => isStored(original(value));

export const isFloat = (type: string): boolean => type.startsWith('float') || type === 'bfloat16';
