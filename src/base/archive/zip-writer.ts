import { crc32, deflateRawSync } from 'node:zlib';
import type { PendingFile } from '../files/publish.js';

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
