import {
  memberStart,
  readZipDirectory,
  readZipEntry,
  storedMember,
  type ZipEntry,
} from '../../base/archive/zip.js';
import { zipWriter } from '../../base/archive/zip-writer.js';
import { type ByteSource, bytesSource, closing, openFile } from '../../base/files/byte-source.js';
import { beginFile } from '../../base/files/publish.js';
import { TrtforgeError } from '../../errors.js';
import type { Dtype } from './dtype.js';
import {
  elementsReader,
  HEADER_ROOM,
  type NpyHeader,
  npyHeader,
  parseNpy,
  readNpyHeader,
  slotTensor,
} from './npy.js';
import type { NamedTensors, Tensor } from './tensor.js';
import { type TensorFile, tensorNotFound } from './tensor-reader.js';

/** DEFLATE cannot shrink by more than 1032 to 1: a member that claims more is a lie and would only cost memory. */
const MAX_DEFLATE_RATIO = 1032;
const SUFFIX = '.npy';

interface NpzOptions {
  /** The dtype of a member of void elements, by its name (see `readNpy`). */
  readonly voidDtypes?: Readonly<Record<string, Dtype>>;
  /** The dtype of every other member of void elements. */
  readonly voidDtype?: Dtype;
}

/** Opens an npz archive (numpy.savez, savez_compressed, ZIP64 too); members are read when asked for. Throws TF_ARCHIVE_INVALID. */
export function openNpz(path: string, options: NpzOptions = {}): TensorFile {
  return npzOver(openFile(path), options);
}

/** The same over bytes from anywhere; closing closes the source. */
export function npzOver(source: ByteSource, options: NpzOptions = {}): TensorFile {
  const members = new Map(closeIfFails(source, () => tensorMembers(source)));
  const find = (name: string): ZipEntry => {
    const member = members.get(name);
    if (member === undefined) throw tensorNotFound(source.path, name, members.keys());
    return member;
  };
  const voidDtypeOf = (name: string) => options.voidDtypes?.[name] ?? options.voidDtype;
  // The header reports how much follows: what an archive holds beyond it is rejected before it is unpacked.
  const content = (name: string, entry: ZipEntry): Buffer => {
    const member = memberOf(source, entry);
    const header = readNpyHeader(member, voidDtypeOf(name));
    if (header.dataOffset + header.dataBytes < entry.size) throw tooLong(member, header);
    return readZipEntry(source, entry, sizeLimit(source, entry));
  };
  return {
    path: source.path,
    names: [...members.keys()],
    describe: (name) => {
      const { dtype, shape } = readNpyHeader(memberOf(source, find(name)), voidDtypeOf(name));
      return { dtype, shape };
    },
    read: (name) => {
      const entry = find(name);
      return parseNpy(`${entry.name} in ${source.path}`, content(name, entry), voidDtypeOf(name));
    },
    reader: (name, slot) => {
      const entry = find(name);
      const member = memberOf(source, entry);
      const header = readNpyHeader(member, voidDtypeOf(name));
      // Piece by piece, a checksum is complete only when the tensor's bytes are the member's.
      if (entry.method === 'stored' && fills(member, header)) return elementsReader(member, header, slot);
      const load = () => parseNpy(member.path, content(name, entry), voidDtypeOf(name));
      return slotTensor(header, slot, load);
    },
    close: () => source.close(),
  };
}

/** Reads every tensor of an npz archive into memory. */
export function readNpz(path: string, options: NpzOptions = {}): NamedTensors {
  return closing(
    openNpz(path, options),
    (file) => new Map(file.names.map((name): [string, Tensor] => [name, file.read(name)])),
  );
}

/** Writes an npz archive that numpy.load reads, in one step; `compress` deflates the members. */
export function writeNpz(
  path: string,
  tensors: NamedTensors,
  options: { readonly compress?: boolean } = {},
): void {
  const file = beginFile(path);
  try {
    const archive = zipWriter(file);
    for (const [name, tensor] of tensors) {
      archive.add(
        `${name}${SUFFIX}`,
        [npyHeader(tensor), tensor.bytes],
        options.compress === true ? 'deflate' : 'stored',
      );
    }
    archive.finish();
    file.publish();
  } catch (error) {
    file.discard();
    throw error;
  }
}

function tensorMembers(source: ByteSource): readonly (readonly [string, ZipEntry])[] {
  return readZipDirectory(source)
    .filter((entry) => entry.name.endsWith(SUFFIX))
    .map((entry) => [entry.name.slice(0, -SUFFIX.length), entry]);
}

function closeIfFails<T>(source: ByteSource, action: () => T): T {
  try {
    return action();
  } catch (error) {
    source.close();
    throw error;
  }
}

function sizeLimit(source: ByteSource, entry: ZipEntry): number {
  const possible = MAX_DEFLATE_RATIO * Math.max(64, entry.compressedSize);
  if (entry.size > possible) {
    throw new TrtforgeError(
      'TF_TENSOR_FILE_INVALID',
      `${entry.name} in ${source.path} claims ${entry.size} bytes from ${entry.compressedSize}, which cannot be.`,
    );
  }
  return Math.max(entry.size, entry.compressedSize);
}

/** A member as a source of its own; of a compressed one only the beginning can be read. */
function memberOf(source: ByteSource, entry: ZipEntry): ByteSource {
  if (entry.method === 'stored') return storedMember(source, entry);
  sizeLimit(source, entry);
  const start = memberStart(source, entry, HEADER_ROOM);
  return { ...bytesSource(`${entry.name} in ${source.path}`, start), size: entry.size };
}

const tooLong = ({ path, size }: ByteSource, { dataOffset, dataBytes }: NpyHeader): TrtforgeError =>
  new TrtforgeError(
    'TF_TENSOR_FILE_INVALID',
    `${path} has ${size} bytes, more than the ${dataOffset + dataBytes} of its header and tensor.`,
  );

const fills = (member: ByteSource, { dataOffset, dataBytes }: NpyHeader): boolean =>
  dataOffset + dataBytes === member.size;
