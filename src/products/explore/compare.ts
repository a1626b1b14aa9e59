import { changesOf, matchLayers } from '../../engines/layers/diff.js';
import { TrtforgeError } from '../../errors.js';
import type { Comparison, Group, Row } from './result.js';
import type { LayerRow } from './rows.js';

interface Placed {
  readonly name: string;
  readonly onnxNodes: string[];
  /** Two engines rarely have their profiles in one order: rows are those of one profile a side. */
  readonly profile: 0;
  readonly index: number;
  readonly of: LayerRow;
}

/**
 * Rows of two sides that compute the same ONNX nodes, also where they were fused in another way; copies are matched among themselves. Every row is in one group, so that
 * times of groups add up to those of the sides. Of sides of two kinds (a model and an engine) the precision alone is compared. Throws TF_USAGE for sides without a common node.
 */
export function compareRows(
  a: readonly LayerRow[],
  b: readonly LayerRow[],
  [fileA, fileB]: readonly [string, string],
  isOneKind: boolean,
): Comparison {
  const placed = (rows: readonly LayerRow[]) => {
    const served = servedNodes(rows);
    return rows.map(
      (of, index): Placed => ({ name: of.row.name, onnxNodes: served(of.row), profile: 0, index, of }),
    );
  };
  const [one, other] = [placed(a), placed(b)];
  const common = new Set(one.flatMap(({ onnxNodes }) => onnxNodes));
  if (!other.some(({ onnxNodes }) => onnxNodes.some((node) => common.has(node))))
    throw new TrtforgeError('TF_USAGE', `${fileA} and ${fileB} have no ONNX node in common.`, {
      remedy: 'Pass two engines of one model, or a model and an engine that was built from it.',
    });
  const groups = inOrder([true, false].flatMap((copies) => groupsOf(one, other, copies, isOneKind)));
  const count = (change: Group['change']) => groups.filter((group) => group.change === change).length;
  const alone = (change: Group['change']) =>
    groups
      .filter((group) => group.copies && group.change === change)
      .reduce((sum, group) => sum + group.a.length + group.b.length, 0);
  return {
    groups,
    counts: {
      same: count('same'),
      changed: count('changed'),
      fused: count('fused'),
      onlyA: count('only-a'),
      onlyB: count('only-b'),
    },
    newReformats: alone('only-b'),
    goneReformats: alone('only-a'),
  };
}

/** A copy without a node of its own belongs to those of the first layer that reads what it writes: versions name copies in their own ways. */
function servedNodes(rows: readonly LayerRow[]): (row: Row) => string[] {
  const readers = new Map<number, Row>();
  for (const { row } of rows)
    for (const tensor of row.inputs) if (!row.copies && !readers.has(tensor)) readers.set(tensor, row);
  return ({ onnx, copies, outputs }) =>
    onnx.length > 0 || !copies ? onnx : outputs.flatMap((tensor) => readers.get(tensor)?.onnx ?? []);
}

function groupsOf(a: readonly Placed[], b: readonly Placed[], copies: boolean, isOneKind: boolean): Group[] {
  const of = (rows: readonly Placed[]) => rows.filter(({ of: { row } }) => row.copies === copies);
  const { pairs, fusions, onlyA, onlyB } = matchLayers(of(a), of(b));
  const group = (
    change: Group['change'],
    [inA, inB]: readonly [readonly Placed[], readonly Placed[]],
    changes: readonly string[] = [],
  ): Group => ({
    ...{ change, copies, changes: [...changes] },
    a: inA.map(({ index }) => index),
    b: inB.map(({ index }) => index),
    aMs: msOf(inA),
    bMs: msOf(inB),
  });
  return [
    ...pairs.map(([one, other]) => {
      const found = changesOf([one.of.layer, other.of.layer]).map(({ what }) => what);
      const changes = isOneKind ? found : found.filter((what) => what === 'precision');
      return group(changes.length === 0 ? 'same' : 'changed', [[one], [other]], changes);
    }),
    ...fusions.map((each) => group('fused', [each.a, each.b])),
    ...onlyA.map((each) => group('only-a', [[each], []])),
    ...onlyB.map((each) => group('only-b', [[], [each]])),
  ];
}

function msOf(rows: readonly Placed[]): number | null {
  const timed = rows.flatMap(({ of: { row } }) => row.ms ?? []);
  return timed.length === 0 ? null : timed.reduce((sum, ms) => sum + ms, 0);
}

/** In the order of A; what B alone has follows the group that precedes it in B. */
function inOrder(groups: readonly Group[]): Group[] {
  const first = (rows: readonly number[]) =>
    rows.length === 0 ? Number.POSITIVE_INFINITY : Math.min(...rows);
  let before = -1;
  const places = new Map<Group, number>();
  for (const group of groups.toSorted((one, other) => first(one.b) - first(other.b))) {
    if (group.a.length > 0 && group.b.length > 0) before = Math.max(before, first(group.a));
    places.set(group, group.a.length > 0 ? first(group.a) : before + 0.5);
  }
  return groups.toSorted(
    (one, other) => places.get(one)! - places.get(other)! || first(one.b) - first(other.b) || 0,
  );
}
