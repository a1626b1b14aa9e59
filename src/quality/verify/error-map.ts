import { elementCount } from '../../formats/tensor/dtype.js';
import { eachPiece, floatReader } from '../../formats/tensor/float-reader.js';
import type { TensorReader } from '../../formats/tensor/tensor-reader.js';
import { worstFirst } from './checks.js';
import type { ErrorMap, Measure, VerifiedOutput } from './result.js';

/** More rows or columns are not readable on a page. */
const MOST_CELLS = 48;

/**
 * The mean absolute error over the two longest axes of a tensor, other axes and samples together. Both sides have the same shapes. An axis longer than 48 is
 * cut into 48 parts. The same infinity on both sides is not an error.
 */
export function errorMap(
  tensor: string,
  candidate: readonly TensorReader[],
  reference: readonly TensorReader[],
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
  for (const [sample, theirs] of reference.entries()) {
    const own = theirs.shape;
    const place = (axis: number | null, cells: number) => {
      if (axis === null) return () => 0;
      const stride = elementCount(own.slice(axis + 1));
      const size = own[axis] ?? 1;
      return (element: number) => Math.floor(((Math.floor(element / stride) % size) * cells) / size);
    };
    const [rowOf, columnOf] = [place(rows.axis, height), place(columns.axis, width)];
    const pairs = { candidate: floatReader(candidate[sample]!), reference: floatReader(theirs) };
    eachPiece(pairs, (ours, values, start) => {
      for (const [index, value] of values.entries()) {
        const cell = rowOf(start + index) * width + columnOf(start + index);
        const other = ours[index]!;
        sums[cell]! += Object.is(value, other) ? 0 : Math.abs(other - value);
        counts[cell]!++;
      }
    });
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

/** Error's share of a tensor: its RMS over the reference's, by the ratio in dB; infinite for values finite on one side only, 0 without a ratio. */
export function errorShare(signalToNoise: Measure | undefined, mismatching: number): number {
  if (mismatching > 0) return Number.POSITIVE_INFINITY;
  const share = 10 ** (-Number(signalToNoise) / 20);
  return Number.isNaN(share) ? 0 : share;
}

const shareOf = ({ statistics, nonFinite }: VerifiedOutput): number =>
  errorShare(statistics.find(({ name }) => name === 'SNR in dB')?.amount, nonFinite?.mismatching ?? 0);

/** The map of the output that decided, or where all passed of the one of which the largest share is error; undefined where it has none. */
export function worstErrorMap(
  outputs: readonly VerifiedOutput[],
  tensorsOf: (
    name: string,
  ) => readonly [candidate: readonly TensorReader[], reference: readonly TensorReader[]],
): ErrorMap | undefined {
  const [decided] = worstFirst(outputs);
  const worst =
    decided?.outcome === 'pass' ? outputs.toSorted((a, b) => shareOf(b) - shareOf(a))[0] : decided;
  return worst === undefined || shareOf(worst) === 0
    ? undefined
    : errorMap(worst.name, ...tensorsOf(worst.name));
}
