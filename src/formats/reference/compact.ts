import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, renameSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { sha256 } from '../../base/files/digest.js';
import { LARGEST_DOCUMENT, readText, removeIfAllowed } from '../../base/files/files.js';
import { makeFolder } from '../../base/files/folders.js';
import { parseJson } from '../../base/files/json.js';
import {
  beginFile,
  publishFile,
  syncFolder,
  UNPUBLISHED_SUFFIX,
  writeFailed,
} from '../../base/files/publish.js';
import { assertNotInput } from '../../base/files/user-files.js';
import { pythonJsonText } from '../../base/text/lenient-json.js';
import { faultText } from '../../base/text/schema-error.js';
import { TrtforgeError } from '../../errors.js';
import { writeNpz } from '../tensor/npz.js';
import type { NamedTensors, Tensor } from '../tensor/tensor.js';
import { openJsonlReference } from './jsonl.js';
import { type Provenance, provenanceSchema } from './meta.js';
import type {
  DamagedLine,
  ReadOptions,
  Reference,
  ReferenceChunk,
  ReferenceWriter,
  WritableChunk,
} from './reference.js';

/** `reference.json` of a compact reference. */
const compactHeaderSchema = z.object({
  schema: z.literal('trtforge.reference/1'),
  chunks: z.number().int().nonnegative(),
  /** Bytes of all npz files; bytes of the tensors in memory, where what is stored once counts as often as it appears. */
  storedBytes: z.number().nonnegative(),
  tensorBytes: z.number().nonnegative(),
  provenance: provenanceSchema.nullable(),
});
type CompactHeader = z.infer<typeof compactHeaderSchema>;

const HEADER = 'reference.json';
const INDEX = 'chunks.jsonl';

/** The JSONL file with a line for each chunk. */
export const compactIndex = (folder: string): string => join(folder, INDEX);

/** Tensors seen, by content; streams that go on for days forget the oldest. */
const REMEMBERED = 1 << 16;

export const isCompactReference = (path: string): boolean => existsSync(join(path, HEADER));

/**
 * Opens a compact reference: `reference.json`, `chunks.jsonl` with a line for each chunk whose tensors name a member of an npz file, and the npz files.
 * Throws TF_FILE_…, TF_REFERENCE_INVALID.
 */
export function openCompactReference(path: string): Reference {
  const { chunks, storedBytes, provenance } = readHeader(join(path, HEADER));
  const index = compactIndex(path);
  const lines = openJsonlReference(index);
  const header = { ...lines.header, path, form: 'compact', chunks, bytes: storedBytes, provenance } as const;
  return { ...lines, header, chunks: (options = {}) => allOf(lines, index, chunks, options) };
}

/** The chunks of the index, which may have lost its end at the border of a line: only the head has their number. */
async function* allOf(
  lines: Reference,
  path: string,
  chunks: number,
  options: ReadOptions,
): AsyncIterable<ReferenceChunk> {
  const { onDamaged, limit = chunks } = options;
  let [whole, damaged] = [0, 0];
  const counted = (damage: DamagedLine): void => {
    damaged++;
    onDamaged?.(damage);
  };
  for await (const chunk of lines.chunks({ ...options, ...(onDamaged && { onDamaged: counted }) })) {
    whole++;
    yield chunk;
  }
  const read = whole + damaged;
  if (whole >= limit || read >= chunks) return;
  const why = `it ends after ${read} of ${chunks} chunks: it was cut short`;
  if (onDamaged === undefined) throw new TrtforgeError('TF_REFERENCE_INVALID', `${path} is damaged: ${why}.`);
  onDamaged({ line: read + 1, why });
}

function readHeader(path: string): CompactHeader {
  const invalid = (why: string, cause?: unknown) =>
    new TrtforgeError('TF_REFERENCE_INVALID', `${path} is not the head of a compact reference: ${why}.`, {
      cause,
    });
  if (!existsSync(path))
    throw new TrtforgeError(
      'TF_REFERENCE_INVALID',
      `${dirname(path)} is not a valid compact reference: it has no ${HEADER}.`,
    );
  const text = readText(path, LARGEST_DOCUMENT, 'TF_REFERENCE_INVALID');
  const parsed = compactHeaderSchema.safeParse(parseJson(text, LARGEST_DOCUMENT, invalid));
  if (parsed.success) return parsed.data;
  throw invalid(faultText(parsed.error));
}

/** Begins a compact reference in a folder beside its place, which it takes when finished. Throws TF_USAGE when other files are in the way. */
export function beginCompact(path: string, provenance: Provenance | null): ReferenceWriter {
  rejectOtherFiles(path);
  const place = resolve(path);
  const mark = `${process.pid}.${randomBytes(4).toString('hex')}${UNPUBLISHED_SUFFIX}`;
  const folder = join(dirname(place), `.${basename(place)}.${mark}`);
  makePlace(folder, path);
  const index = beginFile(compactIndex(folder));
  const store = new TensorStore(folder);
  let chunks = 0;
  const discard = (): void => {
    index.discard();
    removeIfAllowed(folder);
  };
  return {
    write: ({ index: chunk, inputs, outputs, metadata }: WritableChunk) => {
      const line = { chunk_idx: chunk, ...store.add(chunks, { inputs, outputs }), metadata };
      index.write(Buffer.from(`${pythonJsonText(line)}\n`));
      chunks++;
    },
    finish: () => {
      if (chunks === 0) throw new TrtforgeError('TF_REFERENCE_INVALID', `${path} would have no chunks.`);
      const { storedBytes, tensorBytes } = store;
      const header: CompactHeader = {
        schema: 'trtforge.reference/1',
        chunks,
        storedBytes,
        tensorBytes,
        provenance,
      };
      index.publish();
      publishFile(join(folder, HEADER), `${JSON.stringify(header, null, 2)}\n`);
      replaceFolder(place, folder);
      return { path, form: 'compact', chunks, bytes: storedBytes, tensorBytes };
    },
    discard,
  };
}

type Sides = Readonly<Record<'inputs' | 'outputs', NamedTensors>>;
interface StoredTensor {
  readonly npz: string;
  readonly tensor: string;
  readonly dtype: Tensor['dtype'];
  readonly shape: readonly number[];
  readonly sha256: string;
}

/** The npz files of a reference: a tensor that was stored before is named, not stored again. */
class TensorStore {
  readonly #folder: string;
  readonly #known = new Map<string, StoredTensor>();
  /** State that is fed back is the same memory twice and hashed once; after the next chunk that memory may have other contents. */
  #digests = new Map<Uint8Array, string>();
  #digestsBefore: ReadonlyMap<Uint8Array, string> = new Map();
  storedBytes = 0;
  tensorBytes = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  add(chunk: number, sides: Sides): Record<keyof Sides, Record<string, StoredTensor>> {
    this.#digestsBefore = this.#digests;
    this.#digests = new Map();
    const npz = `chunk-${String(chunk).padStart(6, '0')}.npz`;
    const fresh = new Map<string, Tensor>();
    const side = (which: keyof Sides): Record<string, StoredTensor> =>
      Object.fromEntries(
        [...sides[which]].map(([name, tensor]) => {
          const stored = this.#place(npz, `${which}.${name}`, tensor);
          if (stored.npz === npz && stored.tensor === `${which}.${name}`) fresh.set(stored.tensor, tensor);
          return [name, stored];
        }),
      );
    const placed = { inputs: side('inputs'), outputs: side('outputs') };
    if (fresh.size > 0) {
      writeNpz(join(this.#folder, npz), fresh);
      this.storedBytes += statSync(join(this.#folder, npz)).size;
    }
    return placed;
  }

  #place(npz: string, member: string, tensor: Tensor): StoredTensor {
    const { dtype, shape, bytes } = tensor;
    this.tensorBytes += bytes.length;
    const digest = this.#digests.get(bytes) ?? this.#digestsBefore.get(bytes) ?? sha256(bytes);
    this.#digests.set(bytes, digest);
    const key = `${dtype} [${shape}] ${digest}`;
    const stored = this.#known.get(key) ?? { npz, tensor: member, dtype, shape, sha256: digest };
    // Last used, last forgotten.
    this.#known.delete(key);
    this.#known.set(key, stored);
    if (this.#known.size > REMEMBERED) this.#known.delete(this.#known.keys().next().value ?? key);
    return stored;
  }
}

function rejectOtherFiles(path: string): void {
  assertNotInput(path);
  if (!existsSync(path) || isCompactReference(path)) return;
  if (statSync(path).isDirectory() && readdirSync(path).length === 0) return;
  throw new TrtforgeError(
    'TF_USAGE',
    `${path} exists already and is not a reference; it is not written over.`,
    {
      remedy: 'Choose another folder, or a file name that ends in .jsonl.',
    },
  );
}

/** `path` is what the user called it. */
function makePlace(folder: string, path: string): void {
  try {
    makeFolder(folder);
  } catch (cause) {
    throw writeFailed(path, cause);
  }
}

/** A folder that is not empty cannot be renamed over: the old one steps aside first. */
function replaceFolder(place: string, folder: string): void {
  const old = `${folder}.old`;
  try {
    const isThere = existsSync(place);
    if (isThere) renameSync(place, old);
    renameSync(folder, place);
    syncFolder(dirname(place));
    if (isThere) removeIfAllowed(old);
  } catch (cause) {
    throw writeFailed(place, cause);
  }
}
