import { describe, expect, it } from 'vitest';
import { elementsOf } from '../../../src/formats/tensor/tensor.js';

describe('elements of a tensor', () => {
  it.each([
    ['a typed array', (bytes: Uint8Array) => new Uint8Array([0, ...bytes]).subarray(1)],
    ['a Buffer, whose slice() is no copy', (bytes: Uint8Array) => Buffer.from([0, ...bytes]).subarray(1)],
  ])('are read where the bytes are not aligned: %s', (_, unaligned) => {
    const values = Float32Array.of(1.5, -2, 3);
    const bytes = unaligned(new Uint8Array(values.buffer));
    const length = bytes.byteOffset % 4 === 0 ? 0 : bytes.length;
    expect(length).toBe(12);
    expect(elementsOf({ dtype: 'float32', shape: [3], bytes })).toEqual(values);
  });
});
