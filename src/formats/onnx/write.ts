import { rmSync } from 'node:fs';
import { basename } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { bytesSource } from '../../base/files/byte-source.js';
import { beginFile, type PendingFile } from '../../base/files/publish.js';
import { assertMayReplace, assertNotInput, protectingInputs } from '../../base/files/user-files.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { TrtforgeError } from '../../errors.js';
import { type EventListener, ignoreEvents } from '../../events.js';
import { dtypes } from '../tensor/dtype.js';
import { isExternal } from './external-data.js';
import { visitTensors } from './graph.js';
import type { ModelLike } from './model.js';
import {
  type ModelProto,
  ModelProtoSchema,
  StringStringEntryProtoSchema,
  type TensorProto,
  TensorProto_DataLocation,
  TensorProtoSchema,
} from './onnx_pb.js';
import { Collected, type Piece, type Rewritten, readTag, rewriteTensors } from './rewrite.js';
import type { WeightStream } from './weight.js';
import { decodeMarker, MARKER_FIELD, markerOf, PayloadTable, recordHeader, WireReader } from './wire.js';

/** The event loop gets a turn (progress, Ctrl-C) after this many bytes. */
const TURN_BYTES = 64 << 20;

/** Counts written bytes, reports about them, and lets the event loop run now and then. */
class WriteProgress {
  #done = 0;
  #untilTurn = TURN_BYTES;
  readonly #total: number;
  readonly #emit: EventListener;
  readonly #signal: AbortSignal | undefined;

  constructor(total: number, emit: EventListener, signal: AbortSignal | undefined) {
    this.#total = total;
    this.#emit = emit;
    this.#signal = signal;
  }

  async advance(bytes: number): Promise<void> {
    this.#done += bytes;
    this.#untilTurn -= bytes;
    if (this.#untilTurn > 0) return;
    this.#untilTurn = TURN_BYTES;
    this.#emit({ type: 'progress', phase: 'write', done: this.#done, total: this.#total });
    await new Promise((resolve) => setImmediate(resolve));
    throwIfCancelled(this.#signal, 'writing the model');
  }
}

/** Protobuf rejects messages of 2 GiB and more; what is left over is room for lengths that grow. */
const SINGLE_FILE_LIMIT = 2 ** 31 - 1 - (1 << 20);

/** Values below this stay in the model file even with external data, as ONNX's own tools do. */
export const EXTERNAL_THRESHOLD = 1024;

/** ONNX advises offsets that are multiples of the page size, so that runtimes can map the file. */
const EXTERNAL_ALIGNMENT = 4096;

const COPY_BYTES = 1 << 20;

interface WeightReference {
  readonly location: string;
  readonly offset: number;
}

export interface WriteOptions {
  /** `auto` (default): one file where protobuf's 2 GiB allow it, else external data in `<name>.data` beside the model. */
  readonly externalData?: 'auto' | 'never' | 'always';
  /** New values (and so perhaps a new dtype) for some tensors of `proto`; shapes stay. */
  readonly replacements?: ReadonlyMap<TensorProto, WeightStream>;
  /** Tensors that are not written: where their values already are, in files that the reader finds by `location`. */
  readonly references?: ReadonlyMap<TensorProto, WeightReference>;
  readonly signal?: AbortSignal;
}

export interface WrittenModel {
  readonly path: string;
  readonly bytes: number;
  readonly externalData: { readonly path: string; readonly bytes: number } | null;
}

/**
 * Writes a model, streaming its weights: memory does not grow with the model. Both files appear whole or not at all, the weights first.
 * Throws TF_OUTPUT_IS_INPUT, TF_WRITE_FAILED, TF_CANCELLED, and what reading the weights throws.
 */
export async function writeModel(
  model: ModelLike,
  path: string,
  options: WriteOptions = {},
  emit: EventListener = ignoreEvents,
): Promise<WrittenModel> {
  const streams = weightStreams(model, options.replacements);
  const layout = planLayout(model, streams, path, options);
  // Both before the first weight is copied.
  protectingInputs(model.files(), () => {
    assertNotInput(path);
    if (layout.external !== null) assertNotInput(layout.external.path);
  });

  const progress = new WriteProgress(layout.bytes + (layout.external?.bytes ?? 0), emit, options.signal);
  const pending: PendingFile[] = [];
  try {
    if (layout.external !== null) {
      const file = beginFile(layout.external.path);
      pending.push(file);
      for (const { stream, offset } of layout.external.parts) {
        padTo(file, offset);
        await copyStream(stream, file, progress);
      }
    }
    const file = beginFile(path);
    pending.push(file);
    for (const piece of layout.pieces) {
      if (piece instanceof Uint8Array) file.write(piece);
      else await copyStream(layout.embedded.entry(piece.payload), file, progress);
    }
    publish(pending, path);
  } catch (error) {
    for (const file of pending) file.discard();
    throw error;
  }
  return {
    path,
    bytes: layout.bytes,
    externalData:
      layout.external === null ? null : { path: layout.external.path, bytes: layout.external.bytes },
  };
}

/** With two files, an older model at `path` goes first: at no moment does an old model stand beside new weights. */
function publish(pending: readonly PendingFile[], path: string): void {
  for (const file of pending) assertMayReplace(file.path, file.temporaryPath);
  if (pending.length > 1) rmSync(path, { force: true });
  for (const file of pending) file.publish();
}

/** The tensors whose values are streamed; all others are written as they stand in the messages. */
function weightStreams(
  model: ModelLike,
  replacements: ReadonlyMap<TensorProto, WeightStream> | undefined,
): Map<TensorProto, WeightStream> {
  const streams = new Map<TensorProto, WeightStream>();
  for (const { tensor } of visitTensors(model.proto)) {
    const replacement = replacements?.get(tensor);
    if (replacement !== undefined) streams.set(tensor, replacement);
    else if (isElsewhere(tensor) || tensor.rawData.length >= EXTERNAL_THRESHOLD) {
      streams.set(tensor, model.weight(tensor));
    }
  }
  return streams;
}

const isElsewhere = (tensor: TensorProto): boolean => markerOf(tensor) !== undefined || isExternal(tensor);

interface Layout {
  readonly pieces: readonly Piece[];
  readonly bytes: number;
  readonly embedded: PayloadTable<WeightStream>;
  readonly external: {
    readonly path: string;
    readonly bytes: number;
    readonly parts: readonly { readonly stream: WeightStream; readonly offset: number }[];
  } | null;
}

function planLayout(
  model: ModelLike,
  streams: ReadonlyMap<TensorProto, WeightStream>,
  path: string,
  { externalData: mode = 'auto', references = new Map() }: WriteOptions,
): Layout {
  if (mode !== 'always') {
    const single = layOut(model, streams, path, false, references);
    if (single.bytes <= SINGLE_FILE_LIMIT) return single;
    if (mode === 'never') {
      throw new TrtforgeError(
        'TF_USAGE',
        `${path} would have ${single.bytes} bytes in one file, and protobuf stops at 2 GiB.`,
        { remedy: 'Let the weights go into an external-data file.' },
      );
    }
  }
  return layOut(model, streams, path, true, references);
}

function layOut(
  model: ModelLike,
  streams: ReadonlyMap<TensorProto, WeightStream>,
  path: string,
  toExternal: boolean,
  references: ReadonlyMap<TensorProto, WeightReference>,
): Layout {
  const dataPath = `${path}.data`;
  const embedded = new PayloadTable<WeightStream>();
  const parts: { stream: WeightStream; offset: number }[] = [];
  let end = 0;

  const bareTensor = (tensor: TensorProto): TensorProto | undefined => {
    const stream = streams.get(tensor);
    if (stream === undefined) return undefined;
    const bare = withoutPayload(tensor, stream);
    const reference = references.get(tensor);
    if (reference !== undefined) {
      bare.dataLocation = TensorProto_DataLocation.EXTERNAL;
      bare.externalData = externalEntries(reference.location, reference.offset, stream.byteLength);
    } else if (stream.dtype === 'string') {
      bare.stringData = stringsOf(stream);
    } else if (toExternal && stream.byteLength >= EXTERNAL_THRESHOLD) {
      const offset = Math.ceil(end / EXTERNAL_ALIGNMENT) * EXTERNAL_ALIGNMENT;
      end = offset + stream.byteLength;
      parts.push({ stream, offset });
      bare.dataLocation = TensorProto_DataLocation.EXTERNAL;
      bare.externalData = externalEntries(basename(dataPath), offset, stream.byteLength);
    } else {
      bare.$unknown = [...(bare.$unknown ?? []), embedded.addAsField(stream)];
    }
    return bare;
  };
  const skeleton = withReplacements(model.proto, bareTensor, () => toBinary(ModelProtoSchema, model.proto));
  const file = rewriteTensors(
    new WireReader(bytesSource(path, skeleton)),
    (reader, start, stop) => insertPayload(reader, start, stop, embedded),
    Number.POSITIVE_INFINITY,
  );
  return {
    pieces: file.pieces,
    bytes: file.length,
    embedded,
    external: parts.length === 0 ? null : { path: dataPath, bytes: end, parts },
  };
}

/** A tensor message with everything but its values, ready for those of `stream`. */
function withoutPayload(tensor: TensorProto, stream: WeightStream): TensorProto {
  const { name, dims, docString, metadataProps } = tensor;
  const bare = create(TensorProtoSchema, { dims, metadataProps, dataType: dtypes[stream.dtype].onnx });
  if (name !== '') bare.name = name;
  if (docString !== '') bare.docString = docString;
  const unknown = tensor.$unknown?.filter((field) => field.no !== MARKER_FIELD);
  if (unknown !== undefined && unknown.length > 0) bare.$unknown = unknown;
  return bare;
}

const externalEntries = (location: string, offset: number, length: number) =>
  Object.entries({ location, offset: String(offset), length: String(length) }).map(([key, value]) =>
    create(StringStringEntryProtoSchema, { key, value }),
  );

/** Strings can only be written as messages, so they are the one payload that comes into memory. */
function stringsOf(stream: WeightStream): Uint8Array[] {
  const bytes = Buffer.concat(Array.from(stream.chunks(), (chunk) => new Uint8Array(chunk)));
  const strings: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32LE(at);
    strings.push(bytes.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return strings;
}

async function copyStream(stream: WeightStream, file: PendingFile, progress: WriteProgress): Promise<void> {
  const start = file.position;
  for (const chunk of stream.chunks(COPY_BYTES)) {
    file.write(chunk);
    await progress.advance(chunk.length);
  }
  if (file.position - start !== stream.byteLength) {
    throw new TrtforgeError(
      'TF_INTERNAL',
      `A weight stream for ${file.path} announced ${stream.byteLength} bytes and returned ${file.position - start}.`,
    );
  }
}

function padTo(file: PendingFile, offset: number): void {
  if (offset > file.position) file.write(new Uint8Array(offset - file.position));
}

const RAW_DATA_FIELD = 9;

/** Puts a raw_data record in the place of the marker of an encoded TensorProto. */
function insertPayload(
  reader: WireReader,
  start: number,
  end: number,
  embedded: PayloadTable<WeightStream>,
): Rewritten | undefined {
  reader.position = start;
  while (reader.position < end) {
    const recordStart = reader.position;
    const { field, wireType } = readTag(reader, end);
    const contentStart = reader.skip(wireType, recordStart, end);
    if (field !== MARKER_FIELD) continue;
    const recordEnd = reader.position;
    const marker = decodeMarker(reader.copy(contentStart, recordEnd - contentStart));
    const payload = embedded.at(marker);
    if (payload === undefined)
      throw new TrtforgeError('TF_INTERNAL', 'A tensor of another model was written.');
    const out = new Collected();
    out.add(reader.copy(start, recordStart - start));
    out.add(recordHeader(RAW_DATA_FIELD, payload.byteLength));
    out.add({ payload: marker.entry, length: payload.byteLength });
    out.add(reader.copy(recordEnd, end - recordEnd));
    return out;
  }
  return undefined;
}

/** Runs `action` while some tensors of `proto` have the content of their replacements; afterwards they are as before. */
function withReplacements<T>(
  proto: ModelProto,
  replace: (tensor: TensorProto) => TensorProto | undefined,
  action: () => T,
): T {
  const originals = new Map<TensorProto, TensorProto>();
  try {
    for (const { tensor } of visitTensors(proto)) {
      if (originals.has(tensor)) continue;
      const replacement = replace(tensor);
      if (replacement === undefined) continue;
      originals.set(tensor, { ...tensor });
      setContent(tensor, replacement);
    }
    return action();
  } finally {
    for (const [tensor, content] of originals) setContent(tensor, content);
  }
}

function setContent(tensor: TensorProto, content: TensorProto): void {
  for (const key of Object.keys(tensor)) Reflect.deleteProperty(tensor, key);
  Object.assign(tensor, content);
}
