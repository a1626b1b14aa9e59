import type { FloatArray } from '../float-format.js';

/**
 * Exact order statistics without sorting everything: quickselect on several ranks at once, in place.
 * A quantile q of n values is the value at position q * (n - 1) of the sorted list, linear between neighbours: numpy's default.
 */
export function quantilesInPlace(values: FloatArray, quantiles: readonly number[]): number[] {
  if (values.length === 0) return quantiles.map(() => Number.NaN);
  const ranks = new Set<number>();
  for (const quantile of quantiles) for (const rank of neighbours(quantile, values.length)) ranks.add(rank);
  selectRanks(values, Uint32Array.from(ranks).sort());
  return quantiles.map((quantile) =>
    quantileAt(quantile, values.length, (rank) => values[rank] ?? Number.NaN),
  );
}

/** The quantile of `count` sorted values that `valueAt` knows by rank. */
export function quantileAt(quantile: number, count: number, valueAt: (rank: number) => number): number {
  const [low, high] = neighbours(quantile, count);
  const below = valueAt(low);
  if (high === low) return below;
  const part = quantile * (count - 1) - low;
  return below + (valueAt(high) - below) * part;
}

/** The two ranks that a quantile lies between; the same twice when it falls on one. */
export function neighbours(quantile: number, count: number): readonly [number, number] {
  const position = quantile * (count - 1);
  const low = Math.floor(position);
  return [low, position > low ? low + 1 : low];
}

/** Rearranges `values` so that each of the sorted `ranks` holds what it would hold if all were sorted. */
export function selectRanks(values: FloatArray, ranks: Uint32Array): void {
  const stack: [number, number, number, number][] = [[0, values.length - 1, 0, ranks.length]];
  for (let job = stack.pop(); job !== undefined; job = stack.pop()) {
    let [left, right, from, to] = job;
    while (from < to && left < right) {
      if (right - left < 24) {
        insertionSort(values, left, right);
        break;
      }
      const [lessEnd, greaterStart] = partition(values, left, right);
      let split = from;
      while (split < to && ranks[split]! < lessEnd) split++;
      let after = split;
      while (after < to && ranks[after]! < greaterStart) after++;
      if (after < to && split > from) stack.push([greaterStart, right, after, to]);
      if (split > from) [right, to] = [lessEnd - 1, split];
      else [left, from] = [greaterStart, after];
    }
  }
}

/** Splits into less, equal, greater around a median of three; gives where equal begins and where greater begins. Ties cost nothing. */
function partition(values: FloatArray, left: number, right: number): readonly [number, number] {
  const pivot = medianOfThree(values[left]!, values[(left + right) >>> 1]!, values[right]!);
  let less = left;
  let at = left;
  let greater = right;
  while (at <= greater) {
    const value = values[at]!;
    if (value < pivot) {
      values[at++] = values[less]!;
      values[less++] = value;
    } else if (value > pivot) {
      values[at] = values[greater]!;
      values[greater--] = value;
    } else at++;
  }
  return [less, greater + 1];
}

const medianOfThree = (a: number, b: number, c: number): number =>
  Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));

function insertionSort(values: FloatArray, left: number, right: number): void {
  for (let i = left + 1; i <= right; i++) {
    const value = values[i]!;
    let at = i;
    while (at > left && values[at - 1]! > value) {
      values[at] = values[at - 1]!;
      at--;
    }
    values[at] = value;
  }
}
