import type { Dtype } from '../tensor/dtype.js';
import type { NamedTensors } from '../tensor/tensor.js';
import type { ChunkMeta, Provenance } from './meta.js';

/** A recorded stream: what went into a model and what came out, chunk by chunk. Reading takes memory for one chunk, however long the stream. */
export interface Reference extends Disposable {
  readonly header: ReferenceHeader;
  /** From the first chunk on, at each call. Throws TF_REFERENCE_INVALID with the line number, TF_CANCELLED, and what reading an npy file throws. */
  chunks(options?: ReadOptions): AsyncIterable<ReferenceChunk>;
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

export interface ReadOptions {
  /** Which tensors to decode; default all. The others are missing from the chunk. */
  readonly select?: (side: 'inputs' | 'outputs', name: string, position: number) => boolean;
  /** Called for every line that is damaged, and reading goes on with the next; without it the first damaged line is an error. */
  readonly onDamaged?: (damage: DamagedLine) => void;
  /** Chunks to read; default all. */
  readonly limit?: number;
  readonly signal?: AbortSignal;
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
