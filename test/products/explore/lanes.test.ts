import { describe, expect, test } from 'vitest';
import { lanesOf, readersOf } from '../../../src/products/explore/page/lanes.js';
import { type Choice, type Line, type Listing, shown } from '../../../src/products/explore/page/listing.js';
import { MOST_NODES, neighbourhoodOf } from '../../../src/products/explore/page/neighbourhood.js';

describe('lanes', () => {
  test('a chain is one lane', () => {
    const { lane, end, count } = lanesOf([[1], [2], [3], []]);
    expect([...lane]).toEqual([0, 0, 0, 0]);
    expect([...end]).toEqual([1, 2, 3, 3]);
    expect(count).toBe(1);
  });

  test('a residual connection runs beside the block and joins it', () => {
    const { lane, count } = lanesOf([[1, 4], [2], [3], [4], []]);
    expect([...lane]).toEqual([0, 1, 1, 1, 0]);
    expect(count).toBe(2);
  });

  test('no two tensors run in one lane at the same line', () => {
    const readers = Array.from({ length: 400 }, (_, line) =>
      [line + 1, line + 1 + ((line * 7) % 23)].filter((reader) => reader < 400),
    );
    const { lane, end } = lanesOf(readers);
    for (const [one] of readers.entries())
      for (let other = one + 1; other < end[one]!; other++) expect(lane[other]).not.toBe(lane[one]);
  });

  test('a tensor is read from the last row that wrote it', () => {
    const rows = [
      { inputs: [], outputs: [0] },
      { inputs: [0, 0], outputs: [1] },
      { inputs: [1], outputs: [0] },
      { inputs: [0, 1], outputs: [] },
    ];
    expect(readersOf(rows)).toEqual([[1], [2, 3], [3], []]);
  });
});

describe('the neighbourhood', () => {
  test('has the rows within some steps, each below what it reads', () => {
    const readers = [[1], [2, 3], [4], [4], [5], []];
    const { nodes, edges, depth, isCut } = neighbourhoodOf(readers, 4, 2);
    expect(nodes.map(({ row }) => row)).toEqual([1, 2, 3, 4, 5]);
    expect(nodes.map(({ y }) => y)).toEqual([0, 1, 1, 2, 3]);
    expect(edges).toContainEqual([1, 3]);
    expect({ depth, isCut }).toEqual({ depth: 4, isCut: false });
  });

  test('ends at 300 rows', () => {
    const readers = [
      Array.from({ length: 999 }, (_, row) => row + 1),
      ...Array.from({ length: 999 }, () => []),
    ];
    const { nodes, isCut } = neighbourhoodOf(readers, 0, 1);
    expect(nodes).toHaveLength(MOST_NODES);
    expect(isCut).toBe(true);
  });
});

describe('the lines that are shown', () => {
  const line = (name: string, ms: number | null, scope: string, more: Partial<Line> = {}): Line => ({
    cell: (column) => [name, ms][column]!,
    onnx: scope === '' ? [] : [`/${scope}/Op`],
    members: [0],
    precision: 'float16',
    isIdle: false,
    text: () => name,
    ...more,
  });
  const lines = [
    line('w', 0, '', { isIdle: true }),
    line('a', 1, 'stem'),
    line('b', 4, 'one/x'),
    line('c', null, 'one/y'),
    line('d', 2, 'head'),
  ].map((each, index) => ({ ...each, members: [index] }));
  const listing: Listing = {
    columns: [
      { title: 'Layer', kind: 'text' },
      { title: 'Time', kind: 'ms' },
    ],
    lines,
    readers: [[], [2], [3, 4], [4], []],
  };
  const choice: Choice = { sort: null, search: '', withIdle: false, depth: 0, open: new Set() };
  const see = (change: Partial<Choice>) => {
    const { lines: found, readers } = shown(listing, { ...choice, ...change });
    return { names: found.map(({ cell }) => cell(0)), readers, found };
  };

  test('leave out what only holds weights, and keep who reads what', () => {
    expect(see({})).toMatchObject({ names: ['a', 'b', 'c', 'd'], readers: [[1], [2, 3], [3], []] });
    expect(see({ withIdle: true }).names).toEqual(['w', 'a', 'b', 'c', 'd']);
  });

  test('are sorted by a column, without a value last in both directions', () => {
    expect(see({ sort: { column: 1, isDown: true } }).names).toEqual(['b', 'd', 'a', 'c']);
    expect(see({ sort: { column: 1, isDown: false } })).toMatchObject({
      names: ['a', 'd', 'b', 'c'],
      readers: null,
    });
  });

  test('are searched', () => {
    expect(see({ search: ' B ' }).names).toEqual(['b']);
  });

  test('fold by scope into one line with the sum, which opens', () => {
    const { names, readers, found } = see({ depth: 1 });
    expect(names).toEqual(['a', '/one (2)', 'd']);
    expect(readers).toEqual([[1], [2], []]);
    expect(found[1]!.cell(1)).toBe(4);
    expect(found[1]).toMatchObject({ members: [2, 3], folded: { isOpen: false } });
    expect(see({ depth: 1, open: new Set([found[1]!.folded!.key]) }).names).toEqual([
      'a',
      '/one (2)',
      'b',
      'c',
      'd',
    ]);
    expect(see({ depth: 2 }).names).toEqual(['a', 'b', 'c', 'd']);
  });
});
