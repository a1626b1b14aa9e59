import { beginFile } from '../../base/files/publish.js';
import { pythonJsonText } from '../../base/text/lenient-json.js';
import { TrtforgeError } from '../../errors.js';
import type { Dtype } from '../tensor/dtype.js';
import type { NamedTensors, Tensor } from '../tensor/tensor.js';
import { type ChunkMeta, OWN_KEY, type Provenance } from './meta.js';

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

export interface RecordedBinding {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
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
