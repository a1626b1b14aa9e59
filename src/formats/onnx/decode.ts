import { type DescField, type DescMessage, fromBinary, ScalarType } from '@bufbuild/protobuf';
import { TrtforgeError } from '../../errors.js';
import { type ModelProto, ModelProtoSchema } from './onnx_pb.js';
import { DEEPEST } from './rewrite.js';
import { WireType } from './wire.js';

/** Cost of objects: a message some 300 bytes, a value some 40. A graph of 100,000 nodes with the types of all its values has 1,000,000 messages. */
const MOST_MESSAGES = 2_000_000;
const MOST_VALUES = 8_000_000;
/** Readers, rules and lints make more of these: inspect needs some 2 KB for each. */
const MOST_NODES_AND_TENSORS = 500_000;
/** TensorRT has at most 8, numpy 64. */
const MOST_DIMENSIONS = 64;

/**
 * Decodes a serialized ModelProto that is in memory. Its bounds are checked before an object is made; stricter than protobuf-es, lengths must stay
 * inside the enclosing message and wire types must be those of their fields. `path` is for messages. Throws TF_ONNX_CORRUPT, TF_ONNX_TOO_LARGE.
 */
export function decodeModel(path: string, bytes: Uint8Array): ModelProto {
  new BoundsCheck(path, bytes).message(boundsOf(ModelProtoSchema), bytes.length, 1, new Merged());
  // Not a Buffer: what is cut out of it would be one too.
  return fromBinary(ModelProtoSchema, new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length));
}

interface FieldBounds {
  /** The wire type of one value. */
  readonly wireType: number;
  readonly list: boolean;
  /** Lists of numbers also occur as one record of many. */
  readonly packable: boolean;
  /** Its values are the dimensions of a shape. */
  readonly shape: boolean;
  readonly message: MessageBounds | undefined;
}

interface MessageBounds {
  readonly typeName: string;
  readonly nodeOrTensor: boolean;
  readonly fields: Map<number, FieldBounds>;
}

const known = new Map<DescMessage, MessageBounds>();

function boundsOf(schema: DescMessage): MessageBounds {
  const existing = known.get(schema);
  if (existing !== undefined) return existing;
  const { typeName } = schema;
  const nodeOrTensor = typeName === 'onnx.NodeProto' || typeName === 'onnx.TensorProto';
  const bounds: MessageBounds = { typeName, nodeOrTensor, fields: new Map() };
  known.set(schema, bounds);
  for (const field of schema.fields) {
    const wireType = wireTypeOf(field);
    const list = field.fieldKind === 'list';
    bounds.fields.set(field.number, {
      wireType,
      list,
      packable: list && wireType !== WireType.bytes,
      shape: field.name === 'dims' || field.name === 'dim',
      message: field.message && boundsOf(field.message),
    });
  }
  return bounds;
}

function wireTypeOf({ message, scalar }: DescField): number {
  if (message !== undefined || scalar === ScalarType.STRING || scalar === ScalarType.BYTES)
    return WireType.bytes;
  if (scalar === ScalarType.FLOAT) return WireType.fixed32;
  return scalar === ScalarType.DOUBLE ? WireType.fixed64 : WireType.varint;
}

/** The totals of all records of one message field: protobuf merges them where the field is not repeated. */
class Merged {
  dimensions = 0;
  readonly #parts = new Map<FieldBounds, Merged>();

  part(field: FieldBounds): Merged {
    const part = this.#parts.get(field) ?? new Merged();
    this.#parts.set(field, part);
    return part;
  }
}

class BoundsCheck {
  readonly #path: string;
  readonly #bytes: Uint8Array;
  #position = 0;
  #messages = 0;
  #nodesAndTensors = 0;
  #values = 0;

  constructor(path: string, bytes: Uint8Array) {
    this.#path = path;
    this.#bytes = bytes;
  }

  /** Reads the records from `position` to `end`. */
  message(type: MessageBounds, end: number, depth: number, merged: Merged): void {
    if (depth > DEEPEST) throw this.#corrupt(`messages nest deeper than ${DEEPEST}`);
    this.#countMessage();
    if (type.nodeOrTensor && ++this.#nodesAndTensors > MOST_NODES_AND_TENSORS)
      throw this.#tooLarge(`${MOST_NODES_AND_TENSORS} nodes and tensors`);
    while (this.#position < end) {
      const tag = this.#varint(end, type);
      if (tag < 8 || tag >= 2 ** 32) throw this.#corrupt(`a field of ${type.typeName} has an invalid number`);
      const field = type.fields.get(tag >>> 3);
      const wireType = tag & 7;
      const contentEnd = this.#contentEnd(wireType, end, type);
      if (field === undefined) this.#countMessage();
      else if (wireType === field.wireType) {
        if (field.list) this.#countValue(field, merged);
        if (field.message !== undefined)
          this.message(field.message, contentEnd, depth + 1, field.list ? new Merged() : merged.part(field));
      } else if (field.packable && wireType === WireType.bytes) {
        while (this.#position < contentEnd) {
          this.#position = this.#contentEnd(field.wireType, contentEnd, type);
          this.#countValue(field, merged);
        }
      } else throw this.#corrupt(`field ${tag >>> 3} of ${type.typeName} has wire type ${wireType}`);
      this.#position = contentEnd;
    }
  }

  #countMessage(): void {
    if (++this.#messages > MOST_MESSAGES) throw this.#tooLarge(`${MOST_MESSAGES} messages`);
  }

  #countValue(field: FieldBounds, merged: Merged): void {
    if (++this.#values > MOST_VALUES) throw this.#tooLarge(`${MOST_VALUES} values`);
    if (field.shape && ++merged.dimensions > MOST_DIMENSIONS)
      throw this.#tooLarge(`${MOST_DIMENSIONS} dimensions in a shape`);
  }

  /** Leaves `position` at the start of a record's content and returns its end. */
  #contentEnd(wireType: number, end: number, type: MessageBounds): number {
    let length: number;
    if (wireType === WireType.bytes) length = this.#varint(end, type);
    else if (wireType === WireType.fixed32) length = 4;
    else if (wireType === WireType.fixed64) length = 8;
    else if (wireType === WireType.varint) {
      const start = this.#position;
      this.#varint(end, type);
      length = this.#position - start;
      this.#position = start;
    } else throw this.#corrupt(`a field of ${type.typeName} has wire type ${wireType}`);
    const left = end - this.#position;
    if (length > left)
      throw this.#corrupt(`a field of ${type.typeName} announces ${length} bytes where ${left} are left`);
    return this.#position + length;
  }

  #varint(end: number, type: MessageBounds): number {
    let value = 0;
    let scale = 1;
    for (let at = this.#position; at < end && at < this.#position + 10; at++) {
      const byte = this.#bytes[at]!;
      value += (byte & 127) * scale;
      if (byte < 128) {
        this.#position = at + 1;
        return value;
      }
      scale *= 128;
    }
    throw this.#corrupt(`a number in ${type.typeName} does not end`);
  }

  #corrupt(why: string): TrtforgeError {
    return new TrtforgeError('TF_ONNX_CORRUPT', `${this.#path} is not a valid ONNX file: ${why}.`);
  }

  #tooLarge(most: string): TrtforgeError {
    return new TrtforgeError('TF_ONNX_TOO_LARGE', `${this.#path} has more than ${most}.`);
  }
}
