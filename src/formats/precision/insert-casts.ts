import { clone, create } from '@bufbuild/protobuf';
import { TrtforgeError } from '../../errors.js';
import { attributeOf } from '../onnx/attributes.js';
import {
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  type GraphProto,
  type NodeProto,
  NodeProtoSchema,
  type TensorProto,
  TensorProtoSchema,
  type TypeProto,
  type ValueInfoProto,
  ValueInfoProtoSchema,
} from '../onnx/onnx_pb.js';
import { typeChoice } from '../onnx/operators.js';
import { onnxNumber, type ValueType } from '../onnx/values.js';
import type { Dtype } from '../tensor/dtype.js';
import type { Decisions } from './decide.js';
import {
  type Flow,
  isFloat32,
  isStored,
  type Operation,
  operatorName,
  type Scope,
  type Value,
} from './flow.js';
import type { FloatFormat } from './formats/format.js';
import { floatFormats } from './formats/index.js';
import type { Masks } from './masks.js';
import { NodeInsertions } from './node-insertions.js';
import type { ResolvedConversion } from './options.js';
import { isModelOutput, type Requirements, requirementsOf, type Versions } from './required-types.js';
import { outputSlot } from './slots.js';

/** A tensor of the result whose values are those of `source` in another format. */
interface ConvertedTensor {
  readonly tensor: TensorProto;
  readonly source: TensorProto;
  readonly format: FloatFormat;
  /** Larger magnitudes become this one. */
  readonly limit: number | undefined;
}

/** The changes made to the graph. */
export interface Inserted {
  /** Tensors that are made from FP32 weights while the model is written. */
  readonly converted: readonly ConvertedTensor[];
  readonly castsAdded: number;
  readonly castsRemoved: number;
}

/**
 * Changes the messages that `flow` was read from so that they express what was decided: casts a value where a reader needs another type than it is made in,
 * retypes values, replaces weights. Decides nothing, reads no weight (the caller converts those listed), and leaves a graph whose types are consistent.
 */
export const insertCasts = (
  flow: Flow,
  decisions: Decisions,
  options: ResolvedConversion,
  masks: Masks,
): Inserted => new Rewriter(flow, requirementsOf(flow, decisions, options), masks).run(decisions);

class Rewriter {
  readonly #flow: Flow;
  readonly #requirements: Requirements;
  readonly #masks: Masks;
  readonly #nodes: NodeInsertions;
  readonly #converted: ConvertedTensor[] = [];
  readonly #retyped = new Map<GraphProto, Map<string, ValueType>>();
  readonly #described = new Map<GraphProto, Map<string, ValueInfoProto>>();
  #castsAdded = 0;

  constructor(flow: Flow, requirements: Requirements, masks: Masks) {
    this.#flow = flow;
    this.#masks = masks;
    this.#requirements = requirements;
    this.#nodes = new NodeInsertions(flow);
  }

  run(decisions: Decisions): Inserted {
    for (const operation of this.#flow.operations) this.#retypeAttributes(operation, decisions);
    for (const versions of this.#requirements.versions) this.#applyVersions(versions);
    const dropped = new Set([...this.#requirements.superfluous].map(({ node }) => node));
    this.#nodes.apply(dropped);
    const gone = new Set([...dropped].flatMap((node) => node.output));
    for (const scope of this.#flow.scopes) this.#retype(scope, gone);
    return {
      converted: this.#converted,
      castsAdded: this.#castsAdded,
      castsRemoved: this.#requirements.superfluous.size,
    };
  }

  #applyVersions(versions: Versions): void {
    const { value, own, others, requirements } = versions;
    const promised = requirements.find(({ use }) => isModelOutput(use))?.type ?? own;
    const names = new Map<ValueType, string>();
    for (const type of [own, ...others])
      names.set(type, type === promised ? value.name : this.#nodes.unique(`${value.name}_${type}`));
    const ownName = names.get(own) ?? value.name;

    if (isStored(value)) this.#applyStored(versions, names);
    else {
      if (ownName !== value.name) this.#renameOutput(value, ownName);
      this.#declare(value, ownName, own);
      for (const type of others) {
        const name = names.get(type) ?? value.name;
        this.#addCast(
          value,
          this.#isMask(versions, type) ? this.#limited(value, ownName, type) : ownName,
          name,
          type,
        );
        this.#declare(value, name, type);
      }
    }
    for (const { use, type } of requirements) {
      const name = names.get(type ?? own) ?? ownName;
      if (use.kind === 'input') use.operation.node.input[use.index] = name;
      else if (use.scope.owner === undefined) this.#declare(value, name, type ?? own);
      else {
        const output = use.scope.graph.output[use.index];
        if (output === undefined) continue;
        output.name = name;
        setElementType(output.type, type ?? own);
      }
    }
  }

  /** A weight takes its new type in place; one that is read in two types is stored twice. */
  #applyStored({ value, own, others }: Versions, names: ReadonlyMap<ValueType, string>): void {
    for (const type of others) {
      const name = names.get(type) ?? value.name;
      if (value.producer === undefined) this.#storeWeight(value, name, type, false);
      else this.#nodes.insertAfter(value.producer.node, this.#constantNode(value, name, type));
      this.#declare(value, name, type);
    }
    this.#declare(value, value.name, own);
    if (own === value.type) return;
    if (value.producer === undefined) this.#storeWeight(value, value.name, own, true);
    else value.producer.node.attribute = this.#constantNode(value, value.name, own).attribute;
  }

  #storeWeight(value: Value, name: string, type: ValueType, inPlace: boolean): void {
    const { tensor, scope } = value;
    if (tensor === undefined) return;
    if (type === value.type) {
      // FP32 under a second name, because the name belongs to the converted one.
      scope.graph.initializer.push(renamed(tensor, name));
      return;
    }
    const converted = this.#convert(tensor, name, type, value);
    const list = scope.graph.initializer;
    if (inPlace) list[list.indexOf(tensor)] = converted;
    else list.push(converted);
  }

  #convert(source: TensorProto, name: string, type: ValueType, value?: Value): TensorProto {
    const tensor = create(TensorProtoSchema, {
      dims: source.dims,
      dataType: onnxNumber(type as Dtype),
      docString: source.docString,
      name: name === '' ? undefined : name,
    });
    const format = floatFormats.find(({ dtype }) => dtype === type);
    if (format === undefined)
      throw new TrtforgeError('TF_INTERNAL', `${source.name} cannot be converted to ${type}.`);
    const isMask = value !== undefined && this.#masks.weights.has(value);
    this.#converted.push({ tensor, source, format, limit: isMask ? format.maskLimit : undefined });
    return tensor;
  }

  #constantNode(value: Value, name: string, type: ValueType): NodeProto {
    const source = value.tensor ?? create(TensorProtoSchema);
    const t = type === value.type ? source : this.#convert(source, source.name, type, value);
    return create(NodeProtoSchema, {
      opType: 'Constant',
      name: this.#nodes.unique(`${value.producer?.node.name || name}_${type}`),
      output: [name],
      attribute: [
        create(AttributeProtoSchema, { name: 'value', type: AttributeProto_AttributeType.TENSOR, t }),
      ],
    });
  }

  #addCast(value: Value, from: string, to: string, type: ValueType): void {
    this.#castsAdded++;
    const cast = create(NodeProtoSchema, {
      opType: 'Cast',
      name: this.#nodes.unique(`${value.name}_to_${type}`),
      input: [from],
      output: [to],
      attribute: [typeAttributeProto('to', type)],
    });
    this.#nodes.insertAfter(value.producer?.node ?? value.scope.graph, cast);
  }

  #isMask({ value, requirements }: Versions, to: ValueType): boolean {
    const { addends, readers } = this.#masks;
    return (
      addends.has(value) &&
      requirements.some(({ use, type }) => type === to && use.kind === 'input' && readers.has(use.operation))
    );
  }

  /** A mask that stays finite in another type; returns its name. */
  #limited({ name, producer, scope }: Value, from: string, type: ValueType): string {
    const limit = floatFormats.find(({ dtype }) => dtype === type)?.maskLimit;
    if (limit === undefined) return from;
    const output = this.#nodes.unique(`${name}_limited`);
    const lowest = this.#nodes.unique(`${name}_lowest`);
    const rawData = new Uint8Array(Float32Array.of(-limit).buffer);
    scope.graph.initializer.push(create(TensorProtoSchema, { name: lowest, dataType: 1, rawData }));
    const node = { opType: 'Max', name: output, input: [from, lowest], output: [output] };
    this.#nodes.insertAfter(producer?.node ?? scope.graph, create(NodeProtoSchema, node));
    return output;
  }

  #renameOutput(value: Value, name: string): void {
    const outputs = value.producer?.node.output;
    const index = value.producer?.outputs.indexOf(value) ?? -1;
    if (outputs !== undefined && index >= 0) outputs[index] = name;
  }

  #declare(value: Value, name: string, type: ValueType): void {
    const { graph } = value.scope;
    const types = this.#retyped.get(graph) ?? new Map<string, ValueType>();
    types.set(name, type);
    this.#retyped.set(graph, types);
    // The output of a cast is as its input: a shape that contradicts what the graph computes is overlooked once, not twice.
    const isComputed = value.producer?.node.output.includes(name) ?? false;
    if (name !== value.name && isComputed) this.#describeLike(value, name);
  }

  /** A value that is computed under a new name gets the shape that was written for the old one. */
  #describeLike(value: Value, name: string): void {
    const { graph } = value.scope;
    const described = this.#describedIn(graph);
    const known = described.get(value.name);
    if (known?.type === undefined || described.has(name)) return;
    const copy = clone(ValueInfoProtoSchema, known);
    copy.name = name;
    described.set(name, copy);
    graph.valueInfo.push(copy);
  }

  #describedIn(graph: GraphProto): Map<string, ValueInfoProto> {
    let known = this.#described.get(graph);
    if (known === undefined) {
      known = new Map([...graph.input, ...graph.output, ...graph.valueInfo].map((info) => [info.name, info]));
      this.#described.set(graph, known);
    }
    return known;
  }

  #retypeAttributes(operation: Operation, decisions: Decisions): void {
    const { node } = operation;
    const [output] = operation.outputs;
    if (!isFloat32(output)) return;
    const decision = decisions.of(operation);
    const type =
      decision.kind === 'convert' && outputSlot(operation, 0, decision.format.dtype) === 'follows'
        ? decision.format.dtype
        : 'float32';
    if (operatorName(operation) === 'ConstantOfShape') {
      if (type !== 'float32') this.#retypeFill(node, type, output);
      return;
    }
    const choice = typeChoice(node);
    if (choice === undefined) return;
    const attribute = attributeOf(node, choice.attribute);
    if (attribute === undefined) {
      if (choice.otherwise !== type) node.attribute.push(typeAttributeProto(choice.attribute, type));
    } else if (Number(attribute.i) !== 0) attribute.i = BigInt(onnxNumber(type as Dtype));
  }

  #retypeFill(node: NodeProto, type: ValueType, value: Value | undefined): void {
    const attribute = attributeOf(node, 'value');
    const source = attribute?.t ?? zero();
    const t = this.#convert(source, source.name, type, value);
    if (attribute === undefined)
      node.attribute.push(
        create(AttributeProtoSchema, { name: 'value', type: AttributeProto_AttributeType.TENSOR, t }),
      );
    else attribute.t = t;
  }

  /** Declared types as they are now; values that are gone are not declared. */
  #retype(scope: Scope, gone: ReadonlySet<string>): void {
    const { graph } = scope;
    graph.valueInfo = graph.valueInfo.filter((info) => !gone.has(info.name));
    const retype = (info: ValueInfoProto) => {
      const type = this.#newType(info.name, scope);
      if (type !== undefined) setElementType(info.type, type);
    };
    graph.input.forEach(retype);
    graph.valueInfo.forEach(retype);
    graph.output.forEach(retype);
  }

  /** The new type of a value as a graph sees it; bodies may declare values of the graphs around them. */
  #newType(name: string, scope: Scope): ValueType | undefined {
    for (let at: Scope | undefined = scope; at !== undefined; at = at.parent) {
      const type = this.#retyped.get(at.graph)?.get(name);
      if (type !== undefined || at.values.has(name)) return type;
    }
    return undefined;
  }
}

function setElementType(type: TypeProto | undefined, to: ValueType): void {
  if (type?.value.case === 'tensorType') type.value.value.elemType = onnxNumber(to as Dtype);
}

const typeAttributeProto = (name: string, type: ValueType) =>
  create(AttributeProtoSchema, {
    name,
    type: AttributeProto_AttributeType.INT,
    i: BigInt(onnxNumber(type as Dtype)),
  });

function renamed(tensor: TensorProto, name: string): TensorProto {
  const copy = clone(TensorProtoSchema, tensor);
  copy.name = name;
  return copy;
}

/** The default fill value of ConstantOfShape. */
const zero = (): TensorProto =>
  create(TensorProtoSchema, { dims: [1n], dataType: 1, rawData: new Uint8Array(4) });
