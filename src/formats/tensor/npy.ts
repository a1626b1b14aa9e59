import { type ByteSource, closing, openFile } from '../../base/files/byte-source.js';
import { publishFile } from '../../base/files/publish.js';
import { TrtforgeError } from '../../errors.js';
import { type Dtype, dtypes, elementCount, packedBytes } from './dtype.js';
import type { Tensor } from './tensor.js';
import { type LoadedSlot, storedTensor, type TensorReader } from './tensor-reader.js';

/** The content of the header of an npy file. Format: numpy.lib.format, versions 1.0 to 3.0. */
export interface NpyHeader {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly fortranOrder: boolean;
  readonly bigEndian: boolean;
  /** Where the elements begin and how many bytes they take. */
  readonly dataOffset: number;
  readonly dataBytes: number;
}

const MAGIC = '\x93NUMPY';
/** numpy itself rejects headers over 10,000 bytes; ours hold no more than a type and a shape. */
const MAX_HEADER_BYTES = 1 << 16;
const MAX_RANK = 64;

/**
 * Reads an npy file. numpy has no name for bfloat16, float8 and the like and writes them as void: `voidDtype` states what such a file has.
 * Throws TF_TENSOR_FILE_INVALID, TF_TENSOR_UNSUPPORTED (text, objects, records), TF_FILE_….
 */
export function readNpy(path: string, voidDtype?: Dtype): Tensor {
  return closing(openFile(path), (source) => {
    const header = readNpyHeader(source, voidDtype);
    const bytes = new Uint8Array(header.dataBytes);
    if (source.read(bytes, header.dataOffset, bytes.length) !== bytes.length)
      throw invalid(path, 'it is cut short');
    return toTensor(header, bytes);
  });
}

/** Reads an npy file that is in memory; the tensor may share its bytes. `path` names it in errors. */
export function parseNpy(path: string, content: Uint8Array, voidDtype?: Dtype): Tensor {
  const header = parseHeader(path, content, content.length, voidDtype);
  const { dataOffset, dataBytes } = header;
  return toTensor(header, new Uint8Array(content.buffer, content.byteOffset + dataOffset, dataBytes));
}

/**
 * An npy file to be read piece by piece. One that is column-major or big-endian is read as a whole when first needed and kept in `slot` until the slot
 * is needed for another. Throws TF_TENSOR_FILE_INVALID, TF_TENSOR_UNSUPPORTED.
 */
export function npyReader(source: ByteSource, slot: LoadedSlot, voidDtype?: Dtype): TensorReader {
  return elementsReader(source, readNpyHeader(source, voidDtype), slot);
}

/** The same where the header has been read. */
export function elementsReader(source: ByteSource, header: NpyHeader, slot: LoadedSlot): TensorReader {
  const isPlain = !header.bigEndian && (!header.fortranOrder || header.shape.length < 2);
  if (isPlain) return storedTensor(source, header.dataOffset, header);
  return slotTensor(header, slot, () => {
    const bytes = new Uint8Array(header.dataBytes);
    storedTensor(source, header.dataOffset, header).readBytes(0, bytes);
    return toTensor(header, bytes);
  });
}

/** A tensor that `load` makes when it is read and the slot holds another. */
export function slotTensor(
  { dtype, shape }: Pick<NpyHeader, 'dtype' | 'shape'>,
  slot: LoadedSlot,
  load: () => Tensor,
): TensorReader {
  const reader: TensorReader = {
    dtype,
    shape,
    readBytes: (position, target) => {
      if (slot.key !== reader || slot.tensor === null) {
        slot.tensor = null;
        slot.tensor = load();
        slot.key = reader;
      }
      target.set(slot.tensor.bytes.subarray(position, position + target.length));
    },
  };
  return reader;
}

/** Bytes from the beginning of an npy file that its header is within. */
export const HEADER_ROOM = MAX_HEADER_BYTES + 12;

/** Reads only the header of an npy file. Throws as `readNpy` does, also where the elements it declares are not all there. */
export function readNpyHeader(source: ByteSource, voidDtype?: Dtype): NpyHeader {
  const start = new Uint8Array(Math.min(source.size, HEADER_ROOM));
  const read = source.read(start, 0, start.length);
  return parseHeader(source.path, start.subarray(0, read), source.size, voidDtype);
}

/** The bytes of an npy file that come before the elements: 64-byte aligned, version 1.0. */
export function npyHeader(tensor: Tensor): Uint8Array {
  const tuple = tensor.shape.length === 1 ? `${tensor.shape[0]},` : tensor.shape.join(', ');
  const text = `{'descr': '${descriptor(tensor.dtype)}', 'fortran_order': False, 'shape': (${tuple}), }`;
  const length = Math.ceil((10 + text.length + 1) / 64) * 64;
  const header = Buffer.alloc(length, ' ');
  header.write(`${MAGIC}\x01\x00`, 'latin1');
  header.writeUInt16LE(length - 10, 8);
  header.write(text, 10, 'latin1');
  header.write('\n', length - 1, 'latin1');
  return header;
}

/** Writes an npy file in one step (temporary file, then rename). Types numpy lacks are written as void, as ml_dtypes writes them. */
export function writeNpy(path: string, tensor: Tensor): void {
  publishFile(path, Buffer.concat([npyHeader(tensor), tensor.bytes]));
}

/** `start` is the beginning of a file of `size` bytes. */
function parseHeader(path: string, start: Uint8Array, size: number, voidDtype: Dtype | undefined): NpyHeader {
  const bytes = Buffer.from(start.buffer, start.byteOffset, start.byteLength);
  if (bytes.length < 10 || bytes.toString('latin1', 0, 6) !== MAGIC) {
    throw invalid(path, 'it does not begin as an npy file does');
  }
  const major = bytes.readUInt8(6);
  if (major < 1 || major > 3) throw invalid(path, `it has format version ${major}; 1 to 3 are known`);
  const lengthBytes = major === 1 ? 2 : 4;
  if (bytes.length < 8 + lengthBytes) throw invalid(path, 'it is cut short');
  const length = major === 1 ? bytes.readUInt16LE(8) : bytes.readUInt32LE(8);
  const dataOffset = 8 + lengthBytes + length;
  if (length > MAX_HEADER_BYTES || dataOffset > bytes.length) throw invalid(path, 'its header is cut short');
  const text = bytes.toString('utf8', 8 + lengthBytes, dataOffset);
  const description = parseDescription(path, text, voidDtype);
  const { dtype, shape } = description;
  const dataBytes = packedBytes(dtype, elementCount(shape));
  if (dataOffset + dataBytes > size) {
    throw invalid(path, `[${shape}] of ${dtype} needs ${dataBytes} bytes, ${size - dataOffset} are there`);
  }
  return { ...description, dataOffset, dataBytes };
}

type Description = Omit<NpyHeader, 'dataOffset' | 'dataBytes'>;

/** The header is a Python dictionary of exactly these three keys; anything else is rejected, never evaluated. */
function parseDescription(path: string, text: string, voidDtype: Dtype | undefined): Description {
  const order = /'fortran_order'\s*:\s*(True|False)/.exec(text)?.[1];
  const tuple = /'shape'\s*:\s*\(([\d\sL,]*)\)/.exec(text)?.[1];
  const type = /'descr'\s*:\s*'([^']*)'/.exec(text)?.[1];
  if (type === undefined && /'descr'\s*:\s*\[/.test(text)) {
    throw unsupported(path, 'records (a structured type)');
  }
  if (order === undefined || tuple === undefined || type === undefined) {
    throw invalid(path, 'its header cannot be understood');
  }
  const shape = tuple
    .split(',')
    .map((part) => part.trim().replace(/L$/, ''))
    .filter((part) => part !== '')
    .map(Number);
  if (shape.length > MAX_RANK || !Number.isSafeInteger(elementCount(shape))) {
    throw invalid(path, 'its shape is impossible');
  }
  return {
    dtype: parseType(path, type, voidDtype),
    shape,
    fortranOrder: order === 'True',
    bigEndian: type[0] === '>',
  };
}

const numpyNames: Readonly<Record<string, Dtype>> = {
  f2: 'float16',
  f4: 'float32',
  f8: 'float64',
  i1: 'int8',
  i2: 'int16',
  i4: 'int32',
  i8: 'int64',
  u1: 'uint8',
  u2: 'uint16',
  u4: 'uint32',
  u8: 'uint64',
  b1: 'bool',
  c8: 'complex64',
  c16: 'complex128',
};

function parseType(path: string, type: string, voidDtype: Dtype | undefined): Dtype {
  const name = type.replace(/^[<>|=]/, '');
  const known = Object.hasOwn(numpyNames, name) ? numpyNames[name] : undefined;
  if (known !== undefined) return known;
  const voidBytes = /^V(\d+)$/.exec(name)?.[1];
  if (voidBytes === undefined) throw unsupported(path, unsupportedKind(name));
  if (voidDtype === undefined) {
    throw new TrtforgeError('TF_TENSOR_UNSUPPORTED', `${path} has void elements of ${voidBytes} bytes.`, {
      remedy: 'numpy writes bfloat16 and float8 that way: state the type.',
      details: { voidBytes: Number(voidBytes) },
    });
  }
  if (Object.values(numpyNames).includes(voidDtype)) {
    throw new TrtforgeError(
      'TF_TENSOR_UNSUPPORTED',
      `${path} has void elements of ${voidBytes} bytes, which are not ${voidDtype}: numpy has a name for that.`,
      {
        remedy: 'numpy writes bfloat16 and float8 as void: save them as float32, which represents them all.',
      },
    );
  }
  if (dtypes[voidDtype].bits !== 8 * Number(voidBytes)) {
    throw invalid(path, `its elements have ${voidBytes} bytes and cannot be ${voidDtype}`);
  }
  return voidDtype;
}

/** Whether a file was rejected only because the type of its void elements was not stated. */
export const lacksVoidDtype = (error: unknown): boolean =>
  error instanceof TrtforgeError && error.details?.voidBytes !== undefined;

function unsupportedKind(name: string): string {
  if (/^[US]/.test(name)) return `text (numpy type ${name})`;
  if (name.startsWith('O')) return 'Python objects';
  return `elements of numpy type ${name.slice(0, 20)}`;
}

function toTensor(header: NpyHeader, bytes: Uint8Array): Tensor {
  const { dtype, shape } = header;
  const little = header.bigEndian ? swapped(bytes, scalarBytes(dtype)) : bytes;
  const ordered = header.fortranOrder ? fromFortranOrder(little, shape, packedBytes(dtype, 1)) : little;
  return { dtype, shape, bytes: ordered };
}

/** A complex number is two floats, each with its own byte order. */
function scalarBytes(dtype: Dtype): number {
  return packedBytes(dtype, 1) / (dtypes[dtype].kind === 'complex' ? 2 : 1);
}

function swapped(bytes: Uint8Array, width: number): Uint8Array {
  const copy = Buffer.from(bytes);
  if (width === 2) copy.swap16();
  else if (width === 4) copy.swap32();
  else if (width === 8) copy.swap64();
  return new Uint8Array(copy.buffer, copy.byteOffset, copy.length);
}

/** Column-major to row-major: the first axis runs fastest in the file. */
function fromFortranOrder(bytes: Uint8Array, shape: readonly number[], width: number): Uint8Array {
  const count = elementCount(shape);
  if (shape.length < 2 || count < 2) return bytes;
  const strides: number[] = [];
  shape.reduce((stride, dimension) => {
    strides.push(stride);
    return stride * dimension;
  }, width);
  const result = new Uint8Array(bytes.length);
  const index = shape.map(() => 0);
  for (let element = 0, from = 0; element < count; element++) {
    for (let byte = 0; byte < width; byte++) result[element * width + byte] = bytes[from + byte]!;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      from += strides[axis]!;
      if (++index[axis]! < shape[axis]!) break;
      from -= strides[axis]! * shape[axis]!;
      index[axis] = 0;
    }
  }
  return result;
}

function descriptor(dtype: Dtype): string {
  const known = Object.entries(numpyNames).find(([, name]) => name === dtype)?.[0];
  const { bits } = dtypes[dtype];
  if (known === undefined && (bits < 8 || dtype === 'string')) {
    throw new TrtforgeError('TF_TENSOR_UNSUPPORTED', `A ${dtype} tensor cannot be written as npy.`);
  }
  const name = known ?? `V${bits / 8}`;
  return `${bits === 8 ? '|' : '<'}${name}`;
}

function invalid(path: string, what: string): TrtforgeError {
  return new TrtforgeError('TF_TENSOR_FILE_INVALID', `${path} cannot be read as npy: ${what}.`);
}

function unsupported(path: string, what: string): TrtforgeError {
  return new TrtforgeError('TF_TENSOR_UNSUPPORTED', `${path} contains ${what}, not numbers.`);
}

/** The file of an output in a folder. Names of tensors may contain slashes and colons; such characters are written as %2F. */
export const npyFileName = (name: string): string =>
  `${name.replace(/[^A-Za-z0-9._-]/gu, (character) => encodeURIComponent(character)).replace(/^\./, '%2E')}.npy`;

/** The name of the output in a file: what `npyFileName` made of it, taken back; any other file's name without its ending. */
export function nameOfNpy(file: string): string {
  const stem = file.replace(/\.npy$/i, '');
  try {
    const name = decodeURIComponent(stem);
    return npyFileName(name) === `${stem}.npy` ? name : stem;
  } catch (error) {
    if (error instanceof URIError) return stem;
    throw error;
  }
}
