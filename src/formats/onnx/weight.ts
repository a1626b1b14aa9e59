import { type ByteSource, bytesSource } from '../../base/files/byte-source.js';
import { TrtforgeError } from '../../errors.js';
import { type Dtype, dtypeFromOnnx, dtypes, elementCount, packedBytes } from '../tensor/dtype.js';
import { type ExternalFiles, externalReference, isExternal } from './external-data.js';
import type { TensorProto } from './onnx_pb.js';
import { segmentValues, stringBytes, stringChunks, type ValueKind } from './segment-stream.js';
import { type Deferred, type PayloadField, payloadFields, type Segment } from './wire.js';

/** Values of a tensor that can be read, several times, without ever being in memory as a whole. */
export interface WeightStream {
  readonly dtype: Dtype;
  /** Bytes of the values, little-endian and packed: 15 int4 values are 8 bytes. */
  readonly byteLength: number;
  /**
   * The bytes in order. Every chunk but the last has `chunkBytes` bytes (rounded to a multiple of 16), starts at a multiple of 16 in its buffer
   * (so typed arrays can lie over it), and is valid only until the next one is asked for.
   * Values of dtype string come as a 4-byte little-endian length and UTF-8 bytes each.
   */
  chunks(chunkBytes?: number): Iterable<Uint8Array>;
}

/** All bytes of a small weight. */
export function bytesOf(weight: WeightStream): Uint8Array {
  const bytes = new Uint8Array(weight.byteLength);
  let at = 0;
  for (const chunk of weight.chunks()) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

/** Where the values of a weight are: in the decoded messages, in the model file (not loaded; `encoded`: not as plain bytes), or in an external-data file. */
export type WeightPlace =
  | { readonly kind: 'inline' }
  | {
      readonly kind: 'embedded' | 'encoded' | 'external';
      readonly path: string;
      readonly offset: number;
      readonly length: number;
    };

export interface Weight extends WeightStream {
  readonly dims: readonly number[];
  readonly elements: number;
  readonly where: WeightPlace;
}

const CHUNK_BYTES = 1 << 20;

/** The sources of the bytes of a tensor. */
export interface WeightFiles {
  readonly source: ByteSource;
  readonly external: ExternalFiles;
  deferred(tensor: TensorProto): Deferred | undefined;
}

/** Dtype, dimensions and sizes of a tensor, from the messages alone. Throws TF_ONNX_TENSOR_INVALID. */
export function tensorFacts(tensor: TensorProto): {
  readonly dtype: Dtype;
  readonly dims: readonly number[];
  readonly elements: number;
  readonly byteLength: number;
} {
  const dtype = dtypeFromOnnx(tensor.dataType);
  if (dtype === undefined)
    throw invalid(tensor, `has the element type ${tensor.dataType}, which ONNX does not define`);
  const dims = tensor.dims.map(Number);
  const elements = elementCount(dims);
  if (dims.some((dim) => dim < 0) || !Number.isSafeInteger(elements * 16)) {
    throw invalid(tensor, `has the impossible dimensions [${dims.slice(0, 8)}]`);
  }
  return { dtype, dims, elements, byteLength: packedBytes(dtype, elements) };
}

/** Finds the values of a tensor. Throws TF_ONNX_TENSOR_INVALID or TF_ONNX_EXTERNAL_… when they are not all there. */
export function locateWeight(tensor: TensorProto, files: WeightFiles): Weight {
  const facts = tensorFacts(tensor);
  if (tensor.segment !== undefined)
    throw invalid(tensor, 'is split into segments, which no runtime supports');
  if (isExternal(tensor)) return externalWeight(tensor, facts, files);
  const payload = pickPayload(tensor, facts.dtype, facts.elements, files);
  if (facts.dtype === 'string') return stringWeight(tensor, facts, payload);

  const kind = valueKind(facts.dtype, payload.field);
  if (kind === null) {
    const length = total(payload.segments);
    if (length !== facts.byteLength) throw wrongLength(tensor, facts.byteLength, length);
  }
  return {
    ...facts,
    where: payload.where,
    chunks: (chunkBytes) =>
      kind === null
        ? rangeChunks(payload.source, payload.segments, chunkBytes)
        : exactly(
            tensor,
            facts.byteLength,
            segmentValues(payload.source, payload.segments, kind, roundedChunk(chunkBytes, facts.byteLength)),
          ),
  };
}

type Facts = ReturnType<typeof tensorFacts>;

interface Payload {
  readonly field: PayloadField;
  readonly source: ByteSource;
  readonly segments: readonly Segment[];
  readonly where: WeightPlace;
}

function externalWeight(tensor: TensorProto, facts: Facts, files: WeightFiles): Weight {
  if (facts.dtype === 'string')
    throw invalid(tensor, 'has strings in an external file, which ONNX does not allow');
  const { location, offset, length } = externalReference(tensor);
  if (length !== null && length !== facts.byteLength) throw wrongLength(tensor, facts.byteLength, length);
  const file = files.external.open(location);
  if (offset + facts.byteLength > file.size) {
    throw new TrtforgeError(
      'TF_ONNX_EXTERNAL_SHORT',
      `${file.path} has ${file.size} bytes, but tensor "${tensor.name}" needs bytes ${offset} to ${offset + facts.byteLength} of it.`,
      { details: { tensor: tensor.name, location } },
    );
  }
  const segment: Segment = { encoding: 'bytes', offset, length: facts.byteLength };
  return {
    ...facts,
    where: { kind: 'external', path: file.path, offset, length: facts.byteLength },
    chunks: (chunkBytes) => rangeChunks(file, [segment], chunkBytes),
  };
}

function stringWeight(tensor: TensorProto, facts: Facts, payload: Payload): Weight {
  const { count, bytes } = stringBytes(payload.source, payload.segments);
  if (count !== facts.elements)
    throw invalid(tensor, `has ${count} strings where its shape needs ${facts.elements}`);
  return {
    ...facts,
    byteLength: 4 * count + bytes,
    where: payload.where,
    chunks: (chunkBytes) =>
      stringChunks(payload.source, payload.segments, roundedChunk(chunkBytes, CHUNK_BYTES)),
  };
}

/** The one payload field that counts: raw_data where there is one, else the field the specification gives the dtype. */
function pickPayload(tensor: TensorProto, dtype: Dtype, elements: number, files: WeightFiles): Payload {
  const deferred = files.deferred(tensor);
  const field: PayloadField =
    (tensor.rawData.length > 0 || deferred?.has(9) === true) && dtype !== 'string' ? 9 : typedField(dtype);
  const segments = deferred?.get(field);
  if (segments !== undefined) {
    const offset = segments[0]!.offset;
    const kind = field === 9 && segments.length === 1 ? 'embedded' : 'encoded';
    const where = { kind, path: files.source.path, offset, length: total(segments) } as const;
    return { field, source: files.source, segments, where };
  }
  const bytes = inlinePayload(tensor, field);
  if (bytes.length === 0 && elements > 0) {
    throw invalid(
      tensor,
      `has ${elements} elements of ${dtype} but no ${payloadFields[field]} and no raw_data`,
    );
  }
  return {
    field,
    source: bytesSource(files.source.path, bytes),
    segments: [
      {
        encoding: field === 6 ? 'records' : field === 9 ? 'bytes' : 'packed',
        offset: 0,
        length: bytes.length,
      },
    ],
    where: { kind: 'inline' },
  };
}

function typedField(dtype: Dtype): PayloadField {
  switch (dtype) {
    case 'float32':
    case 'complex64':
      return 4;
    case 'float64':
    case 'complex128':
      return 10;
    case 'int64':
      return 7;
    case 'uint32':
    case 'uint64':
      return 11;
    case 'string':
      return 6;
    default:
      return 5;
  }
}

/** The encoding of a dtype's values in a typed field; null where the stored bytes are the values. */
function valueKind(dtype: Dtype, field: PayloadField): ValueKind | null {
  if (field === 9) return null;
  if (field === 4) return { wire: 'fixed', width: 4 };
  if (field === 10) return { wire: 'fixed', width: 8 };
  // Types under 8 bits are packed first: one int32 per byte of the packed form.
  const width = Math.max(8, dtypes[dtype].bits) / 8;
  return { wire: 'varint', width: width as 1 | 2 | 4 | 8 };
}

/** An inline typed field in the form it has on the wire, so that one decoder serves both. */
function inlinePayload(tensor: TensorProto, field: PayloadField): Uint8Array {
  switch (field) {
    case 9:
      return tensor.rawData;
    case 4:
      return new Uint8Array(Float32Array.from(tensor.floatData).buffer);
    case 10:
      return new Uint8Array(Float64Array.from(tensor.doubleData).buffer);
    case 5:
      return varints(tensor.int32Data.map(BigInt));
    case 7:
      return varints(tensor.int64Data);
    case 11:
      return varints(tensor.uint64Data);
    case 6:
      return Buffer.concat(
        tensor.stringData.flatMap((text) => [Buffer.from([0x32]), varints([BigInt(text.length)]), text]),
      );
  }
}

function varints(values: readonly bigint[]): Uint8Array {
  const bytes: number[] = [];
  for (const value of values) {
    let rest = BigInt.asUintN(64, value);
    for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
    bytes.push(Number(rest));
  }
  return Uint8Array.from(bytes);
}

/** Stored bytes in order, whatever ranges they are in. */
function* rangeChunks(
  source: ByteSource,
  ranges: readonly Segment[],
  chunkBytes: number | undefined,
): Generator<Uint8Array> {
  const length = total(ranges);
  if (length === 0) return;
  const buffer = new Uint8Array(roundedChunk(chunkBytes, length));
  let filled = 0;
  for (const range of ranges) {
    for (let done = 0; done < range.length; ) {
      const wanted = Math.min(buffer.length - filled, range.length - done);
      const part = filled === 0 ? buffer : buffer.subarray(filled);
      if (source.read(part, range.offset + done, wanted) < wanted) {
        throw new TrtforgeError('TF_ONNX_TRUNCATED', `${source.path} became shorter while it was read.`);
      }
      done += wanted;
      filled += wanted;
      if (filled === buffer.length) {
        yield buffer;
        filled = 0;
      }
    }
  }
  if (filled > 0) yield buffer.subarray(0, filled);
}

function roundedChunk(chunkBytes: number | undefined, needed: number): number {
  return Math.ceil(Math.max(1, Math.min(chunkBytes ?? CHUNK_BYTES, needed)) / 16) * 16;
}

/** Passes chunks on and makes sure that they are as long together as the shape reports. */
function* exactly(
  tensor: TensorProto,
  expected: number,
  chunks: Iterable<Uint8Array>,
): Generator<Uint8Array> {
  let length = 0;
  for (const chunk of chunks) {
    length += chunk.length;
    if (length > expected) throw wrongLength(tensor, expected, length);
    yield chunk;
  }
  if (length !== expected) throw wrongLength(tensor, expected, length);
}

const total = (segments: readonly Segment[]) => segments.reduce((sum, segment) => sum + segment.length, 0);

const wrongLength = (tensor: TensorProto, expected: number, actual: number) =>
  invalid(tensor, `needs ${expected} bytes for its shape and has ${actual}`);

const invalid = (tensor: TensorProto, what: string) =>
  new TrtforgeError('TF_ONNX_TENSOR_INVALID', `Tensor "${tensor.name}" ${what}.`, {
    details: { tensor: tensor.name },
  });

/** The facts about one FP32 weight that the rules and the report need. Counts are of values. */
export interface WeightFacts {
  readonly elements: number;
  /** Largest magnitude among the finite values. */
  readonly maxAbs: number;
  /** Finite values that FP16 cannot hold: they round to more than 65504. */
  readonly tooLarge: number;
  /** Values other than zero that become zero in FP16 (magnitude at most 2^-25). */
  readonly toZero: number;
  /** Values other than zero below FP16's smallest normal number (2^-14), those that become zero included: fewer than 11 bits of them remain. */
  readonly subnormal: number;
  readonly zero: number;
  readonly notFinite: number;
}

/** Magnitude bits (the float without its sign) at which things change; comparing them as integers orders the floats. */
const Bits = {
  /** 65520, the first value that rounds to more than 65504. */
  tooLarge: 0x477ff000,
  /** 2^-14, FP16's smallest normal number. */
  normal: 0x38800000,
  /** 2^-25, which still rounds to zero (ties to even). */
  lastZero: 0x33000000,
  infinity: 0x7f800000,
} as const;

/** Looks at every value of a FP32 weight once, in constant memory. */
export function weightFacts(weight: WeightStream): WeightFacts {
  const counters = new Counters();
  for (const chunk of weight.chunks())
    counters.scan(new Int32Array(chunk.buffer, chunk.byteOffset, chunk.byteLength >> 2));
  const { largest, tooLarge, toZero, subnormal, zero, notFinite } = counters;
  return {
    elements: weight.byteLength / 4,
    maxAbs: floatOf(largest),
    tooLarge,
    toZero,
    subnormal,
    zero,
    notFinite,
  };
}

class Counters {
  largest = 0;
  tooLarge = 0;
  toZero = 0;
  subnormal = 0;
  zero = 0;
  notFinite = 0;

  scan(bits: Int32Array): void {
    // Nearly every value of a network lies between 2^-14 and the largest so far, and costs one comparison.
    let span = this.#span();
    for (let index = 0; index < bits.length; index++) {
      const magnitude = bits[index]! & 0x7fffffff;
      if ((magnitude - Bits.normal) >>> 0 < span) continue;
      this.#count(magnitude);
      span = this.#span();
    }
  }

  /** Ends before the values that are too large: those are counted one by one. */
  #span(): number {
    return Math.max(0, Math.min(this.largest + 1, Bits.tooLarge) - Bits.normal);
  }

  #count(magnitude: number): void {
    if (magnitude === 0) {
      this.zero++;
      return;
    }
    if (magnitude >= Bits.infinity) {
      this.notFinite++;
      return;
    }
    if (magnitude > this.largest) this.largest = magnitude;
    if (magnitude >= Bits.tooLarge) this.tooLarge++;
    if (magnitude >= Bits.normal) return;
    this.subnormal++;
    if (magnitude <= Bits.lastZero) this.toZero++;
  }
}

function floatOf(bits: number): number {
  return new Float32Array(Uint32Array.of(bits).buffer)[0]!;
}
