import { type FieldType, type MessageType, messageTypes } from './message-types.js';
import type { ModelProto } from './onnx_pb.js';
import type { UnknownField } from './payload.js';

/** Protobuf implementations reject deeper nesting. */
const DEEPEST = 100;

/** Varints of up to this many bytes are below 2^28, so they need no bigint on the way. */
const SHORT_VARINT = 4;

/** What objects cost: a message some 300 bytes, a value some 40. A graph of 100,000 nodes with the types of all its values has 1,000,000 messages. */
const MOST_MESSAGES = 2_000_000;
const MOST_VALUES = 8_000_000;
/** Readers, rules and lints make more of these: inspect needs some 2 KB for each. */
const MOST_NODES_AND_TENSORS = 500_000;
/** TensorRT has at most 8, numpy 64. */
const MOST_DIMENSIONS = 64;

/** The bytes are no serialized message of the type; `message` states why. */
export class DecodeError extends Error {}

/** The message is sound and beyond our bounds. */
export class TooLargeError extends DecodeError {}

/**
 * Decodes a serialized ModelProto into the same message objects that protobuf-es makes (so that it can encode, copy and change them), without
 * loading protobuf-es: that takes longer than inspecting a model. Stricter than protobuf-es: lengths must stay inside the enclosing message.
 */
export function decodeModel(bytes: Uint8Array): ModelProto {
  const message = new Decoder(bytes).message(messageTypes.get('ModelProto')!, undefined, 0, bytes.length, 1);
  return message as unknown as ModelProto;
}

type Message = Record<string, unknown> & { $unknown?: UnknownField[] };

class Decoder {
  readonly #bytes: Uint8Array;
  readonly #text: Buffer;
  readonly #view: DataView;
  #position = 0;
  #messages = 0;
  #nodesAndTensors = 0;
  #values = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** Decodes bytes `start` to `end`, into `existing` when a message field occurs twice. */
  message(
    type: MessageType,
    existing: Message | undefined,
    start: number,
    end: number,
    depth: number,
  ): Message {
    if (depth > DEEPEST) throw new DecodeError(`messages nest deeper than ${DEEPEST}`);
    this.#count(type);
    const message = existing ?? emptyMessage(type);
    this.#position = start;
    while (this.#position < end) {
      const recordStart = this.#position;
      const tag = this.#varint(end, type);
      const wireType = tag & 7;
      const field = type.fields[Math.floor(tag / 8)];
      if (tag < 8) throw new DecodeError(`a field of ${type.typeName} has the number 0`);
      const contentEnd = this.#contentEnd(wireType, end, type);
      const contentStart = this.#position;
      if (field === undefined || !this.#set(message, field, wireType, contentStart, contentEnd, depth)) {
        const dataStart = recordStart + varintBytes(this.#bytes, recordStart);
        this.#countMessage();
        keepUnknown(message, Math.floor(tag / 8), wireType, this.#bytes.subarray(dataStart, contentEnd));
      }
      this.#position = contentEnd;
    }
    return message;
  }

  #count({ typeName }: MessageType): void {
    this.#countMessage();
    if (typeName !== 'onnx.NodeProto' && typeName !== 'onnx.TensorProto') return;
    if (++this.#nodesAndTensors > MOST_NODES_AND_TENSORS)
      throw new TooLargeError(`more than ${MOST_NODES_AND_TENSORS} nodes and tensors`);
  }

  #countMessage(): void {
    if (++this.#messages > MOST_MESSAGES) throw new TooLargeError(`more than ${MOST_MESSAGES} messages`);
  }

  /** Adds to a repeated field. */
  #add(message: Message, { name }: FieldType, value: unknown): void {
    const list = message[name] as unknown[];
    list.push(value);
    if (++this.#values > MOST_VALUES) throw new TooLargeError(`more than ${MOST_VALUES} values`);
    if ((name === 'dims' || name === 'dim') && list.length > MOST_DIMENSIONS)
      throw new TooLargeError(`a shape of more than ${MOST_DIMENSIONS} dimensions`);
  }

  /** Sets a field from its record; false when the wire type or an enumeration's value does not fit, so that the record is kept as unknown. */
  #set(
    message: Message,
    field: FieldType,
    wireType: number,
    start: number,
    end: number,
    depth: number,
  ): boolean {
    if (field.kind === 'message') {
      if (wireType !== 2) return false;
      this.#setMessage(message, field, start, end, depth);
      return true;
    }
    const natural = wireTypes[field.kind];
    if (field.repeated) {
      if (wireType === natural) this.#add(message, field, this.#scalar(field.kind, start, end));
      else if (wireType === 2) this.#packed(message, field, start, end);
      else return false;
      return true;
    }
    if (wireType !== natural) return false;
    const value = this.#scalar(field.kind, start, end);
    if (field.kind === 'enum' && ((value as number) < 0 || (value as number) > field.largest)) return false;
    if (field.oneof === undefined) message[field.name] = value;
    else message[field.oneof] = { case: field.name, value };
    return true;
  }

  #setMessage(message: Message, field: FieldType, start: number, end: number, depth: number): void {
    const type = field.message!;
    if (field.repeated) {
      this.#add(message, field, this.message(type, undefined, start, end, depth + 1));
    } else if (field.oneof === undefined) {
      const existing = message[field.name] as Message | undefined;
      message[field.name] = this.message(type, existing, start, end, depth + 1);
    } else {
      const chosen = message[field.oneof] as { case?: string; value?: Message };
      const existing = chosen.case === field.name ? chosen.value : undefined;
      message[field.oneof] = { case: field.name, value: this.message(type, existing, start, end, depth + 1) };
    }
  }

  #packed(message: Message, field: FieldType, start: number, end: number): void {
    const natural = wireTypes[field.kind as keyof typeof wireTypes];
    for (let at = start; at < end; ) {
      const next = natural === 0 ? at + varintBytes(this.#bytes, at) : at + (natural === 5 ? 4 : 8);
      if (next > end) throw new DecodeError(`values of ${field.name} run over their length`);
      this.#add(message, field, this.#scalar(field.kind, at, next));
      at = next;
    }
  }

  #scalar(kind: FieldType['kind'], start: number, end: number): unknown {
    switch (kind) {
      case 'string':
        return this.#text.toString('utf8', start, end);
      case 'bytes':
        return this.#bytes.subarray(start, end);
      case 'float':
        return this.#view.getFloat32(start, true);
      case 'double':
        return this.#view.getFloat64(start, true);
      case 'int64':
        return end - start <= SHORT_VARINT
          ? BigInt(this.#short(start, end))
          : BigInt.asIntN(64, this.#bigint(start, end));
      case 'uint64':
        return BigInt.asUintN(64, this.#bigint(start, end));
      default:
        return end - start <= SHORT_VARINT
          ? this.#short(start, end)
          : Number(BigInt.asIntN(32, this.#bigint(start, end)));
    }
  }

  #short(start: number, end: number): number {
    let value = 0;
    for (let at = end - 1; at >= start; at--) value = value * 128 + (this.#bytes[at]! & 127);
    return value;
  }

  #bigint(start: number, end: number): bigint {
    let value = 0n;
    for (let at = end - 1; at >= start; at--) value = (value << 7n) | BigInt(this.#bytes[at]! & 127);
    return value;
  }

  /** Leaves `position` at the start of a record's content and returns its end. */
  #contentEnd(wireType: number, end: number, type: MessageType): number {
    let length: number;
    switch (wireType) {
      case 0:
        length = varintBytes(this.#bytes, this.#position);
        break;
      case 1:
        length = 8;
        break;
      case 5:
        length = 4;
        break;
      case 2:
        length = this.#varint(end, type);
        break;
      default:
        throw new DecodeError(
          `a field of ${type.typeName} has wire type ${wireType}, which does not occur in ONNX`,
        );
    }
    if (this.#position + length > end) {
      throw new DecodeError(
        `a field of ${type.typeName} announces ${length} bytes where ${end - this.#position} are left`,
      );
    }
    return this.#position + length;
  }

  #varint(end: number, type: MessageType): number {
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
    throw new DecodeError(`a number in ${type.typeName} does not end`);
  }
}

const wireTypes = {
  string: 2,
  bytes: 2,
  int32: 0,
  int64: 0,
  uint64: 0,
  enum: 0,
  float: 5,
  double: 1,
  message: 2,
} as const;

/** Bytes of the varint at `at`; Infinity when it has more than 10 or the end comes first. */
function varintBytes(bytes: Uint8Array, at: number): number {
  for (let length = 1; length <= 10 && at + length <= bytes.length; length++) {
    if (bytes[at + length - 1]! < 128) return length;
  }
  return Number.POSITIVE_INFINITY;
}

function emptyMessage(type: MessageType): Message {
  const message = Object.create(type.prototype) as Message;
  message.$typeName = type.typeName;
  for (const name of type.lists) message[name] = [];
  for (const name of type.oneofs) message[name] = { case: undefined };
  return message;
}

/** As protobuf-es keeps fields that it does not know: content behind the tag, with its length. */
function keepUnknown(message: Message, no: number, wireType: number, data: Uint8Array): void {
  message.$unknown ??= [];
  message.$unknown.push({ no, wireType, data });
}
