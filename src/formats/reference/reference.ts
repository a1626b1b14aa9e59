import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { type ByteSource, openFile } from '../../base/files/byte-source.js';
import { isRecord, type JsonRecord, pythonJsonText } from '../../base/files/json.js';
import { beginFile } from '../../base/files/publish.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { TrtforgeError } from '../../errors.js';
import type { NamedTensors, Tensor } from '../tensor/tensor.js';
import { type RecordedBinding, TensorDecoder } from './decode.js';
import { LineFault, LineReader, type ReferenceLine } from './lines.js';
import { NumberLists } from './number-lists.js';

/** A recorded stream: what went into a model and what came out, chunk by chunk. Reading takes memory for one chunk, however long the stream. */
export interface Reference extends Disposable {
  readonly header: ReferenceHeader;
  /** From the first chunk on, at each call. Throws TF_REFERENCE_INVALID with the line number, TF_CANCELLED, and what reading an npy file throws. */
  chunks(options?: {
    /** Which tensors to decode; default all. The others are missing from the chunk. */
    readonly select?: (side: 'inputs' | 'outputs', name: string, position: number) => boolean;
    /** Called for every line that is damaged, and reading goes on with the next; without it the first damaged line is an error. */
    readonly onDamaged?: (damage: DamagedLine) => void;
    /** Chunks to read; default all. */
    readonly limit?: number;
    readonly signal?: AbortSignal;
  }): AsyncIterable<ReferenceChunk>;
  close(): void;
}

export interface ReferenceHeader {
  readonly path: string;
  /** Of the file. */
  readonly bytes: number;
  /** null for references that others made. */
  readonly provenance: Provenance | null;
  /** Names, dtypes and shapes of the first chunk. */
  readonly inputs: readonly RecordedBinding[];
  readonly outputs: readonly RecordedBinding[];
}

export interface DamagedLine {
  /** From 1. */
  readonly line: number;
  readonly why: string;
}

export interface ReferenceChunk {
  /** `chunk_idx` as recorded. */
  readonly index: number;
  readonly inputs: NamedTensors;
  readonly outputs: NamedTensors;
  readonly meta: ChunkMeta;
}

/** One chunk to be written: `metadata` as the encoder's own recorder names it. */
export interface WritableChunk {
  readonly index: number;
  readonly inputs: NamedTensors;
  readonly outputs: NamedTensors;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Takes chunks in order. Nothing is at the path until `finish`; `discard` leaves no trace. */
export interface ReferenceWriter {
  write(chunk: WritableChunk): void;
  finish(): WrittenReference;
  discard(): void;
}

export interface WrittenReference {
  readonly path: string;
  readonly chunks: number;
  /** Of the file. */
  readonly bytes: number;
}

/** Multiple of three bytes, so that base64 of the pieces put together is base64 of the whole. */
const PIECE = 3 << 18;

/** Begins a reference. Throws TF_WRITE_FAILED; TF_USAGE for a path without the ending by which samples are known to be a recorded stream. */
export function beginReference(path: string, provenance: Provenance | null): ReferenceWriter {
  if (!/\.jsonl$/i.test(path))
    throw new TrtforgeError('TF_USAGE', `${path} does not end in .jsonl, as recorded streams do.`, {
      remedy: 'Name a file: -o ref.jsonl',
    });
  const file = beginFile(path);
  let chunks = 0;
  const text = (part: string): void => file.write(Buffer.from(part));
  const tensors = (side: NamedTensors): void => {
    let separator = '';
    for (const [name, tensor] of side) {
      text(`${separator}${JSON.stringify(name)}:`);
      writeTensor(file.write, tensor);
      separator = ',';
    }
  };
  return {
    write: ({ index, inputs, outputs, metadata }) => {
      text(`{"chunk_idx":${index},"inputs":{`);
      tensors(inputs);
      text('},"outputs":{');
      tensors(outputs);
      const own =
        chunks === 0 && provenance !== null
          ? { [OWN_KEY]: { schema: 'trtforge.reference/1', provenance } }
          : {};
      text(`},"metadata":${pythonJsonText({ ...metadata, ...own })}}\n`);
      chunks++;
    },
    finish: () => {
      const bytes = file.position;
      if (chunks === 0) throw new TrtforgeError('TF_REFERENCE_INVALID', `${path} would have no chunks.`);
      file.publish();
      return { path, chunks, bytes };
    },
    discard: file.discard,
  };
}

function writeTensor(write: (bytes: Uint8Array) => void, { dtype, shape, bytes }: Tensor): void {
  write(Buffer.from(`{"dtype":${JSON.stringify(dtype)},"shape":${JSON.stringify(shape)},"data_b64":"`));
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; at < buffer.length; at += PIECE) {
    write(Buffer.from(buffer.toString('base64', at, Math.min(at + PIECE, buffer.length)), 'latin1'));
  }
  write(Buffer.from('"}'));
}

/** Where our own facts stand in the `metadata` of a line. */
const OWN_KEY = 'x_trtforge';

/** Who made a reference, of what, how; kept in `metadata.x_trtforge` of the first line. */
export const provenanceSchema = z.object({
  tool: z.string(),
  version: z.string(),
  /** `ONNX Runtime 1.30.0 (CPU)` */
  backend: z.string(),
  model: z.object({ path: z.string(), digest: z.string(), kind: z.enum(['model', 'engine']) }),
  /** SHA-256 of the contract in canonical JSON; null without one. */
  contract: z.string().nullable(),
  seed: z.number().nullable(),
  /** Frames of the signal in the first chunk and in each later one. */
  schedule: z.array(z.number().int().positive()),
  batch: z.number().int().positive(),
  /** Type that the backend computes in: `float32`. */
  precision: z.string(),
  /** Whether float32 products may have been rounded to TF32; null when unknown. */
  tf32: z.boolean().nullable(),
  /** ISO 8601. */
  recordedAt: z.string(),
});
export type Provenance = z.infer<typeof provenanceSchema>;

/** The facts of a chunk under the names of NeMo's streaming encoder (`metadata` of a line). */
export const recordedAs = {
  chunkLength: 'chunk_len',
  outputShape: 'encoder_output_shape',
  resultLength: 'encoded_lengths_value',
  stateLength: 'cache_len_out_value',
  /** Before the recorder repaired it. */
  stateLengthRaw: 'cache_len_out_raw_value',
} as const;

/** The values recorded beside the tensors; null where they are not. */
export interface ChunkMeta {
  /** Line of the file, from 1. */
  readonly line: number;
  readonly chunkLength: number | null;
  readonly encodedLength: number | null;
  readonly stateLength: number | null;
  /** Before the recorder repaired it: another one where it did, negative where the model was wrong. */
  readonly stateLengthRaw: number | null;
  readonly stepMs: number | null;
  /** All of the recorded `metadata`, ours under `x_trtforge` excepted. */
  readonly recorded: Readonly<Record<string, unknown>>;
}

/** The facts of a chunk from the `metadata` of its line, and all of the metadata as it is. */
function chunkMeta(metadata: JsonRecord, line: number): ChunkMeta {
  const { [OWN_KEY]: _, ...recorded } = metadata;
  const number = (value: unknown): number | null => (typeof value === 'number' ? value : null);
  const timing = recorded.timing_ms;
  return {
    line,
    chunkLength: number(recorded[recordedAs.chunkLength]),
    encodedLength: number(recorded[recordedAs.resultLength]),
    stateLength: number(recorded[recordedAs.stateLength]),
    stateLengthRaw: number(recorded[recordedAs.stateLengthRaw]),
    stepMs: isRecord(timing) ? number(timing.step) : null,
    recorded,
  };
}

/** Who made the reference; null where its first line has no provenance that trtforge wrote. */
function provenanceIn(metadata: JsonRecord): Provenance | null {
  const own = metadata[OWN_KEY];
  if (!isRecord(own)) return null;
  const parsed = provenanceSchema.safeParse(own.provenance);
  return parsed.success ? parsed.data : null;
}

type Reading = NonNullable<Parameters<Reference['chunks']>[0]>;

/**
 * Opens a reference: a file of JSON lines; the first whole one states names, dtypes and shapes. Throws TF_FILE_…, TF_REFERENCE_INVALID when no line is whole. Memory is
 * that of one line, a few times over.
 */
export function openReference(path: string): Reference {
  const source = openFile(path);
  try {
    const lists = new NumberLists();
    const header = readHeader(source, new TensorDecoder(path, lists));
    return {
      header,
      chunks: (options) => readChunks(source, new TensorDecoder(path, lists), options ?? {}),
      close: () => source.close(),
      [Symbol.dispose]: () => source.close(),
    };
  } catch (error) {
    source.close();
    throw error;
  }
}

interface Damage extends DamagedLine {
  readonly remedy: string | undefined;
}

function readHeader(source: ByteSource, decoder: TensorDecoder): ReferenceHeader {
  let first: Damage | undefined;
  const headers = wholeLines(
    new LineReader(source),
    (damage) => {
      first ??= damage;
    },
    (line): ReferenceHeader => ({
      path: source.path,
      bytes: source.size,
      provenance: provenanceIn(line.metadata),
      inputs: decoder.describe(line, 'inputs'),
      outputs: decoder.describe(line, 'outputs'),
    }),
  );
  for (const header of headers) return header;
  if (first !== undefined) throw damagedError(source.path, first);
  throw new TrtforgeError('TF_REFERENCE_INVALID', `${source.path} is empty.`);
}

/** The inputs of each chunk, in turn and without a turn of the event loop. Throws what `chunks` throws. */
export function* recordedInputs(path: string): Generator<NamedTensors> {
  const source = openFile(path);
  try {
    const decoder = new TensorDecoder(path, new NumberLists());
    for (const { inputs } of chunksIn(source, decoder, { select: (side) => side === 'inputs' })) yield inputs;
  } finally {
    source.close();
  }
}

async function* readChunks(
  source: ByteSource,
  decoder: TensorDecoder,
  options: Reading,
): AsyncGenerator<ReferenceChunk> {
  for (const chunk of chunksIn(source, decoder, options)) {
    // Everything else is synchronous: without a turn of the event loop a signal never comes in.
    await setImmediate();
    throwIfCancelled(options.signal, `reading ${source.path}`);
    yield chunk;
  }
}

function* chunksIn(
  source: ByteSource,
  decoder: TensorDecoder,
  { onDamaged, select, limit = Number.POSITIVE_INFINITY }: Reading,
): Generator<ReferenceChunk> {
  const damaged = ({ line, why, remedy }: Damage): void => {
    if (onDamaged === undefined) throw damagedError(source.path, { line, why, remedy });
    onDamaged({ line, why });
  };
  let position = 0;
  const decode = (line: ReferenceLine, number: number): ReferenceChunk => {
    decoder.turn();
    return decodeChunk(line, { decoder, position, number, select });
  };
  for (const chunk of wholeLines(new LineReader(source), damaged, decode)) {
    yield chunk;
    if (++position >= limit) return;
  }
}

/** The result of `read` for each line; lines that cannot be parsed or read are reported and skipped. */
function* wholeLines<T>(
  lines: LineReader,
  onDamaged: (damage: Damage) => void,
  read: (line: ReferenceLine, number: number) => T,
): Generator<T> {
  // In a function of its own: the line itself is not kept in memory while the caller works with what was made of it.
  const next = (): { readonly made?: T } | null => {
    try {
      const line = lines.next();
      return line && { made: read(line, lines.number) };
    } catch (error) {
      if (!(error instanceof LineFault)) throw error;
      onDamaged({ line: lines.number, why: error.message, remedy: error.remedy });
      return {};
    }
  };
  for (let item = next(); item !== null; item = next()) if (item.made !== undefined) yield item.made;
}

interface Decoding {
  readonly decoder: TensorDecoder;
  readonly position: number;
  /** Of the line. */
  readonly number: number;
  readonly select: Reading['select'];
}

function decodeChunk(line: ReferenceLine, decoding: Decoding): ReferenceChunk {
  const { decoder, position, number, select } = decoding;
  const { index } = line;
  if (index !== undefined && !(typeof index === 'number' && Number.isSafeInteger(index)))
    throw new LineFault('its chunk_idx is not a whole number');
  const names = { inputs: Object.keys(line.inputs), outputs: Object.keys(line.outputs) };
  if (names.inputs.length === 0 && names.outputs.length === 0) throw new LineFault('it has no tensors');
  const side = (which: 'inputs' | 'outputs'): ReadonlyMap<string, Tensor> =>
    new Map(
      names[which]
        .filter((name) => select?.(which, name, position) ?? true)
        .map((name) => [name, decoder.decode(line, which, name)]),
    );
  const meta = chunkMeta(line.metadata, number);
  return { index: index ?? position, inputs: side('inputs'), outputs: side('outputs'), meta };
}

const damagedError = (path: string, { line, why, remedy }: Damage): TrtforgeError =>
  new TrtforgeError('TF_REFERENCE_INVALID', `Line ${line} of ${path} is damaged: ${why}.`, {
    remedy,
    details: { line, why },
  });
