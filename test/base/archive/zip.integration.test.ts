import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  isUnsafeZipEntry,
  readZipDirectory,
  readZipEntry,
  type ZipEntry,
  zipEntryChunks,
} from '../../../src/base/archive/zip.js';
import { bytesSource, openFile } from '../../../src/base/files/byte-source.js';
import { TrtforgeError } from '../../../src/errors.js';
import { zipBytes } from '../../fakes/wheel.js';
import { randomNumbers } from '../../support/mutations.js';
import { found } from '../../support/needs.js';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'trtforge-zip-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const big = Buffer.alloc(3_000_000, 'The same words again and again. ');
const members = { 'a.txt': Buffer.from('alpha'), 'sub/big.bin': big, empty: Buffer.alloc(0) };

async function streamed(bytes: Buffer, name: string): Promise<Buffer> {
  const source = bytesSource('archive', bytes);
  const entry = readZipDirectory(source).find((each) => each.name === name);
  const chunks: Uint8Array[] = [];
  if (entry !== undefined) for await (const chunk of zipEntryChunks(source, entry)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

describe('a ZIP archive', () => {
  it.each(['stored', 'deflate'] as const)('returns %s members, streamed and at once', async (method) => {
    const bytes = zipBytes(members, method);
    const source = bytesSource('archive', bytes);
    const entries = readZipDirectory(source);
    expect(entries.map(({ name, size }) => [name, size])).toEqual([
      ['a.txt', 5],
      ['sub/big.bin', big.length],
      ['empty', 0],
    ]);
    for (const entry of entries) {
      const content = members[entry.name as keyof typeof members];
      expect(readZipEntry(source, entry, 1 << 24).equals(content)).toBe(true);
      expect((await streamed(bytes, entry.name)).equals(content)).toBe(true);
    }
  });

  it.skipIf(found('python') === undefined)(
    'reads what other programs write, with comments and data descriptors',
    () => {
      const path = join(folder, 'python.zip');
      const script = [
        'import sys, zipfile',
        'class Pipe:',
        '    def __init__(self, f): self.f = f',
        '    def write(self, b): return self.f.write(b)',
        '    def flush(self): self.f.flush()',
        "with open(sys.argv[1], 'wb') as f, zipfile.ZipFile(Pipe(f), 'w', zipfile.ZIP_DEFLATED) as z:",
        "    z.comment = b'a comment at the end'",
        "    z.writestr('hello.txt', 'hello ' * 1000)",
      ].join('\n');
      writeFileSync(join(folder, 'write.py'), script);
      execFileSync('python3', [join(folder, 'write.py'), path]);
      const source = openFile(path);
      try {
        const [entry] = readZipDirectory(source);
        expect(entry?.name).toBe('hello.txt');
        expect(readZipEntry(source, entry as ZipEntry, 1 << 20).toString()).toBe('hello '.repeat(1000));
      } finally {
        source.close();
      }
    },
  );

  const damaged: readonly [string, (bytes: Buffer) => Buffer, RegExp][] = [
    ['text', () => Buffer.from('this is text'), /not a ZIP archive, or cut short/],
    ['an empty file', () => Buffer.alloc(0), /not a ZIP archive, or cut short/],
    ['its first half', (bytes) => bytes.subarray(0, bytes.length / 2), /not a ZIP archive, or cut short/],
    ['its end without its beginning', (bytes) => bytes.subarray(100), /.*/],
  ];
  it.each(damaged)('rejects %s', async (_what, damage, message) => {
    const bytes = damage(zipBytes(members, 'deflate'));
    const error = await streamed(bytes, 'sub/big.bin').then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code: 'TF_ARCHIVE_INVALID', message: expect.stringMatching(message) });
  });

  it.each(['stored', 'deflate'] as const)('notices one changed byte in a %s member', async (method) => {
    const bytes = zipBytes({ 'a.bin': randomBytes(4096) }, method);
    bytes[200] = (bytes[200] ?? 0) ^ 1;
    await expect(streamed(bytes, 'a.bin')).rejects.toMatchObject({ code: 'TF_ARCHIVE_INVALID' });
  });

  it('does not unpack a member that is larger than it states', async () => {
    const bytes = zipBytes({ bomb: Buffer.alloc(50_000_000) }, 'deflate');
    const source = bytesSource('archive', bytes);
    const [entry] = readZipDirectory(source);
    const lying = { ...(entry as ZipEntry), size: 1000 };
    let received = 0;
    await expect(async () => {
      for await (const chunk of zipEntryChunks(source, lying)) received += chunk.length;
    }).rejects.toMatchObject({ code: 'TF_ARCHIVE_INVALID' });
    expect(received).toBeLessThanOrEqual(1000);
    expect(() => readZipEntry(source, lying, 1 << 20)).toThrow(/damaged/);
    expect(() => readZipEntry(source, entry as ZipEntry, 1 << 20)).toThrow(/more than the 1048576 expected/);
  });

  const names: readonly [string, number, boolean][] = [
    ['tensorrt_rtx_libs/libtensorrt_rtx.so.1', 0o100644, false],
    ['../outside', 0o100644, true],
    ['a/../../outside', 0o100644, true],
    ['/etc/passwd', 0o100644, true],
    ['C:/windows', 0, true],
    ['a\\..\\b', 0, true],
    ['nul\0byte', 0, true],
    ['', 0, true],
    ['link', 0o120777, true],
    ['a..b/..c', 0o100644, false],
  ];
  it.each(names)('member %j with mode %o: unsafe is %s', (name, mode, unsafe) => {
    const entry = {
      name,
      mode,
      method: 'stored',
      size: 0,
      compressedSize: 0,
      crc32: 0,
      headerOffset: 0,
    } as const;
    expect(isUnsafeZipEntry(entry)).toBe(unsafe);
  });

  it('reads or rejects whatever the bytes are, in bounded time', async () => {
    const original = zipBytes({ 'a.txt': Buffer.from('alpha'), b: randomBytes(300) }, 'deflate');
    const random = randomNumbers(3);
    for (let round = 0; round < 1500; round++) {
      const bytes = Buffer.from(original);
      for (let change = 0; change < 1 + random() * 5; change++)
        bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
      const source = bytesSource('mutated', bytes);
      try {
        for (const entry of readZipDirectory(source)) {
          for await (const chunk of zipEntryChunks(source, entry)) expect(chunk.length).toBeLessThan(1 << 21);
          readZipEntry(source, entry, 1 << 20);
        }
      } catch (error) {
        expect(error, `mutation ${round}: ${String(error)}`).toBeInstanceOf(TrtforgeError);
      }
    }
  });

  it('keeps memory flat while streaming a large member', () => {
    const path = join(folder, 'large.zip');
    writeFileSync(path, zipBytes({ large: Buffer.alloc(200 << 20, 7) }, 'deflate'));
    const dist = new URL('../../../dist/base/', import.meta.url);
    // What the collector leaves is what somebody holds.
    const script = `
      const { openFile } = await import('${new URL('files/byte-source.js', dist)}');
      const { readZipDirectory, zipEntryChunks } = await import('${new URL('archive/zip.js', dist)}');
      const source = openFile(process.argv[1]);
      let [bytes, collected, held] = [0, 0, 0];
      for await (const chunk of zipEntryChunks(source, readZipDirectory(source)[0])) {
        bytes += chunk.length;
        if (bytes - collected < 10 << 20) continue;
        collected = bytes;
        await new Promise(setImmediate);
        gc();
        held = Math.max(held, process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed);
      }
      console.log(bytes, held);`;
    const words = ['--expose-gc', '--input-type=module', '-e', script, path];
    const [bytes, held] = execFileSync(process.execPath, words).toString().split(' ').map(Number);
    expect(bytes).toBe(200 << 20);
    expect(held).toBeLessThan(40 << 20);
  });
});

function randomBytes(length: number): Buffer {
  const random = randomNumbers(11);
  return Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
}
