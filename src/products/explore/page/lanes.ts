/** Edges of the lines of a table: of each line the lines that read what it writes, all behind it. */
export type Readers = readonly (readonly number[])[];

export interface Lanes {
  /** The lane of each line, from 0; its own dot stands there. */
  readonly lane: Int32Array;
  /** The last line that reads what a line writes; the line itself where none does. */
  readonly end: Int32Array;
  readonly count: number;
}

/**
 * Lanes left of the lines, as of a commit graph: what a line writes runs down its lane to its last reader, and the lowest lane that is free is taken. A chain is one lane; a
 * residual connection makes a second one beside it.
 */
export function lanesOf(readers: Readers): Lanes {
  const lane = new Int32Array(readers.length);
  const end = new Int32Array(readers.length);
  /** The last reader of what is in a lane. */
  const taken: number[] = [];
  for (let line = 0; line < readers.length; line++) {
    let last = line;
    for (const reader of readers[line]!) if (reader > last) last = reader;
    let free = 0;
    while (free < taken.length && taken[free]! > line) free++;
    taken[free] = last;
    lane[line] = free;
    end[line] = last;
  }
  return { lane, end, count: taken.length };
}

/** Who reads what each row writes, by the positions of tensors that rows read and write. */
export function readersOf(
  rows: readonly { readonly inputs: readonly number[]; readonly outputs: readonly number[] }[],
): number[][] {
  const makers: number[] = [];
  const readers = rows.map((): number[] => []);
  for (const [row, { inputs, outputs }] of rows.entries()) {
    for (const tensor of inputs) {
      const reading = readers[makers[tensor] ?? -1];
      if (reading !== undefined && reading.at(-1) !== row) reading.push(row);
    }
    for (const tensor of outputs) makers[tensor] = row;
  }
  return readers;
}
