import { type ByteSource, openFile } from '../../base/files/byte-source.js';
import { isRecord, parseJson } from '../../base/files/json.js';
import { TrtforgeError } from '../../errors.js';
import { type Dtype, elementCount, packedBytes } from './dtype.js';
import { storedTensor, type TensorFile, tensorNotFound } from './tensor-reader.js';

/** The limit that the reference implementation sets on the header. */
const MAX_HEADER_BYTES = 100_000_000;

const typeNames: Readonly<Record<string, Dtype>> = {
  BOOL: 'bool',
  U8: 'uint8',
  I8: 'int8',
  U16: 'uint16',
  I16: 'int16',
  U32: 'uint32',
  I32: 'int32',
  U64: 'uint64',
  I64: 'int64',
  F16: 'float16',
  BF16: 'bfloat16',
  F32: 'float32',
  F64: 'float64',
  C64: 'complex64',
  F8_E4M3: 'float8_e4m3fn',
  F8_E5M2: 'float8_e5m2',
  F8_E8M0: 'float8_e8m0fnu',
  F4: 'float4_e2m1fn',
};

interface Entry {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly offset: number;
  readonly bytes: number;
}

/**
 * Opens a safetensors file: eight bytes of header length, a JSON header, the elements. Tensors are read when asked for.
 * Throws TF_TENSOR_FILE_INVALID, TF_TENSOR_UNSUPPORTED (a type we do not know), TF_FILE_….
 */
export function openSafetensors(path: string): TensorFile {
  return safetensorsOver(openFile(path));
}

/** The same over bytes from anywhere; closing closes the source. */
export function safetensorsOver(source: ByteSource): TensorFile {
  const entries = readEntries(source);
  const find = (name: string): Entry => {
    const entry = entries.get(name);
    if (entry === undefined) throw tensorNotFound(source.path, name, entries.keys());
    return entry;
  };
  return {
    path: source.path,
    names: [...entries.keys()],
    describe: (name) => {
      const { dtype, shape } = find(name);
      return { dtype, shape };
    },
    read: (name) => {
      const { dtype, shape, offset, bytes: length } = find(name);
      const bytes = new Uint8Array(length);
      if (source.read(bytes, offset, length) !== length) throw invalid(source.path, 'it is cut short');
      return { dtype, shape, bytes };
    },
    reader: (name) => {
      const entry = find(name);
      return storedTensor(source, entry.offset, entry);
    },
    close: () => source.close(),
  };
}

function readEntries(source: ByteSource): ReadonlyMap<string, Entry> {
  try {
    return parseEntries(source);
  } catch (error) {
    source.close();
    throw error;
  }
}

function parseEntries(source: ByteSource): ReadonlyMap<string, Entry> {
  const prefix = Buffer.alloc(8);
  if (source.read(prefix, 0, 8) < 8) throw invalid(source.path, 'it is cut short');
  const length = Number(prefix.readBigUInt64LE());
  if (length > MAX_HEADER_BYTES || 8 + length > source.size)
    throw invalid(source.path, 'its header is cut short');
  const header = Buffer.alloc(length);
  source.read(header, 8, length);
  const json = parseObject(source.path, header.toString());
  return new Map(
    Object.entries(json)
      .filter(([name]) => name !== '__metadata__')
      .map(([name, value]) => [name, parseEntry(source, 8 + length, name, value)]),
  );
}

function parseObject(path: string, text: string): Record<string, unknown> {
  const value = parseJson(text, MAX_HEADER_BYTES, (why) => invalid(path, `its header is not valid: ${why}`));
  if (!isRecord(value)) throw invalid(path, 'its header is not a JSON object');
  return value;
}

function parseEntry(source: ByteSource, dataStart: number, name: string, value: unknown): Entry {
  if (!isRecord(value)) throw invalid(source.path, `the entry of tensor ${name} is not an object`);
  const { dtype: typeName, shape, data_offsets: offsets } = value;
  const dtype =
    typeof typeName === 'string' && Object.hasOwn(typeNames, typeName) ? typeNames[typeName] : undefined;
  if (dtype === undefined) {
    throw new TrtforgeError(
      'TF_TENSOR_UNSUPPORTED',
      `Tensor ${name} in ${source.path} has the type ${String(typeName).slice(0, 40)}, which trtforge does not read.`,
    );
  }
  if (!isSizes(shape) || !isSizes(offsets) || offsets.length !== 2) {
    throw invalid(source.path, `shape or offsets of tensor ${name} are not whole numbers`);
  }
  const [begin = 0, end = 0] = offsets;
  const bytes = packedBytes(dtype, elementCount(shape));
  if (end - begin !== bytes || dataStart + end > source.size) {
    throw invalid(source.path, `tensor ${name} lies outside the file or does not fill its shape`);
  }
  return { dtype, shape, offset: dataStart + begin, bytes };
}

const isSizes = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);

function invalid(path: string, what: string): TrtforgeError {
  return new TrtforgeError('TF_TENSOR_FILE_INVALID', `${path} cannot be read as safetensors: ${what}.`);
}
