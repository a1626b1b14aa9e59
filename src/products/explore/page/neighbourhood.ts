/** A part of a graph around one row, laid out by depth. */
export interface Neighbourhood {
  readonly nodes: readonly { readonly row: number; readonly x: number; readonly y: number }[];
  readonly edges: readonly (readonly [from: number, to: number])[];
  readonly columns: number;
  readonly depth: number;
  /** Whether more rows are within the steps than are shown. */
  readonly isCut: boolean;
}

export const MOST_NODES = 300;

/**
 * The rows within some steps of one, nearest first, 300 at most. A row stands one level below the lowest of those whose tensors it reads (rows are in the order of execution, so
 * one pass decides), and beside its neighbours in the order of those.
 */
export function neighbourhoodOf(
  readers: readonly (readonly number[])[],
  centre: number,
  steps: number,
): Neighbourhood {
  const makers = readers.map((): number[] => []);
  for (const [row, reading] of readers.entries()) for (const reader of reading) makers[reader]!.push(row);
  const found = new Set([centre]);
  let edge = [centre];
  let isCut = false;
  for (let step = 0; step < steps && edge.length > 0; step++) {
    const next: number[] = [];
    for (const row of edge)
      for (const near of [...makers[row]!, ...readers[row]!]) {
        if (found.has(near)) continue;
        if (found.size >= MOST_NODES) isCut = true;
        else {
          found.add(near);
          next.push(near);
        }
      }
    edge = next;
  }
  const rows = [...found].sort((one, other) => one - other);
  const depth = new Map<number, number>();
  const levels: number[][] = [];
  const x = new Map<number, number>();
  for (const row of rows) {
    const above = makers[row]!.filter((maker) => found.has(maker));
    const level = above.reduce((most, maker) => Math.max(most, (depth.get(maker) ?? -1) + 1), 0);
    depth.set(row, level);
    levels[level] ??= [];
    levels[level].push(row);
  }
  for (const level of levels) {
    const mean = (row: number) => {
      const above = makers[row]!.flatMap((maker) => x.get(maker) ?? []);
      return above.length === 0 ? 0 : above.reduce((sum, place) => sum + place, 0) / above.length;
    };
    for (const [place, row] of level.toSorted((one, other) => mean(one) - mean(other)).entries())
      x.set(row, place);
  }
  return {
    nodes: rows.map((row) => ({ row, x: x.get(row)!, y: depth.get(row)! })),
    edges: rows.flatMap((row) =>
      readers[row]!.filter((reader) => found.has(reader)).map((reader) => [row, reader] as const),
    ),
    columns: Math.max(...levels.map((level) => level.length)),
    depth: levels.length,
    isCut,
  };
}
