import { existsSync } from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { type ByteSource, openFile } from '../../../base/files/byte-source.js';
import { TrtforgeError } from '../../../errors.js';
import { BASE64_STEP, base64Decoder } from '../../../formats/tensor/base64-decoder.js';
import { type Dtype, dtypes, elementCount, packedBytes } from '../../../formats/tensor/dtype.js';
import { readNpy, readNpyHeader } from '../../../formats/tensor/npy.js';
import { openNpz } from '../../../formats/tensor/npz.js';
import type { Tensor } from '../../../formats/tensor/tensor.js';
import { integerTensor, tensorFrom } from '../../../formats/tensor/values.js';
import type { RecordedBinding } from '../recorded-stream.js';
import { LineFault } from './fault.js';
import { NumberList } from './numbers.js';
import { TextSpan } from './scanned-text.js';
import type { LineNode, LineScanner, TensorNode } from './scanner.js';

/** Gives memory for a tensor: new, or used again for the same tensor of a later chunk. */
export type Allocate = (tensor: string, bytes: number) => Uint8Array;

/** Nothing real is larger; a shape that is made to hurt stops here. */
const MAX_TENSOR_BYTES = 2 ** 34;

/**
 * Makes tensors of their encodings: base64 of raw bytes, lists of numbers, the path of an npy file, and ours, the member of an npz file beside.
 * Throws LineFault.
 */
export class TensorDecoder {
  readonly #source: ByteSource;
  readonly #scanner: LineScanner;
  /** Members of npz files that this chunk and the one before it used: what one puts out the next takes in. */
  #members = new Map<string, Tensor>();
  #membersBefore: ReadonlyMap<string, Tensor> = new Map();

  constructor(source: ByteSource, scanner: LineScanner) {
    this.#source = source;
    this.#scanner = scanner;
  }

  /** Tells that the next tensors are those of another chunk. */
  turn(): void {
    this.#membersBefore = this.#members;
    this.#members = new Map();
  }

  /** Dtype and shape without decoding the elements. */
  describe(name: string, node: TensorNode): RecordedBinding {
    if (node instanceof NumberList) return { name, dtype: listDtype(node), shape: node.shape };
    if (node.has('data_b64') || node.has('npz')) return { name, ...declared(name, node) };
    return orFault(() => {
      const file = openFile(this.#npyPath(name, node));
      try {
        const { dtype, shape } = readNpyHeader(file);
        return { name, dtype, shape };
      } finally {
        file.close();
      }
    });
  }

  decode(name: string, node: TensorNode, allocate: Allocate): Tensor {
    if (node instanceof NumberList) return listTensor(node);
    if (node.has('data_b64')) return this.#base64(name, node, allocate);
    if (node.has('npz')) return this.#member(name, node);
    return orFault(() => readNpy(this.#npyPath(name, node)));
  }

  #member(name: string, node: ReadonlyMap<string, LineNode>): Tensor {
    const [npz, member] = [node.get('npz'), node.get('tensor')];
    if (typeof npz !== 'string' || typeof member !== 'string' || basename(npz) !== npz) {
      throw new LineFault(`${name} does not say which member of which npz file beside it holds it`);
    }
    const { dtype, shape } = declared(name, node);
    const key = `${npz}/${member}`;
    const tensor =
      this.#members.get(key) ??
      this.#membersBefore.get(key) ??
      orFault(() => readMember(join(dirname(this.#source.path), npz), member, dtype));
    if (tensor.dtype !== dtype || tensor.shape.join() !== shape.join()) {
      throw new LineFault(
        `${member} in ${npz} is ${tensor.dtype} [${tensor.shape}], not ${dtype} [${shape}]`,
      );
    }
    this.#members.set(key, tensor);
    return tensor;
  }

  #base64(name: string, node: ReadonlyMap<string, LineNode>, allocate: Allocate): Tensor {
    const { dtype, shape } = declared(name, node);
    const bytes = packedBytes(dtype, elementCount(shape));
    const content = node.get('data_b64');
    const isFar = content instanceof TextSpan && !content.escaped;
    const text = content instanceof TextSpan && content.escaped ? this.#scanner.textOf(content) : content;
    const length = isFar ? content.end - content.start : typeof text === 'string' ? text.length : -1;
    // Checked before memory is taken: a line of a few bytes cannot ask for gigabytes.
    if (length < 0 || base64Bytes(length) < bytes || base64Bytes(length) > bytes + 2) {
      throw new LineFault(
        `${name} has ${Math.max(0, length)} characters of base64, [${shape}] of ${dtype} needs ${4 * Math.ceil(bytes / 3)}`,
      );
    }
    const target = allocate(name, bytes);
    const done = isFar ? this.#decodeSpan(content, target) : asBuffer(target).write(text as string, 'base64');
    if (done !== bytes) throw new LineFault(`the base64 of ${name} holds other characters or ends early`);
    return { dtype, shape, bytes: target };
  }

  /** Whole groups of four characters a step at a time, straight into the tensor. Bytes written. */
  #decodeSpan({ start, end }: TextSpan, target: Uint8Array): number {
    const buffer = asBuffer(target);
    const decoder = base64Decoder();
    let done = 0;
    for (let at = start; at < end; at += BASE64_STEP) {
      const length = this.#source.read(decoder.text, at, Math.min(BASE64_STEP, end - at));
      const expected = Math.min((length / 4) * 3, target.length - done);
      const written = decoder.decode(length, buffer, done);
      // Characters that are not base64 are passed over by the decoder, so less comes out.
      if (written < Math.floor(expected)) return -1;
      done += written;
    }
    return done;
  }

  /** Beside the reference, or, as the first tools that wrote such paths meant them, where the command runs. */
  #npyPath(name: string, node: ReadonlyMap<string, LineNode>): string {
    const path = node.get('npy_path');
    if (typeof path !== 'string' || path === '') {
      throw new LineFault(`${name} has neither data_b64 nor npy_path nor numbers`);
    }
    const beside = isAbsolute(path) ? path : join(dirname(this.#source.path), path);
    if (existsSync(beside)) return beside;
    if (existsSync(path)) return path;
    throw new LineFault(`the file ${path} of ${name} is not there`);
  }
}

function readMember(path: string, member: string, voidDtype: Dtype): Tensor {
  const file = openNpz(path, { voidDtype });
  try {
    return file.read(member);
  } finally {
    file.close();
  }
}

/** What is wrong with a file that a line names is wrong with the line. */
function orFault<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof TrtforgeError) throw new LineFault(error.message.replace(/\.$/, ''));
    throw error;
  }
}

const asBuffer = ({ buffer, byteOffset, length }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, length);

/** Most bytes that so many characters of base64 stand for, padding counted as if it were none. */
const base64Bytes = (characters: number): number => Math.floor((characters * 3) / 4);

function declared(
  name: string,
  node: ReadonlyMap<string, LineNode>,
): { dtype: Dtype; shape: readonly number[] } {
  return { dtype: dtypeOf(name, node.get('dtype')), shape: shapeOf(name, node.get('shape')) };
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
  if (isShape && elementCount(value as number[]) <= MAX_TENSOR_BYTES) return value as number[];
  throw new LineFault(`${name} has no shape that can be`);
}

const listDtype = ({ integers }: NumberList): Dtype => (integers ? 'int64' : 'float32');

function listTensor({ shape, values, integers }: NumberList): Tensor {
  if (integers) return integerTensor('int64', shape, values);
  return tensorFrom('float32', shape, values instanceof Float32Array ? values : Float32Array.from(values));
}
