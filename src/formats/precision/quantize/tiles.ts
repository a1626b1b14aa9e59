import type { WeightStream } from '../../onnx/weight.js';
import { type ErrorKernel, LANES, TILES } from './error-kernel.js';
import { bitsOf, CHUNK_BYTES, type ScaleLayout } from './scale-layout.js';

/** Four columns of a weight as they are in the kernel: which tile, its rows, their place along the sum; the scales of the lanes are `first`, `first + stride`, … */
type VisitTile = (
  tile: number,
  rows: number,
  place: number,
  first: number,
  stride: number,
  lanes: number,
) => void;

/** Most rows of a tile of columns. */
const MOST_ROWS = 128;

export const tileRows = (layout: ScaleLayout): number =>
  layout.kind === 'runs' ? layout.run : Math.min(layout.rows, MOST_ROWS);

/**
 * Reads a weight once and copies it, tile by tile, into the kernel. `terms`: the values along the sum, of which a tile has a part; in a layout of runs they follow each other, and so many
 * `channels` in a row share their inputs.
 */
export function forTiles(
  source: WeightStream,
  layout: ScaleLayout,
  { terms, channels = Number.POSITIVE_INFINITY }: { readonly terms: number; readonly channels?: number },
  kernel: ErrorKernel,
  visit: VisitTile,
): void {
  const size = tileRows(layout);
  if (layout.kind === 'columns') {
    const { columns } = layout;
    let row = 0;
    for (const chunk of source.chunks(4 * columns * size)) {
      const values = bitsOf(chunk);
      const rows = values.length / columns;
      const scale = Math.floor(row / layout.rows) * columns;
      for (let from = 0; from < columns; from += TILES * LANES) {
        const end = Math.min(columns, from + TILES * LANES);
        // All before the first is used: the columns of four tiles are in one cache line.
        for (let column = from, tile = 0; column < end; column += LANES, tile++)
          fillTile(kernel.tile, tile * size * LANES, rows, values, column, columns, 1);
        for (let column = from, tile = 0; column < end; column += LANES, tile++)
          visit(tile, rows, row % terms, scale + column, 1, Math.min(LANES, end - column));
      }
      row += rows;
    }
    return;
  }
  // Blocks in the lanes of a tile have the same place along the sum: they are of four channels.
  const blocks = terms / size;
  const together = LANES * Math.max(1, Math.floor(CHUNK_BYTES / (4 * terms * LANES)));
  let channel = 0;
  for (const chunk of source.chunks(4 * terms * together)) {
    const values = bitsOf(chunk);
    for (let from = 0; from < values.length; ) {
      const lanes = Math.min(LANES, (values.length - from) / terms, channels - (channel % channels));
      const place = channels === Number.POSITIVE_INFINITY ? 0 : Math.floor(channel / channels) * terms;
      for (let block = 0; block < blocks; block++) {
        fillTile(kernel.tile, 0, size, values, from + block * size, 1, terms);
        visit(0, size, place + block * size, channel * blocks + block, blocks, lanes);
      }
      from += lanes * terms;
      channel += lanes;
    }
  }
}

/** Of lanes behind the last column nothing is used. Bits, because floats would be converted to doubles on their way. */
function fillTile(
  tile: Int32Array,
  at: number,
  rows: number,
  values: Int32Array,
  from: number,
  rowStride: number,
  laneStride: number,
): void {
  for (let row = 0; row < rows; row++, at += LANES, from += rowStride) {
    tile[at] = values[from]!;
    tile[at + 1] = values[from + laneStride]!;
    tile[at + 2] = values[from + 2 * laneStride]!;
    tile[at + 3] = values[from + 3 * laneStride]!;
  }
}
