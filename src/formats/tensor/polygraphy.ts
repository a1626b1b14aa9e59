import { type ByteSource, bytesSource, openFile } from '../../base/files/byte-source.js';
import { TrtforgeError } from '../../errors.js';
import { base64Source } from './base64-source.js';
import { type JsonNode, JsonSpan, readJsonSpans, spanText } from './json-spans.js';
import { type LoadedSlot, npyReader } from './npy.js';
import { npzOver } from './npz.js';
import type { TensorReader } from './tensor-reader.js';

/** What one run of one runner recorded. */
export interface RecordedRunner {
  /** Null for recorded inputs, which no runner made. */
  readonly name: string | null;
  readonly iterations: readonly ReadonlyMap<string, TensorReader>[];
}

export interface PolygraphyFile {
  readonly runners: readonly RecordedRunner[];
  close(): void;
}

/** How Polygraphy marks what an object stands for: today, and before 0.30. */
const CLASS = 'polygraphy_class';
const LEGACY = /^__polygraphy_encoded_(\w+)$/;

/**
 * Opens what `polygraphy run --save-outputs` or `--save-inputs` wrote: results of runners (RunResults), or a list of inputs, in the dialect of any version:
 * arrays as npy or npz in base64 or, long ago, in Latin-1. Tensors are decoded where they are read.
 * Throws TF_TENSOR_FILE_INVALID, TF_TENSOR_UNSUPPORTED (tensors that PyTorch pickled), TF_FILE_….
 */
export function openPolygraphy(path: string, slot: LoadedSlot): PolygraphyFile {
  const source = openFile(path);
  try {
    return { runners: runnersOf(source, readJsonSpans(source), slot), close: () => source.close() };
  } catch (error) {
    source.close();
    throw error;
  }
}

function runnersOf(source: ByteSource, root: JsonNode, slot: LoadedSlot): readonly RecordedRunner[] {
  const tensorsOf = (node: JsonNode) => namedTensors(source, node, slot);
  if (Array.isArray(root)) return [{ name: null, iterations: root.map(tensorsOf) }];
  if (!(root instanceof Map)) throw invalid(source.path, 'it is neither results nor inputs');
  const list = root.get('lst');
  if (list === undefined) return [{ name: null, iterations: [tensorsOf(root)] }];
  if (!Array.isArray(list)) throw invalid(source.path, 'its results are no list');
  return list.map((entry) => {
    const [name, iterations] = Array.isArray(entry) ? entry : [];
    if (typeof name !== 'string' || !Array.isArray(iterations))
      throw invalid(source.path, 'a runner has no name or no iterations');
    return { name, iterations: iterations.map(tensorsOf) };
  });
}

/** The tensors of one iteration: an IterationResult, or a dictionary of arrays. */
function namedTensors(
  source: ByteSource,
  node: JsonNode,
  slot: LoadedSlot,
): ReadonlyMap<string, TensorReader> {
  const outputs = node instanceof Map && classOf(node) === 'IterationResult' ? node.get('outputs') : node;
  if (!(outputs instanceof Map)) throw invalid(source.path, 'an iteration has no tensors');
  const tensors = new Map<string, TensorReader>();
  for (const [name, value] of outputs) {
    if (name === CLASS || LEGACY.test(name)) continue;
    tensors.set(name, tensorOf(source, name, value, slot));
  }
  return tensors;
}

function tensorOf(source: ByteSource, name: string, node: JsonNode, slot: LoadedSlot): TensorReader {
  const inner =
    node instanceof Map && /^Lazy(Numpy)?Array$/.test(classOf(node) ?? '') ? node.get('values') : node;
  if (!(inner instanceof Map)) throw invalid(source.path, `${name} is no array`);
  if (inner.has('tensor')) {
    throw new TrtforgeError(
      'TF_TENSOR_UNSUPPORTED',
      `${name} in ${source.path} is a pickled PyTorch tensor.`,
      {
        remedy: 'Let Polygraphy save NumPy arrays, or save the tensors as npz.',
      },
    );
  }
  const content = inner.get('array');
  if (!(content instanceof JsonSpan) && typeof content !== 'string')
    throw invalid(source.path, `${name} has no array`);
  const bytes = payload(source, content);
  const named: ByteSource = { ...bytes, path: `${name} in ${source.path}` };
  if (startOf(bytes) !== 'PK') return npyReader(named, slot);
  const archive = npzOver(named);
  const [first] = archive.names;
  if (first === undefined) throw invalid(source.path, `the archive of ${name} is empty`);
  return archive.reader(first, slot);
}

/** The npy or npz file that a string holds, in base64 or (before 0.20) in Latin-1. */
function payload(source: ByteSource, content: JsonSpan | string): ByteSource {
  const encoded =
    content instanceof JsonSpan
      ? base64Source(source, content.start, content.end - content.start)
      : base64Source(bytesSource(source.path, Buffer.from(content, 'latin1')), 0, content.length);
  if (['\x93N', 'PK'].includes(startOf(encoded))) return encoded;
  const text = content instanceof JsonSpan ? spanText(source, content) : content;
  return bytesSource(source.path, Buffer.from(text, 'latin1'));
}

function startOf(source: ByteSource): string {
  const start = Buffer.alloc(2);
  return start.toString('latin1', 0, source.read(start, 0, 2));
}

function classOf(node: ReadonlyMap<string, JsonNode>): string | undefined {
  const marked = node.get(CLASS);
  if (typeof marked === 'string') return marked;
  for (const key of node.keys()) {
    const legacy = LEGACY.exec(key)?.[1];
    if (legacy !== undefined) return legacy;
  }
  return undefined;
}

const invalid = (path: string, what: string): TrtforgeError =>
  new TrtforgeError('TF_TENSOR_FILE_INVALID', `${path} cannot be read as Polygraphy's JSON: ${what}.`);
