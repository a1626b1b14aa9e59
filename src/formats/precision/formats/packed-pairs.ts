import type { QuantizedFormat } from './format.js';

/** Codes of 4 bits change at values of at most four significant bits: sign, exponent and three bits of the mantissa, and whether a value lies beyond them, are enough. */
const DROPPED = 20;
const REST = (1 << DROPPED) - 1;

/** Writes codes of 4 bits as ONNX packs them: the first of two in the low bits. From a table, because comparisons of random values are mispredicted. */
export function packedPairs(code: (scaled: number) => number): QuantizedFormat['encode'] {
  const patterns = Uint32Array.from(
    { length: 1 << (33 - DROPPED) },
    (_, entry) => ((entry >>> 1) << DROPPED) | ((entry & 1) << (DROPPED - 1)),
  );
  const table = Uint8Array.from(new Float32Array(patterns.buffer), code);
  const codeOf = (bits: number): number =>
    table[((bits >>> DROPPED) << 1) | (((bits & REST) + REST) >>> DROPPED)]!;
  return (scaled, target) => {
    const bits = new Int32Array(scaled.buffer, scaled.byteOffset, scaled.length);
    const pairs = bits.length >> 1;
    for (let i = 0; i < pairs; i++) target[i] = codeOf(bits[2 * i]!) | (codeOf(bits[2 * i + 1]!) << 4);
    if (2 * pairs < bits.length) target[pairs] = codeOf(bits[2 * pairs]!);
  };
}
