import { create, type DescMessage, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { bodiesOf, type GraphView, nodeLabel, qualifiedOpType } from '../../formats/onnx/graph.js';
import type { ValueFacts } from '../../formats/onnx/model-facts.js';
import { attributeValue } from '../../formats/onnx/node-list.js';
import {
  type AttributeProto,
  AttributeProtoSchema,
  FunctionProtoSchema,
  GraphProtoSchema,
  type NodeProto,
  type TensorProto,
} from '../../formats/onnx/onnx_pb.js';
import { factsAsWritten, feedInputs } from '../../formats/onnx/value-facts.js';
import type { Weight } from '../../formats/onnx/weight.js';
import { matchNodes } from './match-nodes.js';
import type { FieldChange, ModelComparison, ValueChanges, WeightDistance } from './result.js';

/** A model in canonical form (`digestModel`), with its weights as they were located before. */
export type Weights = ReadonlyMap<TensorProto, Weight>;

/** Two tensors whose values differ; the distance belongs into `into`. */
export interface Differing {
  readonly a: Weight;
  readonly b: Weight;
  readonly into: { distance: WeightDistance | null };
}

type FoundDifferences = Pick<ModelComparison, 'initializers' | 'nodes' | 'others'>;

/** Compares graphs in canonical form, a pair at a time with the bodies inside, and gathers what differs. */
export class GraphComparison {
  readonly found: FoundDifferences = {
    initializers: { same: 0, renamed: [], added: [], removed: [], changed: [] },
    nodes: { same: 0, renamed: [], added: [], removed: [], changed: [] },
    others: [],
  };
  /** The values to read for their distance. */
  readonly differing: Differing[] = [];
  readonly #weights: { readonly a: Weights; readonly b: Weights };

  constructor(a: Weights, b: Weights) {
    this.#weights = { a, b };
  }

  compare(a: GraphView, b: GraphView, parent?: GraphScope): void {
    const scope = new GraphScope(parent);
    this.#pairInputs(a, b, scope);
    this.#initializers(a, b, scope);
    const { pairs, onlyA, onlyB } = matchNodes(a.nodes, b.nodes);
    for (const [one, other] of pairs)
      for (const [index, name] of one.output.entries()) scope.pair(name, other.output[index] ?? '');
    const { nodes } = this.found;
    for (const node of onlyA) nodes.removed.push(briefNode(a, node));
    for (const node of onlyB) nodes.added.push(briefNode(b, node));
    for (const [one, other] of pairs) this.#nodes(a, one, b, other, scope);
    this.#others(a, b, scope);
  }

  /** By name, then those that remain one after the other. */
  #pairInputs(a: GraphView, b: GraphView, scope: GraphScope): void {
    const [inputsA, inputsB] = [inputNames(a), inputNames(b)];
    const [namesA, namesB] = [new Set(inputsA), new Set(inputsB)];
    const rest = inputsB.filter((name) => !namesA.has(name));
    for (const name of inputsA) scope.pair(name, namesB.has(name) ? name : (rest.shift() ?? ''));
  }

  #initializers(a: GraphView, b: GraphView, scope: GraphScope): void {
    const { initializers } = this.found;
    const [ofA, ofB] = [initializersOf(a), initializersOf(b)];
    for (const [name, tensor] of ofA) scope.content('a', name, contentKey(tensor));
    for (const [name, tensor] of ofB) scope.content('b', name, contentKey(tensor));
    const waiting = new Map<string, string[]>();
    for (const [name, tensor] of [...ofB].toReversed()) {
      if (ofA.has(name)) continue;
      const key = contentKey(tensor);
      const names = waiting.get(key);
      if (names === undefined) waiting.set(key, [name]);
      else names.push(name);
    }
    for (const [name, one] of ofA) {
      const other = ofB.get(name);
      const counterpart = other === undefined ? waiting.get(contentKey(one))?.pop() : name;
      if (counterpart !== undefined) scope.pair(name, counterpart);
      const graph = a.path;
      if (other === undefined) {
        if (counterpart !== undefined) initializers.renamed.push({ graph, a: name, b: counterpart });
        else initializers.removed.push({ graph, name, ...this.#typeOf('a', one) });
      } else if (contentKey(one) === contentKey(other)) initializers.same++;
      else {
        const types = { a: this.#typeOf('a', one), b: this.#typeOf('b', other) };
        const change = { graph, name, ...types, distance: null };
        initializers.changed.push(change);
        this.#differ(one, other, change);
      }
    }
    for (const names of waiting.values())
      for (const name of names)
        initializers.added.push({ graph: b.path, name, ...this.#typeOf('b', ofB.get(name)!) });
  }

  #nodes(a: GraphView, one: NodeProto, b: GraphView, other: NodeProto, scope: GraphScope): void {
    const { nodes } = this.found;
    const changes = [...nodeChanges(one, other, scope), ...this.#attributes(one, other)];
    const names = { graph: a.path, a: nodeLabel(one), b: nodeLabel(other) };
    if (changes.length > 0) nodes.changed.push({ ...names, changes });
    else if (one.name !== other.name || one.output.join() !== other.output.join()) nodes.renamed.push(names);
    else nodes.same++;
    const [ofOne, ofOther] = [bodiesOf(one, a), bodiesOf(other, b)];
    for (const { name } of one.attribute) {
      const isOwn = ({ owner }: GraphView) => owner?.attribute.name === name;
      const counterparts = ofOther.filter(isOwn);
      for (const [index, body] of ofOne.filter(isOwn).entries()) {
        const counterpart = counterparts[index];
        if (counterpart !== undefined) this.compare(body, counterpart, scope);
      }
    }
  }

  #attributes(one: NodeProto, other: NodeProto): Change[] {
    const others = new Map(other.attribute.map((attribute) => [attribute.name, attribute]));
    const names = new Set(one.attribute.map(({ name }) => name));
    const ofBoth = one.attribute.map((a) => [a, others.get(a.name)] as const);
    const added = other.attribute.filter(({ name }) => !names.has(name)).map((b) => [undefined, b] as const);
    return [...ofBoth, ...added].flatMap(([a, b]) => {
      if (a !== undefined && b !== undefined && isSameAttribute(a, b)) return [];
      const field = `attributes.${(a ?? b)?.name}`;
      const change: Change = { field, a: attributeText(a), b: attributeText(b), distance: null };
      if (a?.t !== undefined && b?.t !== undefined) this.#differ(a.t, b.t, change);
      return [change];
    });
  }

  /** Compares the other fields of the messages of graphs and functions. */
  #others(a: GraphView, b: GraphView, scope: GraphScope): void {
    const add = (field: string) => this.found.others.push({ graph: a.path, field });
    if (a.graph !== undefined && b.graph !== undefined) {
      for (const field of differingFields(GraphProtoSchema, a.graph, b.graph, comparedOfGraphs)) add(field);
      // Those of the model itself are compared by name.
      if (a.parent === undefined) return;
      const typesOf = (values: typeof a.graph.input) =>
        JSON.stringify(values.map(factsAsWritten).map(({ dtype, shape }) => [dtype, shape]));
      const { input, output } = a.graph;
      if (typesOf(input) !== typesOf(b.graph.input)) add('input');
      const outputsB = b.graph.output;
      const makesTheSame = output.every(({ name }, index) => scope.isSame(name, outputsB[index]?.name ?? ''));
      if (typesOf(output) !== typesOf(outputsB) || !makesTheSame) add('output');
    } else if (a.function !== undefined && b.function !== undefined) {
      for (const field of differingFields(FunctionProtoSchema, a.function, b.function, ['node'])) add(field);
    }
  }

  #typeOf(side: 'a' | 'b', tensor: TensorProto): { dtype: string; shape: number[] } {
    const { dtype, dims } = this.#weights[side].get(tensor)!;
    return { dtype, shape: [...dims] };
  }

  #differ(one: TensorProto, other: TensorProto, into: Differing['into']): void {
    const [a, b] = [this.#weights.a.get(one), this.#weights.b.get(other)];
    if (a !== undefined && b !== undefined) this.differing.push({ a, b, into });
  }
}

/** Inputs or outputs of two models, by name. */
export function valueChanges(a: readonly ValueFacts[], b: readonly ValueFacts[]): ValueChanges {
  const [ofA, ofB] = [a, b].map((values) => new Map(values.map((value) => [value.name, value]))) as [
    Map<string, ValueFacts>,
    Map<string, ValueFacts>,
  ];
  return {
    added: b.filter(({ name }) => !ofA.has(name)),
    removed: a.filter(({ name }) => !ofB.has(name)),
    changed: a.flatMap(({ name, ...one }) => {
      const other = ofB.get(name);
      if (other === undefined) return [];
      const { dtype, shape } = other;
      return JSON.stringify([one.dtype, one.shape]) === JSON.stringify([dtype, shape])
        ? []
        : [{ name, a: one, b: { dtype, shape } }];
    }),
  };
}

/** The fields of two messages that differ, by their names in ONNX's schema. */
export function differingFields<D extends DescMessage>(
  schema: D,
  a: MessageShape<D>,
  b: MessageShape<D>,
  without: readonly string[],
): string[] {
  const only = (message: MessageShape<D>, name: string) => {
    const value = (message as Record<string, unknown>)[name];
    return toBinary(schema, Object.assign(create(schema), { [name]: value }));
  };
  return schema.fields
    .filter(
      ({ name, localName }) => !without.includes(name) && !isEqual(only(a, localName), only(b, localName)),
    )
    .map(({ name }) => name);
}

type Change = ModelComparison['nodes']['changed'][number]['changes'][number];

const comparedOfGraphs = ['node', 'initializer', 'input', 'output'];

const inputNames = (view: GraphView): readonly string[] =>
  view.graph === undefined ? (view.function?.input ?? []) : feedInputs(view.graph).map(({ name }) => name);

const initializersOf = (view: GraphView): Map<string, TensorProto> =>
  new Map((view.graph?.initializer ?? []).map((tensor) => [tensor.name, tensor]));

/** In canonical form `rawData` is the digest of the values. */
const contentKey = ({ dataType, dims, rawData }: TensorProto): string =>
  `${dataType} ${dims.join('x')} ${Buffer.from(rawData).toString('base64')}`;

const briefNode = ({ path }: GraphView, node: NodeProto) => ({
  graph: path,
  name: node.name,
  op: qualifiedOpType(node),
  outputs: [...node.output],
});

function nodeChanges(a: NodeProto, b: NodeProto, scope: GraphScope): Change[] {
  const changes: Change[] = [];
  const add = (field: string, one: string | undefined, other: string | undefined) =>
    changes.push({ field, a: one ?? null, b: other ?? null, distance: null });
  if (operatorText(a) !== operatorText(b)) add('op', operatorText(a), operatorText(b));
  const compareNames = (field: 'input' | 'output', isSame: (one: string, other: string) => boolean) => {
    for (let i = 0; i < Math.max(a[field].length, b[field].length); i++) {
      const [one, other] = [a[field][i], b[field][i]];
      if (one === undefined || other === undefined || !isSame(one, other)) add(`${field}s[${i}]`, one, other);
    }
  };
  compareNames('input', (one, other) => scope.isSame(one, other));
  // Another name is a renamed tensor; what counts is whether there is one.
  compareNames('output', (one, other) => (one === '') === (other === ''));
  return changes;
}

const operatorText = (node: NodeProto): string =>
  [qualifiedOpType(node), node.overload].filter((part) => part !== '').join(':');

/** Bodies are compared for themselves. */
function isSameAttribute(a: AttributeProto, b: AttributeProto): boolean {
  const hasBodies = ({ g, graphs }: AttributeProto) => g !== undefined || graphs.length > 0;
  if (hasBodies(a) && hasBodies(b)) return a.graphs.length === b.graphs.length;
  return isEqual(toBinary(AttributeProtoSchema, a), toBinary(AttributeProtoSchema, b));
}

const isEqual = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

const attributeText = (attribute: AttributeProto | undefined): FieldChange['a'] => {
  if (attribute === undefined) return null;
  const value = attributeValue(attribute);
  return typeof value === 'string' ? value : JSON.stringify(value);
};

/** Which names of two graphs stand for one value: those of A by what B calls them, and initializers by their content, whatever their names. */
class GraphScope {
  readonly #parent: GraphScope | undefined;
  readonly #names = new Map<string, string>();
  readonly #contents = { a: new Map<string, string>(), b: new Map<string, string>() };

  /** The values of the graphs around are known too. */
  constructor(parent: GraphScope | undefined) {
    this.#parent = parent;
  }

  pair(a: string, b: string): void {
    if (a !== '' && b !== '') this.#names.set(a, b);
  }

  content(side: 'a' | 'b', name: string, key: string): void {
    this.#contents[side].set(name, key);
  }

  isSame(a: string, b: string): boolean {
    const content = this.#contentOf('a', a);
    if (content !== undefined && content === this.#contentOf('b', b)) return true;
    return (this.#nameOf(a) ?? a) === b;
  }

  #nameOf(a: string): string | undefined {
    const known = this.#names.get(a);
    return known === undefined && this.#parent !== undefined ? this.#parent.#nameOf(a) : known;
  }

  #contentOf(side: 'a' | 'b', name: string): string | undefined {
    const known = this.#contents[side].get(name);
    return known === undefined && this.#parent !== undefined ? this.#parent.#contentOf(side, name) : known;
  }
}
