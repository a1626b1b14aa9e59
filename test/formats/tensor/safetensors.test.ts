import { describe, expect, it } from 'vitest';
import { bytesSource } from '../../../src/base/files/byte-source.js';
import { TrtforgeError } from '../../../src/errors.js';
import { openSafetensors, safetensorsOver } from '../../../src/formats/tensor/safetensors.js';
import { float32Values } from '../../../src/formats/tensor/tensor.js';
import { mutations } from '../../support/mutations.js';
import { fixture, fixtureBytes, ramp } from './fixtures.js';

describe('safetensors', () => {
  it('reads what the reference library wrote and skips its metadata', () => {
    const file = openSafetensors(fixture('plain.safetensors'));
    expect([...file.names].sort()).toEqual(['ids', 'mask', 'scalar', 'w']);
    expect([...float32Values(file.read('w'))]).toEqual(ramp);
    expect([...float32Values(file.read('ids'))]).toEqual([1, 2, 3]);
    expect(file.read('mask')).toMatchObject({ dtype: 'bool', bytes: Uint8Array.of(1, 0) });
    expect([...float32Values(file.read('scalar'))]).toEqual([1.5]);
    file.close();
  });

  it('reads bfloat16, float8, empty tensors and scalars', () => {
    const file = openSafetensors(fixture('low-precision.safetensors'));
    expect(file.describe('q')).toEqual({ dtype: 'float8_e4m3fn', shape: [2, 3, 4] });
    expect([...float32Values(file.read('b'))]).toEqual(ramp);
    float32Values(file.read('q')).forEach((value, i) => {
      expect(Math.abs(value - ramp[i]!)).toBeLessThanOrEqual(0.0625);
    });
    expect(file.read('empty').shape).toEqual([0, 2]);
    expect(() => file.read('nothing')).toThrow(/it has w, b, q/);
    file.close();
  });

  it.each(['plain.safetensors', 'low-precision.safetensors'])(
    'every mutation of %s is read or rejected with our error',
    (name) => {
      let refused = 0;
      for (const bytes of mutations(fixtureBytes(name), 4000)) {
        try {
          const file = safetensorsOver(bytesSource(name, bytes));
          for (const tensor of file.names) float32Values(file.read(tensor));
        } catch (error) {
          if (!(error instanceof TrtforgeError)) throw error;
          refused++;
        }
      }
      expect(refused).toBeGreaterThan(500);
    },
  );
});
