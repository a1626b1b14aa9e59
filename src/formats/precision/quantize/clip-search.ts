import type { WeightStream } from '../../onnx/weight.js';
import type { QuantizedFormat } from '../formats/format.js';
import { ErrorKernel, type InputMoments, LANES } from './error-kernel.js';
import type { ScaleLayout } from './scale-layout.js';
import { forTiles, tileRows } from './tiles.js';

/**
 * For each block the place in `clips` of the share of its largest magnitude whose scale leaves the least error; one more reading of the weight. Without `inputs`
 * the error is the sum of the squared differences d of the weights; with them the mean square of the sum over x * d, x independent: sum of variance * d^2,
 * plus the square of the sum of mean * d.
 */
export function leastError(
  source: WeightStream,
  layout: ScaleLayout,
  count: number,
  format: QuantizedFormat,
  scaleOf: (index: number, clip: number) => number,
  inputs?: InputMoments,
): Uint8Array {
  const best = new Uint8Array(count);
  const size = tileRows(layout);
  const moments = inputs ?? { mean: new Float32Array(size), variance: new Float32Array(size).fill(1) };
  const kernel = new ErrorKernel(format, size, moments);
  const clips = format.clips.length;
  const scales = new Float64Array(LANES);
  const least = new Float64Array(LANES);
  forTiles(
    source,
    layout,
    { terms: moments.mean.length },
    kernel,
    (tile, rows, place, first, stride, lanes) => {
      least.fill(Number.POSITIVE_INFINITY);
      for (let clip = 0; clip < clips; clip++) {
        for (let lane = 0; lane < lanes; lane++) scales[lane] = scaleOf(first + lane * stride, clip);
        kernel.round(tile, rows, place, scales);
        for (let lane = 0; lane < lanes; lane++) {
          const sum = kernel.sums[lane]!;
          const error = scales[lane]! ** 2 * (kernel.squares[lane]! + sum * sum);
          if (!(error < least[lane]!)) continue;
          least[lane] = error;
          best[first + lane * stride] = clip;
        }
      }
    },
  );
  return best;
}
