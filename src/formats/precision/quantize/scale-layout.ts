/**
 * Which values share a scale, in the order in which the weight is stored. `runs`: `run` values in a row have one scale, the next `run` the next.
 * `columns`: each of `columns` values in a row has its own, and so do the next `rows` rows.
 */
export type ScaleLayout =
  | { readonly kind: 'runs'; readonly run: number }
  | { readonly kind: 'columns'; readonly columns: number; readonly rows: number };

/** Source bytes read at once. */
export const CHUNK_BYTES = 1 << 20;

export const floatsOf = (chunk: Uint8Array): Float32Array =>
  new Float32Array(chunk.buffer, chunk.byteOffset, chunk.byteLength >> 2);

/** Floats as integers: without the bit of the sign they are in the order of the magnitudes, NaN last. */
export const bitsOf = (chunk: Uint8Array): Int32Array =>
  new Int32Array(chunk.buffer, chunk.byteOffset, chunk.byteLength >> 2);

/**
 * Splits `length` values, of which the first is the weight's value `position`, into segments: within one run, with the scale `scale` for all; or within one row,
 * with the scale `scale` for the first and the next for the next.
 */
export function forSegments(
  layout: ScaleLayout,
  position: number,
  length: number,
  visit: (from: number, to: number, scale: number, isRow: boolean) => void,
): void {
  const { kind } = layout;
  const width = kind === 'runs' ? layout.run : layout.columns;
  for (let from = 0; from < length; ) {
    const at = position + from;
    const row = Math.floor(at / width);
    const inRow = at - row * width;
    const to = Math.min(length, from + width - inRow);
    if (kind === 'runs') visit(from, to, row, false);
    else visit(from, to, Math.floor(row / layout.rows) * width + inRow, true);
    from = to;
  }
}
