import { create } from '@bufbuild/protobuf';
import { bytesSource } from '../../base/files/byte-source.js';
import { TrtforgeError } from '../../errors.js';
import { type Dtype, dtypes, elementCount, packedBytes } from '../tensor/dtype.js';
import type { Tensor } from '../tensor/tensor.js';
import { ExternalFiles, isExternal } from './external-data.js';
import type { ModelLike } from './model.js';
import {
  type AttributeProto,
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  type FunctionProto,
  FunctionProtoSchema,
  type GraphProto,
  GraphProtoSchema,
  ModelProtoSchema,
  NodeProtoSchema,
  OperatorSetIdProtoSchema,
  StringStringEntryProtoSchema,
  type TensorProto,
  TensorProtoSchema,
  type ValueInfoProto,
  ValueInfoProtoSchema,
} from './onnx_pb.js';
import { dimensionValue } from './values.js';
import { locateWeight, type WeightStream } from './weight.js';
import { markerOf, PayloadTable } from './wire.js';

/** A dimension: a number, a symbol (`batch`), or null for unknown. */
export type Dimension = number | string | null;

/** Values made on demand: `chunks` is called for every reading and must give the same bytes each time. */
export interface GeneratedValues {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  chunks(chunkBytes?: number): Iterable<Uint8Array>;
}

/** An attribute before it has a name. ONNX reports integers from floats, so a plain number would not do. */
export type AttributeValue = (
  payloads: PayloadTable<WeightStream>,
) => Omit<Partial<AttributeProto>, '$typeName' | 'name'>;

const Type = AttributeProto_AttributeType;

/** Typed attribute values: `attribute.int(1)`, `attribute.floats([0.5, 0.5])`, `attribute.body(graph)`. */
export const attribute = {
  int:
    (value: number | bigint): AttributeValue =>
    () => ({ type: Type.INT, i: BigInt(value) }),
  float:
    (value: number): AttributeValue =>
    () => ({ type: Type.FLOAT, f: value }),
  string:
    (value: string): AttributeValue =>
    () => ({ type: Type.STRING, s: Buffer.from(value) }),
  ints:
    (values: readonly (number | bigint)[]): AttributeValue =>
    () => ({ type: Type.INTS, ints: values.map(BigInt) }),
  floats:
    (values: readonly number[]): AttributeValue =>
    () => ({ type: Type.FLOATS, floats: [...values] }),
  strings:
    (values: readonly string[]): AttributeValue =>
    () => ({
      type: Type.STRINGS,
      strings: values.map((value) => Buffer.from(value)),
    }),
  tensor:
    (value: Tensor | GeneratedValues): AttributeValue =>
    (payloads) => ({
      type: Type.TENSOR,
      t: tensorProto('', value, payloads),
    }),
  body:
    (graph: GraphBuilder): AttributeValue =>
    (payloads) => ({ type: Type.GRAPH, g: graph.toProto(payloads) }),
};

export interface NodeSpec {
  readonly inputs?: readonly string[];
  readonly outputs: readonly string[];
  readonly name?: string;
  readonly domain?: string;
  readonly attributes?: Readonly<Record<string, AttributeValue>>;
}

/** Collects one graph: the model's own, a body or the nodes of a function. Methods return the builder or the name they made, so calls read in order. */
export class GraphBuilder {
  readonly name: string;
  readonly #inputs: ValueInfoProto[] = [];
  readonly #outputs: ValueInfoProto[] = [];
  readonly #values: ValueInfoProto[] = [];
  readonly #nodes: { readonly opType: string; readonly spec: NodeSpec }[] = [];
  readonly #initializers: { readonly name: string; readonly value: Tensor | GeneratedValues }[] = [];

  constructor(name: string) {
    this.name = name;
  }

  /** Declares an input; `shape` null leaves the rank open. Returns the name. */
  input(name: string, dtype: Dtype, shape: readonly Dimension[] | null): string {
    this.#inputs.push(valueInfo(name, dtype, shape));
    return name;
  }

  output(name: string, dtype: Dtype, shape: readonly Dimension[] | null): string {
    this.#outputs.push(valueInfo(name, dtype, shape));
    return name;
  }

  /** Declares dtype and shape of a value inside the graph (`value_info`). */
  value(name: string, dtype: Dtype, shape: readonly Dimension[] | null): string {
    this.#values.push(valueInfo(name, dtype, shape));
    return name;
  }

  /** Adds an initializer, as a tensor or as values made when they are written. Returns the name. */
  initializer(name: string, value: Tensor | GeneratedValues): string {
    this.#initializers.push({ name, value });
    return name;
  }

  /** Adds a node and returns the name of its first output. */
  node(opType: string, spec: NodeSpec): string {
    this.#nodes.push({ opType, spec });
    return spec.outputs[0] ?? '';
  }

  toProto(payloads: PayloadTable<WeightStream>): GraphProto {
    return create(GraphProtoSchema, {
      name: this.name,
      node: this.nodes(payloads),
      initializer: this.#initializers.map(({ name, value }) => tensorProto(name, value, payloads)),
      input: this.#inputs,
      output: this.#outputs,
      valueInfo: this.#values,
    });
  }

  nodes(payloads: PayloadTable<WeightStream>) {
    return this.#nodes.map(({ opType, spec }) =>
      create(NodeProtoSchema, {
        opType,
        input: [...(spec.inputs ?? [])],
        output: [...spec.outputs],
        name: spec.name,
        domain: spec.domain,
        attribute: Object.entries(spec.attributes ?? {}).map(([name, value]) =>
          create(AttributeProtoSchema, { name, ...value(payloads) }),
        ),
      }),
    );
  }
}

export interface FunctionSpec {
  readonly domain: string;
  readonly name: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes?: readonly string[];
  readonly nodes: GraphBuilder;
  readonly opsets: Readonly<Record<string, number>>;
}

export interface ModelSpec {
  /** Opset of the ONNX domain; default 17. */
  readonly opset?: number;
  /** Opsets of other domains. */
  readonly opsets?: Readonly<Record<string, number>>;
  /** Default 8, or 10 from opset 21 on, the oldest that allows them. */
  readonly irVersion?: number;
  readonly producer?: string;
  readonly functions?: readonly FunctionSpec[];
  /** `metadata_props`: Ultralytics' exports have the names of the classes there. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Makes a model out of a graph; pass it to `writeModel`. Weights given as generators are made only when they are written or read. */
export function buildModel(graph: GraphBuilder, spec: ModelSpec = {}): ModelLike {
  const payloads = new PayloadTable<WeightStream>();
  const opset = spec.opset ?? 17;
  const proto = create(ModelProtoSchema, {
    irVersion: BigInt(spec.irVersion ?? (opset >= 21 ? 10 : 8)),
    metadataProps: Object.entries(spec.metadata ?? {}).map(([key, value]) =>
      create(StringStringEntryProtoSchema, { key, value }),
    ),
    producerName: spec.producer ?? 'trtforge',
    graph: graph.toProto(payloads),
    opsetImport: opsetImports({ '': opset, ...spec.opsets }),
    functions: (spec.functions ?? []).map((definition) => functionProto(definition, payloads)),
  });
  const inline = {
    source: bytesSource('the model being built', new Uint8Array(0)),
    external: new ExternalFiles(''),
    deferred: () => undefined,
  };
  return {
    proto,
    files: () => [],
    weight: (tensor) => {
      const marker = markerOf(tensor);
      if (marker === undefined) return locateWeight(tensor, inline);
      const values = payloads.at(marker);
      if (values !== undefined && !isExternal(tensor)) return values;
      throw new TrtforgeError('TF_INTERNAL', `Tensor "${tensor.name}" belongs to another model.`);
    },
  };
}

function functionProto(spec: FunctionSpec, payloads: PayloadTable<WeightStream>): FunctionProto {
  return create(FunctionProtoSchema, {
    name: spec.name,
    domain: spec.domain,
    input: [...spec.inputs],
    output: [...spec.outputs],
    attribute: [...(spec.attributes ?? [])],
    node: spec.nodes.nodes(payloads),
    opsetImport: opsetImports(spec.opsets),
  });
}

const opsetImports = (opsets: Readonly<Record<string, number>>) =>
  Object.entries(opsets).map(([domain, version]) =>
    create(OperatorSetIdProtoSchema, { domain, version: BigInt(version) }),
  );

export function valueInfo(name: string, dtype: Dtype, shape: readonly Dimension[] | null): ValueInfoProto {
  const dim = (shape ?? []).map((dimension) => ({ value: dimensionValue(dimension) }));
  const tensor = { elemType: dtypes[dtype].onnx, shape: shape === null ? undefined : { dim } };
  return create(ValueInfoProtoSchema, { name, type: { value: { case: 'tensorType', value: tensor } } });
}

function tensorProto(
  name: string,
  value: Tensor | GeneratedValues,
  payloads: PayloadTable<WeightStream>,
): TensorProto {
  const { dtype, shape } = value;
  if ('bytes' in value) return storedTensor(name, value);
  const proto = storedTensor(name, { dtype, shape });
  const chunks = (chunkBytes?: number) => value.chunks(chunkBytes);
  proto.$unknown = [
    payloads.addAsField({ dtype, byteLength: packedBytes(dtype, elementCount(shape)), chunks }),
  ];
  return proto;
}

/** A tensor with its values in the message; without bytes they are elsewhere. */
export const storedTensor = (
  name: string,
  { dtype, shape, bytes }: Pick<Tensor, 'dtype' | 'shape'> & Partial<Tensor>,
): TensorProto =>
  create(TensorProtoSchema, {
    dims: shape.map(BigInt),
    dataType: dtypes[dtype].onnx,
    name: name === '' ? undefined : name,
    rawData: bytes,
  });
