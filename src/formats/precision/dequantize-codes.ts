import { clone, create } from '@bufbuild/protobuf';
import { attributeOf, integerAttribute } from '../onnx/attributes.js';
import { opsetsOf } from '../onnx/dtype-inference.js';
import { freeName, GraphUses, visitMainGraphs } from '../onnx/graph.js';
import type { OnnxModel } from '../onnx/model.js';
import {
  type GraphProto,
  type NodeProto,
  NodeProtoSchema,
  type TensorProto,
  TensorProtoSchema,
} from '../onnx/onnx_pb.js';
import { raiseOpset } from '../onnx/opset-changes.js';
import { type CastCodes, castCodes, onlyReader } from '../onnx/quantized-operations.js';
import { bytesOf, type WeightStream } from '../onnx/weight.js';
import { dtypes } from '../tensor/dtype.js';
import { numbersOf } from '../tensor/tensor.js';

/** From here on a DequantizeLinear takes a scale for each channel. */
const OPSET = 13;
/** The zero point by which UINT8 codes become INT8 ones by turning their first bit. */
const MIDDLE = 128;

interface DequantizedCodes {
  /** Weights that a DequantizeLinear reads now. */
  readonly count: number;
  /** Codes that are stored in another type. */
  readonly replacements: ReadonlyMap<TensorProto, WeightStream>;
}

/**
 * Puts a DequantizeLinear in the place of each Cast that turns stored INT8 codes into floating point, since TensorRT rejects stored codes that anything else
 * reads. A scale behind it becomes that of the DequantizeLinear where it is one for all or one for each channel; else it stays a product, of a scale of 1.
 * UINT8 codes become INT8 where they have the zero point 128; others stay, as TensorRT builds them as INT32. All of it is exact.
 */
export function dequantizeCodes(model: OnnxModel): DequantizedCodes {
  const replacements = new Map<TensorProto, WeightStream>();
  const graphs = [...visitMainGraphs(model.proto)].flatMap(({ graph }) => graph ?? []);
  const isAny = graphs.some((graph) => castCodes(graph, new GraphUses(graph)).length > 0);
  const opset = opsetsOf(model.proto.opsetImport).get('') ?? 0;
  if (!isAny || (opset < OPSET && raiseOpset(model, OPSET) !== undefined)) return { count: 0, replacements };
  let count = 0;
  for (const { graph } of visitMainGraphs(model.proto))
    if (graph !== undefined) count += new Rewriting(model, graph, replacements).run();
  return { count, replacements };
}

/** A scale as a DequantizeLinear takes it. */
interface Scale {
  readonly name: string;
  readonly axis: number | undefined;
}

class Rewriting {
  readonly #model: OnnxModel;
  readonly #graph: GraphProto;
  readonly #uses: GraphUses;
  readonly #names: Set<string>;
  readonly #replacements: Map<TensorProto, WeightStream>;
  readonly #dropped = new Set<NodeProto>();
  readonly #inserted = new Map<NodeProto, NodeProto>();
  /** Values that are gone or have another type. */
  readonly #changed = new Set<string>();

  constructor(model: OnnxModel, graph: GraphProto, replacements: Map<TensorProto, WeightStream>) {
    this.#model = model;
    this.#graph = graph;
    this.#uses = new GraphUses(graph);
    this.#names = new Set(
      [...visitMainGraphs(model.proto)].flatMap((view) => [
        ...(view.graph?.input ?? []).map(({ name }) => name),
        ...(view.graph?.initializer ?? []).map(({ name }) => name),
        ...view.nodes.flatMap(({ output }) => output),
      ]),
    );
    this.#replacements = replacements;
  }

  run(): number {
    const count = castCodes(this.#graph, this.#uses).filter((place) => this.#rewrite(place)).length;
    if (count === 0) return 0;
    this.#graph.node = this.#graph.node.flatMap((node) => {
      const added = this.#inserted.get(node);
      return [...(added === undefined ? [] : [added]), ...(this.#dropped.has(node) ? [] : [node])];
    });
    this.#graph.valueInfo = this.#graph.valueInfo.filter(({ name }) => !this.#changed.has(name));
    const uses = new GraphUses(this.#graph);
    const inputs = new Set(this.#graph.input.map(({ name }) => name));
    const outputs = new Set(this.#graph.output.map(({ name }) => name));
    const isRead = (name: string, all: GraphUses) => all.readers(name).length > 0 || outputs.has(name);
    const isUnread = (name: string) =>
      isRead(name, this.#uses) && !isRead(name, uses) && this.#uses.constants.has(name) && !inputs.has(name);
    this.#graph.initializer = this.#graph.initializer.filter(({ name }) => !isUnread(name));
    this.#graph.node = this.#graph.node.filter(({ output }) => !isUnread(output[0] ?? ''));
    return count;
  }

  #rewrite(place: CastCodes): boolean {
    const { codes, cast, movers } = place;
    const isSigned = codes.dataType === dtypes.int8.onnx;
    const isFloat32 = Number(attributeOf(cast, 'to')?.i) === dtypes.float32.onnx;
    const gone = isFloat32 ? [cast] : [];
    let [result = ''] = cast.output;
    let next = isFloat32 ? onlyReader(result, this.#graph, this.#uses) : undefined;
    if (
      next?.opType === 'Sub' &&
      next.input[0] === result &&
      this.#isAll(next.input[1], isSigned ? 0 : MIDDLE)
    ) {
      gone.push(next);
      result = next.output[0] ?? '';
      next = onlyReader(result, this.#graph, this.#uses);
    } else if (!isSigned) return false;
    const scale =
      next?.opType === 'Mul'
        ? this.#scale(
            next.input.find((name) => name !== result),
            place,
          )
        : undefined;
    if (next !== undefined && scale !== undefined) {
      gone.push(next);
      result = next.output[0] ?? '';
    }
    const { name, axis } = scale ?? { name: this.#unit(), axis: undefined };
    const isDirect = movers.length === 0 && gone.length > 0;
    const output = isDirect ? result : this.#fresh(`${place.name}_dequantized`);
    const dequantize = create(NodeProtoSchema, {
      opType: 'DequantizeLinear',
      name: gone.at(-1)?.name ?? '',
      input: [isSigned ? place.name : this.#signed(place), name],
      output: [output],
      attribute: axis === undefined ? [] : [integerAttribute('axis', axis)],
    });
    this.#inserted.set(movers[0] ?? cast, dequantize);
    for (const node of [...movers, ...gone]) for (const each of node.output) this.#changed.add(each);
    for (const node of gone) this.#dropped.add(node);
    (movers[0] ?? cast).input[0] = output;
    const last = movers.at(-1);
    if (last !== undefined && gone.length > 0) last.output[0] = result;
    this.#changed.delete(result);
    return true;
  }

  #fresh(stem: string): string {
    return freeName(this.#names, stem);
  }

  #numbers(name: string | undefined): readonly number[] | undefined {
    const tensor = this.#uses.constants.get(name ?? '');
    if (tensor?.dataType !== dtypes.float32.onnx) return undefined;
    const weight = this.#model.weight(tensor);
    return [...numbersOf({ dtype: weight.dtype, shape: weight.dims, bytes: bytesOf(weight) })];
  }

  /** Whether a constant is one number, once or often. */
  #isAll(name: string | undefined, value: number): boolean {
    return this.#numbers(name)?.every((each) => each === value) === true;
  }

  #unit(): string {
    const name = this.#fresh('unit_scale');
    const rawData = new Uint8Array(Float32Array.of(1).buffer);
    this.#graph.initializer.push(
      create(TensorProtoSchema, { name, dims: [], dataType: dtypes.float32.onnx, rawData }),
    );
    return name;
  }

  /** A constant that codes are multiplied by as the scale of a DequantizeLinear in front of the movers; TensorRT takes positive ones only. */
  #scale(name: string | undefined, place: CastCodes): Scale | undefined {
    const numbers = this.#numbers(name);
    const tensor = this.#uses.constants.get(name ?? '');
    if (name === undefined || tensor === undefined) return undefined;
    if (numbers?.every((value) => value > 0 && value < Number.POSITIVE_INFINITY) !== true) return undefined;
    const dims = tensor.dims.map(Number);
    const axis = scaleAxis(dims, place);
    if (axis === null) return undefined;
    const needed = axis === undefined ? [] : [numbers.length];
    if (dims.length === needed.length) return { name, axis };
    const copy = clone(TensorProtoSchema, tensor);
    copy.name = this.#fresh(`${name}_flat`);
    copy.dims = needed.map(BigInt);
    this.#graph.initializer.push(copy);
    return { name: copy.name, axis };
  }

  /** Stores UINT8 codes as INT8. */
  #signed({ codes, name }: CastCodes): string {
    const source = this.#model.weight(codes);
    const signed = create(TensorProtoSchema, {
      name: this.#fresh(`${name}_int8`),
      dims: [...codes.dims],
      dataType: dtypes.int8.onnx,
    });
    this.#graph.initializer.push(signed);
    this.#replacements.set(signed, {
      dtype: 'int8',
      byteLength: source.byteLength,
      *chunks(chunkBytes?: number) {
        for (const chunk of source.chunks(chunkBytes)) yield chunk.map((code) => code ^ MIDDLE);
      },
    });
    return signed.name;
  }
}

/** The axis of the codes that a factor of these dimensions is for; undefined where it is one number, null where neither. */
function scaleAxis(dims: readonly number[], { codes, movers }: CastCodes): number | undefined | null {
  const orders = movers.map((mover) =>
    mover.opType === 'Transpose' ? orderOf(mover, codes.dims.length) : null,
  );
  const rank = codes.dims.length;
  const isOnlyTurned = !orders.includes(null);
  const [first, ...others] = dims.flatMap((size, axis) => (size === 1 ? [] : [axis]));
  if (first === undefined) return dims.length <= (isOnlyTurned ? rank : 1) ? undefined : null;
  if (others.length > 0 || !isOnlyTurned || dims.length > rank) return null;
  const axis = orders.reduceRight((at, order) => order?.[at] ?? at, first + rank - dims.length);
  return Number(codes.dims[axis]) === dims[first] ? axis : null;
}

const orderOf = (transpose: NodeProto, rank: number): readonly number[] =>
  attributeOf(transpose, 'perm')?.ints.map(Number) ??
  Array.from({ length: rank }, (_, axis) => rank - 1 - axis);
