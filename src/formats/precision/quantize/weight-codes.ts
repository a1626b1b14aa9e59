import type { WeightStream } from '../../onnx/weight.js';
import { dtypes } from '../../tensor/dtype.js';
import type { QuantizedFormat } from '../formats/format.js';
import type { ConvertedStream } from '../weight-conversion.js';
import { forSegments } from './scale-layout.js';
import type { WeightScales } from './weight-scales.js';

/** The codes of a FP32 weight, chunk by chunk as it is read; memory does not grow with the weight. Nothing becomes larger than the largest code. */
export function weightCodes(
  source: WeightStream,
  { storedDtype, encode }: QuantizedFormat,
  scales: WeightScales,
): ConvertedStream {
  const { bits } = dtypes[storedDtype];
  const elements = source.byteLength / 4;
  return {
    dtype: storedDtype,
    byteLength: Math.ceil((elements * bits) / 8),
    elements,
    losses: { saturated: 0, toZero: 0, subnormal: 0 },
    *chunks(chunkBytes?: number) {
      let position = 0;
      let scaled = new Float32Array(0);
      let codes = new Uint8Array(0);
      for (const chunk of source.chunks(chunkBytes === undefined ? undefined : chunkBytes * (32 / bits))) {
        const values = new Float32Array(chunk.buffer, chunk.byteOffset, chunk.byteLength >> 2);
        if (scaled.length < values.length) {
          scaled = new Float32Array(values.length);
          codes = new Uint8Array(Math.ceil((values.length * bits) / 8));
        }
        divide(values, position, scales, scaled);
        const target = codes.subarray(0, Math.ceil((values.length * bits) / 8));
        encode(scaled.subarray(0, values.length), target);
        yield target;
        position += values.length;
      }
    },
  };
}

function divide(
  values: Float32Array,
  position: number,
  { layout, at }: WeightScales,
  target: Float32Array,
): void {
  let row = -1;
  const factors = new Float64Array(layout.kind === 'columns' ? layout.columns : 0);
  forSegments(layout, position, values.length, (from, to, scale, isRow) => {
    if (!isRow) return multiplyRun(values, from, to, 1 / at(scale), target);
    const start = scale - (scale % factors.length);
    // The reciprocals of a row are made once for all rows that share them.
    if (start !== row)
      for (let column = 0; column < factors.length; column++) factors[column] = 1 / at(start + column);
    row = start;
    multiplyColumns(values, from, to, factors, scale - start, target);
  });
}

function multiplyRun(
  values: Float32Array,
  from: number,
  to: number,
  factor: number,
  target: Float32Array,
): void {
  for (let i = from; i < to; i++) target[i] = values[i]! * factor;
}

function multiplyColumns(
  values: Float32Array,
  from: number,
  to: number,
  factors: Float64Array,
  column: number,
  target: Float32Array,
): void {
  for (let i = from; i < to; i++, column++) target[i] = values[i]! * factors[column]!;
}
