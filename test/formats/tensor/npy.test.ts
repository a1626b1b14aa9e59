import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import { parseNpy, readNpy, writeNpy } from '../../../src/formats/tensor/npy.js';
import { elementsOf, float32Values, isArrayDtype, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { mutations } from '../../support/mutations.js';
import { fixture, fixtureBytes, ramp } from './fixtures.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-npy-'));

describe('reading what numpy wrote', () => {
  it.each([
    ['float32.npy', 'float32'],
    ['float32-big-endian.npy', 'float32'],
    ['float32-fortran.npy', 'float32'],
    ['float16.npy', 'float16'],
    ['float64.npy', 'float64'],
    ['version-2.npy', 'float32'],
    ['version-3.npy', 'float32'],
  ])('%s', (file, dtype) => {
    const tensor = readNpy(fixture(file));
    expect(tensor).toMatchObject({ dtype, shape: [2, 3, 4] });
    expect([...float32Values(tensor)]).toEqual(ramp);
  });

  it.each(['bfloat16', 'float8_e4m3fn'] as const)(
    '%s, once the type of void elements is stated',
    (voidDtype) => {
      const tensor = readNpy(fixture(`${voidDtype}.npy`), voidDtype);
      expect(tensor).toMatchObject({ dtype: voidDtype, shape: [2, 3, 4] });
      const tolerance = voidDtype === 'bfloat16' ? 0 : 0.0625;
      float32Values(tensor).forEach((value, i) => {
        expect(Math.abs(value - ramp[i]!)).toBeLessThanOrEqual(tolerance);
      });
    },
  );

  it.each([
    ['int8', [-128, 0, 1, 127]],
    ['uint8', [0, 0, 1, 255]],
    ['int16', [-32768, 0, 1, 32767]],
    ['uint16', [0, 0, 1, 65535]],
    ['int32', [-(2 ** 31), 0, 1, 2 ** 31 - 1]],
    ['uint32', [0, 0, 1, 2 ** 32 - 1]],
    ['int64', [-(2n ** 63n), 0n, 1n, 2n ** 63n - 1n]],
    ['uint64', [0n, 0n, 1n, 2n ** 64n - 1n]],
    ['bool', [1, 0, 1]],
  ] as const)('%s keeps its extremes', (dtype, values) => {
    const tensor = readNpy(fixture(`${dtype}.npy`));
    expect(tensor.dtype).toBe(dtype);
    expect([...elementsOf({ ...tensor, dtype })]).toEqual(values);
  });

  it('orders a big-endian Fortran array by rows', () => {
    const tensor = readNpy(fixture('int16-big-endian-fortran.npy'));
    expect([...float32Values(tensor)]).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('reads complex numbers of either byte order alike', () => {
    expect(readNpy(fixture('complex64-big-endian.npy'))).toEqual(readNpy(fixture('complex64.npy')));
  });

  it('knows a scalar and an empty array', () => {
    expect(readNpy(fixture('scalar.npy')).shape).toEqual([]);
    expect(float32Values(readNpy(fixture('scalar.npy')))[0]).toBe(2.5);
    expect(readNpy(fixture('empty.npy'))).toMatchObject({ shape: [0, 3], bytes: new Uint8Array() });
  });
});

describe('what is not numbers is rejected by name', () => {
  it.each([
    ['text.npy', /text/],
    ['bytes.npy', /text/],
    ['objects.npy', /Python objects/],
    ['records.npy', /records/],
    ['bfloat16.npy', /void elements of 2 bytes/],
  ])('%s', (file, message) => {
    expect(() => readNpy(fixture(file))).toThrow(
      expect.objectContaining({ code: 'TF_TENSOR_UNSUPPORTED', message: expect.stringMatching(message) }),
    );
  });

  it('rejects to read two-byte elements as float8', () => {
    expect(() => readNpy(fixture('bfloat16.npy'), 'float8_e5m2')).toThrow(
      /2 bytes and cannot be float8_e5m2/,
    );
  });
});

describe('writing', () => {
  it('returns what was written, 64-byte aligned', () => {
    const path = join(folder, 'written.npy');
    const tensor = tensorFrom('float32', [2, 3, 4], Float32Array.from(ramp));
    writeNpy(path, tensor);
    expect(readNpy(path)).toEqual(tensor);
    expect((readFileSync(path).length - tensor.bytes.length) % 64).toBe(0);
  });

  it.each(['scalar.npy', 'empty.npy', 'int64.npy', 'bool.npy', 'complex64.npy'])(
    '%s survives a round trip',
    (file) => {
      const tensor = readNpy(fixture(file));
      const path = join(folder, file);
      writeNpy(path, tensor);
      expect(readNpy(path)).toEqual(tensor);
    },
  );

  it('writes bfloat16 as numpy users do: void, to be named when read', () => {
    const tensor = readNpy(fixture('bfloat16.npy'), 'bfloat16');
    const path = join(folder, 'bfloat16.npy');
    writeNpy(path, tensor);
    expect(readNpy(path, 'bfloat16')).toEqual(tensor);
  });

  it('rejects packed types, which numpy cannot hold', () => {
    const packed = { dtype: 'int4', shape: [3], bytes: new Uint8Array(2) } as const;
    expect(() => writeNpy(join(folder, 'int4.npy'), packed)).toThrow(TrtforgeError);
  });
});

describe('damaged files', () => {
  it.each(['float32.npy', 'float32-fortran.npy', 'version-3.npy', 'objects.npy', 'bfloat16.npy'])(
    '%s: every mutation is read or rejected with our error',
    (file) => {
      let refused = 0;
      for (const bytes of mutations(fixtureBytes(file), 3000)) {
        try {
          const tensor = parseNpy(file, bytes, 'bfloat16');
          if (isArrayDtype(tensor.dtype)) float32Values(tensor);
        } catch (error) {
          if (!(error instanceof TrtforgeError)) throw error;
          refused++;
        }
      }
      expect(refused).toBeGreaterThan(100);
    },
  );

  it('a shape far larger than the file is rejected before memory is asked for', () => {
    const bytes = Buffer.from(fixtureBytes('float32.npy'));
    bytes.write('(9999999, 99999999)', bytes.indexOf('(2, 3, 4)'));
    expect(() => parseNpy('huge.npy', bytes)).toThrow(
      expect.objectContaining({ code: 'TF_TENSOR_FILE_INVALID' }),
    );
  });
});
