import type { QuantizedFormat } from './format.js';

/** Two entries for each quarter from -16 on, for a value on the border and for those between: codes change at multiples of a quarter. */
const CELLS = 4;
const LOWEST = 16;
const LAST = 2 * LOWEST * CELLS - 1;

/** Writes codes of 4 bits as ONNX packs them: the first of two in the low bits. From a table, because comparisons of random values are mispredicted. */
export function packedPairs(code: (scaled: number) => number): QuantizedFormat['encode'] {
  const table = Uint8Array.from({ length: 2 * (LAST + 1) }, (_, entry) => {
    const border = (entry >> 1) / CELLS - LOWEST;
    return code((entry & 1) === 0 ? border : border + 0.5 / CELLS);
  });
  const codeOf = (scaled: number): number => {
    const cells = Math.max(0, Math.min(LAST, scaled * CELLS + LOWEST * CELLS));
    const cell = cells | 0;
    return table[2 * cell + (cells > cell ? 1 : 0)]!;
  };
  return (scaled, target) => {
    for (let i = 0; i < target.length; i++)
      target[i] = codeOf(scaled[2 * i]!) | (codeOf(scaled[2 * i + 1] ?? 0) << 4);
  };
}
