import type { Cell, Kind } from '../cell-text.js';
import type { Group } from '../result.js';
import type { PageData, PageRow as Row } from './data.js';
import { readersOf } from './lanes.js';

export interface Column {
  readonly title: string;
  readonly kind: Kind;
  readonly isWide?: true;
}

interface ColumnOf<T> extends Column {
  /** Null where an item has none; a column that none has is left out. */
  readonly of: (item: T, index: number) => Cell;
}

/** A line of the table: a row, a group of two sides, or a scope whose rows are folded. */
export interface Line {
  /** Its text or figure in a column. */
  readonly cell: (column: number) => Cell;
  /** Names of the ONNX nodes that it stands for. */
  readonly onnx: readonly string[];
  /** Rows or groups that it stands for. */
  readonly members: readonly number[];
  /** Of a line that heads a scope: its name; whether its rows are folded. */
  readonly folded?: { readonly key: string; readonly isOpen: boolean };
  readonly precision: string;
  /** It holds weights and does nothing in a run. */
  readonly isIdle: boolean;
  /** What a search looks in, lower case. */
  readonly text: () => string;
}

/** A table of the page. */
export interface Listing {
  readonly columns: readonly Column[];
  readonly lines: readonly Line[];
  readonly readers: readonly (readonly number[])[];
}

/** The levels of an ONNX name: what stands before its last `/`. */
function scopeOf(onnx: readonly string[]): readonly string[] {
  let common: readonly string[] | undefined;
  for (const name of onnx) {
    const levels = name
      .split('/')
      .filter((level) => level !== '')
      .slice(0, -1);
    const until = common?.findIndex((level, index) => level !== levels[index]) ?? -1;
    common = common === undefined ? levels : until < 0 ? common : common.slice(0, until);
  }
  return common ?? [];
}

const isIdle = ({ constant, copies }: Row): boolean => constant && !copies;

/** Lanes are of what is computed: weights would be one each. */
const computedReaders = (rows: readonly Row[]): number[][] =>
  readersOf(rows).map((readers, row) => (rows[row]!.constant ? [] : readers));

const precisionOf = ({ copies, precision }: Row): string => (copies ? 'copy' : (precision ?? 'unknown'));

/** What is known of a row, for the table and its details. */
export const ROW_COLUMNS: readonly ColumnOf<Row>[] = [
  { title: 'Layer', kind: 'text', isWide: true, of: ({ name }) => name },
  { title: 'Order', kind: 'count', of: (_, index) => index + 1 },
  { title: 'Time', kind: 'ms', of: ({ ms }) => ms },
  { title: 'Share', kind: 'share', of: ({ share }) => share },
  { title: 'Operator', kind: 'text', of: ({ operator }) => operator },
  { title: 'Type', kind: 'text', of: ({ type }) => type },
  { title: 'Precision', kind: 'text', of: ({ precision }) => precision },
  { title: 'Error', kind: 'db', of: ({ error }) => decibels(error?.sqnrDb) },
  { title: 'Sensitivity', kind: 'db', of: ({ sensitivityDb }) => decibels(sensitivityDb) },
  { title: 'FLOPs', kind: 'flops', of: ({ flops }) => flops },
  { title: 'Writes', kind: 'bytes', of: ({ bytes }) => bytes },
  { title: 'Weights', kind: 'bytes', of: ({ weightBytes }) => weightBytes || null },
  { title: 'Format', kind: 'text', of: ({ format }) => format },
  { title: 'Tactic', kind: 'text', of: ({ tactic }) => tactic },
  { title: 'ONNX nodes', kind: 'text', of: ({ onnx }) => (onnx.length === 0 ? null : onnx.join(' + ')) },
];

const decibels = (measure: string | number | null | undefined): number | null =>
  measure == null ? null : Number(measure);

/** The columns that any item has, with their cells. */
const columnsOf = <T>(all: readonly ColumnOf<T>[], items: readonly T[]): readonly ColumnOf<T>[] =>
  all.filter(({ of }) => items.some((item, index) => of(item, index) !== null));

/** Rows of one side in the order of execution. */
export function rowListing({ rows }: PageData['sides'][number]): Listing {
  const columns = columnsOf(ROW_COLUMNS, rows);
  const lines = rows.map((row, index): Line => {
    const { name, onnx, type, tactic } = row;
    return {
      cell: (column) => columns[column]!.of(row, index),
      onnx,
      members: [index],
      precision: precisionOf(row),
      isIdle: isIdle(row),
      text: () => [name, type, tactic, row.operator, row.precision, ...onnx].join('\n').toLowerCase(),
    };
  });
  return { columns, lines, readers: computedReaders(rows) };
}

const CHANGES: Readonly<Record<string, string>> = {
  same: 'same',
  changed: 'changed',
  fused: 'fused otherwise',
  'only-a': 'A alone',
  'only-b': 'B alone',
};

/** A group with its rows. */
interface Pair extends Group {
  readonly inA: readonly Row[];
  readonly inB: readonly Row[];
  readonly onnx: readonly string[];
}

/** What both have, or of A and of B. */
function arrow(of: (row: Row) => string | null): (pair: Pair) => string {
  const words = (rows: readonly Row[]) => [...new Set(rows.map((row) => of(row) ?? '?'))].join(', ');
  return ({ inA, inB }) => [...new Set([words(inA), words(inB)])].filter(Boolean).join(' → ');
}

const namesOf = (rows: readonly Row[]): string | null => rows.map(({ name }) => name).join(' · ') || null;

function changeText({ change, changes, copies }: Group): string {
  if (copies && change === 'only-b') return 'new reformat';
  if (copies && change === 'only-a') return 'reformat gone';
  return [CHANGES[change], changes.join(', ')].filter(Boolean).join(': ');
}

const PAIR_COLUMNS: readonly ColumnOf<Pair>[] = [
  { title: 'Layers of A', kind: 'text', isWide: true, of: ({ inA }) => namesOf(inA) },
  { title: 'Change', kind: 'text', of: changeText },
  { title: 'Time A', kind: 'ms', of: ({ aMs }) => aMs },
  { title: 'Time B', kind: 'ms', of: ({ bMs }) => bMs },
  {
    title: 'B - A',
    kind: 'signed-ms',
    of: ({ aMs, bMs }) => (aMs === null && bMs === null ? null : (bMs ?? 0) - (aMs ?? 0)),
  },
  { title: 'Precision', kind: 'text', of: arrow(({ precision }) => precision) },
  { title: 'Operator', kind: 'text', of: arrow(({ operator }) => operator) },
  { title: 'Layers of B', kind: 'text', isWide: true, of: ({ inB }) => namesOf(inB) },
  { title: 'Type', kind: 'text', of: arrow(({ type }) => type) },
  { title: 'ONNX nodes', kind: 'text', of: ({ onnx }) => onnx.join(' + ') || null },
];

/** Groups of two sides beside each other, in the order of A. */
export function groupListing({ sides, comparison }: PageData): Listing {
  const [a, b] = sides;
  const groups = comparison?.groups ?? [];
  const pairs = groups.map((group): Pair => {
    const [inA, inB] = [group.a.map((row) => a!.rows[row]!), group.b.map((row) => b!.rows[row]!)];
    return { ...group, inA, inB, onnx: [...new Set([...inA, ...inB].flatMap(({ onnx }) => onnx))] };
  });
  const columns = columnsOf(PAIR_COLUMNS, pairs);
  const lines = pairs.map((pair, index): Line => {
    const { inA, inB, onnx } = pair;
    return {
      cell: (column) => columns[column]!.of(pair, index),
      onnx,
      members: [index],
      precision: precisionOf([...inB, ...inA][0]!),
      isIdle: [...inA, ...inB].every(isIdle),
      text: () => [namesOf(inA), namesOf(inB), changeText(pair), ...onnx].join('\n').toLowerCase(),
    };
  });
  const groupOf = new Map(groups.flatMap((group, index) => group.a.map((row) => [row, index] as const)));
  const readers = groups.map((): number[] => []);
  for (const [row, reading] of computedReaders(a?.rows ?? []).entries()) {
    const from = groupOf.get(row);
    for (const reader of reading) {
      const to = groupOf.get(reader);
      if (from !== undefined && to !== undefined && to > from) readers[from]!.push(to);
    }
  }
  return { columns, lines, readers };
}

export interface Choice {
  /** The column and its direction; null: the order of execution. */
  readonly sort: { readonly column: number; readonly isDown: boolean } | null;
  readonly search: string;
  /** Whether lines that only hold weights are shown. */
  readonly withIdle: boolean;
  /** Levels of scopes that are folded; 0: none. */
  readonly depth: number;
  /** Scopes whose rows are shown although their level is folded. */
  readonly open: ReadonlySet<string>;
}

/** The lines that are shown, and who reads what each writes; readers are known in the order of execution alone. */
export function shown(
  { columns, lines, readers }: Listing,
  { sort, search, withIdle, depth, open }: Choice,
): Pick<Listing, 'lines'> & { readonly readers: Listing['readers'] | null } {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = lines.filter(
    ({ text, isIdle }) =>
      (withIdle || !isIdle) && (words.length === 0 || words.every((word) => text().includes(word))),
  );
  if (sort !== null) {
    const { column, isDown } = sort;
    const sorted = found.toSorted((one, other) => byCell(one.cell(column), other.cell(column), isDown));
    return { lines: sorted, readers: null };
  }
  if (words.length > 0) return { lines: found, readers: null };
  if (depth === 0 && found.length === lines.length) return { lines, readers };
  const placed = depth === 0 ? found : foldScopes(columns, found, depth, open);
  const lineOf = new Int32Array(readers.length).fill(-1);
  for (const [index, { members, folded }] of placed.entries())
    if (folded?.isOpen !== true) for (const row of members) lineOf[row] = index;
  const merged = placed.map((): number[] => []);
  for (const [row, reading] of readers.entries())
    for (const reader of reading) {
      const [from, to] = [lineOf[row]!, lineOf[reader]!];
      if (from >= 0 && to > from && !merged[from]!.includes(to)) merged[from]!.push(to);
    }
  return { lines: placed, readers: merged };
}

/** What has no value stands last, whichever the direction. */
function byCell(one: Cell, other: Cell, isDown: boolean): number {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  const order = Number(one > other) - Number(one < other);
  return isDown ? -order : order;
}

/** Neighbouring lines of one scope under a line of its own, which has their sums. */
function foldScopes(
  columns: readonly Column[],
  lines: readonly Line[],
  depth: number,
  open: ReadonlySet<string>,
): Line[] {
  const out: Line[] = [];
  // A line without a node of its own stays in the scope around it.
  let before = '';
  const scopes = lines.map(({ onnx }) => {
    before = onnx.length === 0 ? before : scopeOf(onnx).slice(0, depth).join('/');
    return before;
  });
  for (let start = 0; start < lines.length; ) {
    const name = scopes[start]!;
    let end = start + 1;
    while (end < lines.length && scopes[end] === name) end++;
    const run = lines.slice(start, end);
    if (name === '' || run.length === 1) out.push(...run);
    else {
      const key = `${name}@${run[0]!.members[0]}`;
      const isOpen = open.has(key);
      out.push({
        cell: (at) =>
          at === 0
            ? `/${name} (${run.length})`
            : together(
                columns[at]!,
                run.map(({ cell }) => cell(at)),
              ),
        onnx: [],
        members: run.flatMap(({ members }) => members),
        folded: { key, isOpen },
        precision: oneOf(run.map(({ precision }) => precision)) ?? 'mixed',
        isIdle: false,
        text: () => '',
      });
      if (isOpen) out.push(...run);
    }
    start = end;
  }
  return out;
}

const oneOf = <T>(values: readonly T[]): T | null => (new Set(values).size === 1 ? values[0]! : null);

function together({ kind }: Column, cells: readonly Cell[]): Cell {
  const numbers = cells.filter((cell) => typeof cell === 'number');
  if (kind === 'text') return oneOf(cells);
  if (numbers.length === 0) return null;
  if (kind === 'count') return numbers[0]!;
  return kind === 'db' ? Math.min(...numbers) : numbers.reduce((sum, number) => sum + number, 0);
}
