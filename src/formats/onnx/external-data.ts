import { existsSync, realpathSync } from 'node:fs';
import { dirname, isAbsolute, join, win32 } from 'node:path';
import { type ByteSource, openFile } from '../../base/files/byte-source.js';
import { leaves } from '../../base/files/folders.js';
import { systemErrorCode, TrtforgeError } from '../../errors.js';
import { type TensorProto, TensorProto_DataLocation } from './onnx_pb.js';

/** The external_data entries of a tensor, with numbers. `length` is null when the model leaves it out. */
export interface ExternalReference {
  readonly location: string;
  readonly offset: number;
  readonly length: number | null;
}

export const isExternal = (tensor: TensorProto): boolean =>
  tensor.dataLocation === TensorProto_DataLocation.EXTERNAL;

/** The file that an external tensor names, as it stands there; undefined for other tensors, and where it names none. */
export const locationOf = (tensor: TensorProto): string | undefined =>
  isExternal(tensor)
    ? tensor.externalData.find(({ key }) => key === 'location')?.value || undefined
    : undefined;

/** Reads the key-value pairs of external_data. Throws TF_ONNX_EXTERNAL_INVALID. */
export function externalReference(tensor: TensorProto): ExternalReference {
  const entry = (key: string) => tensor.externalData.find((pair) => pair.key === key)?.value;
  const number = (key: string) => {
    const text = entry(key);
    if (text === undefined || text === '') return null;
    if (!/^\d{1,15}$/.test(text)) {
      throw invalid(tensor, `${key} "${text.slice(0, 40)}" is not a number of bytes`);
    }
    return Number(text);
  };
  const location = entry('location');
  if (location === undefined || location === '') throw invalid(tensor, 'it names no file');
  return { location, offset: number('offset') ?? 0, length: number('length') };
}

const invalid = (tensor: TensorProto, what: string) =>
  new TrtforgeError(
    'TF_ONNX_EXTERNAL_INVALID',
    `The external data of tensor "${tensor.name}" cannot be found: ${what}.`,
    { details: { tensor: tensor.name } },
  );

/** Opens the external-data files of one model, each once, and only those inside the model's folder (or another). */
export class ExternalFiles {
  readonly #modelPath: string;
  readonly #folder: string;
  readonly #open = new Map<string, ByteSource>();
  #roots: readonly string[] | undefined;

  constructor(modelPath: string, folder = dirname(modelPath)) {
    this.#modelPath = modelPath;
    this.#folder = folder;
  }

  /**
   * Where a location lies on disk. Throws TF_ONNX_EXTERNAL_OUTSIDE for absolute paths, `..` and links that leave the folder,
   * TF_ONNX_EXTERNAL_MISSING when nothing is there.
   */
  resolve(location: string): string {
    const outside = (why: string) =>
      new TrtforgeError(
        'TF_ONNX_EXTERNAL_OUTSIDE',
        `${this.#modelPath} refers to the external file "${location}", which ${why}; it is not opened.`,
        { details: { location } },
      );
    if (isAbsolute(location) || win32.isAbsolute(location)) throw outside('is an absolute path');
    if (location.includes('\0')) throw outside('contains a null character');
    const path = join(this.#folder, location);
    if (leaves(this.#folder, path)) throw outside("leaves the model's folder");
    const real = this.#realpath(path, location);
    if (this.#rootFolders().every((root) => leaves(root, real))) {
      throw outside(`is a link that leaves the model's folder (to ${real})`);
    }
    return path;
  }

  /** The opened file of a location; stays open until `close`. */
  open(location: string): ByteSource {
    const known = this.#open.get(location);
    if (known !== undefined) return known;
    const path = this.resolve(location);
    let source: ByteSource;
    try {
      source = openFile(path);
    } catch (cause) {
      throw this.#missing(location, cause instanceof Error ? cause.message : String(cause), cause);
    }
    this.#open.set(location, source);
    return source;
  }

  /** Paths of the files opened so far. */
  opened(): readonly string[] {
    return [...this.#open.values()].map((source) => source.path);
  }

  close(): void {
    for (const source of this.#open.values()) source.close();
    this.#open.clear();
  }

  /**
   * The folder the model is in, and the folder it really is in when the model itself is a link: caches (Hugging Face) keep a model and its
   * weights side by side in one folder and link to both.
   */
  #rootFolders(): readonly string[] {
    this.#roots ??= [
      realpathSync(this.#folder),
      ...(existsSync(this.#modelPath) ? [dirname(realpathSync(this.#modelPath))] : []),
    ];
    return this.#roots;
  }

  #realpath(path: string, location: string): string {
    try {
      return realpathSync(path);
    } catch (cause) {
      const why =
        systemErrorCode(cause) === 'ENOENT' ? 'does not exist' : `cannot be read (${systemErrorCode(cause)})`;
      throw this.#missing(location, `${path} ${why}.`, cause);
    }
  }

  #missing(location: string, why: string, cause: unknown): TrtforgeError {
    return new TrtforgeError(
      'TF_ONNX_EXTERNAL_MISSING',
      `${this.#modelPath} keeps weights in the external file "${location}", but ${why}`,
      { cause, details: { location } },
    );
  }
}
