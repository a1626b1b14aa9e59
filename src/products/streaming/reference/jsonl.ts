import { setImmediate } from 'node:timers/promises';
import { type ByteSource, openFile } from '../../../base/files/byte-source.js';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { TrtforgeError } from '../../../errors.js';
import type { Tensor } from '../../../formats/tensor/tensor.js';
import type {
  ChunkMeta,
  DamagedLine,
  ReadOptions,
  RecordedBinding,
  Reference,
  ReferenceChunk,
  ReferenceHeader,
} from '../recorded-stream.js';
import { type Allocate, TensorDecoder } from './decode.js';
import { LineFault } from './fault.js';
import { chunkMeta, plainRecord, provenanceIn } from './meta.js';
import { LineScanner, type ScannedLine, type TensorNode } from './scanner.js';

/** Opens a JSONL reference; its first whole line tells names, dtypes and shapes. Throws TF_FILE_…, TF_REFERENCE_INVALID when no line is whole. */
export function openJsonlReference(path: string): Reference {
  const source = openFile(path);
  try {
    const header = readHeader(source);
    return {
      header,
      chunks: (options) => readChunks(source, options ?? {}),
      close: () => source.close(),
      [Symbol.dispose]: () => source.close(),
    };
  } catch (error) {
    source.close();
    throw error;
  }
}

function readHeader(source: ByteSource): ReferenceHeader {
  const scanner = new LineScanner(source);
  const decoder = new TensorDecoder(source, scanner);
  const describe = (tensors: ReadonlyMap<string, TensorNode>): RecordedBinding[] =>
    [...tensors].map(([name, node]) => decoder.describe(name, node));
  let first: DamagedLine | undefined;
  const headers = wholeLines(
    scanner,
    (damage) => {
      first ??= damage;
    },
    (line): ReferenceHeader => {
      const recorded = plainRecord(line.fields.get('metadata'), scanner);
      return {
        path: source.path,
        form: 'jsonl',
        chunks: null,
        bytes: source.size,
        provenance: provenanceIn(recorded),
        inputs: describe(line.inputs),
        outputs: describe(line.outputs),
      };
    },
  );
  const [header] = headers;
  if (header !== undefined) return header;
  if (first !== undefined) throw damagedError(source.path, first);
  throw new TrtforgeError('TF_REFERENCE_INVALID', `${source.path} is empty.`);
}

async function* readChunks(source: ByteSource, options: ReadOptions): AsyncGenerator<ReferenceChunk> {
  const scanner = new LineScanner(source);
  const decoder = new TensorDecoder(source, scanner);
  const memory = options.recycle === true ? new RecycledMemory() : undefined;
  const allocate = memory?.allocate ?? fresh;
  const limit = options.limit ?? Number.POSITIVE_INFINITY;
  const damaged =
    options.onDamaged ??
    ((damage: DamagedLine): never => {
      throw damagedError(source.path, damage);
    });
  let position = 0;
  const decode = (line: ScannedLine): ReferenceChunk => {
    memory?.turn();
    decoder.turn();
    return decodeChunk(line, { scanner, decoder, allocate, position, select: options.select });
  };
  for (const chunk of wholeLines(scanner, damaged, decode)) {
    // Everything here is synchronous: without a turn of the event loop a signal never comes in.
    await setImmediate();
    throwIfCancelled(options.signal, `reading ${source.path}`);
    yield chunk;
    if (++position >= limit) return;
  }
}

/** What `read` makes of each line; those that cannot be scanned or read are told and passed over. */
function* wholeLines<T>(
  scanner: LineScanner,
  onDamaged: (damage: DamagedLine) => void,
  read: (line: ScannedLine) => T,
): Generator<T> {
  for (;;) {
    let isScanned = false;
    let made: T;
    try {
      const line = scanner.next();
      if (line === null) return;
      isScanned = true;
      made = read(line);
    } catch (error) {
      if (!(error instanceof LineFault)) throw error;
      onDamaged({ line: scanner.line, why: error.message });
      if (!isScanned) scanner.skipLine();
      continue;
    }
    yield made;
  }
}

interface Decoding {
  readonly scanner: LineScanner;
  readonly decoder: TensorDecoder;
  readonly allocate: Allocate;
  readonly position: number;
  readonly select: ReadOptions['select'];
}

function decodeChunk(line: ScannedLine, decoding: Decoding): ReferenceChunk {
  const { scanner, decoder, allocate, position, select } = decoding;
  const side = (which: 'inputs' | 'outputs'): Map<string, Tensor> => {
    const tensors = new Map<string, Tensor>();
    for (const [name, node] of line[which]) {
      if (select !== undefined && !select(which, name, position)) continue;
      tensors.set(
        name,
        decoder.decode(name, node, (tensor, bytes) => allocate(`${which}/${tensor}`, bytes)),
      );
    }
    return tensors;
  };
  const meta: ChunkMeta = chunkMeta(plainRecord(line.fields.get('metadata'), scanner), scanner.line);
  const index = line.fields.get('chunk_idx');
  if (index !== undefined && (typeof index !== 'number' || !Number.isSafeInteger(index))) {
    throw new LineFault('its chunk_idx is no whole number');
  }
  if (line.inputs.size === 0 && line.outputs.size === 0) throw new LineFault('it has no tensors');
  return { index: index ?? position, inputs: side('inputs'), outputs: side('outputs'), meta };
}

const fresh: Allocate = (_, bytes) => new Uint8Array(Buffer.allocUnsafeSlow(bytes).buffer);

/** Two sets of memory that take turns, so that a chunk stays whole while the next one is read. */
class RecycledMemory {
  readonly #sets: readonly [Map<string, Uint8Array>, Map<string, Uint8Array>] = [new Map(), new Map()];
  #turn: 0 | 1 = 0;

  turn(): void {
    this.#turn = this.#turn === 0 ? 1 : 0;
  }

  readonly allocate: Allocate = (tensor, bytes) => {
    const set = this.#sets[this.#turn];
    const known = set.get(tensor);
    if (known?.length === bytes) return known;
    const made = fresh(tensor, bytes);
    set.set(tensor, made);
    return made;
  };
}

const damagedError = (path: string, { line, why }: DamagedLine): TrtforgeError =>
  new TrtforgeError('TF_REFERENCE_INVALID', `Line ${line} of ${path} is damaged: ${why}.`, {
    details: { line, why },
  });
