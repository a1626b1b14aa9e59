import type { ByteSource } from '../../base/files/byte-source.js';
import { TrtforgeError } from '../../errors.js';
import type { TensorProto } from './onnx_pb.js';

/** Protobuf wire types that ONNX uses (groups, 3 and 4, were gone from protobuf before ONNX began). */
export const WireType = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** Reads that jump from one weight to the next read little; reads that go on where the last one ended read four times more each time. */
const SMALLEST_WINDOW = 4 << 10;
const LARGEST_WINDOW = 256 << 10;

/** Reads protobuf records of a file of any size through a small window. `position` is where the next read starts. */
export class WireReader {
  position = 0;
  /** Whether the records at hand are those of the file itself: a file that was cut short shows it there and nowhere else. */
  outermost = false;
  readonly #source: ByteSource;
  readonly #size: number;
  #window = new Uint8Array(0);
  #windowStart = 0;
  #windowEnd = 0;
  #windowBytes = 0;

  constructor(source: ByteSource) {
    this.#source = source;
    this.#size = source.size;
  }

  get size(): number {
    return this.#size;
  }

  get path(): string {
    return this.#source.path;
  }

  /** An unsigned varint of at most 10 bytes, which must end before `end`. Exact up to 2^53; larger values are only good for comparing. */
  varint(end: number): number {
    const start = this.position;
    let value = 0;
    let scale = 1;
    for (let length = 0; length < 10; length++) {
      if (this.position >= end) {
        if (this.outermost) throw this.#cutShort(`a number begins at byte ${start} and does not end`);
        throw this.broken(start, 'a number runs over the end of its message');
      }
      const byte = this.#byte();
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
    throw this.broken(start, 'a number is longer than the 10 bytes protobuf allows');
  }

  /** Moves `position` past the content of a record of this wire type; returns the start of the content. */
  skip(wireType: number, recordStart: number, end: number): number {
    switch (wireType) {
      case WireType.varint: {
        const start = this.position;
        this.varint(end);
        return start;
      }
      case WireType.bytes: {
        const length = this.varint(end);
        return this.#advance(length, recordStart, end);
      }
      case WireType.fixed64:
        return this.#advance(8, recordStart, end);
      case WireType.fixed32:
        return this.#advance(4, recordStart, end);
      default:
        throw this.broken(recordStart, `wire type ${wireType} does not occur in ONNX`);
    }
  }

  #advance(length: number, recordStart: number, end: number): number {
    const start = this.position;
    if (length > end - start) {
      if (this.outermost) {
        throw this.#cutShort(
          `the field at byte ${recordStart} announces ${length} bytes and only ${end - start} follow`,
        );
      }
      throw this.broken(recordStart, `a field announces ${length} bytes where ${end - start} are left`);
    }
    this.position = start + length;
    return start;
  }

  /** A copy of `length` bytes at `start`; `position` stays. */
  copy(start: number, length: number): Uint8Array {
    if (start >= this.#windowStart && start + length <= this.#windowEnd) {
      return this.#window.slice(start - this.#windowStart, start - this.#windowStart + length);
    }
    const bytes = new Uint8Array(length);
    if (this.#source.read(bytes, start, length) < length) throw this.#shrunk();
    return bytes;
  }

  broken(offset: number, what: string): TrtforgeError {
    return new TrtforgeError(
      'TF_ONNX_CORRUPT',
      `${this.path} is not a valid ONNX file: at byte ${offset}, ${what}.`,
      { details: { offset } },
    );
  }

  #byte(): number {
    const at = this.position;
    if (at < this.#windowStart || at >= this.#windowEnd) this.#moveWindow(at);
    this.position = at + 1;
    return this.#window[at - this.#windowStart]!;
  }

  #moveWindow(at: number): void {
    const goesOn = at === this.#windowEnd && at > 0;
    this.#windowBytes = goesOn ? Math.min(this.#windowBytes * 4, LARGEST_WINDOW) : SMALLEST_WINDOW;
    if (this.#window.length < this.#windowBytes) this.#window = new Uint8Array(this.#windowBytes);
    this.#windowStart = at;
    this.#windowEnd = at + this.#source.read(this.#window, at, Math.min(this.#windowBytes, this.#size - at));
    if (this.#windowEnd === at) throw this.#shrunk();
  }

  #cutShort(why: string): TrtforgeError {
    return new TrtforgeError('TF_ONNX_TRUNCATED', `${this.path} is cut short: ${why}.`);
  }

  #shrunk(): TrtforgeError {
    return new TrtforgeError('TF_ONNX_TRUNCATED', `${this.path} became shorter while it was read.`);
  }
}

/** Unsigned numbers up to 2^53 as varints, one after the other. */
export function encodeVarints(...values: readonly number[]): Uint8Array {
  const bytes: number[] = [];
  for (let value of values) {
    for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
    bytes.push(value);
  }
  return Uint8Array.from(bytes);
}

/** The first bytes of a length-delimited record: tag and length. */
export const recordHeader = (field: number, length: number): Uint8Array =>
  encodeVarints(field * 8 + WireType.bytes, length);

/** The encoding of values in the bytes of a segment: `bytes` as they are, `packed` one after the other, `records` each behind its own tag. */
type SegmentEncoding = 'bytes' | 'packed' | 'records';

/** A stretch of a model file that holds (part of) the values of one payload field of a TensorProto. */
export interface Segment {
  readonly encoding: SegmentEncoding;
  readonly offset: number;
  readonly length: number;
}

/** Payload fields of TensorProto by number, as the specification names them. */
export const payloadFields = {
  4: 'float_data',
  5: 'int32_data',
  6: 'string_data',
  7: 'int64_data',
  9: 'raw_data',
  10: 'double_data',
  11: 'uint64_data',
} as const;
export type PayloadField = keyof typeof payloadFields;

export const isPayloadField = (field: number): field is PayloadField => field in payloadFields;

/** The payload fields of one tensor that were left in the file. */
export type Deferred = ReadonlyMap<PayloadField, readonly Segment[]>;

/**
 * In a skeleton, a tensor whose payload is elsewhere carries this field (far above those ONNX gives out) with two numbers: a table and an entry of it.
 * Being a field like any other it survives copying of messages; `writeModel` puts the payload back in its place.
 */
export const MARKER_FIELD = 536_870_000;

let tables = 0;

/** A field of a message that the schema does not know, as protobuf-es keeps it. */
export interface UnknownField {
  readonly no: number;
  readonly wireType: number;
  readonly data: Uint8Array;
}

/** Payloads that live outside the messages: in the model file, or made by a generator. */
export class PayloadTable<P> {
  readonly id = ++tables;
  readonly #payloads: P[] = [];

  /** Adds a payload and returns the content of the marker that stands for it. */
  add(payload: P): Uint8Array {
    return encodeVarints(this.id, this.#payloads.push(payload) - 1);
  }

  /** The same as a field to put into the `$unknown` of a tensor. */
  addAsField(payload: P): UnknownField {
    const content = this.add(payload);
    return {
      no: MARKER_FIELD,
      wireType: WireType.bytes,
      data: Uint8Array.from([...encodeVarints(content.length), ...content]),
    };
  }

  /** The payload behind a marker; undefined where the marker is not of this table. */
  at(marker: Marker): P | undefined {
    return marker.table === this.id ? this.#payloads[marker.entry] : undefined;
  }

  entry(index: number): P {
    return this.#payloads[index]!;
  }
}

export interface Marker {
  readonly table: number;
  readonly entry: number;
}

/** The marker of a decoded tensor, or undefined when all its values are in the message. */
export function markerOf(tensor: TensorProto): Marker | undefined {
  const field = tensor.$unknown?.find(({ no }) => no === MARKER_FIELD);
  // A marker's content is shorter than 128 bytes, so its length is one byte.
  return field === undefined ? undefined : decodeMarker(field.data.subarray(1));
}

/** Decodes the content of a marker. */
export function decodeMarker(content: Uint8Array): Marker {
  const numbers = [0, 0];
  let at = 0;
  for (let index = 0; index < 2; index++) {
    for (let scale = 1; at < content.length; scale *= 128) {
      const byte = content[at++]!;
      numbers[index]! += (byte & 127) * scale;
      if (byte < 128) break;
    }
  }
  return { table: numbers[0]!, entry: numbers[1]! };
}
