import type { Explored, Row, Side, Tensor } from '../result.js';
import type { Packed } from './packed.js';

/** A row as the table needs it. */
export type PageRow = Omit<Row, 'attributes'>;

export type PageSide = Omit<Side, 'rows' | 'tensors'> & { readonly rows: readonly PageRow[] };

export type PackedSide = Omit<PageSide, 'rows'> & { readonly rows: Packed };

/** What is drawn first. */
export type PageData = Omit<Explored, 'sides'> & { readonly sides: readonly PageSide[] };

/** What a selected row of a side shows besides, read when one is. */
export interface More {
  readonly tensors: readonly Tensor[];
  readonly rows: readonly Pick<Row, 'attributes'>[];
}
