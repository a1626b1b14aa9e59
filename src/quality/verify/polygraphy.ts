import { constants } from 'node:buffer';
import { type ByteSource, bytesSource, openFile } from '../../base/files/byte-source.js';
import { readText } from '../../base/files/files.js';
import { isRecord, type JsonRecord, parseJson, pythonJson } from '../../base/files/json.js';
import { TrtforgeError } from '../../errors.js';
import { npyReader } from '../../formats/tensor/npy.js';
import { npzOver } from '../../formats/tensor/npz.js';
import type { LoadedSlot, TensorReader } from '../../formats/tensor/tensor-reader.js';

/** The record of one run of one runner. */
export interface RecordedRunner {
  /** Null for recorded inputs, which no runner made. */
  readonly name: string | null;
  readonly iterations: readonly ReadonlyMap<string, TensorReader>[];
}

export interface PolygraphyFile {
  readonly runners: readonly RecordedRunner[];
  close(): void;
}

/** Polygraphy's marks of the class that an object stands for: today, and before 0.30. */
const CLASS = 'polygraphy_class';
const LEGACY = /^__polygraphy_encoded_(\w+)$/;

/**
 * Opens what `polygraphy run --save-outputs` or `--save-inputs` wrote: results of runners (RunResults), or a list of inputs, in the dialect of any version:
 * arrays as npy or npz in base64 or, long ago, in Latin-1. The text stays in memory, tensors are decoded where they are read.
 * Throws TF_TENSOR_FILE_INVALID, also beyond the longest string of Node.js (512 MB), TF_TENSOR_UNSUPPORTED (tensors that PyTorch pickled), TF_FILE_….
 */
export function openPolygraphy(path: string, slot: LoadedSlot): PolygraphyFile {
  return { runners: runnersOf(path, parsedFile(path), slot), close: () => {} };
}

function parsedFile(path: string): unknown {
  const source = openFile(path);
  source.close();
  if (source.size > constants.MAX_STRING_LENGTH) {
    throw new TrtforgeError(
      'TF_TENSOR_FILE_INVALID',
      `${path} has ${source.size} bytes, too many to be read as JSON.`,
      {
        remedy: 'Save fewer iterations to one file, or save the tensors as npz.',
      },
    );
  }
  const text = readText(path, constants.MAX_STRING_LENGTH, 'TF_TENSOR_FILE_INVALID');
  const fault = (why: string, cause?: unknown) => invalid(path, cause instanceof Error ? cause.message : why);
  return parseJson(text, constants.MAX_STRING_LENGTH, fault, pythonJson);
}

function runnersOf(path: string, root: unknown, slot: LoadedSlot): readonly RecordedRunner[] {
  const tensorsOf = (node: unknown) => namedTensors(path, node, slot);
  if (Array.isArray(root)) return [{ name: null, iterations: root.map(tensorsOf) }];
  if (!isRecord(root)) throw invalid(path, 'it has neither results nor inputs');
  const list = root.lst;
  if (list === undefined) return [{ name: null, iterations: [tensorsOf(root)] }];
  if (!Array.isArray(list)) throw invalid(path, 'its results are not a list');
  return list.map((entry: unknown) => {
    const [name, iterations] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (typeof name !== 'string' || !Array.isArray(iterations))
      throw invalid(path, 'a runner has no name or no iterations');
    return { name, iterations: iterations.map(tensorsOf) };
  });
}

/** The tensors of one iteration: an IterationResult, or a dictionary of arrays. */
function namedTensors(path: string, node: unknown, slot: LoadedSlot): ReadonlyMap<string, TensorReader> {
  const outputs = isRecord(node) && classOf(node) === 'IterationResult' ? node.outputs : node;
  if (!isRecord(outputs)) throw invalid(path, 'an iteration has no tensors');
  const tensors = new Map<string, TensorReader>();
  for (const [name, value] of Object.entries(outputs)) {
    if (name === CLASS || LEGACY.test(name)) continue;
    tensors.set(name, tensorOf(path, name, value, slot));
  }
  return tensors;
}

function tensorOf(path: string, name: string, node: unknown, slot: LoadedSlot): TensorReader {
  const inner = isRecord(node) && /^Lazy(Numpy)?Array$/.test(classOf(node) ?? '') ? node.values : node;
  if (!isRecord(inner)) throw invalid(path, `${name} is not an array`);
  if (Object.hasOwn(inner, 'tensor')) {
    throw new TrtforgeError('TF_TENSOR_UNSUPPORTED', `${name} in ${path} is a pickled PyTorch tensor.`, {
      remedy: 'Let Polygraphy save NumPy arrays, or save the tensors as npz.',
    });
  }
  const content = inner.array;
  if (typeof content !== 'string') throw invalid(path, `${name} has no array`);
  const file = payload(`${name} in ${path}`, content);
  if (startOf(file) !== 'PK') return npyReader(file, slot);
  const archive = npzOver(file);
  const [first] = archive.names;
  if (first === undefined) throw invalid(path, `the archive of ${name} is empty`);
  return archive.reader(first, slot);
}

/** The npy or npz file that a string holds, in base64 or (before 0.20) in Latin-1. */
function payload(path: string, content: string): ByteSource {
  const encoded = base64Source(path, content);
  if (['\x93N', 'PK'].includes(startOf(encoded))) return encoded;
  return bytesSource(path, Buffer.from(content, 'latin1'));
}

/** The bytes behind base64 text, decoded where they are read. */
function base64Source(path: string, text: string): ByteSource {
  const padding = /={0,2}$/.exec(text.slice(-2))?.[0].length ?? 0;
  return {
    path,
    size: Math.max(0, Math.floor(text.length / 4) * 3 - padding),
    read: (target, position, length) => {
      const group = Math.floor(position / 3);
      const part = text.slice(4 * group, 4 * Math.ceil((position + length) / 3));
      const bytes = Buffer.from(part, 'base64').subarray(position - 3 * group);
      const found = bytes.subarray(0, length);
      target.set(found);
      return found.length;
    },
    close: () => {},
  };
}

function startOf(source: ByteSource): string {
  const start = Buffer.alloc(2);
  return start.toString('latin1', 0, source.read(start, 0, 2));
}

function classOf(node: JsonRecord): string | undefined {
  const marked = node[CLASS];
  if (typeof marked === 'string') return marked;
  for (const key of Object.keys(node)) {
    const legacy = LEGACY.exec(key)?.[1];
    if (legacy !== undefined) return legacy;
  }
  return undefined;
}

const invalid = (path: string, what: string): TrtforgeError =>
  new TrtforgeError('TF_TENSOR_FILE_INVALID', `${path} cannot be read as Polygraphy's JSON: ${what}.`);
