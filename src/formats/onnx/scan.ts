import type { ByteSource } from '../../base/files/byte-source.js';
import { beyondLimit, Collected, type Rewritten, readTag, rewriteTensors } from './rewrite.js';
import {
  type Deferred,
  isPayloadField,
  MARKER_FIELD,
  type PayloadField,
  PayloadTable,
  recordHeader,
  type Segment,
  WireReader,
  WireType,
} from './wire.js';

/** Payloads up to this size stay in the skeleton: shapes, axes and scalars, which graph code wants to read at once. */
const INLINE_BYTES = 1024;

/** Limit of all except weights: it must fit into memory. A graph of 100,000 nodes with long names and the types of all its values has 34 MB. */
const SKELETON_LIMIT = 128 << 20;

/** A tensor has a dozen fields; neighbours of one kind count once. */
const MOST_RECORDS = 1000;

export interface Scan {
  /** A serialized ModelProto without the larger payloads; decodes with any protobuf library. */
  readonly skeleton: Uint8Array;
  readonly payloads: PayloadTable<Deferred>;
}

/** How a model is opened. */
export interface OpenOptions {
  /** Where external data is; default: beside the model. */
  readonly weightsFolder?: string;
  /** Payloads up to this size are in `proto`; default 1 KiB. */
  readonly inlineBytes?: number;
  /** Most bytes of all except weights; default 128 MiB. */
  readonly skeletonLimit?: number;
}

/**
 * Walks an ONNX file of any size without reading its weights. Payload fields of more than `inlineBytes` are left out of the skeleton and
 * remembered by their place in the file, wherever a TensorProto occurs: initializers, attributes, sparse tensors, bodies, functions, training graphs.
 * Throws TF_ONNX_CORRUPT or TF_ONNX_TRUNCATED with the byte at fault, TF_ONNX_TOO_LARGE.
 */
export function scanModel(source: ByteSource, options: OpenOptions = {}): Scan {
  const inlineBytes = options.inlineBytes ?? INLINE_BYTES;
  const payloads = new PayloadTable<Deferred>();
  const limit = options.skeletonLimit ?? SKELETON_LIMIT;
  const rewritten = rewriteTensors(
    new WireReader(source),
    (reader, start, end) => deferPayloads(reader, start, end, inlineBytes, payloads),
    limit,
  );
  if (rewritten.length > limit) throw beyondLimit(source.path, limit);
  return { skeleton: Buffer.concat(rewritten.pieces as Uint8Array[], rewritten.length), payloads };
}

interface FieldRecord {
  readonly field: number;
  readonly start: number;
  end: number;
  readonly segment: Segment | undefined;
}

function deferPayloads(
  reader: WireReader,
  start: number,
  end: number,
  inlineBytes: number,
  payloads: PayloadTable<Deferred>,
): Rewritten | undefined {
  const records = readRecords(reader, start, end);
  const bytesOf = new Map<number, number>();
  for (const record of records) {
    if (isPayloadField(record.field)) {
      bytesOf.set(record.field, (bytesOf.get(record.field) ?? 0) + record.end - record.start);
    }
  }
  const left = new Set([...bytesOf].filter(([, bytes]) => bytes > inlineBytes).map(([field]) => field));
  if (left.size === 0 && !records.some((record) => record.field === MARKER_FIELD)) return undefined;

  const out = new Collected();
  const deferred = new Map<PayloadField, Segment[]>();
  for (const record of records) {
    if (record.field === MARKER_FIELD) continue;
    if (record.segment !== undefined && left.has(record.field)) {
      const field = record.field as PayloadField;
      const segments = deferred.get(field);
      // A field that is not repeated and occurs twice: the last one counts.
      if (segments === undefined || record.segment.encoding === 'bytes')
        deferred.set(field, [record.segment]);
      else segments.push(record.segment);
    } else if (record.end > record.start) {
      out.add(reader.copy(record.start, record.end - record.start), record.end - record.start);
    }
  }
  if (deferred.size > 0) {
    const marker = payloads.add(deferred);
    out.add(recordHeader(MARKER_FIELD, marker.length));
    out.add(marker);
  }
  return out;
}

/** The records of a TensorProto; neighbours of the same field that are not packed become one, so that a million single values are one entry. */
function readRecords(reader: WireReader, start: number, end: number): FieldRecord[] {
  const records: FieldRecord[] = [];
  reader.position = start;
  while (reader.position < end) {
    const recordStart = reader.position;
    const { field, wireType } = readTag(reader, end);
    const contentStart = reader.skip(wireType, recordStart, end);
    const recordEnd = reader.position;
    const last = records.at(-1);
    if (records.length > MOST_RECORDS)
      throw reader.broken(recordStart, `a tensor has more than ${MOST_RECORDS} separate fields`);
    if (!isPayloadField(field)) {
      const goesOn = field !== MARKER_FIELD && last?.segment === undefined && last?.field !== MARKER_FIELD;
      if (goesOn && last !== undefined) last.end = recordEnd;
      else records.push({ field, start: recordStart, end: recordEnd, segment: undefined });
      continue;
    }
    checkWireType(reader, field, wireType, recordStart);
    if (field !== 6 && wireType === WireType.bytes) {
      const encoding = field === 9 ? 'bytes' : 'packed';
      const segment = { encoding, offset: contentStart, length: recordEnd - contentStart } as const;
      records.push({ field, start: recordStart, end: recordEnd, segment });
      continue;
    }
    if (last?.field === field && last.segment?.encoding === 'records') {
      records.pop();
      const segment = { encoding: 'records', offset: last.start, length: recordEnd - last.start } as const;
      records.push({ field, start: last.start, end: recordEnd, segment });
    } else {
      const segment = { encoding: 'records', offset: recordStart, length: recordEnd - recordStart } as const;
      records.push({ field, start: recordStart, end: recordEnd, segment });
    }
  }
  return records;
}

/** The wire type a single value of each payload field has. */
const valueWireTypes: Readonly<Record<PayloadField, number>> = {
  4: WireType.fixed32,
  5: WireType.varint,
  6: WireType.bytes,
  7: WireType.varint,
  9: WireType.bytes,
  10: WireType.fixed64,
  11: WireType.varint,
};

function checkWireType(reader: WireReader, field: PayloadField, wireType: number, at: number): void {
  if (wireType !== WireType.bytes && wireType !== valueWireTypes[field]) {
    throw reader.broken(at, `field ${field} of a tensor cannot have wire type ${wireType}`);
  }
}
