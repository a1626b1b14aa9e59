import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesSource, openFile } from '../../../src/base/files/byte-source.js';
import { TrtforgeError } from '../../../src/errors.js';
import { comparePairs } from '../../../src/formats/tensor/compare/comparison.js';
import { elementCount, packedBytes } from '../../../src/formats/tensor/dtype.js';
import { npyReader, readNpy, writeNpy } from '../../../src/formats/tensor/npy.js';
import { openNpz } from '../../../src/formats/tensor/npz.js';
import { openSafetensors } from '../../../src/formats/tensor/safetensors.js';
import { float32Values, floatTensor, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import {
  type FloatReader,
  floatReader,
  floatsOf,
  joinedFloats,
  loadedSlot,
  tensorReader,
} from '../../../src/formats/tensor/tensor-reader.js';
import { mutations, randomNumbers } from '../../support/mutations.js';
import { fixture, fixtureBytes } from './fixtures.js';

const readAll = (reader: FloatReader) => reader.read(0, reader.format.make(reader.length));

const folder = await mkdtemp(join(tmpdir(), 'trtforge-readers-'));
const random = randomNumbers(5);
const openArchive = (path: string) => openNpz(path, { voidDtype: 'bfloat16' });
const tolerance = { absolute: 1e-3, relative: 1e-3 };

describe('numbers read piece by piece', () => {
  it.each([2047, 8192, 100_003])('compare as those in memory do: %i of them in files', (length) => {
    const reference = Float32Array.from({ length }, () => random() * 4 - 2);
    const candidate = reference.map((value, i) => (i % 9973 === 5 ? Number.NaN : value + random() * 1e-3));
    const readers = [candidate, reference].map((values, i) => {
      const path = join(folder, `${length}-${i}.npy`);
      writeNpy(path, tensorFrom('float32', [length], values));
      return floatReader(npyReader(openFile(path), loadedSlot()));
    });
    const [ours = floatsOf(candidate), theirs = floatsOf(reference)] = readers;
    expect(comparePairs({ candidate: ours, reference: theirs }, tolerance, 'all')).toEqual(
      comparePairs({ candidate: floatsOf(candidate), reference: floatsOf(reference) }, tolerance, 'all'),
    );
  });

  it('are the same however many tensors they are spread over', () => {
    fc.assert(
      fc.property(
        fc.array(fc.float32Array({ maxLength: 30, noNaN: true }), { minLength: 1, maxLength: 5 }),
        fc.nat(150),
        fc.nat(60),
        (parts, from, count) => {
          const all = Float32Array.from(parts.flatMap((part) => [...part]));
          const joined = joinedFloats(parts.map(floatsOf));
          expect(joined.length).toBe(all.length);
          const start = Math.min(from, all.length);
          const target = new Float32Array(Math.min(count, all.length - start));
          joined.read(start, target);
          expect(target).toEqual(all.slice(start, start + target.length));
        },
      ),
    );
  });

  it.each(['float16', 'bfloat16', 'float64'] as const)(
    'widen or narrow %s as a whole tensor does',
    (dtype) => {
      const tensor = floatTensor(
        dtype,
        [999],
        Float32Array.from({ length: 999 }, () => random() * 100),
      );
      const part = new Float32Array(77);
      floatReader(tensorReader(tensor)).read(123, part);
      expect(part).toEqual(float32Values(tensor).slice(123, 200));
    },
  );

  it('begin within a byte where elements are smaller', () => {
    const bytes = Uint8Array.from({ length: 50 }, () => random() * 256);
    for (const dtype of ['int4', 'uint2', 'float4_e2m1fn'] as const) {
      const count = dtype === 'uint2' ? 200 : 100;
      const tensor = { dtype, shape: [count], bytes };
      const whole = float32Values(tensor);
      for (const start of [0, 1, 2, 3, 17]) {
        const part = new Float32Array(21);
        floatReader(tensorReader(tensor)).read(start, part);
        expect(part).toEqual(whole.slice(start, start + 21));
      }
    }
  });
});

describe('files read piece by piece', () => {
  it.each([
    'float32',
    'float32-fortran',
    'float32-big-endian',
    'int16-big-endian-fortran',
    'scalar',
    'version-2',
  ])('%s.npy is what it is as a whole', (name) => {
    const reader = npyReader(openFile(fixture(`${name}.npy`)), loadedSlot());
    const bytes = new Uint8Array(packedBytes(reader.dtype, elementCount(reader.shape)));
    reader.readBytes(0, bytes);
    expect({ dtype: reader.dtype, shape: reader.shape, bytes }).toEqual(readNpy(fixture(`${name}.npy`)));
  });

  it.each([
    ['stored.npz', openArchive],
    ['deflated.npz', openArchive],
    ['plain.safetensors', openSafetensors],
  ] as const)('%s holds the same tensors', (name, open) => {
    const file = open(fixture(name));
    const slot = loadedSlot();
    for (const each of file.names) {
      const { bytes, ...facts } = file.read(each);
      const read = new Uint8Array(bytes.length);
      const reader = file.reader(each, slot);
      reader.readBytes(0, read);
      expect({ dtype: reader.dtype, shape: reader.shape, bytes: read }).toEqual({ ...facts, bytes });
    }
    file.close();
  });

  it('keep one decoded tensor at most', () => {
    const file = openArchive(fixture('deflated.npz'));
    const slot = loadedSlot();
    const [first, second] = file.names.map((name) => file.reader(name, slot));
    first?.readBytes(0, new Uint8Array(1));
    expect(slot.key).toBe(first);
    second?.readBytes(0, new Uint8Array(1));
    expect(slot.key).toBe(second);
    file.close();
  });

  it.each(['float32.npy', 'float32-fortran.npy'])('read or reject every damaged copy of %s', (name) => {
    for (const damaged of mutations(fixtureBytes(name), 400)) {
      try {
        const reader = npyReader(bytesSource(name, damaged), loadedSlot(), 'bfloat16');
        readAll(floatReader(reader));
      } catch (error) {
        expect(error).toBeInstanceOf(TrtforgeError);
      }
    }
  });

  it.each([
    ['stored.npz', openArchive],
    ['deflated.npz', openArchive],
    ['plain.safetensors', openSafetensors],
  ] as const)('read or reject every damaged copy of %s', (name, open) => {
    const path = join(folder, name);
    for (const damaged of mutations(new Uint8Array(readFileSync(fixture(name))), 200)) {
      writeFileSync(path, damaged);
      try {
        const file = open(path);
        try {
          for (const each of file.names) readAll(floatReader(file.reader(each, loadedSlot())));
        } finally {
          file.close();
        }
      } catch (error) {
        expect(error).toBeInstanceOf(TrtforgeError);
      }
    }
  });
});
