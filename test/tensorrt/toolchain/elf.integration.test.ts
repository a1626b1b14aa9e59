import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bytesSource, openFile } from '../../../src/base/files/byte-source.js';
import { TrtforgeError } from '../../../src/errors.js';
import { constantReturned, readElf } from '../../../src/tensorrt/toolchain/elf.js';
import { readLibraryFolder } from '../../../src/tensorrt/toolchain/library-folder.js';
import { fakeElf } from '../../fakes/elf.js';
import { randomNumbers } from '../../support/mutations.js';
import { describeWith } from '../../support/needs.js';

const library = fakeElf({
  soname: 'libnvinfer.so.10',
  needed: ['libcudart.so.13', 'libc.so.6'],
  symbols: { getInferLibVersion: 101600, createInferBuilder_INTERNAL: null },
  wanted: ['malloc'],
});

describeWith('toolchain', 'the installed tensorrt-rtx', (folder) => {
  it('states its version and its parser without being loaded', () => {
    const { groups, damaged } = readLibraryFolder(folder);
    expect(damaged).toEqual([]);
    expect(groups).toMatchObject([
      {
        product: 'tensorrt-rtx',
        flavour: 'full',
        version: expect.stringMatching(/^1\.\d+\.\d+\.\d+$/),
        architecture: process.arch,
        libraries: { parser: expect.stringContaining('libtensorrt_onnxparser_rtx.so.1') },
      },
    ]);
  });
});

describe('a shared library read without loading it', () => {
  it('states its name, its needs and what it defines, not what it requests', () => {
    const facts = readElf(bytesSource('lib', library));
    expect(facts).toMatchObject({
      architecture: 'x64',
      soname: 'libnvinfer.so.10',
      needed: ['libcudart.so.13', 'libc.so.6'],
    });
    expect([...facts.symbols.keys()]).toEqual(['getInferLibVersion', 'createInferBuilder_INTERNAL']);
  });

  it.each(['x64', 'arm64'] as const)('reads the constant a function returns on %s', (machine) => {
    const source = bytesSource(
      'lib',
      fakeElf({ machine, symbols: { getInferLibVersion: 110100, other: null } }),
    );
    const { symbols, architecture } = readElf(source);
    const read = (name: string) =>
      constantReturned(source, symbols.get(name) ?? { offset: null }, architecture);
    expect(read('getInferLibVersion')).toBe(110100);
    expect(read('other')).toBeNull();
  });

  it('rejects what is not such a library, by name', () => {
    for (const bytes of [Buffer.alloc(0), Buffer.from('not a library'), library.subarray(0, 100)]) {
      expect(() => readElf(bytesSource('libnvinfer.so.10', bytes))).toThrow(
        /^libnvinfer\.so\.10 is not a usable library/,
      );
    }
  });

  it.each([
    ['a library', () => library],
    // It has a table of versions, which the other lacks.
    ['a program', () => readFileSync('/bin/true')],
  ])('reads or rejects whatever the bytes of %s are', (_, original) => {
    const random = randomNumbers(7);
    for (let round = 0; round < 3000; round++) {
      const bytes = Buffer.from(original());
      for (let change = 0; change < 1 + random() * 6; change++) {
        bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
      }
      const source = bytesSource(
        'mutated',
        bytes.subarray(0, random() < 0.2 ? random() * bytes.length : undefined),
      );
      try {
        const { symbols, architecture } = readElf(source);
        for (const symbol of symbols.values()) constantReturned(source, symbol, architecture);
      } catch (error) {
        expect(error, `mutation ${round}`).toBeInstanceOf(TrtforgeError);
      }
    }
  });

  it('reads a real library of this machine', () => {
    const node = process.execPath;
    if (process.platform !== 'linux' || !existsSync(node)) return;
    const source = openFile(node);
    try {
      const { needed, architecture, versions } = readElf(source);
      expect(architecture).toBe(process.arch);
      expect(versions.get('libc.so.6')).toContainEqual(expect.stringMatching(/^GLIBC_2\.\d+/));
      expect(needed.some((name) => name.startsWith('libc.so'))).toBe(true);
    } finally {
      source.close();
    }
  });

  it('takes a program under a TensorRT name for TensorRT of the version in the name, and nothing more', () => {
    if (process.platform !== 'linux') return;
    const folder = mkdtempSync(join(tmpdir(), 'trtforge-elf-'));
    try {
      copyFileSync('/bin/true', join(folder, 'libnvinfer.so.10.6.0'));
      expect(readLibraryFolder(folder).groups).toMatchObject([{ version: '10.6.0', parserVersion: null }]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
