import type { ByteSource } from '../../base/files/byte-source.js';
import { TrtforgeError } from '../../errors.js';

/** The facts that a shared library states of itself without being loaded. */
export interface ElfFacts {
  /** Node's name for the processor (`x64`, `arm64`), or `e_machine` as a number in text. */
  readonly architecture: string;
  readonly soname: string | null;
  /** Libraries it needs, by soname. */
  readonly needed: readonly string[];
  /** Versions of symbols it needs, by the library that has them: `libc.so.6` to `GLIBC_2.2.5` and others. */
  readonly versions: ReadonlyMap<string, readonly string[]>;
  /** The dynamic symbols it defines, by name. */
  readonly symbols: ReadonlyMap<string, ElfSymbol>;
}

export interface ElfSymbol {
  /** Position of its code or data in the file, in bytes; null where it has none in the file. */
  readonly offset: number | null;
}

const MAX_TABLE_BYTES = 64 << 20;
const MAX_VERSIONS = 4096;
const NOT_ELF = 'it is not a 64-bit little-endian ELF file';
const SHT_DYNAMIC = 6;
const SHT_DYNSYM = 11;
const SHT_GNU_VERNEED = 0x6ffffffe;
const DT_NEEDED = 1n;
const DT_SONAME = 14n;
const architectures: Readonly<Record<number, string>> = { 62: 'x64', 183: 'arm64' };

/**
 * Reads name, needs and dynamic symbols of a 64-bit little-endian ELF library (layout: System V ABI, chapters 4 and 5), a few kilobytes of the
 * hundreds of megabytes that a TensorRT library has. Throws TF_LIBRARY_INVALID for anything else.
 */
export function readElf(source: ByteSource): ElfFacts {
  if (source.size < 64) throw invalid(source, NOT_ELF);
  const header = read(source, 0, 64);
  const isElf64 = header.readUInt32BE(0) === 0x7f454c46 && header[4] === 2 && header[5] === 1;
  if (!isElf64) throw invalid(source, NOT_ELF);
  const machine = header.readUInt16LE(18);
  const sections = readSections(source, header);
  const symbolTable = sections.find((section) => section.type === SHT_DYNSYM);
  const dynamic = sections.find((section) => section.type === SHT_DYNAMIC);
  const names = (section: Section | undefined) => {
    const linked = section === undefined ? undefined : sections[section.link];
    return linked === undefined ? Buffer.alloc(0) : read(source, linked.offset, linked.size);
  };
  const { soname, needed } = readDynamic(source, dynamic, names(dynamic));
  const required = sections.find((section) => section.type === SHT_GNU_VERNEED);
  return {
    architecture: architectures[machine] ?? String(machine),
    soname,
    needed,
    versions: readVersions(source, required, names(required)),
    symbols: readSymbols(source, symbolTable, names(symbolTable), sections),
  };
}

/** The constant that a function returns which does nothing else (`mov $n, %eax; ret`, or its arm64 pair); null for any other function. */
export function constantReturned(source: ByteSource, symbol: ElfSymbol, architecture: string): number | null {
  if (symbol.offset === null || symbol.offset + 12 > source.size) return null;
  const code = read(source, symbol.offset, Math.min(16, source.size - symbol.offset));
  if (architecture === 'x64') {
    const at = code.readUInt32BE(0) === 0xf30f1efa ? 4 : 0;
    return code[at] === 0xb8 && code[at + 5] === 0xc3 ? code.readUInt32LE(at + 1) : null;
  }
  if (architecture === 'arm64') return arm64Constant(code);
  return null;
}

/** `mov w0, #low` [`movk w0, #high, lsl #16`] `ret`. */
function arm64Constant(code: Buffer): number | null {
  const [first, second, third] = [code.readUInt32LE(0), code.readUInt32LE(4), code.readUInt32LE(8)];
  const RET = 0xd65f03c0;
  const immediate = (word: number) => (word >>> 5) & 0xffff;
  if ((first & 0xffe0001f) >>> 0 !== 0x52800000) return null;
  if (second === RET) return immediate(first);
  const isHigh = (second & 0xffe0001f) >>> 0 === 0x72a00000;
  return isHigh && third === RET ? immediate(second) * 65536 + immediate(first) : null;
}

interface Section {
  readonly type: number;
  readonly address: number;
  readonly offset: number;
  readonly size: number;
  readonly link: number;
}

function readSections(source: ByteSource, header: Buffer): readonly Section[] {
  const offset = toNumber(source, header.readBigUInt64LE(40));
  const entryBytes = header.readUInt16LE(58);
  const count = header.readUInt16LE(60);
  if (entryBytes < 64 && count > 0) throw invalid(source, 'its section table is damaged');
  const table = read(source, offset, entryBytes * count);
  return Array.from({ length: count }, (_, index) => {
    const at = index * entryBytes;
    return {
      type: table.readUInt32LE(at + 4),
      address: toNumber(source, table.readBigUInt64LE(at + 16)),
      offset: toNumber(source, table.readBigUInt64LE(at + 24)),
      size: toNumber(source, table.readBigUInt64LE(at + 32)),
      link: table.readUInt32LE(at + 40),
    };
  });
}

function readDynamic(
  source: ByteSource,
  section: Section | undefined,
  names: Buffer,
): Pick<ElfFacts, 'soname' | 'needed'> {
  const needed: string[] = [];
  let soname: string | null = null;
  const table = section === undefined ? Buffer.alloc(0) : read(source, section.offset, section.size);
  for (let at = 0; at + 16 <= table.length; at += 16) {
    const tag = table.readBigUInt64LE(at);
    if (tag === 0n) break;
    if (tag !== DT_NEEDED && tag !== DT_SONAME) continue;
    const name = textAt(names, toNumber(source, table.readBigUInt64LE(at + 8)));
    if (tag === DT_SONAME) soname = name;
    else needed.push(name);
  }
  return { soname, needed };
}

/** Lists of libraries, each with a list of versions; every entry holds the distance to the next, 0 at the end (layout: Linux Standard Base, chapter 10.7). */
function readVersions(
  source: ByteSource,
  section: Section | undefined,
  names: Buffer,
): ReadonlyMap<string, readonly string[]> {
  const table = section === undefined ? Buffer.alloc(0) : read(source, section.offset, section.size);
  return new Map(
    entries(source, table, 0).map((library) => {
      const first = library + table.readUInt32LE(library + 8);
      const versions = entries(source, table, first);
      return [
        textAt(names, table.readUInt32LE(library + 4)),
        versions.map((version) => textAt(names, table.readUInt32LE(version + 8))),
      ];
    }),
  );
}

/** Where each entry of 16 bytes of a chain begins. Both kinds of entry end with the distance to the next. */
function entries(source: ByteSource, table: Buffer, first: number): readonly number[] {
  const found: number[] = [];
  for (let at = first; at < table.length; ) {
    if (at + 16 > table.length || found.length === MAX_VERSIONS)
      throw invalid(source, 'its table of versions is damaged');
    found.push(at);
    const distance = table.readUInt32LE(at + 12);
    if (distance === 0) break;
    at += distance;
  }
  return found;
}

function readSymbols(
  source: ByteSource,
  section: Section | undefined,
  names: Buffer,
  sections: readonly Section[],
): ReadonlyMap<string, ElfSymbol> {
  const symbols = new Map<string, ElfSymbol>();
  const table = section === undefined ? Buffer.alloc(0) : read(source, section.offset, section.size);
  for (let at = 0; at + 24 <= table.length; at += 24) {
    const home = sections[table.readUInt16LE(at + 6)];
    // Section 0 means that the symbol is wanted from elsewhere, not defined here.
    if (home === undefined || table.readUInt16LE(at + 6) === 0) continue;
    const address = toNumber(source, table.readBigUInt64LE(at + 8));
    const isInFile = home.type === 1 && address >= home.address && address < home.address + home.size;
    const offset = isInFile ? home.offset + (address - home.address) : null;
    const name = textAt(names, table.readUInt32LE(at));
    // Linkers for Arm list sections too, which have no name.
    if (name !== '') symbols.set(name, { offset });
  }
  return symbols;
}

function textAt(names: Buffer, at: number): string {
  if (at >= names.length) return '';
  const end = names.indexOf(0, at);
  return names.toString('latin1', at, end === -1 ? names.length : end);
}

function read(source: ByteSource, offset: number, length: number): Buffer {
  if (length > MAX_TABLE_BYTES || offset + length > source.size) throw invalid(source, 'it is cut short');
  const bytes = Buffer.alloc(length);
  if (source.read(bytes, offset, length) !== length) throw invalid(source, 'it is cut short');
  return bytes;
}

function toNumber(source: ByteSource, value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw invalid(source, 'its tables are damaged');
  return Number(value);
}

function invalid(source: ByteSource, what: string): TrtforgeError {
  return new TrtforgeError('TF_LIBRARY_INVALID', `${source.path} is not a usable library: ${what}.`);
}
