import { distance } from 'fastest-levenshtein';

/** Edits that turn a reference into a hypothesis. */
export interface Edits {
  readonly substitutions: number;
  readonly deletions: number;
  readonly insertions: number;
}

/** Cells of one alignment at most: 10,000 words beside 10,000. */
const MOST_CELLS = 100_000_000;
let cells = new Uint16Array(0);

/**
 * The fewest edits between two lists of words. Where several alignments are equally short, it takes the one of jiwer (rapidfuzz's back-trace: from the
 * end, a deletion where it is free, else an insertion, else a match or substitution), so that the parts agree too and not the sum alone.
 * null for pairs that need more than 100 million cells, or with more than 65,535 words that differ.
 */
export function countEdits(reference: readonly string[], hypothesis: readonly string[]): Edits | null {
  let start = 0;
  let [rows, columns] = [reference.length, hypothesis.length];
  while (start < rows && start < columns && reference[start] === hypothesis[start]) start++;
  while (rows > start && columns > start && reference[rows - 1] === hypothesis[columns - 1]) {
    rows--;
    columns--;
  }
  rows -= start;
  columns -= start;
  if (rows === 0 || columns === 0) return { substitutions: 0, deletions: rows, insertions: columns };
  const width = columns + 1;
  const size = (rows + 1) * width;
  if (size > MOST_CELLS || rows > 65_535 || columns > 65_535) return null;
  if (cells.length < size) cells = new Uint16Array(Math.max(size, 4096));
  for (let column = 0; column <= columns; column++) cells[column] = column;
  for (let row = 1; row <= rows; row++) {
    const at = row * width;
    const word = reference[start + row - 1];
    cells[at] = row;
    for (let column = 1; column <= columns; column++) {
      const diagonal = cells[at - width + column - 1]!;
      if (word === hypothesis[start + column - 1]) cells[at + column] = diagonal;
      else cells[at + column] = 1 + Math.min(diagonal, cells[at - width + column]!, cells[at + column - 1]!);
    }
  }
  return backTrace(rows, columns, (row, column) => reference[start + row] === hypothesis[start + column]);
}

function backTrace(rows: number, columns: number, equal: (row: number, column: number) => boolean): Edits {
  const width = columns + 1;
  const cell = (row: number, column: number) => cells[row * width + column]!;
  let [row, column] = [rows, columns];
  let [substitutions, deletions, insertions] = [0, 0, 0];
  while (row > 0 && column > 0) {
    if (cell(row, column) === cell(row - 1, column) + 1) {
      deletions++;
      row--;
      continue;
    }
    column--;
    if (column > 0 && cell(row, column) === cell(row - 1, column) - 1) insertions++;
    else {
      row--;
      if (!equal(row, column)) substitutions++;
    }
  }
  return { substitutions, deletions: deletions + row, insertions: insertions + column };
}

/** The fewest characters to change, and those of the reference. A character is a code point, as in Python; `distance` counts UTF-16 units. */
export function countCharacters(
  reference: string,
  hypothesis: string,
): { readonly edits: number; readonly of: number } {
  // Well-formed text has surrogates only in pairs, so one alone can stand for each pair.
  const units = new Map<string, string>();
  const inUnits = (text: string) =>
    text.replace(/[\u{10000}-\u{10FFFF}]/gu, (pair) => {
      const unit = units.get(pair) ?? String.fromCharCode(0xd800 + units.size);
      units.set(pair, unit);
      return unit;
    });
  const [expected, recognised] = [inUnits(reference), inUnits(hypothesis)];
  let start = 0;
  let [rows, columns] = [expected.length, recognised.length];
  while (start < rows && start < columns && expected.charCodeAt(start) === recognised.charCodeAt(start))
    start++;
  while (
    rows > start &&
    columns > start &&
    expected.charCodeAt(rows - 1) === recognised.charCodeAt(columns - 1)
  ) {
    rows--;
    columns--;
  }
  const edits = distance(expected.slice(start, rows), recognised.slice(start, columns));
  return { edits, of: expected.length };
}
