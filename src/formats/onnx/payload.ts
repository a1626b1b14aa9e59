import type { TensorProto } from './onnx_pb.js';
import { encodeVarints, WireType } from './wire.js';

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
