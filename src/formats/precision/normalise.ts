import { clone, create } from '@bufbuild/protobuf';
import { functionKey, type GraphTypes, inferDtypes, opsetsOf } from '../onnx/dtype-inference.js';
import { inOrder } from '../onnx/graph.js';
import type { ModelLike } from '../onnx/model.js';
import {
  type AttributeProto,
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  type FunctionProto,
  type GraphProto,
  type ModelProto,
  ModelProtoSchema,
  type NodeProto,
  NodeProtoSchema,
  OperatorSetIdProtoSchema,
  TensorProtoSchema,
} from '../onnx/onnx_pb.js';
import { plainDomain } from '../onnx/operators.js';
import { ValueUses } from '../onnx/value-uses.js';
import { onnxNumber, type ValueType } from '../onnx/values.js';
import { type Dtype, dtypes } from '../tensor/dtype.js';
import { declarePlugins, type PluginTypes } from './plugin-types.js';

/**
 * Writes a model so that the rules know its spelling: functions inlined, and of the spellings that ONNX has twice the one that the conversion knows (CastLike is a
 * Cast, Constant's floats are a tensor). Returns how many calls of functions were replaced.
 */
export function normalise(model: ModelProto, pluginTypes: PluginTypes = new Map()): number {
  const functionsInlined = inlineFunctions(model);
  declarePlugins(model, pluginTypes);
  if (model.graph !== undefined) normaliseGraph(model.graph, inferDtypes(model).graph, []);
  return functionsInlined;
}

function normaliseGraph(graph: GraphProto, types: GraphTypes, outer: readonly GraphTypes[]): void {
  const scopes = [types, ...outer];
  for (const node of graph.node) {
    if (plainDomain(node.domain) === '') {
      if (node.opType === 'CastLike') castLikeToCast(node, lookUp(scopes, node.input[1]));
      else if (node.opType === 'Constant') floatsToTensor(node);
    }
    for (const { g: body } of node.attribute) {
      const bodyTypes = body === undefined ? undefined : types.bodies.get(body);
      if (body !== undefined && bodyTypes !== undefined) normaliseGraph(body, bodyTypes, scopes);
    }
  }
}

function lookUp(scopes: readonly GraphTypes[], name: string | undefined): ValueType | undefined {
  for (const { types } of scopes) {
    const type = name === undefined ? undefined : types.get(name);
    if (type !== undefined) return type;
  }
  return undefined;
}

function castLikeToCast(node: NodeProto, target: ValueType | undefined): void {
  if (target === undefined || !(target in dtypes)) return;
  node.opType = 'Cast';
  node.input = node.input.slice(0, 1);
  node.attribute.push(
    create(AttributeProtoSchema, {
      name: 'to',
      type: AttributeProto_AttributeType.INT,
      i: BigInt(onnxNumber(target as Dtype)),
    }),
  );
}

function floatsToTensor(node: NodeProto): void {
  const [attribute] = node.attribute;
  if (attribute === undefined || attribute.refAttrName !== '') return;
  const single = attribute.name === 'value_float';
  if (!single && attribute.name !== 'value_floats') return;
  const values = single ? [attribute.f] : attribute.floats;
  const t = create(TensorProtoSchema, {
    dims: single ? [] : [BigInt(values.length)],
    dataType: dtypes.float32.onnx,
    rawData: new Uint8Array(Float32Array.from(values).buffer),
  });
  node.attribute = [
    create(AttributeProtoSchema, { name: 'value', type: AttributeProto_AttributeType.TENSOR, t }),
  ];
}

/** Functions that call each other deeper than this are taken for a cycle, which ONNX forbids, and left alone. */
const DEEPEST = 32;
/** Functions that call each other twice double at every level; past this many calls the rest stay calls. */
const MOST_CALLS = 20_000;

/**
 * Replaces calls of the model's own functions by what the functions do, so that each step gets its type by the same rules as any other
 * node. A function written for other opset versions than the model's cannot be mixed in: its calls stay, and stay FP32. Returns the number of calls replaced.
 */
export function inlineFunctions(model: ModelProto): number {
  if (model.functions.length === 0 || model.graph === undefined) return 0;
  const inliner = new Inliner(model);
  inliner.inlineGraph(model.graph, 0);
  model.functions = model.functions.filter((fn) => inliner.isStillCalled(fn));
  return inliner.calls;
}

const withoutCalls = new WeakMap<ModelProto, ModelProto>();

/** A model for reading whose functions are inlined: itself where it has none, else a copy, made once. */
export function inlined<M extends ModelLike>(model: M): M {
  const { proto } = model;
  if (proto.functions.length === 0) return model;
  const known = withoutCalls.get(proto) ?? clone(ModelProtoSchema, proto);
  if (!withoutCalls.has(proto)) inlineFunctions(known);
  withoutCalls.set(proto, known);
  return { ...model, proto: known };
}

const uses = new WeakMap<ModelLike, ValueUses>();

/** Where the values of a model for reading are used, its functions inlined; worked out once. */
export function usesOf(model: ModelLike): ValueUses {
  const known = uses.get(model) ?? new ValueUses(inlined(model));
  uses.set(model, known);
  return known;
}

class Inliner {
  calls = 0;
  readonly #functions: ReadonlyMap<string, FunctionProto>;
  readonly #called = new Set<string>();
  readonly #names = new Set<string>();
  /** Number of times that each prefix was assigned, so that the next free one is found at once. */
  readonly #counts = new Map<string, number>();
  readonly #unusable: readonly FunctionProto[];

  constructor(model: ModelProto) {
    this.#functions = new Map(
      model.functions.filter((fn) => adoptOpsets(fn, model)).map((fn) => [functionKey(fn), fn]),
    );
    if (model.graph !== undefined) collectNames(model.graph, this.#names);
    this.#unusable = model.functions.filter((fn) => !this.#functions.has(functionKey(fn)));
  }

  /** Functions that cannot be inlined stay, and so does everything they might call. */
  isStillCalled(fn: FunctionProto): boolean {
    return this.#unusable.length > 0 || this.#called.has(functionKey(fn));
  }

  inlineGraph(graph: GraphProto, depth: number): void {
    graph.node = graph.node.flatMap((node) => this.#inlineNode(node, depth));
  }

  #inlineNode(node: NodeProto, depth: number): readonly NodeProto[] {
    for (const { g: body } of node.attribute) if (body !== undefined) this.inlineGraph(body, depth);
    const fn = this.#functions.get(functionKey(node));
    if (fn === undefined) return [node];
    if (depth >= DEEPEST || this.calls >= MOST_CALLS) {
      this.#called.add(functionKey(fn));
      return [node];
    }
    this.calls++;
    return this.#expand(node, fn).flatMap((inner) => this.#inlineNode(inner, depth + 1));
  }

  #expand(call: NodeProto, fn: FunctionProto): readonly NodeProto[] {
    const prefix = this.#prefix(call, fn);
    const renames = new Map<string, string>();
    for (const [index, name] of fn.input.entries()) renames.set(name, call.input[index] ?? '');
    const passedThrough: NodeProto[] = [];
    for (const [index, name] of fn.output.entries()) {
      const outer = call.output[index] ?? '';
      if (outer === '') continue;
      const inner = renames.get(name);
      if (inner === undefined) renames.set(name, outer);
      else
        passedThrough.push(create(NodeProtoSchema, { opType: 'Identity', input: [inner], output: [outer] }));
    }
    const given = new Map([...fn.attributeProto, ...call.attribute].map((one) => [one.name, one]));
    const body = inOrder(fn.node).nodes.map((node) => {
      const copy = clone(NodeProtoSchema, node);
      if (copy.name !== '' || call.name !== '') copy.name = `${prefix}${copy.name || copy.opType}`;
      bindAttributes(copy, given);
      renameNode(copy, renames, prefix);
      for (const name of copy.output) this.#names.add(name);
      return copy;
    });
    return [...body, ...passedThrough];
  }

  /** A prefix under which no name of the model lives yet. */
  #prefix(call: NodeProto, fn: FunctionProto): string {
    const base = call.name !== '' ? call.name : fn.name;
    let count = this.#counts.get(base) ?? 0;
    let prefix: string;
    do prefix = ++count === 1 ? `${base}/` : `${base}_${count}/`;
    while (this.#names.has(prefix));
    this.#counts.set(base, count);
    this.#names.add(prefix);
    return prefix;
  }
}

/** Whether the function's opsets agree with the model's; a domain that only the function uses is added to the model. */
function adoptOpsets(fn: FunctionProto, model: ModelProto): boolean {
  const known = opsetsOf(model.opsetImport);
  const needed = [...opsetsOf(fn.opsetImport)];
  if (needed.some(([domain, version]) => known.has(domain) && known.get(domain) !== version)) return false;
  for (const [domain, version] of needed) {
    if (!known.has(domain))
      model.opsetImport.push(create(OperatorSetIdProtoSchema, { domain, version: BigInt(version) }));
  }
  return true;
}

/** Attributes that refer to the function's parameters take what the call gives, or vanish where it gives nothing. */
function bindAttributes(node: NodeProto, given: ReadonlyMap<string, AttributeProto>): void {
  node.attribute = node.attribute.flatMap((attribute) => {
    for (const inner of attribute.g?.node ?? []) bindAttributes(inner, given);
    if (attribute.refAttrName === '') return [attribute];
    const value = given.get(attribute.refAttrName);
    if (value === undefined) return [];
    const bound = clone(AttributeProtoSchema, value);
    bound.name = attribute.name;
    return [bound];
  });
}

/** Gives every name of the function's inside its place in the model; names that a body defines itself are left to the body. */
function renameNode(node: NodeProto, renames: Map<string, string>, prefix: string): void {
  const rename = (name: string): string => {
    if (name === '') return '';
    const known = renames.get(name);
    if (known !== undefined) return known;
    const fresh = `${prefix}${name}`;
    renames.set(name, fresh);
    return fresh;
  };
  node.input = node.input.map(rename);
  node.output = node.output.map(rename);
  for (const { g: body } of node.attribute) if (body !== undefined) renameCaptured(body, renames);
}

function renameCaptured(body: GraphProto, renames: ReadonlyMap<string, string>): void {
  const own = definedBy(body);
  const rename = (name: string) => (own.has(name) ? name : (renames.get(name) ?? name));
  const visible = new Map([...renames].filter(([name]) => !own.has(name)));
  for (const node of body.node) {
    node.input = node.input.map(rename);
    for (const { g: inner } of node.attribute) if (inner !== undefined) renameCaptured(inner, visible);
  }
  for (const output of body.output) output.name = rename(output.name);
}

const definedBy = (graph: GraphProto): ReadonlySet<string> =>
  new Set([
    ...graph.input.map(({ name }) => name),
    ...graph.initializer.map(({ name }) => name),
    ...graph.node.flatMap(({ output }) => output),
  ]);

function collectNames(graph: GraphProto, names: Set<string>): void {
  for (const name of definedBy(graph)) names.add(name);
  for (const node of graph.node)
    for (const { g: body } of node.attribute) if (body !== undefined) collectNames(body, names);
}
