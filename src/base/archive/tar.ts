import { TrtforgeError } from '../../errors.js';
import type { ByteSource } from '../files/byte-source.js';

/** POSIX ustar archives of plain files; sizes beyond 8 GiB in GNU's base-256 form, which every tar of today reads. */
const BLOCK = 512;

/** A file of an archive: where its bytes lie. */
export interface TarMember {
  readonly name: string;
  readonly offset: number;
  readonly bytes: number;
}

/** The header block of a file. Names are plain: at most 100 bytes after the last slash and 155 before it. Throws TF_ARCHIVE_INVALID. */
export function tarHeader(name: string, bytes: number, modified: Date): Buffer {
  const slash = name.lastIndexOf('/');
  const [prefix, last] = slash < 0 ? ['', name] : [name.slice(0, slash), name.slice(slash + 1)];
  if (Buffer.byteLength(last) > 100 || Buffer.byteLength(prefix) > 155)
    throw invalid(name, 'its name is too long for a tar archive');
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number) =>
    header.write(value.toString(8).padStart(length - 1, '0'), at, 'latin1');
  header.write(last, 0, 'utf8');
  octal(0o644, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  if (bytes < 8 ** 11) octal(bytes, 124, 12);
  else {
    header[124] = 0x80;
    header.writeBigUInt64BE(BigInt(bytes), 128);
  }
  octal(Math.floor(modified.getTime() / 1000), 136, 12);
  header.write('        0', 148, 'latin1');
  header.write('ustar\x0000', 257, 'latin1');
  header.write(prefix, 345, 'utf8');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return header;
}

/** Zeros that fill a file up to a whole block. */
export const tarPadding = (bytes: number): Buffer => Buffer.alloc((BLOCK - (bytes % BLOCK)) % BLOCK);

/** The two zero blocks that end an archive. */
export const tarEnd = (): Buffer => Buffer.alloc(2 * BLOCK);

/** The plain files of an archive, in order; links, folders and devices are passed over. Throws TF_ARCHIVE_INVALID. */
export function* tarMembers(source: ByteSource): Generator<TarMember> {
  const block = Buffer.alloc(BLOCK);
  for (let at = 0; at < source.size; ) {
    if (source.read(block, at, BLOCK) < BLOCK)
      throw invalid(source.path, `it ends within the header at ${at}`);
    if (block.every((byte) => byte === 0)) return;
    const bytes = sizeOf(block, source.path, at);
    const offset = at + BLOCK;
    if (offset + bytes > source.size) throw invalid(source.path, `it is cut short in the file at ${at}`);
    const type = block[156];
    if (type === 0x30 || type === 0) yield { name: nameOf(block), offset, bytes };
    at = offset + Math.ceil(bytes / BLOCK) * BLOCK;
  }
}

function nameOf(block: Buffer): string {
  const field = (at: number, length: number) => {
    const text = block.subarray(at, at + length);
    const end = text.indexOf(0);
    return text.toString('utf8', 0, end < 0 ? length : end);
  };
  const prefix = field(257, 5) === 'ustar' ? field(345, 155) : '';
  return prefix === '' ? field(0, 100) : `${prefix}/${field(0, 100)}`;
}

function sizeOf(block: Buffer, path: string, at: number): number {
  checkSum(block, path, at);
  if (((block[124] ?? 0) & 0x80) !== 0) {
    const bytes = Number(block.readBigUInt64BE(128));
    if (Number.isSafeInteger(bytes)) return bytes;
  }
  const text = block.toString('latin1', 124, 136).replace(/[\0 ]+$/, '');
  if (!/^ *[0-7]+$/.test(text)) throw invalid(path, `the header at ${at} gives no size`);
  return Number.parseInt(text, 8);
}

function checkSum(block: Buffer, path: string, at: number): void {
  const said = Number.parseInt(block.toString('latin1', 148, 156), 8);
  const sum = block.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 0x20 : byte), 0);
  if (said !== sum) throw invalid(path, `there is no tar header at ${at}`);
}

const invalid = (path: string, why: string): TrtforgeError =>
  new TrtforgeError('TF_ARCHIVE_INVALID', `${path} is not a tar archive that can be used: ${why}.`);
