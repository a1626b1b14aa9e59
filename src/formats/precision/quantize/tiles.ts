import type { WeightStream } from '../../onnx/weight.js';
import { CHUNK_BYTES, floatsOf, type ScaleLayout } from './scale-layout.js';

/** Values that follow each other along the sum and share a scale: `rows` of `values` from `from` on, and their place along the sum. */
type VisitTile = (values: Float32Array, from: number, rows: number, place: number, scale: number) => void;

/** Most rows of a tile of columns. */
const MOST_ROWS = 128;

/** Columns that are copied together: those of one cache line. */
const COLUMNS = 16;

export const tileRows = (layout: ScaleLayout): number =>
  layout.kind === 'runs' ? layout.run : Math.min(layout.rows, MOST_ROWS);

/**
 * Reads a weight once, tile by tile. `terms`: the values along the sum, of which a tile has a part; in a layout of runs they follow each other, and so many
 * `channels` in a row share their inputs.
 */
export function forTiles(
  source: WeightStream,
  layout: ScaleLayout,
  { terms, channels = Number.POSITIVE_INFINITY }: { readonly terms: number; readonly channels?: number },
  visit: VisitTile,
): void {
  const size = tileRows(layout);
  if (layout.kind === 'columns') {
    const { columns } = layout;
    const tiles = new Float32Array(COLUMNS * size);
    let row = 0;
    for (const chunk of source.chunks(4 * columns * size)) {
      const values = floatsOf(chunk);
      const rows = values.length / columns;
      const scale = Math.floor(row / layout.rows) * columns;
      for (let first = 0; first < columns; first += COLUMNS) {
        const count = Math.min(COLUMNS, columns - first);
        for (let from = 0; from < rows; from++)
          for (let column = 0; column < count; column++)
            tiles[column * size + from] = values[from * columns + first + column]!;
        for (let column = 0; column < count; column++)
          visit(tiles, column * size, rows, row % terms, scale + first + column);
      }
      row += rows;
    }
    return;
  }
  const together = Math.max(1, Math.floor(CHUNK_BYTES / (4 * terms)));
  let position = 0;
  for (const chunk of source.chunks(4 * terms * together)) {
    const values = floatsOf(chunk);
    for (let from = 0; from < values.length; from += size, position += size) {
      const inputs = Math.floor(Math.floor(position / terms) / channels) * terms;
      visit(values, from, size, inputs + (position % terms), position / size);
    }
  }
}
