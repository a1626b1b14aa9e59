import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bytesSource } from '../../../src/base/files/byte-source.js';
import { TrtforgeError } from '../../../src/errors.js';
import { packedBytes } from '../../../src/formats/tensor/dtype.js';
import { npyHeader } from '../../../src/formats/tensor/npy.js';
import { npzOver, openNpz, readNpz, writeNpz } from '../../../src/formats/tensor/npz.js';
import { randomStream } from '../../../src/formats/tensor/random.js';
import { elementsOf, float32Values, type Tensor, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { loadedSlot } from '../../../src/formats/tensor/tensor-reader.js';
import { zipBytes } from '../../fakes/wheel.js';
import { mutations } from '../../support/mutations.js';
import { refusal } from '../../support/refusal.js';
import { fixture, fixtureBytes, ramp } from './fixtures.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-npz-'));
const voidDtypes = { brain: 'bfloat16' } as const;

describe.each(['stored.npz', 'deflated.npz'])('reading %s', (file) => {
  it('finds every tensor by its name, halves and names with slashes too', () => {
    const tensors = readNpz(fixture(file), { voidDtypes });
    expect([...tensors.keys()]).toEqual(['input', 'ids', 'half', 'a/b:0', 'brain']);
    for (const name of ['input', 'half', 'brain']) {
      expect([...float32Values(tensors.get(name)!)]).toEqual(ramp);
    }
    expect([...elementsOf({ ...tensors.get('ids')!, dtype: 'int64' })]).toEqual([3n, 1n, 2n]);
    expect(tensors.get('a/b:0')).toMatchObject({ shape: [], dtype: 'float32' });
  });

  it('reports type and shape, and the names that exist for one that does not', () => {
    const opened = openNpz(fixture(file));
    expect(opened.describe('half')).toEqual({ dtype: 'float16', shape: [2, 3, 4] });
    expect(() => opened.read('inputs')).toThrow(/no tensor inputs; it has input, ids/);
    opened.close();
  });

  it('every mutation is read or rejected with our error', () => {
    let refused = 0;
    for (const bytes of mutations(fixtureBytes(file), 4000)) {
      try {
        const archive = npzOver(bytesSource(file, bytes), { voidDtypes });
        for (const name of archive.names) {
          archive.describe(name);
          archive.read(name);
        }
      } catch (error) {
        if (!(error instanceof TrtforgeError)) throw error;
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(500);
  });
});

describe('void elements', () => {
  it.each([
    ['bfloat16', 'float16', 2],
    ['bfloat16', 'int16', 2],
    ['float8_e4m3fn', 'int8', 1],
    ['float8_e5m2', 'bool', 1],
  ] as const)(
    'of a file of %s are never taken for %s, which numpy has a name for',
    (dtype, wanted, bytes) => {
      const path = join(folder, `${dtype}.npz`);
      writeNpz(path, new Map([['x', { dtype, shape: [4], bytes: new Uint8Array(4 * bytes) }]]));
      const file = openNpz(path, { voidDtypes: { x: wanted } });
      for (const read of [
        () => file.read('x'),
        () => file.describe('x'),
        () => file.reader('x', loadedSlot()),
      ]) {
        const { code, message } = refusal(read);
        expect(code).toBe('TF_TENSOR_UNSUPPORTED');
        expect(message).toContain(`void elements of ${bytes} bytes, which are not ${wanted}`);
      }
      file.close();
      expect(readNpz(path, { voidDtype: dtype }).get('x')).toMatchObject({ dtype, shape: [4] });
    },
  );
});

describe('writing', () => {
  const tensors = new Map<string, Tensor>([
    ['x', tensorFrom('float32', [2, 3, 4], Float32Array.from(ramp))],
    ['größe', tensorFrom('int64', [], BigInt64Array.of(7n))],
    ['empty', tensorFrom('float16', [0, 2], new Uint16Array())],
  ]);

  it.each([false, true])('returns what was written (compressed: %s)', (compress) => {
    const path = join(folder, `written-${compress}.npz`);
    writeNpz(path, tensors, { compress });
    expect(readNpz(path)).toEqual(tensors);
  });

  it('is the same bytes for the same tensors', () => {
    writeNpz(join(folder, 'one.npz'), tensors);
    writeNpz(join(folder, 'two.npz'), tensors);
    expect(readFileSync(join(folder, 'one.npz'))).toEqual(readFileSync(join(folder, 'two.npz')));
  });

  it('leaves nothing behind when a tensor cannot be written', () => {
    const bad = new Map<string, Tensor>([['q', { dtype: 'int4', shape: [2], bytes: new Uint8Array(1) }]]);
    expect(() => writeNpz(join(folder, 'bad.npz'), bad)).toThrow(TrtforgeError);
    expect(readdirSync(folder).filter((name) => name.includes('bad.npz'))).toEqual([]);
  });
});

it('a member that claims to unpack a thousandfold is rejected before memory is asked for', () => {
  const bytes = Buffer.from(fixtureBytes('deflated.npz'));
  const directory = bytes.indexOf(Buffer.from([0x50, 0x4b, 1, 2]));
  bytes.writeUInt32LE(0x7fffffff, directory + 24);
  const path = join(folder, 'bomb.npz');
  writeFileSync(path, bytes);
  expect(() => readNpz(path)).toThrow(/claims 2147483647 bytes/);
});

it.each(['stored', 'deflate'] as const)(
  'a %s member with more behind its tensor is rejected before they are read',
  (method) => {
    const small = tensorFrom('float32', [4, 4], new Float32Array(16));
    // Bytes that do not shrink, so that what is read shows what is unpacked.
    const stream = randomStream(1);
    const more = Buffer.from(Uint32Array.from({ length: 1 << 20 }, () => stream.bits()).buffer);
    const source = bytesSource(
      'a.npz',
      zipBytes({ 'x.npy': Buffer.concat([npyHeader(small), small.bytes, more]) }, method),
    );
    let read = 0;
    const file = npzOver({
      ...source,
      read: (target, position, length) => {
        read += length;
        return source.read(target, position, length);
      },
    });
    expect(refusal(() => file.read('x')).code).toBe('TF_TENSOR_FILE_INVALID');
    const { readBytes } = file.reader('x', loadedSlot());
    expect(refusal(() => readBytes(0, new Uint8Array(64))).code).toBe('TF_TENSOR_FILE_INVALID');
    expect(read).toBeLessThan(more.length / 2);
    expect(file.describe('x')).toEqual({ dtype: 'float32', shape: [4, 4] });
  },
);

describe('a tensor read piece by piece', () => {
  const values = Float32Array.from({ length: 40_000 }, (_, i) => i / 7);
  const tensor = tensorFrom('float32', [200, 200], values);
  const plain = Buffer.concat([npyHeader(tensor), tensor.bytes]);
  const columns = Buffer.from(plain);
  columns.write('True , ', columns.indexOf('False, '), 'latin1');

  function readInPieces(archive: Uint8Array): Uint8Array {
    const file = npzOver(bytesSource('archive.npz', archive));
    const { dtype, readBytes } = file.reader('x', loadedSlot());
    const bytes = new Uint8Array(packedBytes(dtype, 40_000));
    for (let at = 0; at < bytes.length; at += 12_345) readBytes(at, bytes.subarray(at, at + 12_345));
    return bytes;
  }

  it.each([
    ['stored', plain],
    ['deflate', plain],
    ['stored', columns],
    ['deflate', columns],
  ] as const)(
    'is what it is as a whole, and rejected wherever the archive is damaged: %s %#',
    (method, member) => {
      const archive = zipBytes({ 'x.npy': member }, method);
      const { bytes } = npzOver(bytesSource('archive.npz', archive)).read('x');
      expect(readInPieces(archive)).toEqual(new Uint8Array(bytes));
      const directory = archive.indexOf(Buffer.from([0x50, 0x4b, 1, 2]));
      for (let place = 250; place < directory; place += Math.floor(directory / 9)) {
        const damaged = Buffer.from(archive);
        damaged[place]! ^= 0x10;
        const whole = refusal(() => npzOver(bytesSource('archive.npz', damaged)).read('x'));
        expect(whole.code).toBe('TF_ARCHIVE_INVALID');
        expect(refusal(() => readInPieces(damaged)).message).toBe(whole.message);
      }
    },
  );
});
