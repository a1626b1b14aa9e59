import { setImmediate } from 'node:timers/promises';
import { type ByteSource, openFile } from '../../base/files/byte-source.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { TrtforgeError } from '../../errors.js';
import type { NamedTensors, Tensor } from '../tensor/tensor.js';
import { TensorDecoder } from './decode.js';
import { LineFault, LineReader, type ReferenceLine } from './lines.js';
import { chunkMeta, provenanceIn } from './meta.js';
import { NumberLists } from './number-lists.js';
import type { DamagedLine, Reference, ReferenceChunk, ReferenceHeader } from './reference.js';

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
