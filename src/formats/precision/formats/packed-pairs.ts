import type { QuantizedFormat } from './format.js';

/** Writes codes of 4 bits as ONNX packs them: the first of two in the low bits. */
export const packedPairs =
  (code: (scaled: number) => number): QuantizedFormat['encode'] =>
  (scaled, target) => {
    for (let i = 0; i < target.length; i++)
      target[i] = code(scaled[2 * i]!) | (code(scaled[2 * i + 1] ?? 0) << 4);
  };
