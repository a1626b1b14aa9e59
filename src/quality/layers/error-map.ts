import { elementCount } from '../../formats/tensor/dtype.js';
import type { Tensor } from '../../formats/tensor/tensor.js';
import { numbersOf } from '../../formats/tensor/values.js';
import type { ErrorMap } from './result.js';

/** More rows or columns are not readable on a page. */
const MOST_CELLS = 48;

/**
 * The mean absolute error over the two longest axes of a tensor, other axes and samples together. Both sides have the same shapes. An axis longer than 48 is
 * cut into 48 parts. The same infinity on both sides is not an error.
 */
export function errorMap(
  tensor: string,
  candidate: readonly Tensor[],
  reference: readonly Tensor[],
): ErrorMap {
  const shape = reference[0]?.shape ?? [];
  const longest = shape
    .map((size, axis) => ({ size, axis }))
    .sort((a, b) => b.size - a.size || a.axis - b.axis)
    .slice(0, 2)
    .sort((a, b) => a.axis - b.axis);
  const none = { axis: null, size: 1 };
  const columns = longest.at(-1) ?? none;
  const rows = longest.length === 2 ? (longest[0] ?? none) : none;
  const [height, width] = [Math.min(rows.size, MOST_CELLS), Math.min(columns.size, MOST_CELLS)];
  const sums = new Float64Array(height * width);
  const counts = new Float64Array(height * width);
  for (const [sample, { shape: own, ...rest }] of reference.entries()) {
    const [theirs, ours] = [numbersOf({ shape: own, ...rest }), numbersOf(candidate[sample]!)];
    const place = (axis: number | null, cells: number) => {
      if (axis === null) return () => 0;
      const stride = elementCount(own.slice(axis + 1));
      const size = own[axis] ?? 1;
      return (element: number) => Math.floor(((Math.floor(element / stride) % size) * cells) / size);
    };
    const [rowOf, columnOf] = [place(rows.axis, height), place(columns.axis, width)];
    for (const [element, value] of theirs.entries()) {
      const cell = rowOf(element) * width + columnOf(element);
      const other = ours[element]!;
      sums[cell]! += Object.is(value, other) ? 0 : Math.abs(other - value);
      counts[cell]!++;
    }
  }
  return {
    tensor,
    rows,
    columns,
    cells: Array.from({ length: height }, (_, row) =>
      Array.from({ length: width }, (_, column) => {
        const cell = row * width + column;
        const mean = sums[cell]! / counts[cell]!;
        return Number.isFinite(mean) ? mean : null;
      }),
    ),
  };
}
