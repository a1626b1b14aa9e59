import type { WeightStream } from '../../onnx/weight.js';
import type { QuantizedFormat } from '../formats/format.js';
import { type InputMoments, roundingErrors } from './rounding-errors.js';
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
  forTiles(source, layout, { terms: moments.mean.length }, (values, from, rows, place, index) => {
    let least = Number.POSITIVE_INFINITY;
    for (let clip = 0; clip < format.clips.length; clip++) {
      const scale = scaleOf(index, clip);
      const { squares, sum } = roundingErrors(values, from, rows, scale, format, moments, place);
      const error = scale ** 2 * (squares + sum * sum);
      if (!(error < least)) continue;
      least = error;
      best[index] = clip;
    }
  });
  return best;
}
