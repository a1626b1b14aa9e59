import { clone } from '@bufbuild/protobuf';
import { functionKey, opsetsOf } from '../dtype-inference.js';
import { inOrder, nodeLabel, qualifiedOpType, usedNames } from '../graph.js';
import type { ModelLike } from '../model.js';
import {
  AttributeProtoSchema,
  type FunctionProto,
  type GraphProto,
  type NodeProto,
  NodeProtoSchema,
  type ValueInfoProto,
} from '../onnx_pb.js';
import { isPlaceholder } from '../open-dimensions.js';
import { nodeOutputTypes, operatorSignature, plainDomain } from '../operators.js';
import { declaredType, feedInputs, type ValueType, valueFacts } from '../values.js';
import { bodyRules, type MaybeValue, type Result } from './control-flow.js';
import { addFlops, type Cost, noCost, peaksOf, type Step, totalFlops } from './cost.js';
import { elementRules } from './element-rules.js';
import { flopRules } from './flops.js';
import { bytesIn, Call, elementsIn, isSmall, type ShapedValue, UNKNOWN, unknown } from './rule-input.js';
import { shapeRules } from './shape-rules.js';
import { isNumber, type MaybeSize, type Shape, type Size, symbol } from './size.js';
import { constantValue, storedValue } from './stored-value.js';

/** The results for one node: a shape for each output, the elements of small outputs that sizes decide, and its FLOPs with those of its bodies; undefined where they are not known. */
export interface NodeFigures {
  readonly shapes: readonly (Shape | undefined)[];
  readonly elements: readonly ShapedValue['elements'][];
  readonly flops: MaybeSize;
}

/** Where shapes end: `no-rule` is an operator that ONNX does not define or that has no rule here, `undetermined` one whose result other things decide. */
export interface Gap {
  readonly reason: 'no-rule' | 'undetermined' | 'no-rank';
  readonly op: string;
  readonly nodes: number;
  /** Label of the first. */
  readonly first: string;
}

export interface ModelShapes {
  readonly inputs: ReadonlyMap<string, Shape | undefined>;
  /** Nodes of the graph and of the bodies that were inferred. */
  readonly nodes: ReadonlyMap<NodeProto, NodeFigures>;
  readonly gaps: readonly Gap[];
  readonly cost: Cost;
  /** The dimensions that inputs leave open. */
  readonly openSizes: ReadonlySet<string>;
}

/** Functions that call each other deeper than this are taken for a cycle, which ONNX forbids. */
const MOST_CALLS = 32;
/** Functions and loops multiply: past this many nodes the rest stays unknown. */
const MOST_STEPS = 50_000;
/** No runtime takes tensors of more axes, and a chain of Gather doubles them with every node. */
const MOST_AXES = 64;

/**
 * Infers the shape of every value from those of the inputs. `given` fixes inputs by name, `sizes` open dimensions by symbol; what neither fixes stays open. `elements` are those of small inputs, by name.
 * Reads small weights (up to 256 elements) that sizes are computed from, and no others. An invalid graph leaves unknown shapes; it throws nothing.
 */
export function inferShapes(
  model: ModelLike,
  given: ReadonlyMap<string, readonly number[]> = new Map(),
  sizes: ReadonlyMap<string, number> = new Map(),
  elements: ReadonlyMap<string, readonly number[]> = new Map(),
): ModelShapes {
  return new Inference(model, sizes).run(given, elements);
}

/** The inferred shapes of values by their names, those of inputs included; weights are not among them. */
export const shapesByName = ({ inputs, nodes }: ModelShapes): ReadonlyMap<string, Shape | undefined> =>
  new Map([
    ...[...nodes].flatMap(([{ output }, { shapes }]) =>
      output.map((name, at) => [name, shapes[at]] as const),
    ),
    ...inputs,
  ]);

interface Scope {
  readonly values: Map<string, ShapedValue>;
  readonly parent: Scope | undefined;
  /** The model's declarations of values inside. */
  readonly declared: ReadonlyMap<string, ValueInfoProto>;
  readonly opsets: ReadonlyMap<string, number>;
  readonly depth: number;
}

const notKnown: ShapedValue = { type: undefined, shape: undefined, elements: undefined, isConstant: false };
/** Operators whose result differs from run to run. */
const random = /^Random|^Bernoulli$|^Multinomial$/;

class Inference {
  readonly #model: ModelLike;
  readonly #sizes: ReadonlyMap<string, number>;
  readonly #functions: ReadonlyMap<string, FunctionProto>;
  readonly #nodes = new Map<NodeProto, NodeFigures>();
  readonly #gaps = new Map<string, { readonly gap: Omit<Gap, 'nodes'>; readonly nodes: Set<unknown> }>();
  readonly #openSizes = new Set<string>();
  /** Number of sizes that nothing determines, by their name. */
  readonly #named = new Map<string, number>();
  #steps = 0;

  constructor(model: ModelLike, sizes: ReadonlyMap<string, number>) {
    this.#model = model;
    this.#sizes = sizes;
    this.#functions = new Map(model.proto.functions.map((fn) => [functionKey(fn), fn]));
  }

  run(
    given: ReadonlyMap<string, readonly number[]>,
    elements: ReadonlyMap<string, readonly number[]>,
  ): ModelShapes {
    const { graph, opsetImport } = this.#model.proto;
    const inputs = new Map<string, Shape | undefined>();
    let cost = noCost;
    if (graph !== undefined) {
      const fed = feedInputs(graph).map((input): readonly [string, ShapedValue] => {
        const shape = given.get(input.name) ?? this.#inputShape(input);
        inputs.set(input.name, shape);
        return [
          input.name,
          { ...notKnown, type: declaredType(input.type), shape, elements: elements.get(input.name) },
        ];
      });
      ({ cost } = this.#graph(graph, new Map(fed), undefined, opsetsOf(opsetImport)));
    }
    const gaps = [...this.#gaps.values()].map(({ gap, nodes }) => ({ ...gap, nodes: nodes.size }));
    return { inputs, nodes: this.#nodes, gaps, cost, openSizes: this.#openSizes };
  }

  #inputShape(input: ValueInfoProto): Shape | undefined {
    const { shape } = valueFacts(input);
    if (shape === null) this.#addGap('no-rank', 'input', input.name, input);
    return shape?.map((dim, axis) => {
      if (typeof dim === 'number') return dim;
      const name = dim === null || isPlaceholder(dim) ? `${input.name}[${axis}]` : dim;
      const size = this.#sizes.get(name);
      if (size === undefined) this.#openSizes.add(name);
      return size ?? symbol(name);
    });
  }

  /** The shape that the model declares of a value; dimensions that are open there are undefined. */
  #declaredShape(info: ValueInfoProto | undefined): Shape | undefined {
    const { shape } = info === undefined ? { shape: null } : valueFacts(info);
    return shape?.map((dim) => {
      if (typeof dim === 'number') return dim;
      return dim === null || isPlaceholder(dim) ? undefined : (this.#sizes.get(dim) ?? symbol(dim));
    });
  }

  #graph(
    graph: GraphProto,
    inputs: ReadonlyMap<string, ShapedValue>,
    parent: Scope | undefined,
    opsets: Scope['opsets'],
  ): Result {
    const values = new Map(inputs);
    for (const tensor of graph.initializer)
      if (!inputs.has(tensor.name)) values.set(tensor.name, storedValue(this.#model, tensor));
    for (const { values: stored, dims } of graph.sparseInitializer)
      if (stored !== undefined)
        values.set(stored.name, {
          ...storedValue(this.#model, stored),
          shape: dims.map(Number),
          elements: undefined,
        });
    const declared = new Map([...graph.valueInfo, ...graph.output].map((info) => [info.name, info]));
    const scope: Scope = { values, parent, declared, opsets, depth: parent?.depth ?? 0 };
    return this.#run(
      graph.node,
      scope,
      graph.output.map(({ name }) => name),
    );
  }

  #run(nodes: readonly NodeProto[], scope: Scope, outputs: readonly string[]): Result {
    const flops = new Map<string, MaybeSize>();
    const steps: Step[] = [];
    let uncounted = 0;
    let unmeasured = 0;
    for (const node of inOrder(nodes).nodes) {
      const { outputs: results, cost } = this.#node(node, scope);
      for (const [index, name] of node.output.entries())
        if (name !== '') scope.values.set(name, results[index] ?? notKnown);
      addFlops(flops, cost.flops);
      uncounted += cost.uncounted;
      unmeasured += cost.unmeasured;
      steps.push({ node, label: nodeLabel(node), inner: cost.peaks });
    }
    const owned = new Set(outputs);
    const bytes = new Map<string, MaybeSize>();
    for (const name of steps.flatMap(({ node }) => node.output)) {
      const value = scope.values.get(name);
      if (value?.isConstant === false && !owned.has(name)) bytes.set(name, bytesIn(value));
    }
    unmeasured += [...bytes.values()].filter((size) => size === undefined).length;
    return {
      outputs: outputs.map((name) => lookUp(scope, name)),
      cost: { flops, uncounted, unmeasured, peaks: peaksOf(steps, bytes) },
    };
  }

  #node(node: NodeProto, scope: Scope): Result {
    const inputs = node.input.map((name) => (name === '' ? undefined : (lookUp(scope, name) ?? notKnown)));
    const opset = scope.opsets.get(plainDomain(node.domain)) ?? 0;
    const call = new Call(node, opset, inputs, (tensor) => storedValue(this.#model, tensor));
    const isConstant =
      inputs.length > 0 &&
      !random.test(node.opType) &&
      usedNames(node).every((name) => name === '' || lookUp(scope, name)?.isConstant === true);
    const { outputs, cost } =
      this.#steps++ < MOST_STEPS ? this.#results(call, scope) : this.#withoutResult('undetermined', node);
    const types = outputTypes(call);
    const results = node.output.map((name, index) =>
      this.#completed(
        name,
        { ...notKnown, ...outputs[index], type: outputs[index]?.type ?? types[index] },
        isConstant,
        scope,
      ),
    );
    this.#nodes.set(node, {
      shapes: results.map(({ shape }) => shape),
      elements: results.map(({ elements }) => elements),
      flops: isConstant ? 0 : cost.uncounted > 0 && cost.flops.size === 0 ? undefined : totalFlops(cost),
    });
    return { outputs: results, cost: isConstant ? noCost : cost };
  }

  /** The results of the rules. */
  #results(call: Call, scope: Scope): Result {
    const { node } = call;
    const fn = this.#functions.get(functionKey(node));
    if (fn !== undefined) return this.#called(fn, call, scope);
    const isOnnx = plainDomain(node.domain) === '';
    if (isOnnx && node.opType === 'Constant')
      return { outputs: [constantValue(this.#model, node)], cost: noCost };
    const bodyRule = isOnnx ? bodyRules.get(node.opType) : undefined;
    const shapeRule = isOnnx ? shapeRules.get(node.opType) : undefined;
    if (bodyRule === undefined && shapeRule === undefined) return this.#withoutResult('no-rule', node);
    const result = attempt(() => {
      if (bodyRule === undefined) return this.#ruled(call);
      const found = bodyRule(call, (body, inputs) => this.#body(body, inputs, scope));
      for (const value of found.outputs) assertPossible(value?.shape);
      return found;
    });
    if (result !== undefined) return result;
    // A shape that is missing because one before it is missing is not a gap of its own.
    if (call.inputs.some((value) => value !== undefined && value.shape === undefined))
      return { outputs: [], cost: countsNothing(call) ? noCost : unknownCost };
    return this.#withoutResult('undetermined', node);
  }

  #withoutResult(reason: Gap['reason'], node: NodeProto): Result {
    this.#addGap(reason, qualifiedOpType(node), nodeLabel(node), node);
    return { outputs: [], cost: unknownCost };
  }

  #ruled(call: Call): Result {
    const { opType } = call.node;
    const shapes = shapeRules.get(opType)?.(call) ?? [];
    shapes.forEach(assertPossible);
    const elements = shapes.every(isSmall)
      ? attempt(() => elementRules.get(opType)?.(call, shapes))
      : undefined;
    const outputs = shapes.map((shape, index) => ({
      ...notKnown,
      shape,
      elements: someKnown(elements?.[index]),
    }));
    const flops = countsNothing(call) ? 0 : attempt(() => flopRules.get(opType)?.(call, shapes));
    if (flops === undefined) return { outputs, cost: unknownCost };
    return { outputs, cost: flops === 0 ? noCost : { ...noCost, flops: new Map([[opType, flops]]) } };
  }

  #body(body: GraphProto, inputs: readonly MaybeValue[], scope: Scope): Result {
    const values = body.input.map((input, index): readonly [string, ShapedValue] => {
      const value = inputs[index] ?? notKnown;
      const shape = this.#sized(input.name, value.shape, input);
      return [input.name, { ...value, type: value.type ?? declaredType(input.type), shape }];
    });
    return this.#graph(body, new Map(values), scope, scope.opsets);
  }

  #called(fn: FunctionProto, { node, inputs }: Call, scope: Scope): Result {
    if (scope.depth >= MOST_CALLS) return this.#withoutResult('undetermined', node);
    const inside: Scope = {
      values: new Map(fn.input.map((name, index) => [name, inputs[index] ?? notKnown])),
      parent: undefined,
      declared: new Map(),
      opsets: fn.opsetImport.length === 0 ? scope.opsets : opsetsOf(fn.opsetImport),
      depth: scope.depth + 1,
    };
    return this.#run(
      fn.node.map((inner) => withArguments(inner, node, fn)),
      inside,
      fn.output,
    );
  }

  /** The value with what the model declares of it where nothing else is known. */
  #completed(name: string, value: ShapedValue, isConstant: boolean, scope: Scope): ShapedValue {
    const declared = scope.declared.get(name);
    const shape = this.#sized(name, value.shape, declared);
    const isWhole = value.elements !== undefined && value.elements.length === elementsIn(shape ?? []);
    return {
      type: value.type ?? declaredType(declared?.type),
      shape,
      elements: isWhole ? value.elements : undefined,
      isConstant: isConstant || value.isConstant,
    };
  }

  /** A shape with the declared sizes in the place of unknown ones, and with a name for every size that nothing determines. */
  #sized(name: string, shape: Shape | undefined, info: ValueInfoProto | undefined): Shape | undefined {
    if (shape?.every((size) => size !== undefined)) return shape;
    const declared = this.#declaredShape(info);
    const other = shape === undefined || shape.length === declared?.length ? declared : undefined;
    return (shape ?? declared)?.map((size, axis) => size ?? other?.[axis] ?? this.#fresh(`${name}[${axis}]`));
  }

  #fresh(name: string): Size {
    const count = (this.#named.get(name) ?? 0) + 1;
    this.#named.set(name, count);
    return symbol(count === 1 ? name : `${name}#${count}`);
  }

  #addGap(reason: Gap['reason'], op: string, first: string, node: unknown): void {
    const key = `${reason} ${op}`;
    const entry = this.#gaps.get(key) ?? { gap: { reason, op, first }, nodes: new Set() };
    this.#gaps.set(key, entry);
    entry.nodes.add(node);
  }
}

const unknownCost: Cost = { ...noCost, uncounted: 1 };
const countsNothing = ({ node }: Call): boolean => !flopRules.has(node.opType);

function lookUp(scope: Scope | undefined, name: string): ShapedValue | undefined {
  for (let at = scope; at !== undefined; at = at.parent) {
    const value = at.values.get(name);
    if (value !== undefined) return value;
  }
  return undefined;
}

function attempt<T>(rule: () => T): T | undefined {
  try {
    return rule();
  } catch (error) {
    if (error === UNKNOWN) return undefined;
    throw error;
  }
}

/** Sizes are whole and not negative, and few; a rule that comes to others was applied to a graph that cannot run. */
function assertPossible(shape: Shape | undefined): void {
  if (shape !== undefined && shape.length > MOST_AXES) unknown();
  if (shape?.some((size) => isNumber(size) && !(Number.isSafeInteger(size) && size >= 0))) unknown();
}

const someKnown = (elements: ShapedValue['elements']): ShapedValue['elements'] =>
  elements?.every((element) => element === undefined) ? undefined : elements;

function outputTypes({ node, opset, inputs }: Call): readonly (ValueType | undefined)[] {
  const signature = operatorSignature(node.domain, node.opType, opset);
  const types = inputs.map((value) => value?.type);
  return signature === undefined ? [] : nodeOutputTypes(node, types, signature);
}

/** A node of a function with the attributes that the call passes. */
function withArguments(node: NodeProto, call: NodeProto, fn: FunctionProto): NodeProto {
  if (node.attribute.every(({ refAttrName }) => refAttrName === '')) return node;
  const passed = [...call.attribute, ...fn.attributeProto];
  const copy = clone(NodeProtoSchema, node);
  copy.attribute = copy.attribute.flatMap((each) => {
    if (each.refAttrName === '') return [each];
    const value = passed.find(({ name }) => name === each.refAttrName);
    return value === undefined
      ? []
      : [Object.assign(clone(AttributeProtoSchema, value), { name: each.name })];
  });
  return copy;
}
