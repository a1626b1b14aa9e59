import type { WeightStream } from '../../onnx/weight.js';
import { smallFloatTable } from '../../tensor/low-precision.js';
import type { QuantizedFormat } from '../formats/format.js';
import { encodeE4m3, fp8 } from '../formats/fp8.js';
import { type InputMoments, leastError } from './clip-search.js';
import type { WeightOperand } from './operands.js';
import { blockOf } from './placement-rules.js';
import { CHUNK_BYTES, floatsOf, forSegments, type ScaleLayout } from './scale-layout.js';
import type { StoredScale } from './stored-scale.js';

/** The scales of a weight. */
export interface WeightScales {
  readonly layout: ScaleLayout;
  /** Attributes of the DequantizeLinear. */
  readonly axis: number;
  readonly block: number | undefined;
  /** Dimensions of the tensor of scales. */
  readonly dims: readonly number[];
  /** As they are stored: floats, or E4M3 codes with the scale of the tensor that they multiply. */
  readonly stored: Float32Array | { readonly codes: Uint8Array; readonly tensorScale: number };
  /** The scale that a code is multiplied by. */
  readonly at: (index: number) => number;
}

/**
 * Reads a weight (twice where a block has several scales to choose from) and finds its scales, in memory that does not grow with the weight but for the scales
 * themselves. With moments of what it multiplies, scales are chosen by the error of the products. Returns why it has none where it holds infinities or NaN, or where a scale is beyond the type that it is stored in.
 */
export function weightScales(
  source: WeightStream,
  operand: WeightOperand,
  format: QuantizedFormat,
  storedScale: StoredScale,
  inputs?: InputMoments,
): WeightScales | string {
  const shape = scaleShape(operand, format);
  const count = shape.dims.reduce((product, dim) => product * dim, 1);
  const magnitudes = largestMagnitudes(source, shape.layout, count);
  const largest = magnitudes.reduce((most, magnitude) => Math.max(most, magnitude), 0);
  if (!Number.isFinite(largest)) return 'its weight holds infinities or NaN';
  const choose = (scaleOf: (index: number, share: number) => number): Float32Array | undefined =>
    format.clips.length > 1 ? leastError(source, shape.layout, count, format, scaleOf, inputs) : undefined;
  if (format.scaleDtype === null) {
    const scaleOf = (index: number, share: number) => storedScale(magnitudes[index]! * share, format.largest);
    if (scaleOf(magnitudes.indexOf(largest), 1) === undefined)
      return `its weight reaches ${largest.toPrecision(5)}, whose scale is beyond the type that it is stored in`;
    const valid = (index: number, share: number) => scaleOf(index, share) ?? 1;
    const shares = choose(valid);
    const scales = Float32Array.from(magnitudes, (_, index) => valid(index, shares?.[index] ?? 1));
    return { ...shape, stored: scales, at: (index) => scales[index]! };
  }
  const tensorScale = storedScale(largest / format.largest, fp8.largest);
  if (tensorScale === undefined) return 'the scale of its weight is beyond the type that it is stored in';
  const table = smallFloatTable(format.scaleDtype);
  const one = new Float32Array(1);
  const code = new Uint8Array(1);
  const codeOf = (index: number, share: number): number => {
    one[0] = (magnitudes[index]! * share) / format.largest / tensorScale;
    encodeE4m3(one, code);
    // A scale must be positive: a block of zeros has 1, and what is too small the smallest.
    return magnitudes[index] === 0 ? ONE : Math.max(1, code[0]!);
  };
  const shares = choose((index, share) => table[codeOf(index, share)]! * tensorScale);
  const codes = Uint8Array.from(magnitudes, (_, index) => codeOf(index, shares?.[index] ?? 1));
  return { ...shape, stored: { codes, tensorScale }, at: (index) => table[codes[index]!]! * tensorScale };
}

/** The E4M3 code of 1. */
const ONE = 0x38;

function scaleShape(
  { dims, channelAxis, sumAxis }: WeightOperand,
  format: QuantizedFormat,
): Pick<WeightScales, 'layout' | 'axis' | 'block' | 'dims'> {
  const block = sumAxis === undefined ? undefined : blockOf(dims[sumAxis] ?? 0, format);
  const columns = dims[1] ?? 1;
  if (block !== undefined && sumAxis !== undefined) {
    const layout: ScaleLayout =
      sumAxis === 0 ? { kind: 'columns', columns, rows: block } : { kind: 'runs', run: block };
    return {
      layout,
      axis: sumAxis,
      block,
      dims: dims.map((dim, axis) => (axis === sumAxis ? dim / block : dim)),
    };
  }
  const channels = dims[channelAxis] ?? 1;
  const inner = dims.slice(1).reduce((product, dim) => product * dim, 1);
  const layout: ScaleLayout =
    channelAxis === 0 ? { kind: 'runs', run: inner } : { kind: 'columns', columns, rows: dims[0] ?? 1 };
  return { layout, axis: channelAxis, block: undefined, dims: [channels] };
}

/** The largest magnitude under each scale; infinity or NaN where there is one. */
function largestMagnitudes(source: WeightStream, layout: ScaleLayout, count: number): Float32Array {
  const largest = new Float32Array(count);
  let position = 0;
  for (const chunk of source.chunks(CHUNK_BYTES)) {
    const values = floatsOf(chunk);
    forSegments(layout, position, values.length, (from, to, scale, isRow) => {
      if (isRow)
        for (let i = from; i < to; i++) {
          const magnitude = Math.abs(values[i]!);
          if (magnitude > largest[scale + i - from]! || Number.isNaN(magnitude))
            largest[scale + i - from] = magnitude;
        }
      else {
        let most = largest[scale]!;
        for (let i = from; i < to; i++) {
          const magnitude = Math.abs(values[i]!);
          if (magnitude > most || Number.isNaN(magnitude)) most = magnitude;
        }
        largest[scale] = most;
      }
    });
    position += values.length;
  }
  return largest;
}
