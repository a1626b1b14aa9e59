import type { Cell, Kind } from '../words.js';
import type { PageData, PageRow as Row } from './data.js';
import { readersOf } from './lanes.js';

export interface Column {
  readonly title: string;
  readonly kind: Kind;
  readonly isWide?: true;
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
export const ROW_COLUMNS: readonly (Column & { readonly of: (row: Row, index: number) => Cell })[] = [
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

/** Rows of one side in the order of execution; columns that no row has are left out. */
export function rowListing({ rows }: PageData['sides'][number]): Listing {
  const columns = ROW_COLUMNS.filter(
    ({ of, kind }) => kind === 'count' || rows.some((row) => of(row, 0) !== null),
  );
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

/** Groups of two sides beside each other, in the order of A. */
export function groupListing({ sides, comparison }: PageData): Listing {
  const [a, b] = sides;
  const groups = comparison?.groups ?? [];
  const isTimed = groups.some(({ aMs, bMs }) => aMs !== null || bMs !== null);
  const columns: Column[] = [
    { title: 'Layers of A', kind: 'text', isWide: true },
    { title: 'Change', kind: 'text' },
    ...(isTimed
      ? ([
          { title: 'Time A', kind: 'ms' },
          { title: 'Time B', kind: 'ms' },
          { title: 'B - A', kind: 'signed-ms' },
        ] as const)
      : []),
    { title: 'Precision', kind: 'text' },
    { title: 'Operator', kind: 'text' },
    { title: 'Layers of B', kind: 'text', isWide: true },
    { title: 'Type', kind: 'text' },
    { title: 'ONNX nodes', kind: 'text' },
  ];
  const onnxOf = (members: readonly Row[]) => [...new Set(members.flatMap(({ onnx }) => onnx))];
  const rowsOf = (index: number): readonly [readonly Row[], readonly Row[]] => {
    const { a: inA = [], b: inB = [] } = groups[index] ?? {};
    return [inA.map((row) => a!.rows[row]!), inB.map((row) => b!.rows[row]!)];
  };
  const lines = groups.map(({ change, changes, copies, aMs, bMs }, index): Line => {
    const [inA, inB] = rowsOf(index);
    const arrow = (of: (row: Row) => string | null) => {
      const [one, other] = [inA, inB].map((rows) =>
        [...new Set(rows.map((row) => of(row) ?? '?'))].join(', '),
      );
      return one === other || other === '' ? one! : one === '' ? other! : `${one} → ${other}`;
    };
    const names = (rows: readonly Row[]) => rows.map(({ name }) => name).join(' · ') || null;
    const reformat =
      copies && change === 'only-b' ? 'new reformat' : copies && change === 'only-a' ? 'reformat gone' : null;
    const onnx = onnxOf([...inA, ...inB]);
    const what = reformat ?? [CHANGES[change], changes.join(', ')].filter(Boolean).join(': ');
    const cells: Cell[] = [
      names(inA),
      what,
      ...(isTimed ? [aMs, bMs, aMs === null && bMs === null ? null : (bMs ?? 0) - (aMs ?? 0)] : []),
      arrow(({ precision }) => precision),
      arrow(({ operator }) => operator),
      names(inB),
      arrow(({ type }) => type),
      onnx.join(' + ') || null,
    ];
    return {
      cell: (column) => cells[column]!,
      onnx,
      members: [index],
      precision: precisionOf([...inB, ...inA][0]!),
      isIdle: [...inA, ...inB].every(isIdle),
      text: () => [names(inA), names(inB), what, ...onnx].join('\n').toLowerCase(),
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
