import type { WeightStream } from '../../onnx/weight.js';
import { CHUNK_BYTES, floatsOf, type ScaleLayout } from './scale-layout.js';

/** Lanes side by side: each has `rows` values that follow each other along the sum and share a scale. */
export interface Tiles {
  readonly values: Float32Array;
  /** The first value of the first lane, and how far the next lane and the next row are. */
  readonly first: number;
  readonly laneStride: number;
  readonly rowStride: number;
  readonly lanes: number;
  readonly rows: number;
  /** Of the first row along the sum. */
  readonly place: number;
  /** The scale of the first lane, and how far that of the next is. */
  readonly scale: number;
  readonly scaleStride: number;
}

/** Most rows of a tile of columns. */
const MOST_ROWS = 128;

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
  visit: (tiles: Tiles) => void,
): void {
  const size = tileRows(layout);
  if (layout.kind === 'columns') {
    const { columns } = layout;
    let row = 0;
    for (const chunk of source.chunks(4 * columns * size)) {
      const values = floatsOf(chunk);
      const rows = values.length / columns;
      const scale = Math.floor(row / layout.rows) * columns;
      visit({
        ...{ values, first: 0, laneStride: 1, rowStride: columns, lanes: columns, rows },
        ...{ place: row % terms, scale, scaleStride: 1 },
      });
      row += rows;
    }
    return;
  }
  const together = Math.max(1, Math.floor(CHUNK_BYTES / (4 * terms)));
  let channel = 0;
  for (const chunk of source.chunks(4 * terms * together)) {
    const values = floatsOf(chunk);
    const end = channel + values.length / terms;
    for (let from = channel, lanes = 0; from < end; from += lanes) {
      const group = Math.floor(from / channels);
      lanes = Math.min(end, (group + 1) * channels) - from;
      for (let place = 0; place < terms; place += size)
        visit({
          ...{ values, first: (from - channel) * terms + place, laneStride: terms, rowStride: 1 },
          ...{ lanes, rows: size, place: group * terms + place },
          ...{ scale: (from * terms + place) / size, scaleStride: terms / size },
        });
    }
    channel = end;
  }
}
