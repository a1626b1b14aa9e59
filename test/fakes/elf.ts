import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

export interface FakeElf {
  readonly soname?: string;
  readonly needed?: readonly string[];
  /** Symbols defined; a number makes a function that returns it. */
  readonly symbols?: Readonly<Record<string, number | null>>;
  /** Symbols wanted from elsewhere. */
  readonly wanted?: readonly string[];
  readonly machine?: 'x64' | 'arm64';
}

const SECTION_BYTES = 64;

/** A 64-bit ELF library that no loader would take, but whose tables say what a real one's do. */
export function fakeElf({
  soname,
  needed = [],
  symbols = {},
  wanted = [],
  machine = 'x64',
}: FakeElf): Buffer {
  const names = textTable();
  const code: Buffer[] = [];
  const codeAddress = 0x1000;
  let codeBytes = 0;
  const entries = [symbol(0, 0, 0)];
  for (const [name, value] of Object.entries(symbols)) {
    const body = value === null ? Buffer.from([0x90, 0x90, 0xc3]) : returning(value, machine);
    entries.push(symbol(names.add(name), 4, codeAddress + codeBytes));
    code.push(body, Buffer.alloc(16));
    codeBytes += body.length + 16;
  }
  for (const name of wanted) entries.push(symbol(names.add(name), 0, 0));
  const dynamic = Buffer.concat([
    ...needed.map((name) => dynamicEntry(1n, names.add(name))),
    ...(soname === undefined ? [] : [dynamicEntry(14n, names.add(soname))]),
    dynamicEntry(0n, 0),
  ]);
  const parts = [Buffer.concat(entries), names.bytes(), dynamic, Buffer.concat([...code, Buffer.alloc(16)])];
  const [symbolTable, nameTable, dynamicTable, text] = offsets(parts, 64);
  const sections = Buffer.concat([
    Buffer.alloc(SECTION_BYTES),
    section(11, 0, symbolTable, 2),
    section(3, 0, nameTable, 0),
    section(6, 0, dynamicTable, 2),
    section(1, codeAddress, text, 0),
  ]);
  const body = Buffer.concat(parts);
  return Buffer.concat([header(machine, 64 + body.length), body, sections]);
}

/** A TensorRT library file of a version, `libnvinfer.so.10.6.0` with the links of a real package, or under the name given. */
export function placeLibrary(path: string, elf: FakeElf, ...links: readonly string[]): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, fakeElf(elf));
  for (const link of links) symlinkSync(basename(path), join(dirname(path), link));
}

export interface FakeTensorrt {
  readonly version: string;
  readonly parserVersion?: string;
  readonly hasParser?: boolean;
  readonly cudaMajor?: number;
  readonly machine?: 'x64' | 'arm64';
}

/** libnvinfer, its parser and its plug-ins of `major.minor.patch.build` in a folder, the way NVIDIA's packages lay them out. */
export function placeTensorrt(folder: string, fake: FakeTensorrt): void {
  const { version, parserVersion = version, hasParser = true, cudaMajor, machine = 'x64' } = fake;
  const short = (full: string) => full.split('.').slice(0, 3).join('.');
  const [major = ''] = version.split('.');
  const needed = cudaMajor === undefined ? [] : [`libcudart.so.${cudaMajor}`];
  const symbols = { [`tensorrt_version_${version.replaceAll('.', '_')}`]: null };
  const place = (stem: string, full: string, elf: FakeElf) =>
    placeLibrary(join(folder, `${stem}.so.${short(full)}`), elf, `${stem}.so.${major}`, `${stem}.so`);
  place('libnvinfer', version, { soname: `libnvinfer.so.${major}`, needed, symbols, machine });
  place('libnvinfer_plugin', version, { soname: `libnvinfer_plugin.so.${major}`, machine });
  if (hasParser) place('libnvonnxparser', parserVersion, { soname: `libnvonnxparser.so.${major}`, machine });
}

/** `mov $n, %eax; ret`, or `mov w0, #low; movk w0, #high, lsl #16; ret`. */
function returning(value: number, machine: 'x64' | 'arm64'): Buffer {
  if (machine === 'x64') {
    const body = Buffer.from([0xb8, 0, 0, 0, 0, 0xc3]);
    body.writeUInt32LE(value, 1);
    return body;
  }
  const body = Buffer.alloc(12);
  body.writeUInt32LE((0x52800000 | ((value & 0xffff) << 5)) >>> 0, 0);
  body.writeUInt32LE((0x72a00000 | ((value >>> 16) << 5)) >>> 0, 4);
  body.writeUInt32LE(0xd65f03c0, 8);
  return body;
}

function textTable() {
  const parts = [Buffer.from([0])];
  let length = 1;
  return {
    add: (text: string) => {
      const at = length;
      parts.push(Buffer.from(`${text}\0`));
      length += Buffer.byteLength(text) + 1;
      return at;
    },
    bytes: () => Buffer.concat(parts),
  };
}

function symbol(name: number, sectionIndex: number, address: number): Buffer {
  const entry = Buffer.alloc(24);
  entry.writeUInt32LE(name, 0);
  entry.writeUInt16LE(sectionIndex, 6);
  entry.writeBigUInt64LE(BigInt(address), 8);
  return entry;
}

function dynamicEntry(tag: bigint, value: number): Buffer {
  const entry = Buffer.alloc(16);
  entry.writeBigUInt64LE(tag, 0);
  entry.writeBigUInt64LE(BigInt(value), 8);
  return entry;
}

interface Place {
  readonly offset: number;
  readonly size: number;
}

function offsets(parts: readonly Buffer[], start: number): readonly [Place, Place, Place, Place] {
  let offset = start;
  const places = parts.map((part) => {
    const place = { offset, size: part.length };
    offset += part.length;
    return place;
  });
  return places as unknown as readonly [Place, Place, Place, Place];
}

function section(type: number, address: number, { offset, size }: Place, link: number): Buffer {
  const entry = Buffer.alloc(SECTION_BYTES);
  entry.writeUInt32LE(type, 4);
  entry.writeBigUInt64LE(BigInt(address), 16);
  entry.writeBigUInt64LE(BigInt(offset), 24);
  entry.writeBigUInt64LE(BigInt(size), 32);
  entry.writeUInt32LE(link, 40);
  return entry;
}

function header(machine: 'x64' | 'arm64', sectionsAt: number): Buffer {
  const bytes = Buffer.alloc(64);
  bytes.writeUInt32BE(0x7f454c46, 0);
  bytes.set([2, 1, 1], 4);
  bytes.writeUInt16LE(3, 16);
  bytes.writeUInt16LE(machine === 'x64' ? 0x3e : 0xb7, 18);
  bytes.writeBigUInt64LE(BigInt(sectionsAt), 40);
  bytes.writeUInt16LE(SECTION_BYTES, 58);
  bytes.writeUInt16LE(5, 60);
  return bytes;
}
