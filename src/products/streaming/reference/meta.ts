import type { ChunkMeta, Provenance } from '../recorded-stream.js';
import { LineFault } from './fault.js';
import { TextSpan } from './scanned-text.js';
import type { LineNode, LineScanner } from './scanner.js';
import { provenanceSchema } from './schema.js';

/** Where our own facts stand in the `metadata` of a line. */
export const OWN_KEY = 'x_trtforge';

/** Remarks of a recorder are no longer than this. */
const MAX_TEXT = 1 << 24;

type PlainRecord = Readonly<Record<string, unknown>>;

/** An object of a line as plain data. Throws LineFault when it is something else. */
export function plainRecord(node: LineNode | undefined, scanner: LineScanner): PlainRecord {
  if (node === undefined || node === null) return {};
  if (!(node instanceof Map)) throw new LineFault('its metadata is no object');
  return plain(node, scanner) as PlainRecord;
}

function plain(node: LineNode, scanner: LineScanner): unknown {
  if (node instanceof TextSpan) {
    if (node.end - node.start > MAX_TEXT) throw new LineFault('its metadata holds a text longer than any');
    return scanner.textOf(node);
  }
  if (Array.isArray(node)) return node.map((item) => plain(item, scanner));
  if (node instanceof Map) {
    return Object.fromEntries([...node].map(([name, value]) => [name, plain(value, scanner)]));
  }
  return node;
}

/** The facts every tool records, in our words, and the rest as it is. */
export function chunkMeta(metadata: PlainRecord, line: number): ChunkMeta {
  const { [OWN_KEY]: _, ...recorded } = metadata;
  const number = (value: unknown): number | null => (typeof value === 'number' ? value : null);
  const timing = recorded.timing_ms;
  return {
    line,
    chunkLength: number(recorded.chunk_len),
    encodedLength: number(recorded.encoded_lengths_value),
    stateLength: number(recorded.cache_len_out_value),
    stateLengthRaw: number(recorded.cache_len_out_raw_value),
    stepMs: isRecord(timing) ? number(timing.step) : null,
    recorded,
  };
}

/** Who made the reference, where its first line says so in a way that can be understood. */
export function provenanceIn(metadata: PlainRecord): Provenance | null {
  const own = metadata[OWN_KEY];
  if (!isRecord(own)) return null;
  const parsed = provenanceSchema.safeParse(own.provenance);
  return parsed.success ? parsed.data : null;
}

const isRecord = (value: unknown): value is PlainRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
