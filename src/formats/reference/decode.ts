import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { closing, openFile } from '../../base/files/byte-source.js';
import { isRecord, type JsonRecord } from '../../base/files/json.js';
import { TrtforgeError } from '../../errors.js';
import { type Dtype, dtypes, elementCount, packedBytes } from '../tensor/dtype.js';
import { readNpy, readNpyHeader } from '../tensor/npy.js';
import type { Tensor } from '../tensor/tensor.js';
import { LineFault, longBase64, type ReferenceLine } from './lines.js';
import type { NumberLists } from './number-lists.js';

type Side = 'inputs' | 'outputs';

/** No chunk of a stream has more, and no tensor of one; a malicious shape, and names of one large file, stop here. */
const MAX_CHUNK_BYTES = 2 ** 32;

/**
 * Makes tensors of their encodings: base64 of raw bytes, lists of numbers, the path of an npy file. Throws LineFault.
 */
export class TensorDecoder {
  /** Of the reference. */
  readonly #path: string;
  readonly #lists: NumberLists;
  /** Bytes of this chunk from files beside. */
  #bytes = 0;

  constructor(path: string, lists: NumberLists) {
    this.#path = path;
    this.#lists = lists;
  }

  /** To be called before the tensors of another chunk. */
  turn(): void {
    this.#bytes = 0;
  }

  /** Before memory is taken for a tensor of a file beside. Throws LineFault. */
  #count({ dtype, shape }: Pick<Tensor, 'dtype' | 'shape'>): void {
    this.#bytes += packedBytes(dtype, elementCount(shape));
    if (this.#bytes > MAX_CHUNK_BYTES)
      throw new LineFault(`its tensors have more than ${MAX_CHUNK_BYTES} bytes`);
  }

  /** Dtype and shape of every tensor of one side, without decoding what is encoded. */
  describe(line: ReferenceLine, side: Side): RecordedBinding[] {
    return Object.entries(line[side]).map(([name, node]) => {
      if (isList(node)) {
        const { dtype, shape } = this.#lists.tensor(node, side, name, line.text);
        return { name, dtype, shape };
      }
      const encoded = encodedTensor(name, node);
      if ('data_b64' in encoded) return { name, ...declared(name, encoded) };
      return orFault(() =>
        closing(openFile(this.#npyPath(name, encoded)), (file) => {
          const { dtype, shape } = readNpyHeader(file);
          return { name, dtype, shape };
        }),
      );
    });
  }

  decode(line: ReferenceLine, side: Side, name: string): Tensor {
    const node = line[side][name];
    if (isList(node)) return this.#lists.tensor(node, side, name, line.text);
    const encoded = encodedTensor(name, node);
    if ('data_b64' in encoded) return base64Tensor(name, encoded, line);
    const path = this.#npyPath(name, encoded);
    return orFault(() => {
      this.#count(closing(openFile(path), readNpyHeader));
      return readNpy(path);
    });
  }

  /** Beside the reference, or where the command runs, as the first tools that wrote such paths had it. */
  #npyPath(name: string, node: JsonRecord): string {
    const path = node.npy_path;
    if (typeof path !== 'string' || path === '') {
      throw new LineFault(`${name} has neither data_b64 nor npy_path nor numbers`);
    }
    const beside = isAbsolute(path) ? path : join(dirname(this.#path), path);
    if (existsSync(beside)) return beside;
    if (existsSync(path)) return path;
    throw new LineFault(`the file ${path} of ${name} does not exist`);
  }
}

/** Turns an error in a file that a line names into a fault of the line. */
function orFault<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof TrtforgeError) throw new LineFault(error.message.replace(/\.$/, ''));
    throw error;
  }
}

/** Characters of base64 that become a string at once: whole groups of four, few enough that the string is young and soon freed. */
const BASE64_STEP = 1 << 16;

function base64Tensor(name: string, node: JsonRecord, line: ReferenceLine): Tensor {
  const { dtype, shape } = declared(name, node);
  const bytes = packedBytes(dtype, elementCount(shape));
  const text = typeof node.data_b64 === 'string' ? node.data_b64 : '';
  const characters = longBase64(text, line) ?? Buffer.from(text, 'latin1');
  const most = Math.floor((characters.length * 3) / 4);
  // Checked before memory is taken: a line of a few bytes cannot ask for gigabytes.
  if (most < bytes || most > bytes + 2) {
    throw new LineFault(
      `${name} has ${characters.length} characters of base64, [${shape}] of ${dtype} needs ${4 * Math.ceil(bytes / 3)}`,
    );
  }
  const target = Buffer.allocUnsafeSlow(bytes);
  const written = decodeBase64(characters, target);
  if (written !== bytes) throw new LineFault(`the base64 of ${name} has other characters or ends early`);
  return { dtype, shape, bytes: new Uint8Array(target.buffer) };
}

/** Bytes written; fewer than there are where characters are not base64, which the decoder skips. */
function decodeBase64(characters: Buffer, target: Buffer): number {
  let written = 0;
  for (let at = 0; at < characters.length; at += BASE64_STEP) {
    const step = characters.toString('latin1', at, at + BASE64_STEP);
    const found = target.write(step, written, 'base64');
    written += found;
    // A step that is short in the middle would shift what follows.
    if (found < (BASE64_STEP / 4) * 3) return at + BASE64_STEP < characters.length ? -1 : written;
  }
  return written;
}

const isList = (node: unknown): boolean => Array.isArray(node) || typeof node === 'number';

function encodedTensor(name: string, node: unknown): JsonRecord {
  if (isRecord(node)) return node;
  throw new LineFault(`${name} is neither an encoded tensor nor numbers`);
}

function declared(name: string, node: JsonRecord): { dtype: Dtype; shape: readonly number[] } {
  return { dtype: dtypeOf(name, node.dtype), shape: shapeOf(name, node.shape) };
}

/** numpy's names, also with the mark of little-endian order in front. */
function dtypeOf(name: string, value: unknown): Dtype {
  const dtype = typeof value === 'string' ? (numpyCodes[value] ?? value) : '';
  if (Object.hasOwn(dtypes, dtype) && dtype !== 'string') return dtype as Dtype;
  throw new LineFault(`${name} has the dtype ${JSON.stringify(value) ?? 'undefined'}, which is unknown`);
}

const numpyCodes: Readonly<Record<string, Dtype>> = {
  '<f2': 'float16',
  '<f4': 'float32',
  '<f8': 'float64',
  '<i4': 'int32',
  '<i8': 'int64',
  '|b1': 'bool',
  '|u1': 'uint8',
  '|i1': 'int8',
};

function shapeOf(name: string, value: unknown): readonly number[] {
  const isShape =
    Array.isArray(value) &&
    value.length <= 32 &&
    value.every((size) => typeof size === 'number' && Number.isSafeInteger(size) && size >= 0);
  if (isShape && elementCount(value as number[]) <= MAX_CHUNK_BYTES) return value as number[];
  throw new LineFault(`${name} has no valid shape`);
}

export interface RecordedBinding {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
}
