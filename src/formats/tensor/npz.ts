import { crc32, deflateRawSync } from 'node:zlib';
import {
  memberStart,
  readZipDirectory,
  readZipEntry,
  storedMember,
  type ZipEntry,
} from '../../base/archive/zip.js';
import { type ByteSource, bytesSource, closing, openFile } from '../../base/files/byte-source.js';
import { beginFile, type PendingFile } from '../../base/files/publish.js';
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

/** Writes a ZIP archive member by member. Layout: PKWARE APPNOTE.TXT 4.3, with ZIP64 fields always, as they are right at any size. */
export interface ZipWriter {
  /** Adds a member made of the parts of `content` in order. A deflated member is compressed in memory first. */
  add(name: string, content: readonly Uint8Array[], method: 'stored' | 'deflate'): void;
  /** Writes the directory; the caller publishes the file. */
  finish(): void;
}

const FULL = 0xffffffff;
const FULL_SHORT = 0xffff;
const VERSION_ZIP64 = 45;
/** Names are UTF-8 (bit 11 of the general purpose flag). */
const UTF8_NAMES = 0x0800;
/** 1 January 1980, the first day that ZIP knows: the same tensors give the same bytes. */
const FIRST_DAY = 0x0021;

interface WrittenMember {
  readonly name: Buffer;
  readonly method: number;
  readonly crc: number;
  readonly size: number;
  readonly compressedSize: number;
  readonly offset: number;
}

export function zipWriter(file: PendingFile): ZipWriter {
  const members: WrittenMember[] = [];
  return {
    add: (name, content, method) => {
      // zlib's crc32 takes an empty buffer for "start again" and would forget the parts before it.
      const parts = content.filter((part) => part.length > 0);
      const packed = method === 'deflate' ? [deflateRawSync(Buffer.concat(parts))] : parts;
      const member: WrittenMember = {
        name: Buffer.from(name),
        method: method === 'deflate' ? 8 : 0,
        crc: parts.reduce((checksum, part) => crc32(part, checksum), 0),
        size: totalBytes(parts),
        compressedSize: totalBytes(packed),
        offset: file.position,
      };
      file.write(localHeader(member));
      packed.forEach((part) => {
        file.write(part);
      });
      members.push(member);
    },
    finish: () => {
      const start = file.position;
      for (const member of members) file.write(centralHeader(member));
      file.write(endOfDirectory(members.length, start, file.position - start));
    },
  };
}

const totalBytes = (parts: readonly Uint8Array[]): number =>
  parts.reduce((total, part) => total + part.length, 0);

function localHeader(member: WrittenMember): Buffer {
  const extra = wideField([member.size, member.compressedSize]);
  const header = Buffer.alloc(30);
  header.writeUInt32LE(0x04034b50, 0);
  writeCommon(header, member, 4);
  header.writeUInt16LE(extra.length, 28);
  return Buffer.concat([header, member.name, extra]);
}

function centralHeader(member: WrittenMember): Buffer {
  const extra = wideField([member.size, member.compressedSize, member.offset]);
  const header = Buffer.alloc(46);
  header.writeUInt32LE(0x02014b50, 0);
  header.writeUInt16LE(VERSION_ZIP64, 4);
  writeCommon(header, member, 6);
  header.writeUInt16LE(extra.length, 30);
  header.writeUInt32LE(FULL, 42);
  return Buffer.concat([header, member.name, extra]);
}

/** The 24 bytes that both headers share: versions to the length of the name. */
function writeCommon(header: Buffer, member: WrittenMember, at: number): void {
  header.writeUInt16LE(VERSION_ZIP64, at);
  header.writeUInt16LE(UTF8_NAMES, at + 2);
  header.writeUInt16LE(member.method, at + 4);
  header.writeUInt16LE(FIRST_DAY, at + 8);
  header.writeUInt32LE(member.crc, at + 10);
  header.writeUInt32LE(FULL, at + 14);
  header.writeUInt32LE(FULL, at + 18);
  header.writeUInt16LE(member.name.length, at + 22);
}

function wideField(values: readonly number[]): Buffer {
  const field = Buffer.alloc(4 + 8 * values.length);
  field.writeUInt16LE(1, 0);
  field.writeUInt16LE(8 * values.length, 2);
  values.forEach((value, index) => {
    field.writeBigUInt64LE(BigInt(value), 4 + 8 * index);
  });
  return field;
}

function endOfDirectory(count: number, start: number, size: number): Buffer {
  const end = Buffer.alloc(56 + 20 + 22);
  end.writeUInt32LE(0x06064b50, 0);
  end.writeBigUInt64LE(44n, 4);
  end.writeUInt16LE(VERSION_ZIP64, 12);
  end.writeUInt16LE(VERSION_ZIP64, 14);
  end.writeBigUInt64LE(BigInt(count), 24);
  end.writeBigUInt64LE(BigInt(count), 32);
  end.writeBigUInt64LE(BigInt(size), 40);
  end.writeBigUInt64LE(BigInt(start), 48);
  end.writeUInt32LE(0x07064b50, 56);
  end.writeBigUInt64LE(BigInt(start + size), 64);
  end.writeUInt32LE(1, 72);
  end.writeUInt32LE(0x06054b50, 76);
  end.writeUInt16LE(FULL_SHORT, 84);
  end.writeUInt16LE(FULL_SHORT, 86);
  end.writeUInt32LE(FULL, 88);
  end.writeUInt32LE(FULL, 92);
  return end;
}
